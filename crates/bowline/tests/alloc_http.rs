//! What HTTP costs: allocations of one request, bytes of one idle session. Exact counts.
//!
//! A binary of its own, because the counting allocator is the allocator of the whole process.

#![expect(clippy::unwrap_used, reason = "all of it is tests")]

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use allocation_counter::{AllocationInfo, measure};
use bowline::http::{Body, HttpService};
use bowline::{Resource, Server, Tool};
use http::{Request, Response};
use http_body::Body as _;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Sum {
    a: i64,
    b: i64,
}

const CALL: &str = concat!(
    r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"sum","#,
    r#""arguments":{"a":1023123,"b":2352345},"_meta":{"#,
    r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
    r#""io.modelcontextprotocol/clientInfo":{"name":"ink","version":"1.0"},"#,
    r#""io.modelcontextprotocol/clientCapabilities":{}}}}"#,
);

const LEGACY_CALL: &str = concat!(
    r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"sum","#,
    r#""arguments":{"a":1023123,"b":2352345}}}"#,
);

const INITIALIZE: &str = concat!(
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","#,
    r#""capabilities":{"elicitation":{},"sampling":{},"roots":{"listChanged":true}},"#,
    r#""clientInfo":{"name":"claude-code","title":"Claude Code","version":"2.1.0"}}}"#,
);

const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

fn service(tools: usize) -> HttpService {
    let mut server = Server::new("alloc", "1.0.0")
        .with(Tool::new("sum", |sum: Sum| async move { sum.a + sum.b }))
        .with(Resource::text("alloc://a", "a", "a"));
    for number in 1..tools {
        server = server.with(Tool::new(format!("tool{number}"), || async { "x" }));
    }
    server.http().into_service().unwrap()
}

fn post(body: &'static str, headers: &[(&'static str, &str)]) -> Request<String> {
    let mut request = Request::post("/mcp")
        .header("host", "localhost")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(body.to_owned()).unwrap()
}

fn call() -> Request<String> {
    let headers =
        [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/call"), ("mcp-name", "sum")];
    post(CALL, &headers)
}

/// Nothing here ever waits.
fn now<F: Future>(work: F) -> F::Output {
    match pin!(work).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("it waits"),
    }
}

fn read(response: Response<Body>) -> (u16, Vec<u8>) {
    let status = response.status().as_u16();
    let mut body = pin!(response.into_body());
    let mut all = Vec::new();
    while let Some(frame) = now(poll_fn(|cx| body.as_mut().poll_frame(cx))) {
        all.extend_from_slice(&frame.unwrap().into_data().unwrap());
    }
    (status, all)
}

fn cost(service: &HttpService) -> AllocationInfo {
    cost_of(service, call)
}

fn cost_of(service: &HttpService, call: impl Fn() -> Request<String>) -> AllocationInfo {
    // The first calls fill caches.
    for _ in 0..2 {
        let (status, body) = read(now(service.handle(call())));
        assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
        assert!(String::from_utf8_lossy(&body).contains("3375468"));
    }
    let request = call();
    let mut response = None;
    let info = measure(|| response = Some(now(service.handle(request))));
    assert_eq!(response.unwrap().status(), 200);
    info
}

/// Runs within a runtime, and says how many tasks were spawned meanwhile: on one thread, none of
/// them can have ended.
fn in_runtime<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let guard = runtime.enter();
    let output = work();
    let tasks = runtime.metrics().num_alive_tasks();
    drop(guard);
    (output, tasks)
}

/// What a request's handler and whoever drives it share; the outbox; the handler's future; what the
/// tool says, as text and as a list of one; the answer, and what `bytes` needs to share it.
const CALL_ALLOCATIONS: u64 = 7;

#[test]
fn a_modern_call_allocates_little_and_spawns_nothing() {
    let (info, tasks) = in_runtime(|| cost(&service(1)));
    println!("a modern call: {} allocations, {} bytes", info.count_total, info.bytes_total);
    assert_eq!(tasks, 0);
    assert_eq!(info.count_total, CALL_ALLOCATIONS);
}

#[test]
fn a_call_of_a_session_allocates_as_little() {
    let (info, tasks) = in_runtime(|| {
        let service = service(1);
        let id = open_session(&service);
        let headers = [("mcp-protocol-version", "2025-11-25"), ("mcp-session-id", id.as_str())];
        cost_of(&service, || post(LEGACY_CALL, &headers))
    });
    println!("a call of a session: {} allocations, {} bytes", info.count_total, info.bytes_total);
    assert_eq!(tasks, 0);
    // And what `bytes` needs to share the id. In what comes from a socket everything is shared.
    assert_eq!(info.count_total, CALL_ALLOCATIONS + 1);
}

#[test]
fn a_call_costs_the_same_among_a_thousand_tools() {
    let (counts, _) = in_runtime(|| [1, 1_000].map(|tools| cost(&service(tools)).count_total));
    assert_eq!(counts[0], counts[1]);
}

fn open_session(service: &HttpService) -> String {
    let response = now(service.handle(post(INITIALIZE, &[])));
    assert_eq!(response.status(), 200);
    let id = response.headers()["mcp-session-id"].to_str().unwrap().to_owned();
    let ready = post(INITIALIZED, &[("mcp-session-id", &id)]);
    assert_eq!(now(service.handle(ready)).status(), 202);
    id
}

#[test]
fn an_idle_session_is_small() {
    const SESSIONS: i64 = 1_000;
    let (each, tasks) = in_runtime(|| {
        let service = service(1);
        open_session(&service);
        let info = measure(|| {
            for _ in 0..SESSIONS {
                open_session(&service);
            }
        });
        info.bytes_current / SESSIONS
    });
    println!("an idle session: {each} bytes");
    assert_eq!(tasks, 0);
    assert!(each <= 2_048, "{each} bytes");
}
