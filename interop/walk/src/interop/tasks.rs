//! Tasks of the extension.

use bowline::client::{CallError, Started, TaskHandle};
use bowline::model::TaskStatus;
use serde_json::json;

use crate::check::{Outcome, is_so, same, until};
use crate::guest::Guest;

/// A call that becomes a task ends like any other.
pub(super) async fn call(guest: &Guest) -> Outcome {
    let text = guest.text("long", json!({ "ms": 200 })).await?;
    same("text", text.as_str(), "long enough")
}

/// A task is found again by its id.
pub(super) async fn handle(guest: &Guest) -> Outcome {
    let task = start(guest, 500).await?;
    let again = guest.client.resume_task(task.id());
    is_so("it is over already", !again.status().await?.status.is_final())?;
    is_so("no content", !again.wait().await?.content.is_empty())?;
    same("status", &task.status().await?.status, &TaskStatus::Completed)
}

/// A task that is cancelled ends soon.
pub(super) async fn cancel(guest: &Guest) -> Outcome {
    let task = start(guest, 60_000).await?;
    task.cancel().await?;
    until(async || Ok(task.status().await?.status.is_final())).await?;
    match task.wait().await {
        Err(CallError::TaskCancelled { .. }) => Ok(()),
        other => Err(format!("it ended with {other:?}").into()),
    }
}

async fn start(guest: &Guest, ms: u64) -> Outcome<TaskHandle> {
    match guest.client.call_tool("long", json!({ "ms": ms })).start().await? {
        Started::Task(task) => Ok(task),
        Started::Done(_) => Err("it is not a task".into()),
    }
}
