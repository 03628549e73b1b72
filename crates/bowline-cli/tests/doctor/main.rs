//! `bowline doctor` against servers that work and against everything that does not: it names each
//! cause, and leaves no process behind.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test")]

mod commands;
mod sites;
mod world;
