//! Servers whose tasks make no sense: every one ends in a clear error, and nothing hangs.

use std::time::Duration;

use bowline::client::{ClientLimits, FormAnswer};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::fixture::{builder, limits, soon};
use super::tasks::{Script, created, discovered, error, polled, result, task};

/// What a call ends with if every poll finds the task so.
async fn outcome(found: Value) -> Result<String, String> {
    let script = polled(move |_| found.clone());
    let client = script.connect(builder()).await;
    let said = client.call_tool("slow", json!({})).text();
    soon("an end", said).await.map_err(|error| error.to_string())
}

#[tokio::test(start_paused = true)]
async fn nonsense_is_named() {
    for (found, expected) in [
        (task("working", json!({ "taskId": "t2" })), r#"result.taskId is "t2", but task "t1" was"#),
        (task("working", json!({ "taskId": 7 })), "tasks/get: result.taskId is 7, not a string"),
        (task("paused", json!({})), "paused"),
        (task("completed", json!({})), "result.result is missing, though the task has completed"),
        (task("failed", json!({})), "result.error is missing, though the task has failed"),
        (task("failed", json!({ "error": "?" })), "error"),
        (task("completed", json!({ "result": 5 })), "tools/call: "),
        (task("completed", json!({ "result": { "content": 5 } })), "content"),
        (
            task("completed", json!({ "result": created(json!({})) })),
            "the result of the task is not complete",
        ),
        (task("working", json!({ "ttlMs": -1 })), "result.ttlMs is -1"),
        (task("working", json!({ "ttlMs": "soon" })), "ttlMs"),
        (task("working", json!({ "pollIntervalMs": -5 })), "pollIntervalMs"),
        (task("working", json!({ "ttlMs": 0 })), "did not end within its time to live, 0ns"),
        (task("input_required", json!({ "inputRequests": { "a": { "method": "x" } } })), "x"),
        (created(json!({})), "a task, which this method does not"),
        (json!({}), "missing"),
        (json!(null), "tasks/get"),
    ] {
        let error = outcome(found.clone()).await.unwrap_err();
        assert!(error.contains(expected), "{found}: {error}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_server_leaves_out_or_exaggerates_does_no_harm() {
    let text = json!({ "content": [{ "type": "text", "text": "done" }] });
    let mut bare = task("completed", json!({ "result": text }));
    for member in ["ttlMs", "pollIntervalMs", "resultType"] {
        bare.as_object_mut().unwrap().remove(member);
    }
    assert_eq!(outcome(bare).await.unwrap(), "done");
    let huge = json!({ "ttlMs": u64::MAX, "pollIntervalMs": u64::MAX, "result": text });
    assert_eq!(outcome(task("completed", huge)).await.unwrap(), "done");
}

#[tokio::test(start_paused = true)]
async fn a_task_of_no_length_and_no_pace_is_polled_ten_times_a_second() {
    let script = polled(|_| task("working", json!({ "pollIntervalMs": 0 })));
    let client = script.connect(builder()).await;
    let call = client.call_tool("slow", json!({})).timeout(Duration::from_secs(10));
    call.await.unwrap_err();
    let polls = script.count("tasks/get");
    assert!((75..=101).contains(&polls), "{polls}");
}

#[tokio::test(start_paused = true)]
async fn a_task_that_never_stops_asking_is_given_up() {
    let form = |number: usize| {
        let params = json!({ "message": "?", "requestedSchema": { "type": "object",
            "properties": {} } });
        json!({ number.to_string(): { "method": "elicitation/create", "params": params } })
    };
    let asking = move |number| task("input_required", json!({ "inputRequests": form(number) }));
    let answering = |limits: ClientLimits| {
        builder().limits(limits).on_form(|_| async { Ok(FormAnswer::defaults()) })
    };
    // Ever new questions.
    let script = polled(asking);
    let client = script.connect(answering(limits())).await;
    let error = client.call_tool("slow", json!({})).await.unwrap_err().to_string();
    assert!(error.contains("asks more than 100 questions"), "{error}");
    assert!(error.contains("ClientLimits::task_questions"), "{error}");
    assert_eq!(script.count("tasks/update"), 100);
    // Long names.
    let script = polled(asking);
    let few = ClientLimits { task_bytes: 5, ..limits() };
    let client = script.connect(answering(few)).await;
    let error = client.call_tool("slow", json!({})).await.unwrap_err().to_string();
    assert!(error.contains("ClientLimits::task_bytes"), "{error}");
    assert_eq!(script.count("tasks/update"), 5);
    // Always the same, or nothing at all.
    for same in [asking(1), task("input_required", json!({}))] {
        let script = polled(move |_| same.clone());
        let client = script.connect(answering(limits())).await;
        let error = client.call_tool("slow", json!({})).await.unwrap_err().to_string();
        assert!(error.contains("ClientLimits::task_repeats"), "{error}");
        assert!(script.count("tasks/get") <= 63);
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_reports_without_end_is_neither_polled_nor_believed_for_ever() {
    let script = Script::play(|wire, request| match request["method"].as_str().unwrap() {
        "server/discover" => result(discovered()),
        "tools/call" => {
            for number in 0..2_000 {
                let params = task("working", json!({ "statusMessage": number.to_string() }));
                wire.say(&json!({ "jsonrpc": "2.0", "method": "notifications/tasks",
                    "params": params }));
            }
            result(created(json!({ "ttlMs": 3_000 })))
        }
        "tasks/get" => result(task("working", json!({ "ttlMs": 3_000 }))),
        _ => error(-32601),
    });
    let client = script.connect(builder()).await;
    let begun = Instant::now();
    let error = client.call_tool("slow", json!({})).await.unwrap_err().to_string();
    assert!(error.contains("time to live"), "{error}");
    assert_eq!(begun.elapsed().as_secs(), 3);
    assert!(script.count("tasks/get") <= 7, "{}", script.count("tasks/get"));
}
