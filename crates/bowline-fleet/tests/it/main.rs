//! Fleets on a real Postgres and a real Redis.

#![allow(clippy::unwrap_used, clippy::panic, unreachable_pub, dead_code, reason = "a test")]
#![cfg(target_os = "linux")]

#[path = "../trial/balancer.rs"]
mod balancer;
mod changes;
mod held;
#[path = "../trial/http.rs"]
mod http;
mod keys;
mod letters;
mod nodes;
mod owners;
#[path = "../trial/proxy.rs"]
mod proxy;
mod secured;
mod sessions;
mod stopping;
mod store;
mod stores;
mod strangers;
mod tasks;
