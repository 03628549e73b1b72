//! What the attributes expand to besides the builder. Not for use by hand, and not part of the API.
//!
//! A function may return a value that is an output already, or data that becomes one when it is
//! wrapped. Which of them is found out by the compiler: [`Returned`] stands for the type, and each
//! case is implemented for one reference less, so that method lookup takes the first that holds.
//! The last case holds always and changes nothing, so that the builder reports what is wrong.

use std::marker::PhantomData;
use std::sync::Arc;

use bowline_proto::model::Icon;
pub use schemars;
pub use serde;

use crate::{Part, Parts, ResourceOutput, Structured, ToolOutput};

/// A picture by its URL.
pub fn icon(src: impl Into<String>) -> Icon {
    Icon { src: src.into(), ..Icon::default() }
}

/// A type whose `impl` block has `#[server]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be added to a server",
    note = "put `#[server]` on its `impl` block"
)]
pub trait Group: Send + Sync + 'static {
    /// Puts all marked methods into `parts`.
    fn add_to(this: Arc<Self>, parts: &mut Parts);
}

impl<G: Group> Part for Arc<G> {
    fn add_to(self, parts: &mut Parts) {
        G::add_to(self, parts);
    }
}

/// The type of what a function returned.
#[derive(Debug)]
pub struct Returned<T>(PhantomData<fn() -> T>);

impl<T> Returned<T> {
    /// The type of this value.
    pub fn of(_: &T) -> Self {
        Self(PhantomData)
    }
}

/// Makes an output of what a tool returned.
pub trait ToolReturn {
    /// What it returned.
    type Value;
    /// What becomes of it.
    type Output;

    /// Wraps it if need be.
    fn wrap(&self, value: Self::Value) -> Self::Output;
}

/// Makes an output of what a resource returned.
pub trait ResourceReturn {
    /// What it returned.
    type Value;
    /// What becomes of it.
    type Output;

    /// Wraps it if need be.
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
