//! Tasks of the extension: calls that become tasks are waited for, answered, cancelled, resumed.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bowline::client::{CallError, Client, ClientBuilder, FormAnswer, Started, Target};
use bowline::model::TaskStatus;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::fixture::{builder, soon, until};
use super::wire::{Wire, text};

const EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// A server in the hands of a test: it answers by a function, and keeps what it was asked.
#[derive(Clone, Default)]
pub(crate) struct Script {
    pub(crate) wire: Wire,
    asked: Arc<Mutex<Vec<(Instant, Value)>>>,
}

impl Script {
    /// Answers every request with what `answer` returns: the members beside the id. `None` leaves
    /// it open.
    pub(crate) fn play(
        mut answer: impl FnMut(&Wire, &Value) -> Option<Value> + Send + 'static,
    ) -> Self {
        let script = Self::default();
        let Self { wire, asked } = script.clone();
        tokio::spawn(async move {
            loop {
                let request = wire.arrival().await;
                asked.lock().unwrap().push((Instant::now(), request.clone()));
                let Some(mut reply) = answer(&wire, &request) else { continue };
                reply["jsonrpc"] = json!("2.0");
                reply["id"] = request["id"].clone();
                wire.say(&reply);
            }
        });
        script
    }

    /// When a method was called, and with what.
    pub(crate) fn calls(&self, method: &str) -> Vec<(Instant, Value)> {
        let asked = self.asked.lock().unwrap();
        asked.iter().filter(|(_, it)| it["method"] == method).cloned().collect()
    }

    /// Everything that the client sent.
    pub(crate) fn all(&self) -> Vec<(Instant, Value)> {
        self.asked.lock().unwrap().clone()
    }

    pub(crate) fn count(&self, method: &str) -> usize {
        self.calls(method).len()
    }

    pub(crate) async fn connect(&self, builder: ClientBuilder) -> Client {
        let connecting = builder.connect(Target::stream(self.wire.clone()));
        soon("a connection", connecting).await.unwrap()
    }
}

pub(crate) fn result(result: Value) -> Option<Value> {
    Some(Value::Object([("result".to_owned(), result)].into_iter().collect()))
}

pub(crate) fn error(code: i64) -> Option<Value> {
    Some(json!({ "error": { "code": code, "message": "no" } }))
}

pub(crate) fn discovered() -> Value {
    json!({
        "resultType": "complete", "supportedVersions": ["2026-07-28"], "ttlMs": 0,
        "cacheScope": "private", "capabilities": { "tools": {}, "extensions": { EXTENSION: {} } },
    })
}

/// The task `t1` with a status, and whatever else.
pub(crate) fn task(status: &str, more: Value) -> Value {
    let mut task = json!({
        "resultType": "complete", "taskId": "t1", "status": status, "ttlMs": null,
        "createdAt": "2026-11-18T06:00:00Z", "lastUpdatedAt": "2026-11-18T06:00:00Z",
        "pollIntervalMs": 500,
    });
    let Value::Object(more) = more else { panic!("{more}") };
    task.as_object_mut().unwrap().extend(more);
    task
}

pub(crate) fn created(more: Value) -> Value {
    let mut created = task("working", more);
    created["resultType"] = json!("task");
    created
}

pub(crate) fn completed(said: &str) -> Value {
    task("completed", json!({ "result": text(said) }))
}

/// A server without subscriptions whose only tool becomes a task, which `get` describes by the
/// number of the poll.
pub(crate) fn polled(mut get: impl FnMut(usize) -> Value + Send + 'static) -> Script {
    let mut polls = 0;
    Script::play(move |_, request| match request["method"].as_str().unwrap() {
        "server/discover" => result(discovered()),
        "tools/call" => result(created(json!({}))),
        "tasks/get" => {
            polls += 1;
            result(get(polls))
        }
        "tasks/update" | "tasks/cancel" => result(json!({ "resultType": "complete" })),
        _ => error(-32601),
    })
}

#[tokio::test(start_paused = true)]
async fn a_call_that_becomes_a_task_is_waited_for() {
    let script = polled(|poll| match poll {
        1 => task("working", json!({ "statusMessage": "half" })),
        2 => task("working", json!({ "pollIntervalMs": 3_000, "statusMessage": "nearly" })),
        _ => completed("done"),
    });
    let client = script.connect(builder()).await;
    let heard = Arc::new(Mutex::new(Vec::new()));
    let hear = Arc::clone(&heard);
    let call = client.call_tool("slow", json!({})).on_status(move |state| {
        hear.lock().unwrap().push((state.status, state.message.clone().unwrap_or_default()));
    });
    assert_eq!(call.text().await.unwrap(), "done");
    let call = &script.calls("tools/call")[0].1["params"];
    let capabilities = &call["_meta"]["io.modelcontextprotocol/clientCapabilities"];
    assert_eq!(capabilities["extensions"][EXTENSION], json!({}));
    let polls = script.calls("tasks/get");
    assert!(polls.iter().all(|(_, poll)| poll["params"]["taskId"] == "t1"));
    let times: Vec<_> = polls.iter().map(|(time, _)| *time).collect();
    let gaps: Vec<_> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(gaps[0] >= Duration::from_millis(500) && gaps[0] <= Duration::from_millis(630));
    assert!(gaps[1] >= Duration::from_secs(3) && gaps[1] <= Duration::from_millis(3_760));
    let expected = [
        (TaskStatus::Working, String::new()),
        (TaskStatus::Working, "half".to_owned()),
        (TaskStatus::Working, "nearly".to_owned()),
        (TaskStatus::Completed, String::new()),
    ];
    assert_eq!(*heard.lock().unwrap(), expected);
    assert_eq!(script.count("tasks/cancel"), 0);
}

#[tokio::test(start_paused = true)]
async fn every_kind_of_call_waits_and_ends_like_a_plain_one() {
    let ends = Arc::new(Mutex::new(Value::Null));
    let get = Arc::clone(&ends);
    let script = polled(move |_| get.lock().unwrap().clone());
    let client = script.connect(builder()).await;
    *ends.lock().unwrap() = completed("done");
    let json = client.call_json("tools/call", json!({ "name": "slow" })).await.unwrap();
    assert_eq!(json.to_value()["content"][0]["text"], "done");
    let params = bowline::model::CallToolParams { name: "slow".into(), ..Default::default() };
    let typed = client.call::<bowline::proto::method::CallTool>(params).await.unwrap();
    assert_eq!(typed.content.len(), 1);

    let bad = json!({ "content": [{ "type": "text", "text": "no disk" }], "isError": true });
    *ends.lock().unwrap() = task("completed", json!({ "result": bad }));
    assert_eq!(client.call_tool("slow", json!({})).await.unwrap().is_error, Some(true));
    let failed = client.call_tool("slow", json!({})).text().await.unwrap_err();
    assert_eq!(failed.to_string(), r#"tool "slow" failed: no disk"#);

    let reason = json!({ "code": -32099, "message": "out of coffee" });
    *ends.lock().unwrap() = task("failed", json!({ "error": reason }));
    let failed = client.call_tool("slow", json!({})).await.unwrap_err();
    assert!(failed.to_string().starts_with("tools/call: the server refused: out of coffee"));

    *ends.lock().unwrap() = task("cancelled", json!({ "statusMessage": "by an operator" }));
    let failed = client.call_tool("slow", json!({})).await.unwrap_err();
    assert_eq!(failed.to_string(), r#"task "t1" was cancelled: by an operator"#);
    // None of them is worth cancelling.
    assert_eq!(script.count("tasks/cancel"), 0);
    client.close().await;
}

/// A server that reports changes of tasks, acknowledges that it does not, or rejects the request.
fn pushing(grants: bool, knows: bool) -> Script {
    Script::play(move |wire, request| match request["method"].as_str().unwrap() {
        "server/discover" => result(discovered()),
        "tools/call" => result(created(json!({ "pollIntervalMs": 30_000 }))),
        "tasks/get" if grants => result(task("working", json!({ "pollIntervalMs": 30_000 }))),
        "tasks/get" => result(completed("polled")),
        "subscriptions/listen" if !knows => error(-32601),
        "subscriptions/listen" => {
            let granted = match grants {
                true => request["params"]["notifications"].clone(),
                false => json!({}),
            };
            let meta = json!({ "io.modelcontextprotocol/subscriptionId": request["id"] });
            let params = json!({ "notifications": granted, "_meta": meta });
            wire.say(&json!({ "jsonrpc": "2.0", "params": params,
                "method": "notifications/subscriptions/acknowledged" }));
            if grants {
                let mut params = completed("pushed");
                params["_meta"] = meta;
                wire.say(&json!({ "jsonrpc": "2.0", "params": params,
                    "method": "notifications/tasks" }));
            }
            None
        }
        _ => None,
    })
}

#[tokio::test(start_paused = true)]
async fn a_server_that_reports_changes_is_not_polled() {
    let script = pushing(true, true);
    let client = script.connect(builder()).await;
    let begun = Instant::now();
    assert_eq!(client.call_tool("slow", json!({})).text().await.unwrap(), "pushed");
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    let listen = &script.calls("subscriptions/listen")[0].1;
    assert_eq!(listen["params"]["notifications"], json!({ "taskIds": ["t1"] }));
    // The subscription ends with the task.
    until("the end of the subscription", || script.count("notifications/cancelled") == 1).await;
    assert!(client.pending().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_report_changes_is_asked_to_once() {
    // What is not granted for one task may be for the next one.
    for (knows, listens) in [(false, 1), (true, 3)] {
        let script = pushing(false, knows);
        let client = script.connect(builder()).await;
        for _ in 0..3 {
            let begun = Instant::now();
            assert_eq!(client.call_tool("slow", json!({})).text().await.unwrap(), "polled");
            assert!(begun.elapsed() >= Duration::from_secs(30), "{:?}", begun.elapsed());
        }
        assert_eq!(script.count("subscriptions/listen"), listens);
        assert_eq!(script.count("tasks/get"), 3);
    }
}

fn question(name: &str) -> Value {
    let schema = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
    let params = json!({ "message": name, "requestedSchema": schema });
    json!({ "method": "elicitation/create", "params": params })
}

#[tokio::test(start_paused = true)]
async fn questions_are_answered_once_and_one_by_one() {
    let script = polled(|poll| match poll {
        1 => task("input_required", json!({ "inputRequests": { "a": question("first") } })),
        // The server has not looked at the first answer yet.
        2 => {
            let asked = json!({ "a": question("first"), "b": question("second") });
            task("input_required", json!({ "inputRequests": asked }))
        }
        3 => {
            let asked = json!({ "c": question("third"), "d": { "method": "roots/list" } });
            task("input_required", json!({ "inputRequests": asked }))
        }
        _ => completed("done"),
    });
    let asked = Arc::new(Mutex::new(Vec::new()));
    let ask = Arc::clone(&asked);
    let builder = builder().roots(["file:///a"]).on_form(move |form| {
        ask.lock().unwrap().push(form.message.clone());
        async move {
            // Longer than the deadline, which does not count while a person thinks.
            tokio::time::sleep(Duration::from_secs(8)).await;
            Ok(FormAnswer::accept(&json!({ "name": form.message })))
        }
    });
    let client = script.connect(builder).await;
    let call = client.call_tool("slow", json!({})).timeout(Duration::from_secs(5));
    assert_eq!(call.text().await.unwrap(), "done");
    assert_eq!(*asked.lock().unwrap(), ["first", "second", "third"]);
    let sent = script.calls("tasks/update");
    let sent: Vec<_> = sent.iter().map(|(_, it)| &it["params"]["inputResponses"]).collect();
    let answer = |name: &str| json!({ "action": "accept", "content": { "name": name } });
    assert_eq!(sent.len(), 4);
    assert_eq!(*sent[0], json!({ "a": answer("first") }));
    assert_eq!(*sent[1], json!({ "b": answer("second") }));
    assert_eq!(*sent[2], json!({ "c": answer("third") }));
    assert_eq!(sent[3]["d"]["roots"][0]["uri"], "file:///a");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_answered_ends_the_call_and_the_task() {
    let asked = json!({ "inputRequests": { "a": question("first") } });
    let script = polled(move |_| task("input_required", asked.clone()));
    let client = script.connect(builder()).await;
    let error = client.call_tool("slow", json!({})).await.unwrap_err();
    assert!(matches!(error, CallError::CannotAnswer { .. }), "{error}");
    until("a cancelled task", || script.count("tasks/cancel") == 1).await;
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_dropped_or_late_cancels_its_task() {
    let script = polled(|_| task("working", json!({})));
    let client = script.connect(builder()).await;
    let call = client.call_tool("slow", json!({})).timeout(Duration::from_secs(10));
    let begun = Instant::now();
    let error = call.await.unwrap_err();
    assert_eq!(error.to_string(), "tools/call: no answer within 10s");
    assert_eq!(begun.elapsed().as_secs(), 10);
    until("a cancelled task", || script.count("tasks/cancel") == 1).await;
    assert_eq!(script.calls("tasks/cancel")[0].1["params"]["taskId"], "t1");

    let call = tokio::spawn(client.call_tool("slow", json!({})).text());
    let polls = script.count("tasks/get");
    until("a poll", || script.count("tasks/get") > polls).await;
    call.abort();
    until("a cancelled task", || script.count("tasks/cancel") == 2).await;
    let polls = script.count("tasks/get");
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(script.count("tasks/get"), polls);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_outlives_its_time_is_given_up() {
    let script = polled(|poll| match poll {
        1 => task("working", json!({ "ttlMs": 2_000, "pollIntervalMs": 1_500 })),
        // Servers may raise it.
        _ => task("working", json!({ "ttlMs": 7_000, "pollIntervalMs": 50_000 })),
    });
    let client = script.connect(builder()).await;
    let begun = Instant::now();
    let error = client.call_tool("slow", json!({})).await.unwrap_err();
    assert_eq!(error.to_string(), r#"task "t1" did not end within its time to live, 7s"#);
    assert_eq!(begun.elapsed().as_secs(), 7);
    assert_eq!(script.count("tasks/get"), 3);
    until("a cancelled task", || script.count("tasks/cancel") == 1).await;
}

#[tokio::test(start_paused = true)]
async fn a_started_call_has_a_handle() {
    let is_done = Arc::new(AtomicUsize::new(0));
    let look = Arc::clone(&is_done);
    let script = polled(move |_| match look.load(Ordering::Relaxed) {
        0 => task("working", json!({ "statusMessage": "busy" })),
        1 => completed("done"),
        _ => task("working", json!({})),
    });
    let client = script.connect(builder()).await;
    let started = client.call_tool("slow", json!({})).start().await.unwrap();
    let Started::Task(task) = started else { panic!("{started:?}") };
    assert_eq!(task.id(), "t1");
    assert_eq!(task.created().unwrap().poll_interval, Some(Duration::from_millis(500)));
    let state = task.status().await.unwrap();
    assert_eq!((state.status, state.message.as_deref()), (TaskStatus::Working, Some("busy")));
    // Waiting in vain leaves the task alone.
    let late = task.clone().timeout(Duration::from_secs(2)).wait().await.unwrap_err();
    assert!(matches!(late, CallError::TimedOut { .. }), "{late}");
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(script.count("tasks/cancel"), 0);
    is_done.store(1, Ordering::Relaxed);
    for _ in 0..2 {
        assert_eq!(task.wait().await.unwrap().content.len(), 1);
    }
    // What has ended has ended.
    is_done.store(2, Ordering::Relaxed);
    let error = task.status().await.unwrap_err().to_string();
    assert!(error.contains("result.status is Working after Completed, which is final"), "{error}");
    task.cancel().await.unwrap();
    assert_eq!(script.count("tasks/cancel"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_started_call_that_is_answered_at_once_is_not_a_task() {
    let script = Script::play(|_, request| match request["method"].as_str().unwrap() {
        "server/discover" => result(discovered()),
        _ => result(text("quick")),
    });
    let client = script.connect(builder()).await;
    let started = client.call_tool("fast", json!({})).start().await.unwrap();
    assert!(started.task().is_none());
    assert_eq!(started.wait().await.unwrap().content.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_task_is_resumed_by_its_id() {
    let script = polled(|poll| match poll {
        1 => task("working", json!({})),
        _ => completed("done"),
    });
    let client = script.connect(builder()).await;
    let task = client.resume_task("t1");
    assert_eq!(task.wait().await.unwrap().content.len(), 1);
    assert_eq!(script.count("tools/call"), 0);
    let error = client.list_tasks().await.unwrap_err();
    let expected = "tasks/list: protocol revision 2026-07-28 has no such method";
    assert_eq!(error.to_string(), expected);
}

#[tokio::test(start_paused = true)]
async fn a_client_can_do_without_tasks() {
    let script = polled(|_| completed("done"));
    let client = script.connect(builder().without_tasks()).await;
    let error = client.call_tool("slow", json!({})).await.unwrap_err();
    assert!(error.to_string().contains("is a task, which the call did not ask for"), "{error}");
    let meta = &script.calls("tools/call")[0].1["params"]["_meta"];
    assert!(!meta.to_string().contains(EXTENSION), "{meta}");
}
