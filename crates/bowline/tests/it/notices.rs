//! Progress and log messages: in order, only if requested, and before the answer.

use std::sync::Arc;
use std::time::Duration;

use bowline::model::LoggingLevel;
use bowline::{Context, Limits, Registry, Resource, Revision, Server, Tool, testing};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::raw::{Raw, call, modern, text};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Steps {
    steps: Vec<f64>,
}

fn server() -> Server {
    let server = Server::new("notices", "1.0.0").with(Resource::text("it://x", "x", "x"));
    let registry = server.registry();
    server
        .with(Tool::new("talk", move |context: Context| talk(context, registry.clone())))
        .with(Tool::new("levels", |context: Context| async move {
            for level in LoggingLevel::ALL {
                context.log(level, "said").await;
            }
            "done"
        }))
        .with(Tool::new("report", |context: Context, report: Steps| async move {
            for step in report.steps {
                context.progress(step, f64::NAN, "");
            }
            "done"
        }))
}

async fn talk(context: Context, registry: Registry) -> &'static str {
    for number in 0..1000 {
        context.log(LoggingLevel::Info, number).await;
        if number == 500 {
            registry.add(Tool::new("new", || async { "new" })).unwrap();
        }
    }
    "done"
}

#[tokio::test]
async fn a_thousand_messages_come_in_order_and_before_the_answer() {
    for revision in [Revision::V2025_06_18, Revision::V2026_07_28] {
        let mut call = call(1, "talk", json!({}));
        let mut raw = if revision.is_modern() {
            call["params"]["_meta"]["io.modelcontextprotocol/logLevel"] = json!("info");
            call = modern(call);
            Raw::start(server())
        } else {
            Raw::session(server(), revision).await
        };
        raw.send(&call).await;
        let mut messages = raw.until(json!(1)).await;
        let said: Vec<u64> =
            messages.iter().filter_map(|it| it["params"]["data"].as_u64()).collect();
        assert_eq!(said, (0..1000).collect::<Vec<_>>());
        assert_eq!(messages.last().map(text), Some("done"));
        // Reported once, and not held up by the answer before it.
        messages.extend(raw.close().await);
        let changed = "notifications/tools/list_changed";
        let told = messages.iter().filter(|it| it["method"] == changed).count();
        assert_eq!(told, usize::from(!revision.is_modern()), "{revision}");
    }
}

#[tokio::test]
async fn only_messages_that_are_wanted_are_sent() {
    let expected = [
        (Revision::V2024_11_05, None, 7),
        (Revision::V2025_11_25, Some(LoggingLevel::Debug), 8),
        (Revision::V2025_11_25, Some(LoggingLevel::Critical), 3),
        (Revision::V2026_07_28, None, 0),
        (Revision::V2026_07_28, Some(LoggingLevel::Error), 4),
    ];
    for (revision, level, count) in expected {
        let client = testing::connect_in(server(), revision).await.unwrap();
        if level.is_some() {
            client.set_log_level(level).await.unwrap();
        }
        let mut notifications = client.notifications();
        assert_eq!(client.call_tool("levels", json!({})).text().await.unwrap(), "done");
        let said: Vec<_> = std::iter::from_fn(|| notifications.try_next()).collect();
        assert_eq!(said.len(), count, "{revision} {level:?}: {said:?}");
    }
}

/// The log level of one legacy client does not affect others, nor the next modern request.
#[tokio::test]
async fn levels_are_those_of_a_session_or_of_a_request() {
    let mut raw = Raw::session(server(), Revision::V2025_11_25).await;
    let level = crate::raw::request(1, "logging/setLevel", json!({ "level": "emergency" }));
    raw.ask(&level).await;
    raw.send(&call(2, "levels", json!({}))).await;
    assert_eq!(raw.until(json!(2)).await.len(), 2);
    let mut loud = modern(call(3, "levels", json!({})));
    loud["params"]["_meta"]["io.modelcontextprotocol/logLevel"] = json!("alert");
    raw.send(&loud).await;
    assert_eq!(raw.until(json!(3)).await.len(), 3);
    raw.send(&modern(call(4, "levels", json!({})))).await;
    assert_eq!(raw.until(json!(4)).await.len(), 1);
    let bad = crate::raw::request(5, "logging/setLevel", json!({ "level": "loud" }));
    assert_eq!(raw.ask(&bad).await["error"]["code"], -32602);
}

async fn reported(steps: Value) -> Vec<f64> {
    let mut raw = Raw::start(server());
    let mut call = modern(call(1, "report", json!({ "steps": steps })));
    call["params"]["_meta"]["progressToken"] = json!("p");
    raw.send(&call).await;
    let mut messages = raw.until(json!(1)).await;
    assert_eq!(messages.pop().as_ref().map(text), Some("done"));
    let report = |it: &Value| {
        assert_eq!(it["params"]["progressToken"], "p");
        assert_eq!(it["params"].get("total"), None, "JSON has no NaN");
        it["params"]["progress"].as_f64().unwrap()
    };
    messages.iter().map(report).collect()
}

#[tokio::test(start_paused = true)]
async fn progress_grows_keeps_to_its_rate_and_ends_with_the_last() {
    assert_eq!(reported(json!([1, 2, 2, 1, 3, 3])).await, [1.0, 2.0, 3.0]);
    assert_eq!(reported(json!([-5, 0, 0.5])).await, [-5.0, 0.0, 0.5]);
    let many: Vec<u32> = (1..=1000).collect();
    let told = reported(json!(many)).await;
    let expected: Vec<f64> = (1..=20).map(f64::from).chain([1000.0]).collect();
    assert_eq!(told, expected);
}

/// Regression: with a full outbox the last report was never sent.
#[tokio::test(start_paused = true)]
async fn the_last_report_comes_even_when_the_client_reads_late() {
    let tool = Tool::new("many", |context: Context| async move {
        for step in 1..=100_u8 {
            context.progress(step.into(), None, &"x".repeat(100));
        }
        "done"
    });
    let limits = Limits { outbox: 300, ..Limits::default() };
    let mut raw = Raw::with_pipe(Server::new("late", "1.0.0").limits(limits).with(tool), 1 << 10);
    let mut call = modern(call(1, "many", json!({})));
    call["params"]["_meta"]["progressToken"] = json!(1);
    raw.send(&call).await;
    let messages = raw.until(json!(1)).await;
    assert!(messages.len() < 10, "{}", messages.len());
    assert_eq!(messages[messages.len() - 2]["params"]["progress"], 100.0);
}

async fn speak_late(context: Context, go: Arc<Notify>) {
    go.notified().await;
    context.progress(1.0, None, "");
    context.log(LoggingLevel::Error, "late").await;
    go.notify_one();
}

/// Regression: a handler that was dropped at its deadline left a task behind that kept reporting,
/// and modern log messages were still sent.
#[tokio::test(start_paused = true)]
async fn a_task_that_outlives_its_handler_is_not_heard() {
    let go = Arc::new(Notify::new());
    let started = Arc::clone(&go);
    let background = Tool::new("leave", move |context: Context| {
        tokio::spawn(speak_late(context, Arc::clone(&started)));
        std::future::pending::<&str>()
    });
    let background = background.timeout(Duration::from_millis(10));
    let mut raw = Raw::start(Server::new("leaves", "1.0.0").with(background));
    let mut call = modern(call(1, "leave", json!({})));
    call["params"]["_meta"]["progressToken"] = json!(1);
    call["params"]["_meta"]["io.modelcontextprotocol/logLevel"] = json!("debug");
    let answer = raw.ask(&call).await;
    assert_eq!(answer["error"]["code"], -32603, "{answer}");
    go.notify_one();
    tokio::task::yield_now().await;
    go.notified().await;
    assert!(raw.close().await.is_empty());
}
