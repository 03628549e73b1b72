//! Progress, logs, input requests, changes, cancellation.

use std::time::Duration;

use bowline::Revision;
use bowline::client::{CallError, Change, FormAnswer, Wanted};
use bowline::model::{LoggingLevel, Root};
use serde_json::json;

use crate::check::{Outcome, is_so, same, until};
use crate::guest::{Guest, ROOTS};

pub(super) async fn progress(guest: &Guest) -> Outcome {
    let slow = guest.client.call_tool("slow", json!({ "steps": 3, "ms": 50 }));
    let (call, mut progress) = slow.with_progress();
    let call = tokio::spawn(call.text());
    let mut reports = Vec::new();
    let mut last = None;
    while let Some(report) = progress.next().await {
        reports.push((report.progress, report.total));
        last = report.message;
    }
    same("answer", call.await??.as_str(), "3 steps")?;
    same("reports", &reports[..], &[(1.0, Some(3.0)), (2.0, Some(3.0)), (3.0, Some(3.0))])?;
    let has_message = last.as_deref() == Some("step 3");
    is_so("no message", has_message || guest.revision < Revision::V2025_03_26)
}

pub(super) async fn logs(guest: &Guest) -> Outcome {
    guest.client.set_log_level(Some(LoggingLevel::Warning)).await?;
    let mut heard = guest.client.notifications();
    guest.text("log", json!({})).await?;
    for level in ["warning", "error"] {
        let message = heard.next_of("notifications/message").await.ok_or("the end")?;
        let params = message.params.to_value();
        same("level", &params["level"], &level.into())?;
        let data = params["data"].to_string();
        is_so(&data, data.contains(&format!("a message of level {level}")))?;
    }
    if guest.revision.is_modern() {
        guest.client.set_log_level(None).await?;
    }
    Ok(())
}

pub(super) async fn elicit(guest: &Guest) -> Outcome {
    // A missing value gets the form's default.
    guest.answer(FormAnswer::accept(&json!({ "name": "Ada" })));
    same("accepted", guest.text("ask", json!({})).await?.as_str(), "Ada: 1")?;
    let asked = guest.asked()?;
    same("message", asked.message.as_str(), "What would you like?")?;
    guest.answer(FormAnswer::accept(&json!({ "name": "Bob", "count": 2 })));
    same("accepted", guest.text("ask", json!({})).await?.as_str(), "Bob: 2")?;
    guest.answer(FormAnswer::Decline);
    same("declined", guest.text("ask", json!({})).await?.as_str(), "declined")?;
    guest.answer(FormAnswer::Cancel);
    same("cancelled", guest.text("ask", json!({})).await?.as_str(), "cancelled")
}

pub(super) async fn sample(guest: &Guest) -> Outcome {
    let said = guest.text("sample", json!({ "message": "ahoy" })).await?;
    same("sampled", said.as_str(), "parrot: ahoy, ahoy")
}

pub(super) async fn roots(guest: &Guest) -> Outcome {
    same("roots", &guest.text("roots", json!({})).await?, &ROOTS.join(" "))?;
    let uri = "file:///srv/three";
    guest.client.set_roots(vec![Root::new(uri)]).await?;
    same("other roots", guest.text("roots", json!({})).await?.as_str(), uri)
}

pub(super) async fn resource_updated(guest: &Guest) -> Outcome {
    let uri = "test://counter";
    let mut changes = guest.client.changes(Wanted::new().resource(uri)).await?;
    let touched = guest.text("touch", json!({})).await?;
    let change = changes.next().await.ok_or("the end")??;
    same("change", &change, &Change::Resource(uri.to_owned()))?;
    super::ask::read(guest, uri, &touched).await
}

pub(super) async fn tools_changed(guest: &Guest) -> Outcome {
    let mut changes = guest.client.changes(Wanted::new().tools()).await?;
    for is_there in [true, false] {
        guest.text("change_tools", json!({})).await?;
        same("change", &changes.next().await.ok_or("the end")??, &Change::Tools)?;
        let tools = guest.client.list_tools().await?;
        same("extra", &tools.iter().any(|tool| tool.name == "extra"), &is_there)?;
    }
    Ok(())
}

pub(super) async fn cancel(guest: &Guest) -> Outcome {
    let before = abandoned(guest).await?;
    let (call, mut progress) = guest.client.call_tool("wait", json!({})).with_progress();
    let call = tokio::spawn(call.into_future());
    progress.next().await.ok_or("no progress")?;
    call.abort();
    until(async || Ok(abandoned(guest).await? > before)).await?;
    is_so("calls wait", guest.client.pending().is_empty())
}

pub(super) async fn timeout(guest: &Guest) -> Outcome {
    let before = abandoned(guest).await?;
    let wait = guest.client.call_tool("wait", json!({})).timeout(Duration::from_millis(500));
    let (call, mut progress) = wait.with_progress();
    let call = tokio::spawn(call.into_future());
    let has_begun = progress.next().await.is_some();
    match call.await? {
        Err(CallError::TimedOut { .. }) => {}
        other => return Err(format!("{other:?}").into()),
    }
    // On a busy machine the call may time out before the tool starts; then nothing needs to stop.
    until(async || Ok(abandoned(guest).await? > before || !has_begun)).await
}

/// How many calls of `wait` were stopped, including those of clients that have disconnected, which
/// may take a while.
async fn abandoned(guest: &Guest) -> Outcome<u64> {
    Ok(guest.text("abandoned", json!({})).await?.parse()?)
}
