//! `bowline debug` and `bowline tap --view` as people use them, in a pseudo-terminal, and as
//! scripts do, through pipes.

#![allow(clippy::unwrap_used, reason = "a test")]

mod pipe;
#[cfg(unix)]
mod prompt;
mod server;
#[cfg(unix)]
mod terminal;
#[cfg(unix)]
mod view;
#[cfg(unix)]
mod welcome;

const PROGRAM: &str = env!("CARGO_BIN_EXE_bowline");
