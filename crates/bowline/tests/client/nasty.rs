//! Servers as child processes that do what they must not: each ends in the right error in time,
//! and nothing is left of any.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bowline::Revision;
use bowline::client::{
    CallError, Client, ClientLimits, CloseReason, ConnectError, Fault, OpenError, Phase,
    Preference, Restart, Timeouts, Wanted,
};
use bowline::proto::method::Subscribe;
use serde_json::json;

use super::fixture::{Nasty, builder, is_alive, limits, scaled, soon, until};

/// Calls a tool of the nasty server, and takes its text.
async fn said(client: &Client, tool: &str, count: u64) -> Result<String, CallError> {
    soon(tool, client.call_tool(tool, json!({ "count": count })).text()).await
}

/// Faults as they come, for a client to tell them to.
fn faults() -> (Arc<Mutex<Vec<Fault>>>, impl Fn(&Fault) + Send + Sync + 'static) {
    let all = Arc::new(Mutex::new(Vec::new()));
    let hear = Arc::clone(&all);
    (all, move |fault: &Fault| hear.lock().unwrap().push(fault.clone()))
}

#[tokio::test]
async fn garbage_is_told_to_the_hook_and_harms_nobody() {
    for manner in ["banner", "modern"] {
        let nasty = Nasty::new();
        let (all, hear) = faults();
        let client = nasty.try_connect(manner, builder().on_fault(hear)).await.unwrap();
        assert_eq!(said(&client, "garbage", 1).await.unwrap(), "after the garbage");
        {
            let all = all.lock().unwrap();
            let starts: Vec<&str> = all
                .iter()
                .filter_map(|fault| match fault {
                    Fault::NotAMessage { start, .. } => Some(start.as_str()),
                    _ => None,
                })
                .collect();
            assert!(starts.contains(&"Listening on port 3000"), "{starts:?}");
            assert!(starts.iter().any(|start| start.contains("502 Bad Gateway")), "{starts:?}");
            assert_eq!(manner == "banner", starts.iter().any(|it| it.contains("Starting up!")));
            let reported = |fault: &Fault| matches!(fault, Fault::Reported(error) if error.message == "you sent garbage");
            assert!(all.iter().any(reported), "{all:?}");
        }
        assert_eq!(said(&client, "echo", 1).await.unwrap(), "");
        client.close().await;
        nasty.is_gone().await;
    }
}

#[tokio::test]
async fn a_flood_on_standard_error_slows_nobody() {
    let nasty = Nasty::new();
    let lines = Arc::new(Mutex::new(0_u64));
    let count = Arc::clone(&lines);
    let connecting = builder().on_stderr(move |_| *count.lock().unwrap() += 1);
    let client = nasty.try_connect("legacy", connecting).await.unwrap();
    // A hundred megabytes.
    let flood = 100_u64 << 10;
    assert_eq!(said(&client, "stderr", flood).await.unwrap(), "done");
    until("the last line", || *lines.lock().unwrap() > flood).await;
    assert_eq!(said(&client, "echo", 1).await.unwrap(), "");
    // What is kept are the last lines.
    let error = said(&client, "exit", 1).await.unwrap_err();
    let CallError::Closed(CloseReason::Exited(exit)) = error else { panic!("{error}") };
    assert_eq!(exit.stderr.last().unwrap(), "fatal: disk on fire");
    assert!(exit.stderr.len() <= 20 && exit.stderr.iter().all(|line| line.len() <= 1000));
    assert!(exit.stderr.contains(&"the end of the flood".to_owned()));
    client.close().await;
    nasty.is_gone().await;
}

#[tokio::test]
async fn one_that_never_answers_a_call() {
    for manner in ["legacy", "modern"] {
        let nasty = Nasty::new();
        let client = nasty.connect(manner).await;
        let call = client.call_tool("never", json!({})).timeout(Duration::from_millis(200));
        let error = soon("a timeout", call).await.unwrap_err();
        assert!(matches!(error, CallError::TimedOut { .. }), "{error}");
        assert!(error.to_string().starts_with("tools/call: no answer within"), "{error}");
        assert!(client.pending().is_empty());
        assert_eq!(said(&client, "echo", 1).await.unwrap(), "");
        client.close().await;
        nasty.is_gone().await;
    }
}

#[tokio::test]
async fn one_that_never_answers_anything() {
    let nasty = Nasty::new();
    let timeouts = Timeouts {
        connect: Duration::from_millis(800),
        probe: Duration::from_millis(200),
        ..Timeouts::default()
    };
    let error = nasty.try_connect("mute", builder().timeouts(timeouts)).await.unwrap_err();
    assert!(matches!(error, OpenError::TimedOut(_)), "{error}");
    nasty.is_gone().await;
}

#[tokio::test]
async fn one_that_answers_twice() {
    for manner in ["legacy", "modern"] {
        let nasty = Nasty::new();
        let (all, hear) = faults();
        let client = nasty.try_connect(manner, builder().on_fault(hear)).await.unwrap();
        for _ in 0..10 {
            assert_eq!(said(&client, "twice", 1).await.unwrap(), "first");
        }
        assert_eq!(said(&client, "echo", 1).await.unwrap(), "");
        // A second answer is late, which is not a fault.
        assert!(all.lock().unwrap().is_empty());
        client.close().await;
        nasty.is_gone().await;
    }
}

#[tokio::test]
async fn one_that_answers_under_a_wrong_id() {
    let nasty = Nasty::new();
    let (all, hear) = faults();
    let client = nasty.try_connect("legacy", builder().on_fault(hear)).await.unwrap();
    // A string where a number was sent is told at once.
    let error = said(&client, "string_id", 1).await.unwrap_err();
    assert!(matches!(error, CallError::Malformed(_)), "{error}");
    assert!(error.to_string().contains("as its id, but a number was sent"), "{error}");
    // What names no call at all leaves its call to its deadline.
    for tool in ["other_id", "null_id", "fraction_id"] {
        let before = all.lock().unwrap().len();
        let call = tokio::spawn(client.call_tool(tool, json!({})).into_future());
        until("a fault", || all.lock().unwrap().len() > before).await;
        assert_eq!(client.pending().len(), 1, "{tool}");
        call.abort();
        assert!(call.await.unwrap_err().is_cancelled(), "{tool}");
    }
    assert!(client.pending().is_empty());
    client.close().await;
    nasty.is_gone().await;
}

#[tokio::test]
async fn one_that_exits_in_the_middle_of_a_call() {
    for manner in ["legacy", "modern"] {
        let nasty = Nasty::new();
        let connecting = builder().restart(Restart::Never);
        let client = nasty.try_connect(manner, connecting).await.unwrap();
        // Others that wait end as well.
        let other = tokio::spawn(client.call_tool("never", json!({})).into_future());
        until("the other call", || client.pending().len() == 1).await;
        let error = said(&client, "exit", 1).await.unwrap_err();
        let expected = "the connection ended: the server ended (exit status: 7); \
                        its last lines on standard error: the first sign of trouble | fatal: disk on fire";
        assert_eq!(error.to_string(), expected);
        let other = soon("the other call's end", other).await.unwrap().unwrap_err();
        assert_eq!(other.to_string(), expected);
        // Without restarts, that was it.
        let state = client.wait_for(Phase::Closed, Duration::from_secs(60)).await.unwrap();
        let Some(CloseReason::Exited(exit)) = state.reason else { panic!("{state:?}") };
        assert_eq!(exit.code, Some(7));
        let error = said(&client, "echo", 1).await.unwrap_err();
        assert_eq!(error.to_string(), expected);
        nasty.is_gone().await;
    }
}

#[tokio::test]
async fn one_that_exits_during_the_handshake() {
    let nasty = Nasty::new();
    let error = nasty.try_connect("ends", builder()).await.unwrap_err();
    let OpenError::Connect { error: ConnectError::Exited, exit: Some(exit) } = &error else {
        panic!("{error}")
    };
    assert_eq!((exit.code, &*exit.stderr), (Some(4), &["cannot open the database".to_owned()][..]));
    assert!(
        error.to_string().ends_with("its last lines on standard error: cannot open the database"),
        "{error}"
    );
    nasty.is_gone().await;
}

#[tokio::test]
async fn one_that_exits_right_after_the_handshake() {
    let nasty = Nasty::new();
    let restart = Restart::OnExit { attempts: 1, stable: Duration::from_secs(30) };
    let legacy = Preference::Pin(Revision::V2025_11_25);
    let connecting = builder().restart(restart).preference(legacy);
    // Whether it counts as connected is a matter of a moment; in the end it is closed.
    if let Ok(client) = nasty.try_connect("hello", connecting).await {
        let state = client.wait_for(Phase::Closed, Duration::from_secs(60)).await.unwrap();
        assert!(state.reason.unwrap().to_string().contains("exit status: 5"));
    }
    nasty.is_gone().await;
}

#[tokio::test]
async fn one_that_ignores_the_end_and_the_signal() {
    for closes in [true, false] {
        let nasty = Nasty::new();
        let client = nasty.connect("deaf").await;
        let id: u32 = said(&client, "pid", 1).await.unwrap().parse().unwrap();
        let grandchild: u32 = said(&client, "fork", 1).await.unwrap().parse().unwrap();
        assert!(is_alive(id) && is_alive(grandchild));
        until("both processes", || nasty.processes().len() == 2).await;
        match closes {
            true => {
                soon("the end", client.close()).await;
                // Nothing is left when this returns, not a little later.
                assert!(nasty.processes().is_empty());
            }
            false => drop(client),
        }
        nasty.is_gone().await;
    }
}

#[tokio::test]
async fn one_whose_grandchild_survives_it() {
    let nasty = Nasty::new();
    let connecting = builder().restart(Restart::Never);
    let client = nasty.try_connect("legacy", connecting).await.unwrap();
    let grandchild: u32 = said(&client, "fork", 1).await.unwrap().parse().unwrap();
    assert!(is_alive(grandchild));
    // The grandchild holds the pipes open; the end is noticed nonetheless.
    let error = said(&client, "exit", 1).await.unwrap_err();
    assert!(error.to_string().contains("exit status: 7"), "{error}");
    client.wait_for(Phase::Closed, Duration::from_secs(60)).await.unwrap();
    nasty.is_gone().await;
}

#[tokio::test]
async fn one_that_sends_a_giant_line() {
    for manner in ["legacy", "modern"] {
        let nasty = Nasty::new();
        let (all, hear) = faults();
        let client = nasty.try_connect(manner, builder().on_fault(hear)).await.unwrap();
        let error = said(&client, "long", scaled(64 << 20, 1 << 30)).await.unwrap_err();
        let said_by_us = "the answer is longer than 16777216 bytes, a limit of this client";
        assert!(matches!(error, CallError::LimitExceeded { .. }), "{error}");
        assert!(error.to_string().contains(said_by_us), "{error}");
        let limit = 16 << 20;
        assert!(all.lock().unwrap().contains(&Fault::TooLong { limit }));
        assert_eq!(said(&client, "echo", 1).await.unwrap(), "");
        client.close().await;
        nasty.is_gone().await;
    }
}

#[tokio::test]
async fn one_that_asks_for_what_was_never_declared() {
    let nasty = Nasty::new();
    let client = nasty.connect("legacy").await;
    let codes = said(&client, "ask", 1).await.unwrap();
    assert_eq!(codes, "-32601 -32601 -32601 -32601 ok");
    client.close().await;
    nasty.is_gone().await;
}

#[tokio::test]
async fn one_that_asks_and_does_not_read_the_answers() {
    let nasty = Nasty::new();
    let (all, hear) = faults();
    let limits = ClientLimits { outbox: 64 << 10, ..limits() };
    let connecting = builder().on_fault(hear).limits(limits);
    let client = nasty.try_connect("legacy", connecting).await.unwrap();
    let before = tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let mut heard = client.notifications();
    let call = client.call_tool("ask_and_not_read", json!({ "count": 100_000 }));
    let call = tokio::spawn(call.timeout(Duration::from_secs(3600)).into_future());
    soon("all questions", heard.next_of("notifications/message")).await.unwrap();
    // Every place holds one task at most, whatever was asked.
    let alive = tokio::runtime::Handle::current().metrics().num_alive_tasks();
    assert!(alive - before <= 3 * 64, "{alive} tasks, {before} before");
    let unanswered =
        |fault: &Fault| matches!(fault, Fault::Unanswered { method } if method == "roots/list");
    assert!(all.lock().unwrap().iter().any(unanswered));
    client.close().await;
    assert!(matches!(call.await.unwrap(), Err(CallError::Closed(CloseReason::Asked))));
    nasty.is_gone().await;
}

#[tokio::test]
async fn one_that_sends_notifications_without_end() {
    for manner in ["legacy", "modern"] {
        let nasty = Nasty::new();
        let counted = Arc::new(Mutex::new(0_u64));
        let count = Arc::clone(&counted);
        let connecting = builder().on_notification(move |_| *count.lock().unwrap() += 1);
        let client = nasty.try_connect(manner, connecting).await.unwrap();
        let mut heard = client.notifications();
        let flood = 100_000;
        assert_eq!(said(&client, "notify", flood).await.unwrap(), "done");
        // Those before the answer come before the answer.
        assert_eq!(*counted.lock().unwrap(), flood);
        // A slow reader is told how many it has missed.
        let first = soon("what was missed", heard.next()).await.unwrap();
        assert_eq!(first, Err(bowline::client::Missed(flood - 1024)));
        assert_eq!(said(&client, "echo", 1).await.unwrap(), "");
        client.close().await;
        nasty.is_gone().await;
    }
}

#[tokio::test]
async fn one_that_answers_a_subscription_with_more_than_nothing() {
    let nasty = Nasty::new();
    let client = nasty.connect("legacy").await;
    let params = bowline::model::SubscribeParams { uri: "a://b".into(), ..Default::default() };
    soon("an answer", client.call::<Subscribe>(params).into_future()).await.unwrap();
    let changes = client.changes(Wanted::all_lists().resource("a://b"));
    let changes = soon("changes", changes).await.unwrap();
    drop(changes);
    client.close().await;
    nasty.is_gone().await;
}

#[tokio::test]
async fn one_that_closes_its_output_and_lives() {
    let nasty = Nasty::new();
    let connecting = builder().restart(Restart::Never);
    let client = nasty.try_connect("deaf", connecting).await.unwrap();
    let error = said(&client, "shut", 1).await.unwrap_err();
    assert!(matches!(error, CallError::Closed(CloseReason::Exited(_))), "{error}");
    client.wait_for(Phase::Closed, Duration::from_secs(60)).await.unwrap();
    nasty.is_gone().await;
}

#[tokio::test]
async fn nothing_is_left_of_a_client_that_is_dropped_in_any_state() {
    for manner in ["legacy", "modern", "deaf", "mute", "dies"] {
        let nasty = Nasty::new();
        // While it connects.
        for millis in [0, 1, 20, 100] {
            let connecting = builder().connect(nasty.command(manner));
            let _ = tokio::time::timeout(Duration::from_millis(millis), connecting).await;
            nasty.is_gone().await;
        }
        if manner == "mute" {
            continue;
        }
        // While calls and changes wait.
        let client = nasty.connect(manner).await;
        let call = tokio::spawn(client.call_tool("never", json!({})).into_future());
        let changes = soon("changes", client.changes(Wanted::all_lists())).await.unwrap();
        until("the call", || !client.pending().is_empty()).await;
        drop(changes);
        call.abort();
        drop(client);
        nasty.is_gone().await;
    }
}
