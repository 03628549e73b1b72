//! Overload: too many requests, answers or changes at once.

use std::sync::Arc;
use std::time::Duration;

use bowline::{Context, Limits, Resource, Revision, Server, Tool, testing};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::sync::Notify;

use crate::raw::{Raw, call, cancel, modern, notification, request, text};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Echo {
    message: String,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Name {
    name: String,
}

/// `wait` waits until `open` is notified, `ask` waits for the client.
fn server(limits: Limits, open: &Arc<Notify>) -> Server {
    let open = Arc::clone(open);
    Server::new("pressure", "1.0.0")
        .limits(limits)
        .with(Tool::new("echo", |echo: Echo| async move { echo.message }))
        .with(Tool::new("wait", move |echo: Echo| {
            let open = Arc::clone(&open);
            async move {
                open.notified().await;
                echo.message
            }
        }))
        .with(Tool::new("ask", |context: Context| async move {
            let answer = context.elicit::<Name>("Who?").await.map_err(|error| error.to_string())?;
            answer.accepted().map(|it| it.name).ok_or_else(|| "nobody".to_owned())
        }))
        .with(Resource::text("it://text", "text", "x"))
}

fn few() -> Limits {
    Limits { requests_in_flight: 2, ..Limits::default() }
}

/// The clock is paused, so a timeout expires at once when nothing else can run.
#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_is_not_read() {
    const OUTBOX: usize = 16 << 10;
    let limits = Limits { outbox: OUTBOX, ..Limits::default() };
    let mut raw = Raw::with_pipe(server(limits, &Arc::default()), 4 << 10);
    let message = "x".repeat(1000);
    let line = |id: u64| {
        let call = modern(call(id, "echo", json!({ "message": message })));
        format!("{call}\n").into_bytes()
    };
    let (mut accepted, mut blocked) = (0, None);
    for id in 0..10_000 {
        let bytes = line(id);
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let write = raw.writer.write(rest);
            match tokio::time::timeout(Duration::from_secs(1), write).await {
                Ok(written) => rest = &rest[written.unwrap()..],
                Err(_) => break,
            }
        }
        accepted += bytes.len() - rest.len();
        if !rest.is_empty() {
            blocked = Some((id, rest.to_vec()));
            break;
        }
    }
    let (id, rest) = blocked.expect("the server reads on and on");
    // Two pipes, a chunk being parsed, the outbox, and the writer's buffer.
    assert!(accepted < 4 * OUTBOX + (64 << 10), "{accepted} bytes");
    // As soon as the client reads, everything continues.
    let Raw { mut writer, .. } = {
        let writing = async {
            raw.writer.write_all(&rest).await.unwrap();
        };
        let reading = async {
            let mut lines = tokio::io::AsyncBufReadExt::lines(&mut raw.reader);
            for expected in 0..=id {
                let line = lines.next_line().await.unwrap().unwrap();
                let answer: Value = serde_json::from_str(&line).unwrap();
                assert_eq!(answer["id"], expected);
                assert_eq!(text(&answer), message);
            }
        };
        tokio::join!(writing, reading);
        raw
    };
    writer.shutdown().await.unwrap();
}

/// Regression: each change was written at once, whether the client read or not.
#[tokio::test(start_paused = true)]
async fn changes_add_up_while_the_client_does_not_read() {
    let server = server(Limits { outbox: 4 << 10, ..Limits::default() }, &Arc::default());
    let registry = server.registry();
    let mut raw = Raw::with_pipe(server, 1 << 10);
    let filter = json!({ "notifications": { "resourceSubscriptions": ["it://text"] } });
    raw.send(&modern(request(1, "subscriptions/listen", filter))).await;
    assert_eq!(raw.next().await["method"], "notifications/subscriptions/acknowledged");
    for _ in 0..10_000 {
        registry.resource_updated("it://text");
        tokio::task::yield_now().await;
    }
    let rest = raw.close().await;
    let told = rest.iter().filter(|it| it["method"] == "notifications/resources/updated").count();
    assert!((1..200).contains(&told), "{told} times");
}

/// Regression: at the limit of running requests nothing was read, not even what would end one.
#[tokio::test]
async fn answers_to_questions_are_read_while_all_places_are_taken() {
    let mut raw = Raw::session(server(few(), &Arc::default()), Revision::V2025_11_25).await;
    for id in 0..5 {
        raw.send(&call(id, "ask", json!({}))).await;
    }
    let mut answered = 0;
    while answered < 5 {
        let message = raw.next().await;
        if message["method"] == "elicitation/create" {
            let result = json!({ "action": "accept", "content": { "name": "Ada" } });
            let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
            raw.send(&answer).await;
        } else {
            assert_eq!((message["id"].as_u64(), text(&message)), (Some(answered), "Ada"));
            answered += 1;
        }
    }
    assert!(raw.close().await.is_empty());
}

#[tokio::test]
async fn requests_that_wait_for_a_place_can_be_cancelled() {
    let open = Arc::new(Notify::new());
    let mut raw = Raw::session(server(few(), &open), Revision::V2025_11_25).await;
    for id in 0..5 {
        raw.send(&call(id, "wait", json!({ "message": "x" }))).await;
    }
    raw.send(&call(4, "echo", json!({ "message": "again" }))).await;
    assert_eq!(raw.next().await["error"]["code"], -32600, "the id is taken");
    for id in [0, 1, 2, 3] {
        raw.send(&cancel(id)).await;
    }
    // Answered even at the limit, so that clients can tell a busy server from a dead one.
    assert!(raw.ask(&request("alive", "ping", json!({}))).await["result"].is_object());
    raw.send(&call(5, "echo", json!({ "message": "next" }))).await;
    let next = raw.next().await;
    assert_eq!((&next["id"], text(&next)), (&json!(5), "next"));
    open.notify_one();
    assert_eq!(raw.next().await["id"], 4);
    assert!(raw.close().await.is_empty());
}

/// Regression: requests beyond the limit were dropped, and the whole batch was never answered.
#[tokio::test]
async fn a_batch_larger_than_the_places_is_answered() {
    let open = Arc::new(Notify::new());
    let mut raw = Raw::session(server(few(), &open), Revision::V2025_03_26).await;
    let calls: Vec<Value> =
        (0..6).map(|id| call(id, "wait", json!({ "message": id.to_string() }))).collect();
    raw.send(&json!(calls)).await;
    raw.send(&cancel(3)).await;
    raw.send(&request("read", "ping", json!({}))).await;
    assert_eq!(raw.next().await["id"], "read");
    for _ in 0..5 {
        open.notify_one();
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
    }
    let answer = raw.next().await;
    let mut texts: Vec<&str> = answer.as_array().unwrap().iter().map(text).collect();
    texts.sort_unstable();
    assert_eq!(texts, ["0", "1", "2", "4", "5"]);
    assert!(raw.close().await.is_empty());
}

/// Regression: listen requests counted as running, and the connection stopped reading.
#[tokio::test]
async fn streams_that_are_listened_on_take_no_places() {
    let mut raw = Raw::start(server(few(), &Arc::default()));
    let filter = json!({ "notifications": { "toolsListChanged": true } });
    for id in 0..8 {
        raw.send(&modern(request(id, "subscriptions/listen", filter.clone()))).await;
        assert_eq!(raw.next().await["method"], "notifications/subscriptions/acknowledged");
    }
    let answer = raw.ask(&modern(call(9, "echo", json!({ "message": "heard" })))).await;
    assert_eq!(text(&answer), "heard");
    assert_eq!(raw.close().await.len(), 8);
}

/// Regression: a handler that asked after its client had disconnected delayed the end by the
/// grace period.
#[tokio::test(start_paused = true)]
async fn nobody_is_asked_after_the_end() {
    let open = Arc::new(Notify::new());
    let asks = {
        let open = Arc::clone(&open);
        Tool::new("late", move |context: Context| {
            let open = Arc::clone(&open);
            async move {
                open.notified().await;
                let asked = context.elicit::<Name>("Who?").await;
                asked.map(|_| "asked").map_err(|error| error.to_string())
            }
        })
    };
    let mut raw =
        Raw::session(Server::new("late", "1.0.0").with(asks), Revision::V2025_11_25).await;
    raw.send(&call(1, "late", json!({}))).await;
    raw.send(&notification("notifications/nothing", json!({}))).await;
    let start = tokio::time::Instant::now();
    let opening = async {
        tokio::time::sleep(Duration::from_millis(10)).await;
        open.notify_one();
    };
    let (rest, ()) = tokio::join!(raw.close(), opening);
    assert_eq!(text(&rest[0]), "the client disconnected");
    assert!(start.elapsed() < Duration::from_secs(1));
}

#[tokio::test]
async fn the_first_part_of_a_handler_may_panic_too() {
    let tool = Tool::new("early", || {
        assert!(is_ready(), "before there is a future");
        async { "never" }
    });
    let client = testing::connect(Server::new("panics", "1.0.0").with(tool)).await.unwrap();
    let error = client.call_tool("early", json!({})).await.unwrap_err().to_string();
    assert!(error.contains("-32603"), "{error}");
    assert_eq!(client.list_tools().await.unwrap().len(), 1, "the server is still there");
}

fn is_ready() -> bool {
    false
}

/// A value that panics when it is dropped, after its handler has answered.
struct Grenade;

impl Drop for Grenade {
    fn drop(&mut self) {
        panic!("dropped");
    }
}

#[tokio::test]
async fn what_a_handler_leaves_behind_may_panic_too() {
    let tool = Tool::new("grenade", |context: Context| async move {
        let _grenade = Grenade;
        let asked = context.elicit::<Name>("Who?").await;
        asked.map(|_| "asked").map_err(|error| error.to_string())
    });
    let mut raw = Raw::start(Server::new("panics", "1.0.0").with(tool));
    // The handler is cut off when it asks, and the connection drops it.
    let answer = raw.ask(&modern(call(1, "grenade", json!({})))).await;
    assert_eq!(answer["error"]["code"], -32603, "{answer}");
    raw.ask(&modern(request(2, "tools/list", json!({})))).await;
    assert!(raw.close().await.is_empty());
}
