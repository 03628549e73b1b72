//! Runs the examples in the documentation of the attributes; the other tests are in `tests`.
//!
//! A package of its own: the dependencies of an attribute's tests are compiled for the compiler,
//! apart from those of everything else.

pub mod strict;

#[cfg(doctest)]
#[doc = include_str!("../../bowline-macros/docs/tool.md")]
mod tool {}

#[cfg(doctest)]
#[doc = include_str!("../../bowline-macros/docs/prompt.md")]
mod prompt {}

#[cfg(doctest)]
#[doc = include_str!("../../bowline-macros/docs/resource.md")]
mod resource {}

#[cfg(doctest)]
#[doc = include_str!("../../bowline-macros/docs/server.md")]
mod server {}
