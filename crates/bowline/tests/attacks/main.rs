//! What anonymous peers can make a server hold: the example `probe` as a child process, one attack
//! after the other, and its peak resident size. The rows are those of docs/reliability.md.
//!
//! `BOWLINE_FULL=1` runs them at full size and waits a minute before it measures what is left.
//! Without it they are scaled down, and must only stay within the same bounds.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "all of it is tests")]
#![expect(clippy::print_stdout, reason = "the table is the result")]

mod calls;
mod heads;
mod server;
mod sessions;
mod sse;
