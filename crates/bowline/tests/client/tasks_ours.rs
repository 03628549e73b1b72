//! Tasks of our own server, in both generations, over every transport.

use std::time::Duration;

use bowline::client::{CallError, Client, Started};
use bowline::model::TaskStatus;
use bowline::{Context, Elicited, HandlerError, Revision, Server, TaskMode, Tool};
use serde_json::json;

use super::fixture::soon;
use super::world::{builder, serve};

const REVISIONS: [Revision; 2] = [Revision::V2025_11_25, Revision::V2026_07_28];

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Who {
    name: String,
}

fn server() -> Server {
    let ask = |context: Context| async move {
        context.status("asking");
        match context.elicit::<Who>("Who are you?").await? {
            Elicited::Accepted(who) => Ok::<_, HandlerError>(format!("hello, {}", who.name)),
            _ => Ok("somebody who does not say".to_owned()),
        }
    };
    let sleep = || async {
        tokio::time::sleep(Duration::from_secs(600)).await;
        "awake"
    };
    Server::new("tasks", "1.0.0")
        .with(Tool::new("must", ask).task(TaskMode::Required))
        .with(Tool::new("may", ask).task(TaskMode::Optional))
        .with(Tool::new("sleep", sleep).task(TaskMode::Optional))
        .with(
            Tool::new("fails", || async { Err::<String, _>("it broke") }).task(TaskMode::Required),
        )
}

async fn everywhere<F: Future<Output = ()>>(test: impl Fn(Client) -> F) {
    for revision in REVISIONS {
        let in_memory = builder(revision).connect(server()).await.unwrap();
        soon("the end in memory", test(in_memory)).await;
        let over_http = builder(revision).connect(serve(server().http()).await).await.unwrap();
        soon("the end over HTTP", test(over_http)).await;
    }
}

#[tokio::test]
async fn a_call_cannot_tell_that_it_is_a_task() {
    everywhere(|client| async move {
        for tool in ["must", "may"] {
            let said = client.call_tool(tool, json!({})).text().await;
            assert_eq!(said.unwrap(), "hello, Ada", "{tool}");
        }
        let failed = client.call_tool("fails", json!({})).text().await.unwrap_err();
        assert_eq!(failed.to_string(), r#"tool "fails" failed: it broke"#);
        client.close().await;
    })
    .await;
}

#[tokio::test]
async fn a_started_task_is_looked_at_waited_for_and_cancelled() {
    everywhere(|client| async move {
        let started = client.call_tool("may", json!({})).start().await.unwrap();
        let Started::Task(task) = started else { panic!("{started:?}") };
        let again = client.resume_task(task.id());
        assert_eq!(again.wait().await.unwrap().content.len(), 1);
        assert!(task.status().await.unwrap().status.is_final());
        let started = client.call_tool("sleep", json!({})).start().await.unwrap();
        let task = started.task().unwrap();
        assert_eq!(task.status().await.unwrap().status, TaskStatus::Working);
        task.cancel().await.unwrap();
        let cancelled = task.wait().await.unwrap_err();
        assert!(matches!(cancelled, CallError::TaskCancelled { .. }), "{cancelled}");
        client.close().await;
    })
    .await;
}
