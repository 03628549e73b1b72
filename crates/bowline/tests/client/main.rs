//! The client: against servers in memory, as child processes and over HTTP; nice ones and nasty
//! ones.

#![allow(clippy::unwrap_used, reason = "tests")]
#![allow(clippy::print_stdout, reason = "figures, which `cargo xtask faults` collects")]

#[cfg(target_os = "linux")]
mod bounds;
mod canary;
mod common;
#[cfg(target_os = "linux")]
mod crowd;
#[cfg(target_os = "linux")]
mod dropped;
#[cfg(target_os = "linux")]
mod eras;
#[cfg(target_os = "linux")]
mod fixture;
#[cfg(target_os = "linux")]
mod http_eras;
#[cfg(target_os = "linux")]
mod http_faults;
#[cfg(target_os = "linux")]
mod nasty;
#[cfg(target_os = "linux")]
mod proxied;
#[cfg(target_os = "linux")]
mod rows;
#[cfg(target_os = "linux")]
mod state;
#[cfg(target_os = "linux")]
mod tasks;
#[cfg(target_os = "linux")]
mod tasks_hostile;
#[cfg(target_os = "linux")]
mod tasks_http;
#[cfg(target_os = "linux")]
mod tasks_legacy;
#[cfg(target_os = "linux")]
mod tasks_ours;
mod watched;
#[cfg(target_os = "linux")]
mod web;
#[cfg(target_os = "linux")]
mod wire;
mod world;
