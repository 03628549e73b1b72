//! `bowline debug` as people use it, in a pseudo-terminal, and as scripts do, through pipes.

#![allow(clippy::unwrap_used, reason = "a test")]

mod pipe;
#[cfg(unix)]
mod prompt;
mod server;
#[cfg(unix)]
mod terminal;

const PROGRAM: &str = env!("CARGO_BIN_EXE_bowline");
