//! What peers see of this crate: the official examples, the official schemas, messages from notes.
//!
//! The official texts are not part of this repository. They are read from the sibling folder
//! `shared`, or from the folder in `BOWLINE_SHARED`; without them, only the cases written here run.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "everything here is a test")]

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
