//! What a call costs a server, in allocations: exact counts, which change only when the code does.
//!
//! A binary of its own, because the counting allocator is that of the whole process. The client is
//! a stream that holds its requests ready and forgets the answers, so that nothing but the server's
//! work is counted. A handler that is ready at once takes no task.

#![expect(clippy::unwrap_used, reason = "all of it is tests")]

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use allocation_counter::measure;
use bowline::{Server, TaskLimits, TaskMode, Tasks, Tool};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::runtime::{Builder, Handle};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Echo {
    message: String,
}

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"ink","version":"1.0"}}}
"#;

const LEGACY: &str = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","arguments":{"message":"hello"}}}
"#;

const MODERN: &str = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","arguments":{"message":"hello"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"ink","version":"1.0"},"io.modelcontextprotocol/clientCapabilities":{}}}}
"#;

/// A client whose requests are ready, and that discards the answers.
struct Feed {
    first: &'static [u8],
    call: &'static [u8],
    left: usize,
    written: usize,
}

impl AsyncRead for Feed {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        buffer.put_slice(std::mem::take(&mut self.first));
        // Whole lines: one that crosses chunks is copied.
        while self.left > 0 && buffer.remaining() >= self.call.len() {
            buffer.put_slice(self.call);
            self.left -= 1;
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Feed {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.written += bytes.len();
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

fn server(tools: usize) -> Server {
    let echo = |echo: Echo| async move {
        assert_eq!(Handle::current().metrics().num_alive_tasks(), 0, "a task was spawned");
        echo.message
    };
    let server = Server::new("alloc", "1.0.0").with(Tool::new("echo", echo));
    let more = (1..tools).map(|number| Tool::new(format!("tool-{number}"), || async { "" }));
    server.with(more.collect::<Vec<_>>())
}

/// All that a server allocates to serve so many calls.
fn serve(tools: usize, first: &'static str, call: &'static str, calls: usize) -> u64 {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let server = server(tools);
    let feed = Feed { first: first.as_bytes(), call: call.as_bytes(), left: calls, written: 0 };
    measure(|| runtime.block_on(server.serve(feed)).unwrap()).count_total
}

fn check(first: &'static str, call: &'static str, expected: u64) {
    const CALLS: usize = 16_000;
    for tools in [1, 100, 1_000] {
        let once = serve(tools, first, call, CALLS);
        let twice = serve(tools, first, call, 2 * CALLS);
        let (each, rest) = ((twice - once) / CALLS as u64, (twice - once) % CALLS as u64);
        assert_eq!((each, rest), (expected, 0), "with {tools} tools");
    }
}

// The argument's text, which the handler owns; what handler and connection share (`Call`), which a
// handler may keep; the handler's future, which may have to wait; the list of content blocks.
#[test]
fn a_legacy_call() {
    check(INITIALIZE, LEGACY, 4);
}

const TASK: &str = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","arguments":{"message":"hello"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"ink","version":"1.0"},"io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}}
"#;

/// All that a server allocates to serve so many calls that become tasks, which are kept.
fn serve_tasks(calls: usize) -> u64 {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let limits = TaskLimits {
        tasks: usize::MAX,
        tasks_per_owner: usize::MAX,
        memory: usize::MAX,
        memory_per_owner: usize::MAX,
        // A task that waits for its turn is written once more.
        running: usize::MAX,
        running_per_owner: usize::MAX,
        ..TaskLimits::default()
    };
    let echo = Tool::new("echo", |echo: Echo| async move { echo.message });
    let server = Server::new("alloc", "1.0.0")
        .with(echo.task(TaskMode::Required))
        .tasks(Tasks::in_memory_with(limits));
    let feed = Feed { first: b"", call: TASK.as_bytes(), left: calls, written: 0 };
    measure(|| runtime.block_on(server.serve(feed)).unwrap()).count_total
}

// A task is written twice, with its indexes, and has a run of its own. The tables of the store
// grow, so the number is not exact; the benchmark counts instructions.
#[test]
fn a_task_in_memory() {
    const CALLS: usize = 4_000;
    let each = (serve_tasks(2 * CALLS) - serve_tasks(CALLS)) / CALLS as u64;
    assert!((30..=70).contains(&each), "{each} allocations");
}

// The same: what a modern request says of its sender is compared with the one before, not copied.
#[test]
fn a_modern_call() {
    check("", MODERN, 4);
}
