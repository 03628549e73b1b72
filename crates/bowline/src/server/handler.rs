//! Functions as handlers: the signatures that are allowed, and what they become.
//!
//! A handler takes the [`Context`], its arguments as one type, both or neither, and is `async`. The
//! arguments are deserialized at once, straight from the frame, so the future owns only what the
//! handler needs.

use std::future::Future;
use std::pin::Pin;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::context::Context;
use super::schema;

/// A boxed future.
pub(crate) type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// A closure or function that can be a tool, a prompt or a resource: `|arguments| async { … }`,
/// `|context, arguments| async { … }`, `|context| async { … }` or `|| async { … }`.
///
/// `Shape` is the tuple of its parameters; the compiler infers it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a handler",
    label = "not an async closure or function of the right shape",
    note = "expected `async fn()`, `async fn(Arguments)`, `async fn(Context)` or `async fn(Context, Arguments)`",
    note = "`Arguments` must be `Send + 'static`, and derive `bowline::serde::Deserialize` and \
            `bowline::schemars::JsonSchema`; the future must be `Send`"
)]
pub trait Handler<Shape>: Send + Sync + 'static {
    /// What it takes.
    type Arguments: DeserializeOwned + Send + 'static;
    /// What it returns.
    type Output: Send + 'static;

    /// What runs once it is started.
    type Future: Future<Output = Self::Output> + Send + 'static;

    /// Starts it.
    fn start(&self, context: &Context, arguments: Self::Arguments) -> Self::Future;

    /// The schema of its arguments.
    fn arguments_schema() -> Value;
}

/// The arguments of a handler that takes none: any object.
#[derive(Debug, Default, serde::Deserialize)]
pub struct NoArguments {}

impl<F, R> Handler<()> for F
where
    F: Fn() -> R + Send + Sync + 'static,
    R: Future + Send + 'static,
    R::Output: Send + 'static,
{
    type Arguments = NoArguments;
    type Output = R::Output;
    type Future = R;

    fn start(&self, _: &Context, _: NoArguments) -> R {
        self()
    }

    fn arguments_schema() -> Value {
        schema::no_arguments()
    }
}

impl<F, R> Handler<(Context,)> for F
where
    F: Fn(Context) -> R + Send + Sync + 'static,
    R: Future + Send + 'static,
    R::Output: Send + 'static,
{
    type Arguments = NoArguments;
    type Output = R::Output;
    type Future = R;

    fn start(&self, context: &Context, _: NoArguments) -> R {
        self(context.clone())
    }

    fn arguments_schema() -> Value {
        schema::no_arguments()
    }
}

impl<F, A, R> Handler<(A,)> for F
where
    F: Fn(A) -> R + Send + Sync + 'static,
    A: DeserializeOwned + JsonSchema + Send + 'static,
    R: Future + Send + 'static,
    R::Output: Send + 'static,
{
    type Arguments = A;
    type Output = R::Output;
    type Future = R;

    fn start(&self, _: &Context, arguments: A) -> R {
        self(arguments)
    }

    fn arguments_schema() -> Value {
        schema::arguments_schema_of::<A>()
    }
}

impl<F, A, R> Handler<(Context, A)> for F
where
    F: Fn(Context, A) -> R + Send + Sync + 'static,
    A: DeserializeOwned + JsonSchema + Send + 'static,
    R: Future + Send + 'static,
    R::Output: Send + 'static,
{
    type Arguments = A;
    type Output = R::Output;
    type Future = R;

    fn start(&self, context: &Context, arguments: A) -> R {
        self(context.clone(), arguments)
    }

    fn arguments_schema() -> Value {
        schema::arguments_schema_of::<A>()
    }
}

/// Runs a function that may block on a thread for blocking work, where it does not hold up others.
///
/// # Panics
/// When the function does; the panic is carried over to the caller's task.
pub async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(value) => value,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime is shutting down, and so is the task that waits for this.
            Err(_) => std::future::pending().await,
        },
    }
}
