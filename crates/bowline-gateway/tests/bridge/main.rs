//! The bridge between every kind of client and every kind of server.

#![expect(clippy::unwrap_used, reason = "all of it is tests")]
#![allow(clippy::needless_pass_by_value, reason = "a check takes what it compares")]

mod matrix;
mod rows;
mod scenes;
#[cfg(unix)]
mod spliced;
mod world;
