//! What happens in every cell of the matrix.

use std::sync::{Arc, Mutex};

use bowline::Revision;
use bowline::client::{Change, Wanted};
use bowline::model::LoggingLevel;
use serde_json::json;

use super::world::{Side, World, soon};

/// Everything that happens, by name, in order. The last ones end the connection.
pub(crate) const NAMES: [&str; 19] = [
    "introduction",
    "plain",
    "error",
    "progress",
    "log",
    "cancel",
    "cancel before",
    "cancel after",
    "form",
    "url",
    "sampling",
    "roots",
    "two questions",
    "three rounds",
    "task",
    "task that asks",
    "list changed",
    "subscribe",
    "upstream restart",
];

/// Why a scene cannot pass in a cell, and what happens instead; `None` if it passes.
pub(crate) fn exception(name: &str, near: Side, far: Side) -> Option<&'static str> {
    let either = |is: fn(Revision) -> bool| is(near.revision) || is(far.revision);
    match name {
        "form" if either(|it| it < Revision::V2025_06_18) => {
            Some("the revision has no elicitation: the call fails")
        }
        "url" if either(|it| it < Revision::V2025_11_25) => {
            Some("the revision has no URL elicitation: the call fails")
        }
        "task" | "task that asks" if either(|it| it < Revision::V2025_11_25) => {
            Some("the revision has no tasks: the call does not become one")
        }
        _ => None,
    }
}

/// Plays one scene.
pub(crate) async fn play(name: &str, world: &mut World) -> Result<(), String> {
    let fails = exception(name, world.near, world.far).is_some();
    match name {
        "introduction" => introduction(world),
        "plain" => answers(world, "plain", "done").await,
        "error" => errors(world).await,
        "progress" => progress(world).await,
        "log" => log(world).await,
        "cancel" => cancel(world).await,
        "cancel before" => cancel_before(world).await,
        "cancel after" => cancel_after(world).await,
        "form" if fails => refused(world, "form").await,
        "form" => answers(world, "form", "Ada").await,
        "url" if fails => refused(world, "url").await,
        "url" => answers(world, "url", "true").await,
        "sampling" => answers(world, "sample", "parrot").await,
        "roots" => answers(world, "roots", "file:///home").await,
        "two questions" => answers(world, "two", "parrot file:///home").await,
        "three rounds" => answers(world, "rounds", "parrot parrot parrot").await,
        "task" => task(world, "must", "done", fails).await,
        "task that asks" => task(world, "may", "parrot", fails).await,
        "list changed" => list_changed(world).await,
        "subscribe" => subscribe(world).await,
        "upstream restart" => restart(world).await,
        other => Err(format!("there is no scene {other:?}")),
    }
}

fn expect<T: PartialEq + std::fmt::Debug>(found: T, expected: T) -> Result<(), String> {
    if found == expected { Ok(()) } else { Err(format!("{found:?} instead of {expected:?}")) }
}

fn introduction(world: &World) -> Result<(), String> {
    let peer = world.client.peer().ok_or("there is no peer")?;
    expect(peer.revision, world.near.revision)?;
    expect(peer.info.as_ref().map(|info| info.name.as_str()), Some("far"))?;
    expect(peer.instructions.as_deref(), Some("Be kind."))
}

async fn answers(world: &World, tool: &str, expected: &str) -> Result<(), String> {
    let text = soon(world.client.call_tool(tool, json!({})).text()).await;
    expect(text.map_err(|error| error.to_string())?.as_str(), expected)
}

/// The call fails, in one way or another, and nothing hangs.
async fn refused(world: &World, tool: &str) -> Result<(), String> {
    match soon(world.client.call_tool(tool, json!({})).into_future()).await {
        Ok(result) if result.is_error != Some(true) => Err(format!("{result:?}")),
        _ => Ok(()),
    }
}

async fn errors(world: &World) -> Result<(), String> {
    let result = soon(world.client.call_tool("fail", json!({})).into_future()).await;
    let result = result.map_err(|error| error.to_string())?;
    expect(result.is_error, Some(true))?;
    let error = soon(world.client.call_tool("refuse", json!({})).into_future()).await;
    let error = error.err().ok_or("there is no error")?;
    let error = error.as_refusal().ok_or_else(|| error.to_string())?;
    expect((error.code.0, error.message.as_str()), (-31_999, "not today"))?;
    let data = error.data.as_ref().map(bowline::Json::to_value);
    expect(data, Some(json!({ "until": "monday" })))
}

async fn progress(world: &World) -> Result<(), String> {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let hear = Arc::clone(&heard);
    let call = world.client.call_tool("report", json!({}));
    let call = call.on_progress(move |report| hear.lock().unwrap().push(report.progress));
    expect(soon(call.text()).await.map_err(|error| error.to_string())?.as_str(), "reported")?;
    let heard = heard.lock().unwrap().clone();
    expect(heard.is_sorted(), true)?;
    expect(heard.last().copied(), Some(3.0))
}

async fn log(world: &World) -> Result<(), String> {
    let mut notifications = world.client.notifications();
    let set = world.client.set_log_level(Some(LoggingLevel::Info)).await;
    set.map_err(|error| error.to_string())?;
    answers(world, "report", "reported").await?;
    let log = soon(notifications.next_of("notifications/message")).await;
    let log = log.ok_or("there is no log message")?;
    expect(log.params.to_value()["data"].clone(), json!("careful"))
}

async fn cancel(world: &World) -> Result<(), String> {
    let call = tokio::spawn(world.client.call_tool("sleep", json!({})).into_future());
    soon(world.counts.started.notified()).await;
    call.abort();
    soon(world.counts.dropped.notified()).await;
    answers(world, "plain", "done").await
}

/// Calls that are given up early, each after another step: some have been sent by then.
async fn cancel_before(world: &World) -> Result<(), String> {
    for steps in 0..8 {
        let given_up = async {
            for _ in 0..steps {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            biased;
            result = world.client.call_tool("plain", json!({})).into_future() => drop(result),
            () = given_up => {}
        }
    }
    answers(world, "plain", "done").await
}

/// A cancellation that comes too late, and one of what never was.
async fn cancel_after(world: &World) -> Result<(), String> {
    answers(world, "plain", "done").await?;
    for id in [json!(1), json!("never")] {
        let params = json!({ "requestId": id, "reason": "too late" }).into();
        let told = world.client.notify("notifications/cancelled", Some(&params)).await;
        told.map_err(|error| error.to_string())?;
    }
    answers(world, "plain", "done").await
}

/// A call that becomes a task where both sides have tasks.
async fn task(world: &World, tool: &str, expected: &str, fails: bool) -> Result<(), String> {
    if fails {
        // Nothing hangs.
        let _ = soon(world.client.call_tool(tool, json!({})).into_future()).await;
        return Ok(());
    }
    let started = soon(world.client.call_tool(tool, json!({})).start()).await;
    let started = started.map_err(|error| error.to_string())?;
    expect(started.task().is_some(), true)?;
    let result = soon(started.wait()).await.map_err(|error| error.to_string())?;
    let text = json!(result.content).to_string();
    if text.contains(expected) { Ok(()) } else { Err(text) }
}

async fn list_changed(world: &World) -> Result<(), String> {
    let changes = soon(world.client.changes(Wanted::all_lists())).await;
    let mut changes = changes.map_err(|error| error.to_string())?;
    let late = bowline::Tool::new("late", || async { "better than never" });
    world.registry.add(late).map_err(|error| error.to_string())?;
    let change = soon(changes.next()).await;
    expect(matches!(change, Some(Ok(Change::Tools))), true)?;
    answers(world, "late", "better than never").await
}

async fn subscribe(world: &World) -> Result<(), String> {
    let changes = soon(world.client.changes(Wanted::new().resource("note:a"))).await;
    let mut changes = changes.map_err(|error| error.to_string())?;
    let updating = async {
        // Nothing says when the bridge's own subscription is there.
        loop {
            world.registry.resource_updated("note:a");
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    let change = soon(async {
        tokio::select! {
            change = changes.next() => change,
            () = updating => None,
        }
    });
    match change.await {
        Some(Ok(Change::Resource(uri))) => expect(&*uri, "note:a"),
        other => Err(format!("{:?}", other.map(|it| it.is_ok()))),
    }
}

/// The server is stopped and started: calls fail or succeed, none hangs, and soon all succeed. On a
/// stream it stays away: calls fail, those under way too.
async fn restart(world: &mut World) -> Result<(), String> {
    let running = tokio::spawn(world.client.call_tool("sleep", json!({})).into_future());
    soon(world.counts.started.notified()).await;
    let is_back = world.restart().await;
    match soon(running).await.map_err(|error| error.to_string())? {
        Ok(result) if result.is_error != Some(true) => return Err(format!("{result:?}")),
        _ => {}
    }
    // Its handler went with it.
    soon(world.counts.dropped.notified()).await;
    if !is_back {
        return refused(world, "plain").await;
    }
    soon(async {
        while let Err(error) = answers(world, "plain", "done").await {
            if error.contains("instead of") {
                return Err(error);
            }
        }
        Ok(())
    })
    .await
}
