//! Cases from the official conformance suite and the official clients that no other test covers.

#![expect(clippy::unwrap_used, reason = "helpers of tests panic as tests do")]

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;

use bowline::http::{Body, HttpService};
use bowline::{Context, Server, Tool};
use http::{Request, Response};
use http_body::Body as _;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

/// A server with a tool that releases its client and continues once it may, and one that is ready
/// at once.
fn service(gate: &Arc<Semaphore>) -> HttpService {
    let gate = Arc::clone(gate);
    let patient = Tool::new("patient", move |context: Context, _: Value| {
        let gate = Arc::clone(&gate);
        async move {
            context.progress(1.0, None, "before");
            context.release_stream();
            tokio::task::yield_now().await;
            gate.acquire().await.unwrap().forget();
            context.progress(2.0, None, "after");
            "done"
        }
    });
    let quick = Tool::new("quick", |context: Context, _: Value| async move {
        context.progress(1.0, None, "before");
        "done"
    });
    Server::new("test", "1").with(patient).with(quick).http().into_service().unwrap()
}

async fn send(service: &HttpService, headers: &[(&str, &str)], body: &Value) -> Response<Body> {
    let method = if body.is_null() { "GET" } else { "POST" };
    let mut request = Request::builder()
        .method(method)
        .uri("/mcp")
        .header("host", "localhost")
        .header("accept", "application/json, text/event-stream")
        .header("content-type", "application/json");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    service.handle(request.body(body.to_string()).unwrap()).await
}

/// Everything until the body ends.
async fn read(response: Response<Body>) -> String {
    let mut body = pin!(response.into_body());
    let mut all = Vec::new();
    let rest = async {
        while let Some(Ok(frame)) = poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
            all.extend_from_slice(frame.data_ref().unwrap());
        }
    };
    super::client::soon("the end of the body", rest).await;
    String::from_utf8(all).unwrap()
}

/// Calls a tool in a session of a revision; returns the session and the events of the stream.
async fn call(service: &HttpService, name: &str, revision: &str) -> (String, String) {
    let client = json!({ "name": "test", "version": "1" });
    let params = json!({ "protocolVersion": revision, "capabilities": {}, "clientInfo": client });
    let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
    let opened = send(service, &[], &hello).await;
    let session = opened.headers()["mcp-session-id"].to_str().unwrap().to_owned();
    let headers = [("mcp-session-id", session.as_str()), ("mcp-protocol-version", revision)];
    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    assert_eq!(send(service, &headers, &ready).await.status(), 202);
    let meta = json!({ "progressToken": "t" });
    let params = json!({ "name": name, "arguments": {}, "_meta": meta });
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let said = read(send(service, &headers, &call).await).await;
    (session, said)
}

#[tokio::test]
async fn a_client_that_was_let_go_comes_back_for_the_answer() {
    let gate = Arc::new(Semaphore::new(0));
    let service = service(&gate);
    let (session, said) = call(&service, "patient", "2025-11-25").await;
    assert!(said.starts_with("id: ") && said.contains("retry: "), "{said}");
    assert!(!said.contains("done"), "{said}");
    gate.add_permits(1);
    let id = said.lines().rev().find_map(|line| line.strip_prefix("id: ")).unwrap();
    let headers = [
        ("mcp-session-id", session.as_str()),
        ("mcp-protocol-version", "2025-11-25"),
        ("last-event-id", id),
    ];
    let rest = read(send(&service, &headers, &Value::Null).await).await;
    // Nothing is lost or repeated.
    let all = format!("{said}{rest}");
    for (what, times) in [("before", 1), ("after", 1), ("done", 1)] {
        assert_eq!(all.matches(what).count(), times, "{what}: {all}");
    }
    assert!(rest.contains("after") && rest.contains("done"), "{rest}");
}

#[tokio::test]
async fn a_client_that_could_not_come_back_is_kept() {
    for revision in ["2025-03-26", "2025-06-18"] {
        let (_, said) = call(&service(&Arc::new(Semaphore::new(1))), "patient", revision).await;
        for what in ["before", "after", "done"] {
            assert!(said.contains(what), "{revision}: {said}");
        }
    }
}

#[tokio::test]
async fn a_handler_that_reports_and_never_waits_is_answered() {
    for revision in ["2025-03-26", "2025-11-25"] {
        let (_, said) = call(&service(&Arc::new(Semaphore::new(0))), "quick", revision).await;
        for what in ["before", "done"] {
            assert_eq!(said.matches(what).count(), 1, "{revision}: {said}");
        }
    }
}
