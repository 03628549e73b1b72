//! The server for benchmarks and stress tests: `probe stdio` or `probe http PORT`, with `--tools N`
//! for N more tools.

#![expect(clippy::print_stderr, reason = "a program that tells how it is used")]
#![cfg_attr(feature = "http", expect(clippy::print_stdout, reason = "and where it listens"))]

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

#[cfg(feature = "http")]
use bowline::http::HttpLimits;
use bowline::{Context, Prompt, Resource, ServeError, Server, Tool};
use schemars::JsonSchema;
use serde::Deserialize;

/// As in the ready-made servers.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

#[derive(Deserialize, JsonSchema)]
struct Echo {
    /// What to say back.
    message: String,
}

#[derive(Deserialize, JsonSchema)]
struct Sum {
    a: i64,
    b: i64,
}

#[derive(Deserialize, JsonSchema)]
struct Slow {
    /// How long to wait, in milliseconds.
    ms: u64,
    message: String,
}

#[derive(Deserialize, JsonSchema)]
struct Work {
    /// How many times to wait and report.
    steps: u32,
    /// How long to wait each time, in milliseconds.
    ms: u64,
}

#[derive(Deserialize, JsonSchema)]
struct Greeting {
    /// Whom to greet.
    name: String,
}

fn server(more_tools: usize) -> Server {
    let server = Server::new("probe", "1.0.0")
        .with(Tool::new("echo", |echo: Echo| async move { echo.message }))
        .with(Tool::new("sum", |sum: Sum| async move { sum.a + sum.b }))
        .with(Tool::new("slow", |slow: Slow| async move {
            tokio::time::sleep(Duration::from_millis(slow.ms)).await;
            slow.message
        }))
        .with(Tool::new("boom", boom))
        .with(Tool::new("count", count))
        .with(Tool::new("work", |context: Context, work: Work| async move {
            for step in 1..=work.steps {
                context.progress(step.into(), f64::from(work.steps), "");
                tokio::time::sleep(Duration::from_millis(work.ms)).await;
            }
            "done"
        }))
        .with(Resource::text("test://static", "static", "It is always this."))
        .with(Prompt::new("greeting", |greeting: Greeting| async move {
            format!("Say hello to {}.", greeting.name)
        }));
    (0..more_tools).fold(server, |server, number| {
        server.with(Tool::new(format!("tool-{number}"), |echo: Echo| async move { echo.message }))
    })
}

/// Counts calls, so that tests can see what was executed.
async fn count() -> u64 {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    CALLS.fetch_add(1, Ordering::Relaxed) + 1
}

async fn boom() -> String {
    panic!("boom")
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), ServeError> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let more_tools = match arguments.iter().position(|it| it == "--tools") {
        Some(place) => arguments.get(place + 1).and_then(|it| it.parse().ok()).unwrap_or(0),
        None => 0,
    };
    match arguments.first().map(String::as_str) {
        Some("stdio") => server(more_tools).serve_stdio().await,
        #[cfg(feature = "http")]
        Some("http") => {
            bowline::http::raise_file_limit();
            let port = arguments.get(1).map_or("8080", String::as_str);
            let address = format!("127.0.0.1:{port}");
            let listener = tokio::net::TcpListener::bind(&address)
                .await
                .map_err(|source| ServeError::Listen { address, source })?;
            // For port 0.
            if let Ok(address) = listener.local_addr() {
                println!("{address}");
            }
            // One address stands for all clients.
            let limits = HttpLimits {
                connections_per_party: usize::MAX,
                sessions_per_party: usize::MAX,
                streams_per_party: usize::MAX,
                calls_per_party: usize::MAX,
                ..HttpLimits::default()
            };
            server(more_tools).http().limits(limits).serve_on(listener).await
        }
        _ => {
            eprintln!("usage: probe stdio | probe http PORT, with [--tools N]");
            std::process::exit(2);
        }
    }
}
