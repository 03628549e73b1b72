//! Modern requests: answered with one body, or with a stream if there are other messages.

use std::time::Duration;

use bowline::Tool;
use bowline::http::HttpLimits;
use serde_json::{Value, json};

use super::client::{Ask, Event, call, modern, modern_with, open, send, soon};
use super::world::World;

fn talk(id: i64) -> Ask {
    let meta = json!({ "progressToken": "t", "io.modelcontextprotocol/logLevel": "info" });
    modern(id, "tools/call", json!({ "name": "talk", "_meta": meta }))
}

fn listen(id: impl Into<Value>, filter: Value) -> Ask {
    modern(id, "subscriptions/listen", json!({ "notifications": filter }))
}

#[tokio::test]
async fn an_answer_without_news_is_one_body() {
    let world = World::new();
    for tool in ["work", "talk", "point", "fails", "panics"] {
        let answer = send(&world.service, call(1, tool)).await;
        assert_eq!(answer.status, 200, "{tool}");
        assert_eq!(answer.header("content-type"), Some("application/json"), "{tool}");
        assert_eq!(answer.header("mcp-session-id"), None);
        assert_eq!(answer.json()["id"], 1);
    }
}

#[tokio::test]
async fn a_handler_with_news_opens_a_stream_and_ends_it() {
    let world = World::new();
    let answer = send(&world.service, talk(5)).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("content-type"), Some("text/event-stream"));
    assert_eq!(answer.header("x-accel-buffering"), Some("no"));
    assert_eq!(answer.header("cache-control"), Some("no-cache"));
    let events = super::client::events(&answer.body);
    assert!(events.iter().all(|event| event.id.is_none() && event.retry.is_none()));
    let said: Vec<_> = events.iter().map(Event::method).collect();
    let progress = "notifications/progress";
    assert_eq!(said, [progress, "notifications/message", progress, ""]);
    assert_eq!(events[0].json()["params"]["progress"], 1.0);
    assert_eq!(events[2].json()["params"]["progress"], 3.0);
    assert_eq!(events[3].json()["id"], 5);
    assert_eq!(answer.text(), "talked");
}

#[tokio::test]
async fn disconnecting_cancels() {
    let world = World::new();
    let request = call(1, "wait").into_request();
    let waiting = tokio::time::timeout(Duration::from_millis(50), world.service.handle(request));
    assert!(waiting.await.is_err());
    world.seen.until([1, 0, 1]).await;

    let mut stream = open(&world.service, talk(2)).await;
    assert_eq!(stream.next().await.unwrap().method(), "notifications/progress");
    drop(stream);
    world.seen.until([2, 0, 2]).await;
}

#[tokio::test]
async fn a_status_for_every_error() {
    let world = World::new();
    let cases: [(Ask, u16, i64); 10] = [
        (modern(1, "tools/none", json!({})), 404, -32601),
        (modern(1, "prompts/list", json!({})), 404, -32601),
        (call(1, "none"), 400, -32602),
        (modern(1, "resources/read", json!({ "uri": "world://none" })), 400, -32602),
        (modern(1, "tools/list", json!({ "cursor": "bogus" })), 400, -32602),
        (call(1, "name"), 400, -32021),
        (call(1, "say").with("mcp-name", "who"), 400, -32020),
        (call(1, "say").with("mcp-method", "tools/list"), 400, -32020),
        (call(1, "say").without("mcp-method"), 400, -32020),
        (Ask::post("{\"jsonrpc\"").with("mcp-protocol-version", "2026-07-28"), 400, -32700),
    ];
    for (at, (ask, status, code)) in cases.into_iter().enumerate() {
        let answer = send(&world.service, ask).await;
        assert_eq!((answer.status, answer.code()), (status, Some(code)), "{at}: {}", answer.body);
    }
    let panicked = send(&world.service, call(1, "panics")).await;
    assert_eq!((panicked.status, panicked.code()), (200, Some(-32603)));
    assert!(!panicked.body.contains("secret"));
}

#[tokio::test]
async fn arguments_in_headers_must_agree_with_the_body() {
    let world = World::new();
    let routed =
        || modern(1, "tools/call", json!({ "name": "routed", "arguments": { "text": "x" } }));
    for (ask, status) in [
        (routed().with("mcp-param-text", "x"), 200),
        (routed().with("mcp-param-text", "=?base64?eA==?="), 200),
        (routed().with("mcp-param-text", "y"), 400),
        (routed(), 400),
        (routed().with("mcp-param-text", "x").and("mcp-param-text", "x"), 400),
    ] {
        let answer = send(&world.service, ask).await;
        let code = (status == 400).then_some(-32020);
        assert_eq!((answer.status, answer.code()), (status, code), "{}", answer.body);
    }
}

#[tokio::test]
async fn a_question_is_answered_in_another_round() {
    let world = World::new();
    let ask = |params| modern_with(1, "tools/call", params, json!({ "elicitation": {} }));
    let first = send(&world.service, ask(json!({ "name": "name" }))).await;
    let result = &first.json()["result"];
    assert_eq!(result["resultType"], "input_required", "{}", first.body);
    let (key, _) = result["inputRequests"].as_object().unwrap().iter().next().unwrap();
    let again = json!({
        "name": "name",
        "requestState": result["requestState"],
        "inputResponses": { key: { "action": "accept", "content": { "name": "Ada" } } },
    });
    assert_eq!(send(&world.service, ask(again.clone())).await.text(), "Ada");
    // The state is bound to the caller that it was issued to.
    let stolen = send(&world.service, ask(again).with("x-user", "mallory")).await;
    assert_eq!((stolen.status, stolen.code()), (400, Some(-32602)), "{}", stolen.body);
}

#[tokio::test]
async fn a_listener_is_acknowledged_first_and_told_what_it_asked_for() {
    let world = World::new();
    let filter = json!({
        "toolsListChanged": true,
        "promptsListChanged": true,
        "resourceSubscriptions": ["world://a"],
    });
    let mut stream = open(&world.service, listen("seven", filter)).await;
    assert_eq!(stream.headers["content-type"], "text/event-stream");
    let subscription = "io.modelcontextprotocol/subscriptionId";
    let first = stream.next().await.unwrap().json();
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(first["params"]["_meta"][subscription], "seven");
    // There are no prompts to change.
    let granted = json!({ "toolsListChanged": true, "resourceSubscriptions": ["world://a"] });
    assert_eq!(first["params"]["notifications"], granted);

    world.registry.resource_updated("world://b");
    world.registry.resource_updated("world://a");
    let told = stream.next().await.unwrap().json();
    assert_eq!(told["method"], "notifications/resources/updated");
    assert_eq!(told["params"]["uri"], "world://a");
    assert_eq!(told["params"]["_meta"][subscription], "seven");
    world.registry.add(Tool::new("late", || async { "late" })).unwrap();
    let told = stream.next().await.unwrap().json();
    assert_eq!(told["method"], "notifications/tools/list_changed");

    world.service.stop();
    let end = stream.next().await.unwrap().json();
    assert_eq!(end["id"], "seven");
    assert_eq!(end["result"]["resultType"], "complete");
    assert_eq!(end["result"]["_meta"][subscription], "seven");
    assert_eq!(stream.next_any().await, None);
}

#[tokio::test]
async fn a_silent_stream_says_that_it_is_alive() {
    let limits = HttpLimits { keep_alive: Duration::from_millis(20), ..HttpLimits::default() };
    let world = World::with(|http| http.limits(limits));
    let mut stream = open(&world.service, listen(1, json!({}))).await;
    assert!(!stream.next_any().await.unwrap().is_comment);
    for _ in 0..3 {
        assert!(soon("a comment", stream.next_any()).await.unwrap().is_comment);
    }
}

#[tokio::test]
async fn too_many_listeners_are_rejected_with_retry_after() {
    let limits = HttpLimits { streams: 2, ..HttpLimits::default() };
    let world = World::with(|http| http.limits(limits));
    let one = open(&world.service, listen(1, json!({}))).await;
    let two = open(&world.service, listen(1, json!({}))).await;
    let third = send(&world.service, listen(1, json!({}))).await;
    assert_eq!(third.status, 503);
    assert_eq!(third.header("retry-after"), Some("5"));
    drop(one);
    assert_eq!(open(&world.service, listen(1, json!({}))).await.status, 200);
    drop(two);
}
