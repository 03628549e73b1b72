//! A server under faults, from outside: the example `probe` as a child process, and what must hold
//! in each case. The rows are those of the project's table of faults.
//!
//! `BOWLINE_FULL=1` runs them at full size (a gibibyte, a hundred thousand calls); without it they
//! are scaled down to seconds. No time is measured: a guard of a minute catches what hangs.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "all of it is tests")]
#![allow(clippy::print_stdout, reason = "figures, which `cargo xtask faults` collects")]

mod ends;
mod flood;
mod frames;
mod hostile;
mod probe;
mod storm;
