//! A server and a client with the official Rust SDK, written as its documentation shows:
//! `rmcp-bench stdio`, `rmcp-bench http PORT`, `rmcp-bench client REVISION URL|COMMAND…`.
//!
//! `--tuned` before the command selects the fastest options: one thread, non-blocking pipes, plain
//! JSON responses and, for the client, connection reuse. `--sessions` keeps sessions.

mod client;
mod server;

use std::error::Error;

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// The options before the command.
#[derive(Default, Clone, Copy)]
struct Options {
    is_tuned: bool,
    has_sessions: bool,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut options = Options::default();
    while let Some(first) = arguments.first() {
        match first.as_str() {
            "--tuned" => options.is_tuned = true,
            "--sessions" => options.has_sessions = true,
            _ => break,
        }
        arguments.remove(0);
    }
    let mut builder = if options.is_tuned {
        tokio::runtime::Builder::new_current_thread()
    } else {
        tokio::runtime::Builder::new_multi_thread()
    };
    let runtime = builder.enable_all().build()?;
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["stdio"] => runtime.block_on(server::stdio(options)),
        ["http", port] => runtime.block_on(server::http(options, port.parse()?)),
        ["client", revision, ref target @ ..] if !target.is_empty() => {
            runtime.block_on(client::run(options, revision, target))
        }
        _ => Err("usage: rmcp-bench [--tuned] [--sessions] stdio | http PORT | \
                  client REVISION URL|COMMAND…"
            .into()),
    }
}
