//! The client against servers on loopback: TLS, proxies, limits, and the guard.

#![expect(clippy::unwrap_used, reason = "all of it is tests")]

mod guard;
mod limits;
mod plain;
mod proxies;
mod tls;
mod world;
