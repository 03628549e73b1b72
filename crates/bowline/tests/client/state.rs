//! What can be seen of a connection, what is kept of its answers, and how its end is told.

use std::sync::Arc;
use std::time::Duration;

use bowline::ErrorObject;
use bowline::client::{
    CallError, CallError::Closed, Change, ClientLimits, Phase, Restart, Timeouts, WaitError, Wanted,
};
use bowline::model::{CreateMessageParams, CreateMessageResult};
use serde_json::json;
use tokio::time::Instant;

use super::fixture::{Nasty, builder, limits, soon, until};
use super::wire::{Wire, text};

#[tokio::test(start_paused = true)]
async fn pending_calls_have_their_age() {
    let wire = Wire::new();
    let client = wire.connect(false, builder()).await;
    let first = tokio::spawn(client.call_tool("t", json!({})).into_future());
    wire.asked("tools/call").await;
    tokio::time::advance(Duration::from_secs(3)).await;
    let second = tokio::spawn({
        let client = client.clone();
        async move { client.ping().await }
    });
    wire.asked("ping").await;
    tokio::time::advance(Duration::from_secs(2)).await;
    let pending = client.pending();
    let seen: Vec<_> = pending.iter().map(|it| (it.method.as_str(), it.age.as_secs())).collect();
    assert_eq!(seen, [("tools/call", 5), ("ping", 2)]);
    assert!(pending[0].id < pending[1].id);
    client.close().await;
    assert!(matches!(first.await.unwrap(), Err(Closed(_))));
    assert!(matches!(second.await.unwrap(), Err(Closed(_))));
}

#[tokio::test(start_paused = true)]
async fn progress_moves_the_deadline_but_not_the_last_one() {
    let wire = Wire::new();
    let client = wire.connect(false, builder()).await;
    let call = client
        .call_tool("t", json!({}))
        .idle_timeout(Duration::from_secs(10))
        .timeout(Duration::from_secs(25))
        .on_progress(|_| ());
    let begun = Instant::now();
    let call = tokio::spawn(call.into_future());
    let question = wire.asked("tools/call").await;
    let token = &question["params"]["_meta"]["progressToken"];
    for step in 0..3 {
        tokio::time::sleep(Duration::from_secs(8)).await;
        assert!(!call.is_finished(), "{step}");
        wire.say(&json!({ "jsonrpc": "2.0", "method": "notifications/progress",
            "params": { "progressToken": token, "progress": step } }));
    }
    let error = soon("a timeout", call).await.unwrap().unwrap_err();
    assert!(matches!(error, CallError::TimedOut { .. }), "{error}");
    assert_eq!(begun.elapsed().as_secs(), 25);
    assert_eq!(wire.asked("notifications/cancelled").await["params"]["requestId"], question["id"]);
    client.close().await;
}

#[tokio::test]
async fn a_phase_can_be_waited_for() {
    let nasty = Nasty::new();
    let restart = Restart::OnExit { attempts: 3, stable: Duration::from_secs(30) };
    let client = nasty.try_connect("legacy", builder().restart(restart)).await.unwrap();
    let ready = client.wait_for(Phase::Ready, Duration::ZERO).await.unwrap();
    assert_eq!((ready.phase, ready.generation), (Phase::Ready, 1));
    let error = client.wait_for(Phase::Closing, Duration::from_millis(20)).await.unwrap_err();
    assert_eq!(error.to_string(), "still Ready after 20ms");
    let mut watch = client.watch();
    let _ = soon("an end", client.call_tool("exit", json!({}))).await.unwrap_err();
    let mut phases = Vec::new();
    while phases.last() != Some(&Phase::Ready) {
        phases.push(soon("a change", watch.changed()).await.unwrap().phase);
    }
    assert!(phases.starts_with(&[Phase::Starting]), "{phases:?}");
    assert_eq!(client.state().generation, 2);
    client.clone().close().await;
    let error = client.wait_for(Phase::Ready, Duration::from_secs(60)).await.unwrap_err();
    assert!(matches!(error, WaitError::Closed { .. }), "{error}");
    nasty.is_gone().await;
}

/// A result with a time to live, under the name of its number.
fn tools(number: usize, ttl: u64) -> serde_json::Value {
    json!({
        "resultType": "complete", "ttlMs": ttl, "cacheScope": "private",
        "tools": [{ "name": number.to_string(), "inputSchema": { "type": "object" } }],
    })
}

#[tokio::test(start_paused = true)]
async fn results_are_kept_as_long_as_the_server_allows() {
    let wire = Wire::new();
    let client = wire.connect(true, builder()).await;
    let server = tokio::spawn({
        let wire = wire.clone();
        async move {
            for number in 0.. {
                let question = wire.asked("tools/list").await;
                wire.answer(&question, tools(number, 1000));
            }
        }
    });
    let list = || async { client.list_tools().await.unwrap()[0].name.clone() };
    assert_eq!(list().await, "0");
    assert_eq!(list().await, "0");
    assert_eq!(client.list_tools().without_cache().await.unwrap()[0].name, "1");
    assert_eq!(list().await, "1");
    tokio::time::advance(Duration::from_millis(1001)).await;
    assert_eq!(list().await, "2");
    // A change makes it stale.
    let mut heard = client.notifications();
    wire.say(&json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" }));
    heard.next().await.unwrap().unwrap();
    assert_eq!(list().await, "3");
    // Another change does not.
    wire.say(&json!({ "jsonrpc": "2.0", "method": "notifications/prompts/list_changed" }));
    heard.next().await.unwrap().unwrap();
    assert_eq!(list().await, "3");
    server.abort();
    client.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_change_right_behind_an_answer_keeps_it_out_of_the_cache() {
    let wire = Wire::new();
    let client = wire.connect(true, builder()).await;
    for number in 0..3 {
        let list = tokio::spawn(client.list_tools().into_future());
        let question = wire.asked("tools/list").await;
        let answer = json!({ "jsonrpc": "2.0", "id": question["id"],
            "result": tools(number, 60_000) });
        let change = json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" });
        // Both are read before whoever asked is woken.
        wire.send(format!("{answer}\n{change}\n").as_bytes());
        assert_eq!(soon("a list", list).await.unwrap().unwrap()[0].name, number.to_string());
    }
    client.close().await;
}

#[tokio::test(start_paused = true)]
async fn nothing_is_kept_without_a_cache() {
    let wire = Wire::new();
    let client = wire.connect(true, builder().without_cache()).await;
    for number in 0..3 {
        let list = tokio::spawn(client.list_tools().into_future());
        let question = wire.asked("tools/list").await;
        wire.answer(&question, tools(number, 60_000));
        assert_eq!(soon("a list", list).await.unwrap().unwrap()[0].name, number.to_string());
    }
    client.close().await;
}

#[tokio::test]
async fn a_crash_ends_its_calls_and_the_server_is_started_again() {
    for manner in ["legacy", "modern"] {
        let nasty = Nasty::new();
        let client = nasty.connect(manner).await;
        let wanted = Wanted::all_lists().resource("a://b");
        let mut changes = soon("changes", client.changes(wanted)).await.unwrap();
        let before = nasty.processes();
        let error = soon("an end", client.call_tool("exit", json!({}))).await.unwrap_err();
        assert!(error.to_string().contains("fatal: disk on fire"), "{error}");
        // A call that is made while there is no server waits for it.
        let said = client.call_tool("echo", json!({ "text": "again" })).text();
        assert_eq!(soon("an answer", said).await.unwrap(), "again");
        assert_ne!(nasty.processes(), before);
        assert_eq!(nasty.processes().len(), 1);
        // Nobody knows what happened in between, so everything counts as changed.
        let uri = Change::Resource("a://b".to_owned());
        for expected in [Change::Tools, Change::Prompts, Change::Resources, uri] {
            let change = soon("a change", changes.next()).await.unwrap().unwrap();
            assert_eq!(change, expected);
        }
        assert_eq!(client.state().generation, 2);
        client.close().await;
        assert!(soon("the end of changes", changes.next()).await.is_none());
        drop(changes);
        nasty.is_gone().await;
    }
}

#[tokio::test]
async fn a_server_that_crashes_again_and_again_is_given_up() {
    let nasty = Nasty::new();
    let restart = Restart::OnExit { attempts: 1, stable: Duration::from_secs(3600) };
    let client = nasty.try_connect("legacy", builder().restart(restart)).await.unwrap();
    let mut changes = soon("changes", client.changes(Wanted::all_lists())).await.unwrap();
    let _ = soon("an end", client.call_tool("exit", json!({}))).await.unwrap_err();
    client.wait_for(Phase::Ready, Duration::from_secs(60)).await.unwrap();
    let _ = soon("an end", client.call_tool("exit", json!({}))).await.unwrap_err();
    let state = client.wait_for(Phase::Closed, Duration::from_secs(60)).await.unwrap();
    let reason = state.reason.unwrap().to_string();
    assert!(reason.contains("exit status: 7"), "{reason}");
    while soon("the end of changes", changes.next()).await.is_some() {}
    drop((client, changes));
    nasty.is_gone().await;
}

#[tokio::test]
async fn a_client_can_be_closed_while_its_server_is_started_again() {
    let nasty = Nasty::new();
    let client = nasty.connect("legacy").await;
    let _ = soon("an end", client.call_tool("exit", json!({}))).await.unwrap_err();
    client.wait_for(Phase::Starting, Duration::from_secs(60)).await.unwrap();
    let waiting = tokio::spawn(client.call_tool("echo", json!({})).into_future());
    let other = client.clone();
    soon("the end", client.close()).await;
    soon("the end, for the other", other.close()).await;
    assert!(matches!(soon("an error", waiting).await.unwrap(), Err(Closed(_))));
    nasty.is_gone().await;
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_panics_is_answered_for() {
    let wire = Wire::new();
    async fn panics(_: CreateMessageParams) -> Result<CreateMessageResult, ErrorObject> {
        panic!("on purpose")
    }
    let limits = ClientLimits { questions: 2, ..limits() };
    let client = wire.connect(false, builder().limits(limits).on_sampling(panics)).await;
    // More often than there are places.
    for id in 0..10 {
        wire.say(&json!({ "jsonrpc": "2.0", "id": id, "method": "sampling/createMessage",
            "params": { "messages": [], "maxTokens": 1 } }));
        let answer = wire.next().await;
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(id), &json!(-32603)));
    }
    client.close().await;
}

#[tokio::test(start_paused = true)]
async fn questions_beyond_the_limit_are_refused_and_cancelled_ones_make_room() {
    let wire = Wire::new();
    let limits = ClientLimits { questions: 2, ..limits() };
    let asked = Arc::new(tokio::sync::Semaphore::new(0));
    let gate = Arc::clone(&asked);
    let connecting = builder().limits(limits).on_sampling(move |_| {
        gate.add_permits(1);
        async { std::future::pending::<Result<CreateMessageResult, ErrorObject>>().await }
    });
    let client = wire.connect(false, connecting).await;
    let ask = |id: u32| {
        wire.say(&json!({ "jsonrpc": "2.0", "id": id, "method": "sampling/createMessage",
            "params": { "messages": [], "maxTokens": 1 } }));
    };
    ask(1);
    ask(2);
    ask(3);
    let refused = wire.next().await;
    assert_eq!(refused["id"], 3);
    assert_eq!(refused["error"]["message"], "too many requests at a time");
    wire.say(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled",
        "params": { "requestId": 1 } }));
    ask(4);
    soon("a question", asked.acquire_many(3)).await.unwrap().forget();
    // Calls go on all the while.
    let call = tokio::spawn(client.call_tool("t", json!({})).text());
    let question = wire.asked("tools/call").await;
    wire.answer(&question, text("done"));
    assert_eq!(call.await.unwrap().unwrap(), "done");
    client.close().await;
}

#[tokio::test(start_paused = true)]
async fn there_is_a_deadline_for_connecting() {
    let wire = Wire::new();
    let timeouts = Timeouts { connect: Duration::from_secs(7), ..Timeouts::default() };
    let begun = Instant::now();
    let target = bowline::client::Target::stream(wire.clone());
    let error = builder().timeouts(timeouts).connect(target).await.unwrap_err();
    assert!(matches!(error, bowline::client::OpenError::TimedOut(_)), "{error}");
    assert_eq!(begun.elapsed().as_secs(), 7);
    let begun = Instant::now();
    until("the end of all tasks", || {
        tokio::runtime::Handle::current().metrics().num_alive_tasks() == 0
    })
    .await;
    assert!(begun.elapsed() < Duration::from_secs(10));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_ends_or_stops_reading_ends_the_connection() {
    for (ends, expected) in [
        (true, "the connection ended: the server closed the stream"),
        (false, "the connection ended: the server no longer reads"),
    ] {
        let wire = Wire::new();
        let client = wire.connect(false, builder()).await;
        let call = tokio::spawn(client.call_tool("t", json!({})).into_future());
        wire.asked("tools/call").await;
        match ends {
            true => wire.end(),
            false => {
                wire.stop_reading();
                let _ = client.ping().await.unwrap_err();
            }
        }
        let error = soon("an error", call).await.unwrap().unwrap_err();
        assert_eq!(error.to_string(), expected);
        client.wait_for(Phase::Closed, Duration::from_secs(5)).await.unwrap();
        assert_eq!(client.ping().await.unwrap_err().to_string(), expected);
    }
}
