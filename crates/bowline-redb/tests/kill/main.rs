//! Servers that are killed at every step of a task, and started again on the same file.
//!
//! This program starts itself as a server on stdio that ends itself with SIGKILL at a step of our
//! choice, or is killed after a message of our choice. Whatever happened, the task ends once, with
//! the result that its recorded values and answers demand; a value of `once` that was recorded is
//! never made again. `BOWLINE_FULL=1` adds a thousand kills at random steps.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test")]
#![allow(clippy::disallowed_methods, reason = "the clock of a guard against hanging")]

#[cfg(unix)]
mod cases;
#[cfg(unix)]
mod child;
#[cfg(unix)]
mod client;
#[cfg(unix)]
mod journal;

fn main() {
    #[cfg(unix)]
    match std::env::var_os(child::FOLDER) {
        Some(folder) => child::serve(folder.as_ref()),
        None => cases::run(),
    }
}
