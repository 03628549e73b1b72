//! HTTP: whatever a client sends to a service, in whatever pieces, it gets an answer, the answer is
//! what its type says, and the next client is served.
//!
//! An input is the lengths of pieces, then requests with `%%` on a line between them. A request is
//! a line with the method and the path, lines with headers, an empty line, and the body. The host
//! and the session are filled in where a header is `host: *` or `mcp-session-id: *`.

#![no_main]

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use bowline::http::{Body, HttpService};
use bowline::{Server, Tool};
use bowline_fuzz::{Bytes as Decisions, cut};
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Request, Response};
use http_body::{Body as _, Frame};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use tokio::runtime::Builder;
use tokio::time::timeout;

/// Virtual: longer than any limit of a service.
const PATIENCE: Duration = Duration::from_secs(3600);

fuzz_target!(|input: &[u8]| {
    let runtime = Builder::new_current_thread().enable_all().start_paused(true).build();
    runtime.expect("a runtime needs nothing").block_on(converse(input));
});

async fn converse(input: &[u8]) {
    let server = Server::new("fuzzed", "0").with(Tool::new("quick", || async { "quick" })).with(
        Tool::new("waits", || async {
            tokio::time::sleep(Duration::from_secs(9)).await;
            "late"
        }),
    );
    let service = server.http().into_service().expect("its settings are sound");
    let mut decisions = Decisions::new(input);
    let lengths = decisions.lengths();
    let mut session = None;
    let text = decisions.rest();
    for text in split(text, b"\n%%\n").into_iter().take(16) {
        let Some(request) = request(text, &lengths, session.as_ref()) else { continue };
        let response = timeout(PATIENCE, service.handle(request)).await.expect("an answer");
        session = response.headers().get("mcp-session-id").cloned().or(session);
        check(response).await;
    }
    is_alive(&service).await;
}

fn split<'a>(mut text: &'a [u8], between: &[u8]) -> Vec<&'a [u8]> {
    let mut parts = Vec::new();
    while let Some(at) = text.windows(between.len()).position(|window| window == between) {
        parts.push(&text[..at]);
        text = &text[at + between.len()..];
    }
    parts.push(text);
    parts
}

/// A body that arrives in pieces.
struct Pieces(VecDeque<Bytes>);

impl http_body::Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.pop_front().map(|piece| Ok(Frame::data(piece))))
    }
}

/// `None` if HTTP has no such request.
fn request(
    text: &[u8],
    lengths: &[usize],
    session: Option<&HeaderValue>,
) -> Option<Request<Pieces>> {
    let (head, body) = match split(text, b"\n\n")[..] {
        [head] => (head, &b""[..]),
        [head, ..] => (head, &text[head.len() + 2..]),
        [] => return None,
    };
    let mut lines = std::str::from_utf8(head).ok()?.lines();
    let (method, path) = lines.next()?.split_once(' ')?;
    let pieces = cut(body, lengths).into_iter().map(Bytes::copy_from_slice);
    let mut request = Request::new(Pieces(pieces.collect()));
    *request.method_mut() = Method::from_bytes(method.as_bytes()).ok()?;
    *request.uri_mut() = path.parse().ok()?;
    for line in lines {
        let (name, value) = line.split_once(": ")?;
        let value = match (name, value) {
            ("host", "*") => HeaderValue::from_static("localhost"),
            ("mcp-session-id", "*") => session?.clone(),
            _ => HeaderValue::from_str(value).ok()?,
        };
        request.headers_mut().append(HeaderName::from_bytes(name.as_bytes()).ok()?, value);
    }
    Some(request)
}

async fn check(response: Response<Body>) {
    let status = response.status();
    assert!(status.as_u16() != 500, "{response:?}");
    let kind = response.headers().get("content-type").cloned();
    let kind = kind.as_ref().and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let (text, is_whole) = read(response).await;
    if kind.starts_with("application/json") && is_whole {
        let json: Result<Value, _> = serde_json::from_slice(&text);
        assert!(json.is_ok(), "{status}: {}", String::from_utf8_lossy(&text));
    }
    if kind.starts_with("text/event-stream") {
        let text = String::from_utf8(text).expect("events are text");
        for data in text.lines().filter_map(|line| line.strip_prefix("data: {")) {
            let message: Result<Value, _> = serde_json::from_str(&format!("{{{data}"));
            assert!(message.is_ok(), "{data}");
        }
    }
}

/// What comes within a while, and whether that is all. Streams may have no end.
async fn read(response: Response<Body>) -> (Vec<u8>, bool) {
    let mut body = pin!(response.into_body());
    let mut text = Vec::new();
    for _ in 0..64 {
        let frame = poll_fn(|context| body.as_mut().poll_frame(context));
        match timeout(Duration::from_secs(20), frame).await {
            Ok(Some(Ok(frame))) => text.extend(frame.into_data().unwrap_or_default()),
            Ok(None) => return (text, true),
            Ok(Some(Err(_))) | Err(_) => break,
        }
    }
    (text, false)
}

async fn is_alive(service: &HttpService) {
    let mut request = Request::new(String::new());
    *request.uri_mut() = http::Uri::from_static("/health");
    request.headers_mut().insert("host", HeaderValue::from_static("localhost"));
    let response = timeout(PATIENCE, service.handle(request)).await.expect("an answer");
    assert_eq!(response.status().as_u16(), 200);
}
