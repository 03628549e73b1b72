//! What a call costs a client on a stream: allocations, and bytes while it waits. Exact counts.
//!
//! A binary of its own, because the counting allocator is the allocator of the whole process. The
//! server is a stream that answers as soon as it is written to, with answers made beforehand, so
//! that nothing but the client's work is counted.

#![expect(clippy::unwrap_used, reason = "all of it is tests")]

use std::collections::VecDeque;
use std::future::IntoFuture;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use allocation_counter::measure;
use bowline::client::{Client, Preference, Target};
use serde::Serialize;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::runtime::Builder;

#[derive(Serialize)]
struct Echo {
    message: &'static str,
}

const DISCOVERED: &str = r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"canned","version":"1.0"}}}"#;

const INITIALIZED: &str = r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"canned","version":"1.0"}}"#;

const ANSWER: &str = r#"{"content":[{"type":"text","text":"hello"}],"isError":false}"#;

const MODERN_ANSWER: &str =
    r#"{"resultType":"complete","content":[{"type":"text","text":"hello"}],"isError":false}"#;

/// A server that answers at once, or never.
#[derive(Clone)]
struct Canned(Arc<Mutex<Answers>>);

struct Answers {
    result: &'static str,
    is_silent: bool,
    /// What can be read, in a ring that does not grow any more.
    ready: VecDeque<u8>,
    reader: Option<Waker>,
}

impl Canned {
    fn new(result: &'static str) -> Self {
        let ready = VecDeque::with_capacity(64 << 10);
        Self(Arc::new(Mutex::new(Answers { result, is_silent: false, ready, reader: None })))
    }
}

impl Answers {
    fn answer(&mut self, line: &[u8]) {
        let text = std::str::from_utf8(line).unwrap();
        let Some((_, rest)) = text.split_once(r#""id":"#) else { return };
        let id = &rest[..rest.find(',').unwrap()];
        let result = match text {
            text if text.contains("server/discover") => DISCOVERED,
            text if text.contains(r#""initialize""#) => INITIALIZED,
            _ if self.is_silent => return,
            _ => self.result,
        };
        for part in [r#"{"jsonrpc":"2.0","id":"#, id, r#","result":"#, result, "}\n"] {
            self.ready.extend(part.as_bytes());
        }
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
    }
}

impl AsyncRead for Canned {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut answers = self.0.lock().unwrap();
        if answers.ready.is_empty() {
            answers.reader = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let count = answers.ready.len().min(buffer.remaining());
        let (front, back) = answers.ready.as_slices();
        buffer.put_slice(&front[..front.len().min(count)]);
        buffer.put_slice(&back[..count.saturating_sub(front.len())]);
        answers.ready.drain(..count);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Canned {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let mut answers = self.0.lock().unwrap();
        for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            answers.answer(line);
        }
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

async fn connect(canned: &Canned, preference: Preference) -> Client {
    let builder = Client::builder("alloc", "1.0.0").preference(preference);
    builder.connect(Target::stream(canned.clone())).await.unwrap()
}

async fn call(client: &Client, calls: usize) {
    for _ in 0..calls {
        let text = client.call_tool("echo", Echo { message: "hello" }).text().await.unwrap();
        assert_eq!(text, "hello");
    }
}

/// Allocations of a call whose answer is ready, and what is left over.
fn cost(preference: Preference, answer: &'static str) -> (u64, u64) {
    const CALLS: usize = 1_000;
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let canned = Canned::new(answer);
    let client = runtime.block_on(connect(&canned, preference));
    runtime.block_on(call(&client, 10));
    let info = measure(|| runtime.block_on(call(&client, CALLS)));
    assert_eq!(info.bytes_current, 0, "a call leaves something behind");
    runtime.block_on(client.close());
    (info.count_total / CALLS as u64, info.count_total % CALLS as u64)
}

// The tool's name, the parameters as text, what caller and reader share (`oneshot`), the stack that
// `serde_json` keeps while it skips the result, the copy of the result for the caller, the list of
// content blocks, the text.
#[test]
fn a_legacy_call() {
    assert_eq!(cost(Preference::Legacy, ANSWER), (7, 0));
}

// The same.
#[test]
fn a_modern_call() {
    assert_eq!(cost(Preference::Modern, MODERN_ANSWER), (7, 0));
}

/// Half of it is the future of the call, a fifth the place in the table of calls, whose size is a
/// power of two.
#[test]
fn a_call_that_waits() {
    const CALLS: usize = 1_000;
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let canned = Canned::new(ANSWER);
    let client = runtime.block_on(connect(&canned, Preference::Legacy));
    canned.0.lock().unwrap().is_silent = true;
    let hold = |calls: usize| {
        let mut held = Vec::with_capacity(calls);
        let info = measure(|| {
            for _ in 0..calls {
                let call = client.call_tool("echo", Echo { message: "hello" });
                let mut call = Box::pin(call.into_future());
                let waiting = call.as_mut().poll(&mut Context::from_waker(Waker::noop()));
                assert!(waiting.is_pending());
                held.push(call);
            }
        });
        runtime.block_on(tokio::task::yield_now());
        (held, info)
    };
    let (first, _) = hold(CALLS);
    let (second, info) = hold(CALLS);
    let each = info.bytes_current / CALLS as i64;
    println!("a call that waits: {each} bytes");
    assert!(each <= 1_536, "{each} bytes");
    assert_eq!(client.pending().len(), 2 * CALLS);
    drop((first, second));
    assert_eq!(client.pending().len(), 0);
}
