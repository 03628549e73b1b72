//! A gateway in front of servers in memory; tests are grouped as its users' complaints are.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod access;
mod closed;
mod faults;
mod health;
mod names;
mod openapi;
mod reloads;
mod replicas;
mod tasks;
mod telemetry;
mod web;
mod world;
