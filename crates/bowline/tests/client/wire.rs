//! The other end of a byte stream, in the hands of a test: it reads what the client wrote, line by
//! line, and writes what it likes.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use bowline::client::{Client, ClientBuilder, Target};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::fixture::soon;

/// A byte stream that holds all that is written to it, and lets through as much as it is told to.
#[derive(Clone, Default)]
pub(crate) struct Wire(Arc<Mutex<Ends>>);

#[derive(Default)]
struct Ends {
    /// What the client wrote.
    written: Vec<u8>,
    /// How much of it the test has read.
    read: usize,
    /// How many bytes the client may still write; `None` for any number.
    allowed: Option<usize>,
    /// What the client has not read yet.
    sent: VecDeque<u8>,
    is_ended: bool,
    /// Whether nobody reads what the client writes.
    is_broken: bool,
    wakers: Vec<Waker>,
}

impl Wire {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Sends a message to the client.
    pub(crate) fn say(&self, message: &Value) {
        self.send(format!("{message}\n").as_bytes());
    }

    /// Sends bytes to the client.
    pub(crate) fn send(&self, bytes: &[u8]) {
        self.change(|ends| ends.sent.extend(bytes));
    }

    /// Ends what the client reads.
    pub(crate) fn end(&self) {
        self.change(|ends| ends.is_ended = true);
    }

    /// Reads nothing more that the client writes, and lets it know.
    pub(crate) fn stop_reading(&self) {
        self.change(|ends| ends.is_broken = true);
    }

    /// Lets the client write so many bytes more, or any number.
    pub(crate) fn allow(&self, allowed: Option<usize>) {
        self.change(|ends| ends.allowed = allowed);
    }

    fn change(&self, change: impl FnOnce(&mut Ends)) {
        let mut ends = self.0.lock().unwrap();
        change(&mut ends);
        ends.wakers.drain(..).for_each(Waker::wake);
    }

    /// All that the client wrote, ever.
    pub(crate) fn written(&self) -> Vec<u8> {
        self.0.lock().unwrap().written.clone()
    }

    /// The next message of the client. Waits for it.
    pub(crate) async fn next(&self) -> Value {
        soon("a message", self.arrival()).await
    }

    /// The next message of the client, whenever it comes.
    pub(crate) async fn arrival(&self) -> Value {
        std::future::poll_fn(|cx| {
            let mut ends = self.0.lock().unwrap();
            let rest = &ends.written[ends.read..];
            match rest.iter().position(|byte| *byte == b'\n') {
                Some(end) => {
                    let message = serde_json::from_slice(&rest[..end]).unwrap();
                    ends.read += end + 1;
                    Poll::Ready(message)
                }
                None => {
                    ends.wakers.push(cx.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }

    /// The next message, which must be this question.
    pub(crate) async fn asked(&self, method: &str) -> Value {
        let message = self.next().await;
        assert_eq!(message["method"], method, "{message}");
        message
    }

    /// Answers a question.
    pub(crate) fn answer(&self, question: &Value, result: Value) {
        let mut answer = json!({ "jsonrpc": "2.0", "id": question["id"] });
        answer["result"] = result;
        self.say(&answer);
    }

    /// Refuses a question.
    pub(crate) fn refuse(&self, question: &Value, code: i64) {
        let error = json!({ "code": code, "message": "no" });
        self.say(&json!({ "jsonrpc": "2.0", "id": question["id"], "error": error }));
    }

    /// A client of the legacy or the modern era on the other end.
    pub(crate) async fn connect(&self, is_modern: bool, builder: ClientBuilder) -> Client {
        let connecting = tokio::spawn(builder.connect(Target::stream(self.clone())));
        let probe = self.asked("server/discover").await;
        match is_modern {
            true => self.answer(&probe, discovered()),
            false => {
                self.refuse(&probe, -32601);
                let hello = self.asked("initialize").await;
                self.answer(&hello, initialized());
                self.asked("notifications/initialized").await;
            }
        }
        soon("a connection", connecting).await.unwrap().unwrap()
    }
}

pub(crate) fn capabilities() -> Value {
    json!({
        "tools": { "listChanged": true },
        "prompts": {},
        "resources": { "subscribe": true, "listChanged": true },
    })
}

/// How a modern server answers `server/discover`.
pub(crate) fn discovered() -> Value {
    json!({
        "resultType": "complete", "supportedVersions": ["2026-07-28"],
        "capabilities": capabilities(), "ttlMs": 0, "cacheScope": "private",
    })
}

/// How a legacy server answers `initialize`.
pub(crate) fn initialized() -> Value {
    json!({
        "protocolVersion": "2025-11-25", "capabilities": capabilities(),
        "serverInfo": { "name": "wire", "version": "1.0.0" },
    })
}

/// How a tool answers.
pub(crate) fn text(text: &str) -> Value {
    json!({ "resultType": "complete", "content": [{ "type": "text", "text": text }] })
}

impl AsyncRead for Wire {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut ends = self.0.lock().unwrap();
        if ends.sent.is_empty() && !ends.is_ended {
            ends.wakers.push(cx.waker().clone());
            return Poll::Pending;
        }
        let ready = ends.sent.as_slices().0;
        let count = ready.len().min(buffer.remaining());
        buffer.put_slice(&ready[..count]);
        ends.sent.drain(..count);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let mut ends = self.0.lock().unwrap();
        if ends.is_broken {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        let count = bytes.len().min(ends.allowed.unwrap_or(usize::MAX));
        if count == 0 {
            ends.wakers.push(cx.waker().clone());
            return Poll::Pending;
        }
        if let Some(allowed) = &mut ends.allowed {
            *allowed -= count;
        }
        ends.written.extend_from_slice(&bytes[..count]);
        ends.wakers.drain(..).for_each(Waker::wake);
        Poll::Ready(Ok(count))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
