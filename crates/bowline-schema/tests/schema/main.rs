//! Schemas and values, from outside.

#![expect(
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    reason = "tests panic when they fail, and take what `json!` makes"
)]

mod bombs;
mod differential;
mod keywords;
mod messages;
mod refusals;
mod suite;
