//! What peers see of this crate: the official examples, the official schemas, messages from notes.
//!
//! The official texts are not part of this repository. They are read from `shared` beside it, or
//! from wherever `BOWLINE_SHARED` points; without them the cases written here remain.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "all of it is tests")]

mod cases;
mod examples;
mod examples_own;
mod rules;
mod schemas;
mod seeds;
mod shared;
mod strategies;
mod survival;
mod typed;
