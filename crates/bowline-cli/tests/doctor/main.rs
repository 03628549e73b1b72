//! `bowline doctor` against servers that work and against everything that does not: it names the
//! cause of each, and leaves nothing behind.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test")]

mod commands;
mod sites;
mod world;
