//! What a client gets after it has closed its side.

use std::time::Duration;

use bowline::{Context, Limits, Revision, Server, Tool};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::raw::{Raw, call, initialize, notification, text};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Empty {}

/// A tool that reports progress whenever it is told to, and ends when that is over.
fn server(limits: Limits) -> (Server, mpsc::UnboundedSender<()>) {
    let (tell, told) = mpsc::unbounded_channel();
    let told = std::sync::Arc::new(tokio::sync::Mutex::new(told));
    let tool = Tool::new("told", move |context: Context, _: Empty| {
        let told = std::sync::Arc::clone(&told);
        async move {
            let mut count = 0.0;
            while told.lock().await.recv().await.is_some() {
                count += 1.0;
                context.progress(count, None, "told");
                context.log(bowline::model::LoggingLevel::Error, "told").await;
            }
            format!("{count}")
        }
    });
    (Server::new("told", "1.0.0").limits(limits).with(tool), tell)
}

fn told() -> Value {
    let mut told = call(1, "told", json!({}));
    told["params"]["_meta"]["progressToken"] = json!(1);
    told
}

fn methods(messages: &[Value]) -> Vec<&str> {
    messages.iter().map(|it| it["method"].as_str().unwrap_or("answer")).collect()
}

/// mcp 1.30 fails on anything that comes after it has closed its side.
#[tokio::test(start_paused = true)]
async fn a_client_that_has_talked_gets_answers_only() {
    let (server, tell) = server(Limits::default());
    let mut raw = Raw::session(server, Revision::V2025_11_25).await;
    raw.send(&told()).await;
    tell.send(()).unwrap();
    assert_eq!(raw.next().await["method"], "notifications/progress");
    assert_eq!(raw.next().await["method"], "notifications/message");
    let closing = tokio::spawn(raw.close());
    // The server has seen the end before this is told.
    tokio::time::sleep(Duration::from_millis(100)).await;
    tell.send(()).unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    drop(tell);
    let rest = closing.await.unwrap();
    assert_eq!(methods(&rest), ["answer"], "{rest:?}");
    assert_eq!(text(&rest[0]), "2");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_has_talked_is_not_waited_for_long() {
    let (server, tell) = server(Limits::default());
    let mut raw = Raw::session(server, Revision::V2025_11_25).await;
    raw.send(&told()).await;
    tell.send(()).unwrap();
    assert_eq!(raw.next().await["method"], "notifications/progress");
    let start = tokio::time::Instant::now();
    let rest = raw.close().await;
    assert_eq!(methods(&rest), ["notifications/message"], "{rest:?}");
    assert_eq!(start.elapsed(), Limits::default().farewell);
}

/// `printf … | server`: everything is sent at once, and all of it is wanted.
#[tokio::test(start_paused = true)]
async fn a_pipe_gets_everything() {
    let (server, tell) = server(Limits::default());
    let mut raw = Raw::start(server);
    let lines =
        [initialize("2025-11-25"), notification("notifications/initialized", json!({})), told()];
    raw.send_bytes(lines.map(|line| format!("{line}\n")).concat().as_bytes()).await;
    let closing = tokio::spawn(raw.close());
    tokio::time::sleep(Limits::default().grace - Duration::from_millis(100)).await;
    tell.send(()).unwrap();
    drop(tell);
    let rest = closing.await.unwrap();
    let expected = ["answer", "notifications/progress", "notifications/message", "answer"];
    assert_eq!(methods(&rest), expected, "{rest:?}");
    assert_eq!(text(&rest[3]), "1");
}
