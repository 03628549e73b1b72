//! A soak: mixed traffic of all kinds on one real process, over HTTP and standard input and output,
//! in all revisions, from clients that come and go. When they are gone, the process has as much
//! memory, as many descriptors and as many threads as after the warm-up.
//!
//! It lasts under a minute; with `BOWLINE_FULL=1` (`cargo xtask soak --full`) an hour, with 2,000
//! clients. The program starts itself as the server.

#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr, reason = "a test")]
#![allow(clippy::disallowed_methods, reason = "the clock of a test")]

#[cfg(target_os = "linux")]
mod server;
#[cfg(target_os = "linux")]
mod traffic;

/// As in the ready-made servers: it gives back what is free.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
fn main() {
    // Thousands of clients need as many descriptors, here and in the server.
    let mut most = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    most.current = most.maximum;
    let _ = rustix::process::setrlimit(rustix::process::Resource::Nofile, most);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    if std::env::var_os(server::ROLE).is_some() {
        runtime.block_on(server::serve());
    } else {
        runtime.block_on(traffic::soak());
    }
}
