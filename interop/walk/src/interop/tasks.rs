//! Tasks, in both generations.

use bowline::client::{CallError, FormAnswer, Started, TaskHandle};
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
    let long = start(guest, 60_000).await?;
    let again = guest.client.resume_task(long.id());
    is_so("it is over already", !again.status().await?.status.is_final())?;
    long.cancel().await?;
    let task = start(guest, 200).await?;
    let again = guest.client.resume_task(task.id());
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

/// A task asks its client's user, and ends with the answer.
pub(super) async fn question(guest: &Guest) -> Outcome {
    guest.answer(FormAnswer::accept(&json!({ "name": "Ada" })));
    let task = started(guest.client.call_tool("long_ask", json!({})).start().await?)?;
    let result = task.wait().await?;
    let text = result.content.first().and_then(|it| it.as_text()).map(str::to_owned);
    same("text", &text.as_deref(), &Some("Ada: 1"))?;
    same("message", guest.asked()?.message.as_str(), "What would you like?")
}

async fn start(guest: &Guest, ms: u64) -> Outcome<TaskHandle> {
    started(guest.client.call_tool("long", json!({ "ms": ms })).start().await?)
}

fn started(started: Started) -> Outcome<TaskHandle> {
    match started {
        Started::Task(task) => Ok(task),
        Started::Done(_) => Err("it is not a task".into()),
    }
}
