//! Tokens that are good, and every way in which one is not.

#![expect(clippy::unwrap_used, reason = "all of it is tests")]
#![expect(clippy::needless_pass_by_value, reason = "`json!` makes values, not references")]

mod dpop;
mod guard;
mod introspection;
mod jwt;
mod rotation;
mod secrets;
mod statics;
mod world;
