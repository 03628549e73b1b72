//! Every limit of [`Limits`], reached once.

use std::time::Duration;

use bowline::{BuildError, Context, Limits, Registry, Server, Tool, testing};
use serde_json::json;

use crate::raw::{Raw, call, code, modern, text};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Text {
    text: String,
}

fn server(limits: Limits) -> Server {
    Server::new("limits", "1.0.0")
        .limits(limits)
        .with(Tool::new("echo", |text: Text| async move { text.text }))
        .with(Tool::new("for_ever", || async { std::future::pending::<()>().await }))
        .with(
            Tool::new("a_second", || async { std::future::pending::<()>().await })
                .timeout(Duration::from_secs(1)),
        )
        .with(Tool::new("keeps", |context: Context, text: Text| async move {
            let kept = context.once("kept", async { text.text }).await;
            let asked = context.roots().await.map(|_| kept);
            asked.map_err(bowline::HandlerError::from)
        }))
        .with(Tool::new("asks", |context: Context| async move {
            for _ in 0..100 {
                context.roots().await.map_err(bowline::HandlerError::from)?;
            }
            Ok::<_, bowline::HandlerError>("enough")
        }))
}

#[tokio::test(start_paused = true)]
async fn what_takes_too_long_is_answered() {
    let limits = Limits { deadline: Duration::from_secs(60), ..Limits::default() };
    let client = testing::connect(server(limits)).await.unwrap();
    for (tool, seconds) in [("for_ever", 60), ("a_second", 1)] {
        let start = tokio::time::Instant::now();
        let call = client.call_tool(tool, json!({})).idle_timeout(Duration::from_secs(100));
        let error = call.await.unwrap_err().to_string();
        assert!(error.contains("timed out"), "{error}");
        assert_eq!(start.elapsed().as_secs(), seconds);
    }
}

#[tokio::test(start_paused = true)]
async fn what_does_not_end_in_the_grace_time_is_answered() {
    let mut raw = Raw::start(server(Limits::default()));
    raw.send(&modern(call(1, "for_ever", json!({})))).await;
    let rest = raw.close().await;
    assert_eq!((rest.len(), &rest[0]["id"], code(&rest[0])), (1, &json!(1), -32603));
}

#[tokio::test]
async fn a_line_that_is_too_long_is_refused_and_skipped() {
    let mut raw = Raw::start(server(Limits { line_length: 1000, ..Limits::default() }));
    let echo =
        |id: u64, length: usize| modern(call(id, "echo", json!({ "text": "x".repeat(length) })));
    let fits = 1000 - echo(1, 0).to_string().len();
    assert_eq!(text(&raw.ask(&echo(1, fits)).await).len(), fits);
    assert_eq!(code(&raw.ask(&echo(2, fits + 1)).await), -32600);
    raw.send_bytes(&[b'x'; 5000]).await;
    raw.send_bytes(b"\n").await;
    assert_eq!(code(&raw.next().await), -32600);
    assert_eq!(text(&raw.ask(&echo(3, 1)).await), "x");
    assert!(raw.close().await.is_empty());
}

#[tokio::test]
async fn a_state_that_is_too_long_is_not_issued() {
    let mut raw = Raw::start(server(Limits { request_state: 1000, ..Limits::default() }));
    let keeps = |length: usize| modern(call(1, "keeps", json!({ "text": "x".repeat(length) })));
    assert!(raw.ask(&keeps(1)).await["result"]["requestState"].is_string());
    let refused = raw.ask(&keeps(1000)).await;
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(code(&refused) == -32603 && message.contains("request state"), "{refused}");
}

#[tokio::test]
async fn a_handler_that_asks_for_ever_is_stopped() {
    let mut raw = Raw::start(server(Limits { rounds: 3, ..Limits::default() }));
    let mut params = json!({ "name": "asks", "arguments": {} });
    for _ in 0..3 {
        let answer = raw.ask(&modern(crate::raw::request(1, "tools/call", params.clone()))).await;
        let result = &answer["result"];
        let asked = result["inputRequests"].as_object().unwrap();
        assert_eq!(asked.len(), 1);
        let key = asked.keys().next().unwrap();
        params["inputResponses"] = json!({ key: { "roots": [] } });
        params["requestState"] = result["requestState"].clone();
    }
    let refused = raw.ask(&modern(crate::raw::request(1, "tools/call", params))).await;
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(code(&refused) == -32603 && message.contains("more than 3 rounds"), "{refused}");
}

#[tokio::test]
async fn a_registry_holds_so_many_and_no_more() {
    let tool = |name: &str| Tool::new(name, || async { "" });
    let two = Limits { registry: 2, ..Limits::default() };
    let too_many = |error: BuildError| matches!(error, BuildError::TooMany { limit: 2, .. });
    let server = Server::new("small", "1.0.0").limits(two.clone());
    let registry: Registry = server.registry();
    for name in ["a", "b"] {
        registry.add(tool(name)).unwrap();
    }
    assert!(too_many(registry.add(tool("c")).unwrap_err()));
    assert!(registry.remove_tool("a"));
    registry.add(tool("c")).unwrap();
    // In either order: the limit first, or the tools.
    let server = Server::new("small", "1.0.0").with((tool("a"), tool("b"), tool("c"))).limits(two);
    let (_ours, theirs) = tokio::io::duplex(64);
    let error = server.serve(theirs).await.unwrap_err();
    let bowline::ServeError::Build(error) = error else { panic!("{error}") };
    assert!(too_many(error));
}

/// With limits of zero, taken literally, a server would never answer.
#[tokio::test]
async fn limits_of_nothing_leave_a_server_that_answers() {
    let limits = Limits {
        requests_in_flight: 0,
        requests_waiting: 0,
        outbox: 0,
        page: 0,
        progress_per_second: 0,
        ..Limits::default()
    };
    let client = testing::connect(server(limits)).await.unwrap();
    assert_eq!(client.call_tool("echo", json!({ "text": "x" })).text().await.unwrap(), "x");
    assert_eq!(client.list_tools().await.unwrap().len(), 5);
    client.close().await;
}
