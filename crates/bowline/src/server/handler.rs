//! Functions as handlers: the signatures that are allowed, and what they become.
//!
//! A handler takes its arguments as one type, with or without a [`Context`] before them, and is
//! `async`. The arguments are deserialized at once, straight from the frame, so the future owns
//! only what the handler needs.

use std::future::Future;
use std::pin::Pin;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::context::Context;
use super::schema;

/// A boxed future.
pub(crate) type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// A closure that can be a tool, a prompt or a resource: `|arguments| async { … }`,
/// `|context, arguments| async { … }`, `|| async { … }`.
///
/// `Shape` tells the forms apart and is never written by hand.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a handler",
    label = "not an async closure or function of the right shape",
    note = "expected `async fn()`, `async fn(Arguments)` or `async fn(Context, Arguments)`",
    note = "`Arguments` must be `Deserialize + JsonSchema + Send + 'static`, and the future must be `Send`"
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

/// A handler without arguments.
#[derive(Debug)]
pub struct Bare;

/// A handler that takes arguments.
#[derive(Debug)]
pub struct Plain<A>(std::marker::PhantomData<A>);

/// A handler that takes the context and arguments.
#[derive(Debug)]
pub struct Contextual<A>(std::marker::PhantomData<A>);

/// Arguments of a handler that takes none: any object.
#[derive(Debug, Default, serde::Deserialize)]
pub struct Nothing {}

impl<F, R> Handler<Bare> for F
where
    F: Fn() -> R + Send + Sync + 'static,
    R: Future + Send + 'static,
    R::Output: Send + 'static,
{
    type Arguments = Nothing;
    type Output = R::Output;
    type Future = R;

    fn start(&self, _: &Context, _: Nothing) -> R {
        self()
    }

    fn arguments_schema() -> Value {
        schema::no_arguments()
    }
}

impl<F, A, R> Handler<Plain<A>> for F
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

impl<F, A, R> Handler<Contextual<A>> for F
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
