//! Fleets on a real Postgres and a real Redis.

#![allow(clippy::unwrap_used, clippy::panic, unreachable_pub, dead_code, reason = "a test")]
#![cfg(target_os = "linux")]

#[path = "../trial/http.rs"]
mod http;
mod nodes;
mod store;
mod stores;
