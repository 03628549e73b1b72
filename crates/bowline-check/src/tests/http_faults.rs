//! What servers do wrong over HTTP, one fault per row.

use bowline::Revision;
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderValue, Method, Response, StatusCode};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::faulty::Fault;
use super::{Running, check, good, not_found, post, settings};
use crate::check::Target;
use crate::frames::Event;
use crate::probe::Settings;

/// A fault, and the check that must find it in this revision.
pub(super) struct Row {
    pub(super) id: &'static str,
    revision: Revision,
    fault: Fault,
}

const R24: Revision = Revision::V2024_11_05;
const R06: Revision = Revision::V2025_06_18;
const R11: Revision = Revision::V2025_11_25;
const R26: Revision = Revision::V2026_07_28;

const fn row(
    id: &'static str,
    revision: Revision,
    fault: fn(&Parts, &[u8], &mut Response<Bytes>),
) -> Row {
    Row { id, revision, fault: Fault { after: fault, event: |_| {} } }
}

/// Changes a response of an HTTP+SSE server.
const fn answers(id: &'static str, fault: fn(&Parts, &[u8], &mut Response<Bytes>)) -> Row {
    row(id, R24, fault)
}

/// Changes an event on its stream.
const fn says(id: &'static str, event: fn(&mut Event)) -> Row {
    Row { id, revision: R11, fault: Fault { after: |_, _, _| {}, event } }
}

/// The status becomes 200 if the request has a header.
fn let_in(sent: &Parts, header: &str, answer: &mut Response<Bytes>) {
    if sent.headers.contains_key(header) {
        *answer.status_mut() = StatusCode::OK;
    }
}

fn is(sent: &Parts, header: &str, value: &str) -> bool {
    sent.headers.get(header).is_some_and(|it| it == value)
}

fn always_ok(answer: &mut Response<Bytes>) {
    *answer.status_mut() = StatusCode::OK;
}

pub(super) const ROWS: &[Row] = &[
    row("http.origin", R06, |q, _, a| let_in(q, "origin", a)),
    row("http.origin", R11, |q, _, a| {
        if q.headers.contains_key("origin") {
            *a.status_mut() = StatusCode::BAD_REQUEST;
        }
    }),
    row("http.origin-null", R26, |q, _, a| let_in(q, "origin", a)),
    row("http.host", R11, |q, _, a| let_in(q, "host", a)),
    row("http.content-type", R11, |q, _, a| {
        if is(q, "content-type", "text/plain") {
            always_ok(a);
        }
    }),
    row("http.accept", R11, |q, _, a| {
        if is(q, "accept", "text/html") {
            always_ok(a);
        }
    }),
    row("http.notification", R11, |_, _, a| {
        if a.status() == StatusCode::ACCEPTED {
            always_ok(a);
        }
    }),
    row("http.get", R11, |q, _, a| {
        if q.method == Method::GET {
            *a.status_mut() = StatusCode::NOT_FOUND;
        }
    }),
    row("http.bad-version", R11, |q, _, a| {
        if is(q, "mcp-protocol-version", "1999-12-31") {
            always_ok(a);
        }
    }),
    row("http.session-id", R11, |_, body, a| {
        if body.windows(10).any(|it| it == b"initialize") {
            a.headers_mut().insert("mcp-session-id", HeaderValue::from_static("a b"));
        }
    }),
    row("http.session-missing", R11, |q, _, a| {
        if !q.headers.contains_key("mcp-session-id") && a.status() == StatusCode::BAD_REQUEST {
            *a.status_mut() = StatusCode::FORBIDDEN;
        }
    }),
    row("http.session-unknown", R11, |_, _, a| {
        if a.status() == StatusCode::NOT_FOUND {
            *a.status_mut() = StatusCode::BAD_REQUEST;
        }
    }),
    row("http.session-ended", R11, |_, _, a| {
        if a.status() == StatusCode::NOT_FOUND {
            *a.status_mut() = StatusCode::BAD_REQUEST;
        }
    }),
    row("http.delete", R11, |q, _, a| {
        if q.method == Method::DELETE {
            *a.status_mut() = StatusCode::NOT_IMPLEMENTED;
        }
    }),
    row("http.method-mismatch", R26, |_, _, a| always_ok(a)),
    row("http.method-missing", R26, |_, _, a| always_ok(a)),
    row("http.version-mismatch", R26, |_, _, a| always_ok(a)),
    row("http.version-missing", R26, |_, _, a| always_ok(a)),
    row("http.name-mismatch", R26, |_, _, a| always_ok(a)),
    row("http.name-missing", R26, |_, _, a| always_ok(a)),
    row("http.name-encoded", R26, |q, _, a| {
        if q.headers.get("mcp-name").is_some_and(|it| it.as_bytes().starts_with(b"=?")) {
            *a.body_mut() =
                r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32020,"message":"no"}}"#.into();
        }
    }),
    row("http.status-404", R26, |_, _, a| always_ok(a)),
    row("http.status-400", R26, |_, _, a| always_ok(a)),
    row("http.get-405", R26, |q, _, a| {
        if q.method == Method::GET {
            *a.status_mut() = StatusCode::NOT_FOUND;
        }
    }),
    row("http.pollution", R11, |q, _, a| {
        if q.method == Method::POST
            && a.status() == StatusCode::OK
            && a.body().starts_with(b"{")
            && a.body().windows(6).any(|it| it == b"-32601")
        {
            *a.body_mut() = "\"hello\"".into();
        }
    }),
    row("http.media-type", R11, |_, _, a| {
        if a.body().starts_with(b"{") {
            a.headers_mut().insert("content-type", HeaderValue::from_static("text/plain"));
        }
    }),
    row("modern.no-session", R26, |_, _, a| {
        drop(a.headers_mut().insert("mcp-session-id", HeaderValue::from_static("a")));
    }),
];

/// What servers of HTTP+SSE do wrong.
pub(super) const EVENTS: &[Row] = &[
    says("sse.endpoint", |frame| {
        if frame.name.as_deref() == Some("endpoint") {
            frame.data = b"http://elsewhere.example/messages?session=1".to_vec();
        }
    }),
    says("sse.endpoint", |frame| {
        if frame.name.as_deref() == Some("endpoint") {
            frame.name = None;
        }
    }),
    answers("sse.post", |q, _, a| {
        if q.method == Method::POST {
            always_ok(a);
        }
    }),
    answers("sse.unknown-session", |q, _, a| {
        if q.uri.query().is_some_and(|it| it.contains("=000000")) {
            *a.status_mut() = StatusCode::ACCEPTED;
        }
    }),
    answers("sse.origin", |q, _, a| {
        if q.method == Method::GET {
            let_in(q, "origin", a);
        }
    }),
    answers("sse.origin", |q, _, a| {
        if q.method == Method::POST {
            let_in(q, "origin", a);
        }
    }),
    answers("sse.host", |q, _, a| let_in(q, "host", a)),
    answers("sse.content-type", |q, _, a| {
        if is(q, "content-type", "text/plain") {
            always_ok(a);
        }
    }),
    answers("sse.successor", |q, _, a| {
        if q.uri.path() == "/mcp" {
            *a.status_mut() = StatusCode::NOT_FOUND;
            a.body_mut().clear();
        }
    }),
    says("sse.pollution", |frame| {
        if frame.data.windows(6).any(|it| it == b"-32601") {
            frame.data.splice(..0, *b"hello ");
        }
    }),
    says("sse.message-events", |frame| {
        if frame.data.windows(6).any(|it| it == b"-32601") {
            frame.name = Some("answer".to_owned());
        }
    }),
];

/// Faults that only show on a socket.
pub(super) const BY_SOCKET: [&str; 1] = ["http.stream-ends"];

/// Faults that only show while other checks run.
const WATCHED: [&str; 5] = [
    "http.pollution",
    "http.media-type",
    "modern.no-session",
    "sse.pollution",
    "sse.message-events",
];

#[tokio::test]
async fn each_fault_is_found() {
    let mut missed = Vec::new();
    for row in ROWS {
        let running = Running::start(good()).await;
        let post = row.fault.between(&running.post).await;
        missed.extend(find(row, settings(Target::Http(post)), "").await);
    }
    assert_eq!(missed, [""; 0]);
}

#[tokio::test]
async fn each_fault_of_a_stream_is_found() {
    let mut missed = Vec::new();
    for row in EVENTS {
        let running = Running::start(good()).await;
        let post = row.fault.between(&running.events).await;
        let mut settings = settings(Target::HttpSse(post));
        // The message never comes, so this is how long the check waits for it.
        if WATCHED.contains(&row.id) {
            settings.timeout = std::time::Duration::from_secs(20);
        }
        missed.extend(find(row, settings, "jsonrpc,sse").await);
    }
    assert_eq!(missed, [""; 0]);
}

/// Looks for the fault, along with other checks that provoke it.
async fn find(row: &Row, settings: Settings, others: &str) -> Option<String> {
    let only = if WATCHED.contains(&row.id) { others } else { row.id };
    let mut findings = check(&settings, only, &[row.revision]).await;
    findings.retain(|finding| finding.rule.id == row.id);
    not_found(row.id, &findings)
}

#[tokio::test]
async fn a_stream_that_is_left_open_is_noticed() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let task = tokio::spawn(async move {
        let mut open = Vec::new();
        while let Ok((mut socket, _)) = listener.accept().await {
            let mut head = vec![0; 4096];
            let _ = socket.read(&mut head).await;
            let answer = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n\
                data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"resultType\":\"complete\"}}\n\n";
            let _ = socket.write_all(answer.as_bytes()).await;
            open.push(socket);
        }
    });
    let mut settings = settings(Target::Http(post(&url)));
    // The fault is that nothing more comes, so this is how long the check waits.
    settings.timeout = std::time::Duration::from_secs(10);
    let findings = check(&settings, "http.stream-ends", &[R26]).await;
    task.abort();
    assert_eq!(not_found("http.stream-ends", &findings), None);
}

#[tokio::test]
async fn a_server_that_is_gone_is_not_accused_of_everything() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    drop(listener);
    let settings = settings(Target::Http(post(&url)));
    let findings = check(&settings, "", &[R11, R26]).await;
    let accused = findings.iter().filter(|finding| finding.verdict.is_problem()).count();
    assert_eq!(accused, 2);
}
