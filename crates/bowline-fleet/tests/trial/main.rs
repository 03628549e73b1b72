//! Three nodes on a real Postgres and a real Redis, while everything fails that can.
//!
//! This program starts itself as the nodes of a fleet. Each node reaches its stores through a proxy
//! of its own that can cut it off. Clients of both eras create tasks, ask, answer and end sessions
//! on nodes of their choice, and write down what they were told, while a schedule that follows from
//! a seed kills, stops and separates. In the end everything is put right again, and the histories
//! are checked: see `check`.
//!
//! `BOWLINE_SEED=7` chooses the schedule; `BOWLINE_FULL=1` creates 10,000 tasks during an hour of
//! faults, with a schedule of its own each time.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "a test")]
#![allow(unreachable_pub, dead_code, reason = "modules that two tests share")]
#![allow(clippy::disallowed_methods, reason = "the clock of a test")]

#[cfg(target_os = "linux")]
mod balancer;
#[cfg(target_os = "linux")]
mod check;
#[cfg(target_os = "linux")]
mod clients;
#[cfg(target_os = "linux")]
mod faults;
#[cfg(target_os = "linux")]
mod http;
#[cfg(target_os = "linux")]
mod node;
#[cfg(target_os = "linux")]
mod proxy;
#[cfg(target_os = "linux")]
mod stage;
#[cfg(target_os = "linux")]
#[path = "../it/stores.rs"]
mod stores;

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
fn main() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    match (std::env::var(node::SETTINGS), std::env::var(stage::PROGRAM)) {
        (Ok(settings), _) => runtime.block_on(node::serve(&settings)),
        (_, Ok(program)) => runtime.block_on(stage::open(&program)),
        _ => runtime.block_on(faults::run()),
    }
}
