//! Recorded servers of both eras, and clients of every revision.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bowline::Revision;
use bowline::client::FormAnswer;
use bowline_proto::json::Json;
use serde_json::{Value, json};

use super::*;
use crate::session_file::{Line, LineKind, Opening, Way};
use Way::{Received, Sent};

fn recording(messages: &[(f64, Way, Value)]) -> Recording {
    let line = |(at, way, message): &(f64, Way, Value)| Line {
        kind: LineKind::Message,
        at: *at,
        direction: Some(*way),
        message: Some(Json::from(message)),
        ..Line::default()
    };
    let opening = Opening::now(json!({ "command": "recorded", "args": [] }));
    Recording { opening, lines: messages.iter().map(line).collect(), problems: Vec::new() }
}

fn request(id: u64, method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

fn result(id: u64, result: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

fn form() -> Value {
    let schema = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
    json!({ "mode": "form", "message": "Who?", "requestedSchema": schema })
}

fn text(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }], "x-kept": true })
}

/// A legacy server that reports progress and asks.
fn legacy() -> Recording {
    let initialize = json!({
        "protocolVersion": "2025-06-18",
        "capabilities": { "tools": {} },
        "serverInfo": { "name": "recorded", "version": "7" },
    });
    let tools = json!({ "tools": [{ "name": "greet", "inputSchema": { "type": "object" } }] });
    let call = json!({ "name": "greet", "arguments": {}, "_meta": { "progressToken": "p" } });
    let progress = json!({ "progressToken": "p", "progress": 1, "total": 2 });
    let accept = json!({ "action": "accept", "content": { "name": "Ada" } });
    recording(&[
        (0.0, Sent, request(0, "initialize", &json!({ "protocolVersion": "2025-06-18" }))),
        (0.1, Received, result(0, &initialize)),
        (0.2, Sent, json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })),
        (0.3, Sent, request(1, "tools/list", &json!({}))),
        (0.4, Received, result(1, &tools)),
        (1.0, Sent, request(2, "tools/call", &call)),
        (
            1.1,
            Received,
            json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": progress }),
        ),
        (1.2, Received, request(0, "elicitation/create", &form())),
        (4.0, Sent, result(0, &accept)),
        (6.0, Received, result(2, &text("hello Ada"))),
    ])
}

/// A modern server that does the same.
fn modern() -> Recording {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "x", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": { "elicitation": { "form": {} } },
    });
    let discover = json!({
        "supportedVersions": ["2026-07-28"],
        "capabilities": { "tools": {} },
        "resultType": "complete",
        "ttlMs": 0,
        "cacheScope": "private",
        "_meta": { "io.modelcontextprotocol/serverInfo": { "name": "recorded", "version": "7" } },
    });
    let tools = json!({
        "tools": [{ "name": "greet", "inputSchema": { "type": "object" } }],
        "resultType": "complete",
        "ttlMs": 0,
        "cacheScope": "private",
    });
    let mut asking = meta.clone();
    asking["progressToken"] = json!("p");
    let first = json!({ "name": "greet", "arguments": {}, "_meta": asking });
    let ask = json!({
        "resultType": "input_required",
        "inputRequests": { "who": { "method": "elicitation/create", "params": form() } },
        "requestState": "s1",
    });
    let progress = json!({ "progressToken": "p", "progress": 1, "total": 2 });
    let answers = json!({ "who": { "action": "accept", "content": { "name": "Ada" } } });
    let retry = json!({
        "name": "greet",
        "arguments": {},
        "requestState": "s1",
        "inputResponses": answers,
        "_meta": meta,
    });
    let mut done = text("hello Ada");
    done["resultType"] = json!("complete");
    recording(&[
        (0.0, Sent, request(0, "server/discover", &json!({ "_meta": meta }))),
        (0.1, Received, result(0, &discover)),
        (0.3, Sent, request(1, "tools/list", &json!({ "_meta": meta }))),
        (0.4, Received, result(1, &tools)),
        (1.0, Sent, request(2, "tools/call", &first)),
        (
            1.1,
            Received,
            json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": progress }),
        ),
        (1.2, Received, result(2, &ask)),
        (4.0, Sent, request(3, "tools/call", &retry)),
        (9.0, Received, result(3, &done)),
    ])
}

/// A client of a revision, which gives another answer than the recorded one did.
fn client(revision: Revision, asked: &Arc<AtomicUsize>) -> ClientBuilder {
    let asked = Arc::clone(asked);
    Client::builder("test", "1").preference(Preference::Pin(revision)).on_form(move |form| {
        assert_eq!(form.message, "Who?");
        asked.fetch_add(1, Ordering::SeqCst);
        async { Ok(FormAnswer::accept(&json!({ "name": "Grace" }))) }
    })
}

#[tokio::test]
async fn every_revision_is_served_with_questions_and_progress() {
    for (name, recording) in [("legacy", legacy()), ("modern", modern())] {
        let mock = Mock::new(&recording, false);
        for revision in Revision::ALL {
            let asked = Arc::default();
            let client = client(revision, &asked);
            let client = client.connect(mock.server().await.unwrap()).await.unwrap();
            let info = client.peer().unwrap().info.clone().unwrap();
            assert_eq!((info.name.as_str(), info.version.as_str()), ("recorded", "7"));
            let (heard, hears) = (Arc::new(AtomicUsize::new(0)), revision >= Revision::V2025_06_18);
            let counted = Arc::clone(&heard);
            let call = client.call_tool("greet", json!({})).on_progress(move |progress| {
                assert_eq!((progress.progress, progress.total), (1.0, Some(2.0)));
                counted.fetch_add(1, Ordering::SeqCst);
            });
            let said = call.text().await;
            // Before 2025-06-18 nobody could be asked. A legacy server does not mind.
            if hears || name == "legacy" {
                assert_eq!(said.unwrap(), "hello Ada", "{name} {revision}");
            } else {
                said.unwrap_err();
            }
            assert_eq!(asked.load(Ordering::SeqCst), usize::from(hears), "{name} {revision}");
            assert_eq!(heard.load(Ordering::SeqCst), 1, "{name} {revision}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn requests_are_answered_side_by_side_and_take_as_long_as_they_did() {
    let mock = Mock::new(&legacy(), true);
    let asked = Arc::default();
    let client = client(Revision::LATEST_LEGACY, &asked);
    let client = client.connect(mock.server_for_one().await.unwrap()).await.unwrap();
    let begun = tokio::time::Instant::now();
    let call = || client.call_tool("greet", json!({}));
    let (one, two, three) = tokio::join!(call().text(), call().text(), call().text());
    assert_eq!(
        (one.unwrap(), two.unwrap(), three.unwrap().as_str()),
        ("hello Ada".into(), "hello Ada".into(), "hello Ada")
    );
    let took = begun.elapsed();
    assert!((Duration::from_secs(5)..Duration::from_secs(8)).contains(&took), "{took:?}");
}

#[tokio::test]
async fn what_was_not_recorded_is_made_up_or_an_error() {
    // A recording whose beginning is gone.
    let call = request(2, "tools/call", &json!({ "name": "greet", "arguments": {} }));
    let recording = recording(&[(0.0, Sent, call), (0.1, Received, result(2, &text("hello")))]);
    let server = Mock::new(&recording, false).server().await.unwrap();
    let client = Client::connect(server).await.unwrap();
    let greeted = client.call_tool("greet", json!({}));
    assert_eq!(greeted.text().await.unwrap(), "hello");
    let other = client.call_tool("greet", json!({ "x": 1 })).text().await.unwrap_err();
    let other = bowline::with_causes(&other);
    assert!(other.contains("the recording has no answer to tools/call"), "{other}");
    client.call_tool("other", json!({})).text().await.unwrap_err();
}
