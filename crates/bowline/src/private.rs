//! Support for code that the attributes expand to. Not part of the public API.
//!
//! A function may return a value that is already an output, or data that must be wrapped first. The
//! compiler decides by autoref specialization: [`Returned`] stands for the type, and each case is
//! implemented with one reference less, so that method lookup takes the first that applies. The
//! last case always applies and changes nothing, so that the builder reports the error.

use std::any::Any;
use std::marker::PhantomData;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

pub use crate::server::handler::NoArguments;
use crate::{Context, Part, Parts, ResourceOutput, State, Structured, ToolOutput};

/// The state that a function takes as a parameter. The part must declare it with `needs_state`.
///
/// # Panics
/// When it is missing, which the declaration rules out: the server would not have been built.
pub fn state<T: Any + Send + Sync>(context: &Context) -> State<T> {
    context.state().expect("a server without the state that its parts declare cannot be built")
}

/// A type that a parameter can have.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument",
    label = "lacks `Deserialize` or `JsonSchema`",
    note = "derive it: `#[derive(bowline::serde::Deserialize, bowline::schemars::JsonSchema)]`",
    note = "without a dependency on serde and schemars, add `#[serde(crate = \"bowline::serde\")]` and \
            `#[schemars(crate = \"bowline::schemars\")]`"
)]
pub trait Argument: DeserializeOwned + JsonSchema {}

#[diagnostic::do_not_recommend]
impl<T: DeserializeOwned + JsonSchema> Argument for T {}

/// Compiles only for types that a parameter can have.
pub fn is_argument<T: Argument>() {}

/// A trait without implementations.
pub trait Never {}

/// A type that differs from `T`.
#[derive(Debug)]
pub struct Other<T>(PhantomData<T>);

/// A type whose `impl` block has `#[server]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be added to a server",
    note = "put `#[server]` on its `impl` block"
)]
pub trait Group: Send + Sync + 'static {
    /// Adds all marked methods to `parts`.
    fn add_to(this: Arc<Self>, parts: &mut Parts);
}

impl<G: Group> Part for Arc<G> {
    fn add_to(self, parts: &mut Parts) {
        G::add_to(self, parts);
    }
}

/// The return type of a function.
#[derive(Debug)]
pub struct Returned<T>(PhantomData<fn() -> T>);

impl<T> Returned<T> {
    /// The type of this value.
    pub fn of(_: &T) -> Self {
        Self(PhantomData)
    }
}

/// Converts the return value of a tool into an output.
pub trait ToolReturn {
    /// The return type.
    type Value;
    /// The output.
    type Output;

    /// Wraps the value if necessary.
    fn wrap(&self, value: Self::Value) -> Self::Output;
}

/// Converts the return value of a resource into an output.
pub trait ResourceReturn {
    /// The return type.
    type Value;
    /// The output.
    type Output;

    /// Wraps the value if necessary.
    fn wrap(&self, value: Self::Value) -> Self::Output;
}

/// The cases are the same for both.
macro_rules! cases {
    ($return:ident, $output:ident) => {
        impl<T: $output> $return for &&&Returned<T> {
            type Value = T;
            type Output = T;

            fn wrap(&self, value: T) -> T {
                value
            }
        }

        impl<T: serde::Serialize, E> $return for &&Returned<Result<T, E>> {
            type Value = Result<T, E>;
            type Output = Result<Structured<T>, E>;

            fn wrap(&self, value: Result<T, E>) -> Result<Structured<T>, E> {
                value.map(Structured)
            }
        }

        impl<T: serde::Serialize> $return for &Returned<T> {
            type Value = T;
            type Output = Structured<T>;

            fn wrap(&self, value: T) -> Structured<T> {
                Structured(value)
            }
        }

        impl<T> $return for Returned<T> {
            type Value = T;
            type Output = T;

            fn wrap(&self, value: T) -> T {
                value
            }
        }
    };
}
cases!(ToolReturn, ToolOutput);
cases!(ResourceReturn, ResourceOutput);
