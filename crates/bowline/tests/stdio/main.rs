//! The standard streams, tested from outside: this program starts itself as a child whose streams
//! are pipes, sockets, files or closed.
//!
//! It has a `main` of its own because the usual one writes to standard output before any test runs.

#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr, reason = "a test")]

#[cfg(unix)]
mod child;
#[cfg(unix)]
mod parent;

fn main() {
    #[cfg(unix)]
    match std::env::var(parent::ROLE) {
        Ok(role) => child::play(&role),
        Err(_) => parent::run(),
    }
}
