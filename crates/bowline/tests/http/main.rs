//! Servers over HTTP: clients of all revisions, and resilience against abuse.
//!
//! In memory where that is enough, on loopback sockets where it is not. `BOWLINE_FULL=1` runs the
//! full sizes.

#![expect(clippy::unwrap_used, reason = "all of it is tests")]
#![allow(clippy::print_stdout, reason = "figures, which `cargo xtask faults` collects")]
#![expect(clippy::needless_pass_by_value, reason = "`json!` makes values, not references")]

mod abuse;
mod audit;
#[cfg(feature = "auth")]
mod auth;
mod classification;
mod client;
mod context;
mod embedded;
mod ends;
mod fair;
mod gate;
mod legacy;
mod load;
mod modern;
mod regression;
mod sessions;
#[path = "../it/shelf.rs"]
mod shelf;
mod slow;
mod socket;
mod sse;
mod stop;
mod tasks;
#[cfg(feature = "tls")]
mod tls;
mod trail;
#[cfg(target_os = "linux")]
mod vanish;
mod world;
