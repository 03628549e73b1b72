//! Tasks of 2025-11-25: requested by the client, with the result in a request of its own.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bowline::client::{CallError, FormAnswer, Started};
use bowline::model::TaskStatus;
use serde_json::{Value, json};

use super::fixture::{builder, until};
use super::tasks::{Script, error, result};
use super::wire::Wire;

fn initialized(tasks: &Value) -> Value {
    json!({
        "protocolVersion": "2025-11-25", "serverInfo": { "name": "tasks", "version": "1.0.0" },
        "capabilities": { "tools": {}, "tasks": tasks },
    })
}

fn all() -> Value {
    json!({ "list": {}, "cancel": {}, "requests": { "tools": { "call": {} } } })
}

fn tools() -> Value {
    let tool = |name: &str| {
        let schema = json!({ "type": "object" });
        json!({ "name": name, "inputSchema": schema, "execution": { "taskSupport": name } })
    };
    json!({ "tools": [tool("required"), tool("optional"), tool("forbidden")] })
}

fn task(status: &str) -> Value {
    json!({
        "taskId": "t1", "status": status, "ttl": 600_000, "pollInterval": 500,
        "createdAt": "2025-11-25T10:00:00Z", "lastUpdatedAt": "2025-11-25T10:00:00Z",
    })
}

fn text(text: &str) -> Value {
    let meta = json!({ "io.modelcontextprotocol/related-task": { "taskId": "t1" } });
    json!({ "content": [{ "type": "text", "text": text }], "_meta": meta })
}

/// A server whose tools are named for whether they can be tasks; `task` answers about tasks.
fn server(mut of_task: impl FnMut(&Wire, &Value) -> Option<Value> + Send + 'static) -> Script {
    Script::play(move |wire, request| {
        let (params, is_task) = (&request["params"], !request["params"]["task"].is_null());
        match (request["method"].as_str().unwrap_or_default(), params["name"].as_str()) {
            ("server/discover", _) => error(-32601),
            ("initialize", _) => result(initialized(&all())),
            ("tools/list", _) => result(tools()),
            ("tools/call", Some("required" | "optional")) if is_task => {
                result(json!({ "task": task("working") }))
            }
            ("tools/call", Some("required")) => error(-32601),
            ("tools/call", Some("forbidden")) if is_task => error(-32601),
            ("tools/call", _) => result(text("plain")),
            ("notifications/initialized", _) => None,
            _ => of_task(wire, request),
        }
    })
}

/// The id of a request that was left open.
fn open(script: &Script, method: &str) -> Value {
    script.calls(method)[0].1["id"].clone()
}

fn answer(script: &Script, id: &Value, result: &Value) {
    script.wire.say(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_must_be_a_task_is_one() {
    // Known beforehand, or found out by being rejected.
    for is_listed in [true, false] {
        let script = server(|_, request| match request["method"].as_str().unwrap() {
            "tasks/get" => result(task("working")),
            _ => None,
        });
        let client = script.connect(builder()).await;
        if is_listed {
            client.list_tools().await.unwrap();
        }
        let heard = Arc::new(Mutex::new(Vec::new()));
        let hear = Arc::clone(&heard);
        let call = client.call_tool("required", json!({ "a": 1 })).on_status(move |state| {
            hear.lock().unwrap().push(state.status);
        });
        let call = tokio::spawn(call.text());
        until("two polls", || script.count("tasks/get") >= 2).await;
        let mut params = task("input_required");
        params["_meta"] = json!({});
        let method = "notifications/tasks/status";
        script.wire.say(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
        until("its status", || heard.lock().unwrap().len() >= 2).await;
        answer(&script, &open(&script, "tasks/result"), &text("done"));
        assert_eq!(call.await.unwrap().unwrap(), "done");
        let sent = script.calls("tools/call");
        assert_eq!(sent.len(), if is_listed { 1 } else { 2 });
        let expected = json!({ "name": "required", "arguments": { "a": 1 }, "task": {} });
        assert_eq!(sent.last().unwrap().1["params"], expected);
        assert_eq!(heard.lock().unwrap()[..2], [TaskStatus::Working, TaskStatus::InputRequired]);
        assert_eq!(script.count("tasks/cancel"), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_may_be_a_task_is_one_if_asked() {
    let script = server(|_, request| match request["method"].as_str().unwrap() {
        "tasks/get" => result(task("completed")),
        "tasks/result" => result(text("done")),
        "tasks/cancel" => result(task("cancelled")),
        _ => None,
    });
    let client = script.connect(builder()).await;
    assert_eq!(client.call_tool("optional", json!({})).text().await.unwrap(), "plain");
    let started = client.call_tool("optional", json!({})).start().await.unwrap();
    let Started::Task(started) = started else { panic!("{started:?}") };
    assert_eq!(started.created().unwrap().ttl, Some(Duration::from_secs(600)));
    assert_eq!(started.wait().await.unwrap().content.len(), 1);
    let quick = client.call_tool("forbidden", json!({})).start().await.unwrap();
    assert!(quick.task().is_none());
    // Found again after a restart of the client.
    let again = client.resume_task("t1");
    assert_eq!(again.status().await.unwrap().status, TaskStatus::Completed);
    assert_eq!(again.wait().await.unwrap().content.len(), 1);
    client.resume_task("t1").cancel().await.unwrap();
    assert_eq!(script.count("tasks/cancel"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_server_without_the_capability_is_not_asked() {
    let script = Script::play(|_, request| match request["method"].as_str().unwrap() {
        "server/discover" => error(-32601),
        "initialize" => result(initialized(&json!({ "list": {}, "cancel": {} }))),
        "tools/list" => result(tools()),
        "tools/call" => result(text("plain")),
        _ => None,
    });
    let client = script.connect(builder()).await;
    client.list_tools().await.unwrap();
    assert_eq!(client.call_tool("required", json!({})).text().await.unwrap(), "plain");
    assert!(client.call_tool("optional", json!({})).start().await.unwrap().task().is_none());
    assert!(script.calls("tools/call").iter().all(|(_, call)| call["params"]["task"].is_null()));
}

#[tokio::test(start_paused = true)]
async fn a_result_that_is_asked_for_too_early_is_asked_for_again() {
    let mut polls = 0;
    let script = server(move |_, request| match request["method"].as_str().unwrap() {
        "tasks/get" => {
            polls += 1;
            result(task(if polls < 4 { "working" } else { "completed" }))
        }
        "tasks/result" if polls < 4 => error(-32602),
        "tasks/result" => result(text("done")),
        _ => None,
    });
    let client = script.connect(builder()).await;
    assert_eq!(client.call_tool("required", json!({})).text().await.unwrap(), "done");
    assert_eq!(script.count("tasks/result"), 2);
}

#[tokio::test(start_paused = true)]
async fn failures_look_like_those_of_a_plain_call() {
    for (status, code, expected) in [
        ("failed", -32099, "tools/call: the server refused: no"),
        ("cancelled", -32602, r#"task "t1" was cancelled"#),
    ] {
        let script = server(move |_, request| match request["method"].as_str().unwrap() {
            "tasks/get" => result(task(status)),
            "tasks/result" => error(code),
            _ => None,
        });
        let client = script.connect(builder()).await;
        let error = client.call_tool("required", json!({})).await.unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
        assert_eq!(script.count("tasks/cancel"), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn questions_in_a_task_are_answered_normally() {
    let script = server(|wire, request| match request["method"].as_str() {
        Some("tasks/get") => result(task("input_required")),
        Some("tasks/result") => {
            let meta = json!({ "io.modelcontextprotocol/related-task": { "taskId": "t1" } });
            let schema = json!({ "type": "object", "properties": {} });
            // The client has not declared that it runs tasks, so it must ignore that it is asked.
            let params = json!({ "message": "?", "requestedSchema": schema, "_meta": meta,
                "task": { "ttl": 1_000 } });
            wire.say(&json!({ "jsonrpc": "2.0", "id": "q", "method": "elicitation/create",
                "params": params }));
            None
        }
        _ => None,
    });
    let asking = builder().on_form(|_| async {
        // Longer than the deadline, which does not count while a person thinks.
        tokio::time::sleep(Duration::from_secs(90)).await;
        Ok(FormAnswer::defaults())
    });
    let client = script.connect(asking).await;
    let call = client.call_tool("required", json!({})).timeout(Duration::from_secs(5));
    let call = tokio::spawn(call.text());
    let is_answer = |message: &&(_, Value)| message.1["id"] == "q";
    let find = || script.all().iter().find(is_answer).map(|(_, message)| message.clone());
    while find().is_none() {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let related = json!({ "io.modelcontextprotocol/related-task": { "taskId": "t1" } });
    let expected = json!({ "action": "accept", "content": {}, "_meta": related });
    assert_eq!(find().unwrap()["result"], expected);
    answer(&script, &open(&script, "tasks/result"), &text("done"));
    assert_eq!(call.await.unwrap().unwrap(), "done");
}

#[tokio::test(start_paused = true)]
async fn a_task_that_waits_for_nobody_is_given_up() {
    let script = server(|_, request| match request["method"].as_str().unwrap() {
        "tasks/get" => result(task("input_required")),
        "tasks/cancel" => result(task("cancelled")),
        _ => None,
    });
    let client = script.connect(builder()).await;
    let error = client.call_tool("required", json!({})).await.unwrap_err();
    assert!(matches!(error, CallError::LimitExceeded { .. }), "{error}");
    until("a cancelled task", || script.count("tasks/cancel") == 1).await;
}

#[tokio::test(start_paused = true)]
async fn a_dropped_call_cancels_its_task() {
    let script = server(|_, request| match request["method"].as_str().unwrap_or_default() {
        "tasks/get" => result(task("working")),
        "tasks/cancel" => result(task("cancelled")),
        _ => None,
    });
    let client = script.connect(builder()).await;
    let call = tokio::spawn(client.call_tool("required", json!({})).text());
    until("a poll", || script.count("tasks/get") >= 1).await;
    call.abort();
    until("a cancelled task", || script.count("tasks/cancel") == 1).await;
    until("a cancelled request", || script.count("notifications/cancelled") >= 1).await;
}

#[tokio::test(start_paused = true)]
async fn tasks_are_listed() {
    let script = server(|_, request| match request["params"]["cursor"].as_str() {
        None => result(json!({ "tasks": [task("working")], "nextCursor": "more" })),
        Some(_) => result(json!({ "tasks": [task("failed")] })),
    });
    let client = script.connect(builder()).await;
    let tasks = client.list_tasks().await.unwrap();
    let found: Vec<_> = tasks.iter().map(|task| task.status).collect();
    assert_eq!(found, [TaskStatus::Working, TaskStatus::Failed]);
}

#[tokio::test(start_paused = true)]
async fn what_was_sent_before_the_end_may_arrive_after_it() {
    let mut polls = 0;
    let script = server(move |_, request| match request["method"].as_str().unwrap() {
        "tasks/get" => {
            polls += 1;
            // The first one stays open.
            if polls == 1 { None } else { result(task("completed")) }
        }
        "ping" => result(json!({})),
        _ => None,
    });
    let client = script.connect(builder()).await;
    let started = client.call_tool("required", json!({})).start().await.unwrap();
    let Started::Task(handle) = started else { panic!("{started:?}") };
    let other = handle.clone();
    let looking = tokio::spawn(async move { other.status().await });
    until("a look", || script.count("tasks/get") == 1).await;
    let waiting = tokio::spawn(async move { handle.wait().await });
    until("a poll", || script.count("tasks/get") == 2).await;
    // Once another answer has arrived, that one has, too.
    client.ping().await.unwrap();
    let method = "notifications/tasks/status";
    script.wire.say(&json!({ "jsonrpc": "2.0", "method": method, "params": task("working") }));
    answer(&script, &open(&script, "tasks/get"), &task("working"));
    assert_eq!(looking.await.unwrap().unwrap().status, TaskStatus::Working);
    assert!(!waiting.is_finished());
    answer(&script, &open(&script, "tasks/result"), &text("done"));
    assert_eq!(waiting.await.unwrap().unwrap().content.len(), 1);
}
