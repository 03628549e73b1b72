//! What handlers can do in a task: as in any call, in both generations.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bowline::model::{
    CreateMessageParams, ElicitFormParams, ElicitParams, ElicitResult, InputRequest,
};
use bowline::{
    Context, HandlerError, InputRequired, Limits, Resource, Revision, Server, Step, TaskLimits,
    TaskMode, Tasks, Tool,
};
use serde_json::{Value, json};

use crate::raw::{Raw, call, code, request, text};
use crate::tasks::{
    able, about, accept, answer, created, name, next_answer, requested, start, until,
};

/// Asks the model, then for folders, and reports its progress.
fn curious() -> Tool {
    let work = |context: Context| async move {
        context.progress(1.0, 3.0, "asking the model");
        let said = context.sample(CreateMessageParams::default()).await?;
        context.progress(2.0, 3.0, "asking for folders");
        let roots = context.roots().await?;
        context.progress(3.0, 3.0, "almost done");
        Ok::<_, HandlerError>(format!("{} in {}", said.model, roots[0].uri))
    };
    Tool::new("curious", work).task(TaskMode::Optional)
}

fn said() -> Value {
    json!({ "role": "assistant", "content": { "type": "text", "text": "hi" }, "model": "m-1" })
}

fn folders() -> Value {
    json!({ "roots": [{ "uri": "file:///work" }] })
}

#[tokio::test(start_paused = true)]
async fn a_task_asks_the_model_and_for_folders() {
    let mut raw = Raw::start(Server::new("tasks", "1.0.0").with(curious()));
    let mut call = call("start", "curious", json!({}));
    call["params"]["_meta"]["progressToken"] = json!("p");
    let created = raw.ask(&able(call)).await;
    let task = created["result"]["taskId"].as_str().unwrap().to_owned();
    for (method, reply) in [("sampling/createMessage", said()), ("roots/list", folders())] {
        let asked = until(&mut raw, &task, "input_required").await;
        let (key, question) = asked["inputRequests"].as_object().unwrap().iter().next().unwrap();
        assert_eq!(question["method"], method);
        // 2026-07-28: no progress for tasks, but its words.
        assert!(asked["statusMessage"].as_str().unwrap().starts_with("asking"), "{asked}");
        answer(&mut raw, &task, json!({ key.as_str(): reply })).await;
    }
    let done = until(&mut raw, &task, "completed").await;
    assert_eq!(done["result"]["content"][0]["text"], "m-1 in file:///work");
}

#[tokio::test(start_paused = true)]
async fn a_legacy_task_does_too_and_its_progress_goes_on_after_questions() {
    let server = Server::new("tasks", "1.0.0").with(curious());
    let mut raw = Raw::session(server, Revision::V2025_11_25).await;
    let mut call = requested("c", "curious", json!({}));
    call["params"]["_meta"]["progressToken"] = json!("p");
    raw.send(&call).await;
    let mut messages = raw.until(json!("c")).await;
    let task = created(messages.last().unwrap());
    raw.send(&about("tasks/result", &task)).await;
    loop {
        let message = raw.next().await;
        let reply = match message["method"].as_str() {
            Some("sampling/createMessage") => Some(said()),
            Some("roots/list") => Some(folders()),
            _ => None,
        };
        if let Some(result) = reply {
            raw.send(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": result })).await;
        }
        let is_last = message["id"] == "tasks/result";
        messages.push(message);
        if is_last {
            break;
        }
    }
    assert_eq!(text(messages.last().unwrap()), "m-1 in file:///work");
    let progress = messages.iter().filter(|it| it["method"] == "notifications/progress");
    let progress: Vec<_> = progress.map(|it| it["params"]["progress"].as_f64().unwrap()).collect();
    assert_eq!(progress, [1.0, 2.0, 3.0], "each once, although the handler ran three times");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_finds_no_room_for_a_task_goes_on_as_a_call() {
    static BEGUN: AtomicUsize = AtomicUsize::new(0);
    let later = |context: Context| async move {
        BEGUN.fetch_add(1, Ordering::Relaxed);
        context.background().await;
        // Not a second time, either.
        context.background().await;
        tokio::time::sleep(Duration::from_secs(3)).await;
        format!("a task: {}", context.task_id().is_some())
    };
    let slow = |_: Context| async move {
        tokio::time::sleep(Duration::from_secs(5)).await;
        "slow"
    };
    let after = TaskMode::After(Duration::from_secs(1));
    let server = |limits: TaskLimits| {
        Server::new("tasks", "1.0.0")
            .with(Tool::new("later", later).task(TaskMode::OnDemand))
            .with(Tool::new("slow", slow).task(after))
            .with(Tool::new("now", slow).task(TaskMode::Optional))
            .tasks(Tasks::in_memory_with(limits))
    };
    // The store is full.
    let mut raw = Raw::start(server(TaskLimits { tasks: 0, ..TaskLimits::default() }));
    let answer = raw.ask(&able(call(1, "later", json!({})))).await;
    assert_eq!(text(&answer), "a task: false", "{answer}");
    assert_eq!(BEGUN.load(Ordering::Relaxed), 1, "it was not begun again");
    assert_eq!(text(&raw.ask(&able(call(2, "slow", json!({})))).await), "slow");
    assert_eq!(code(&raw.ask(&able(call(3, "now", json!({})))).await), -32603);
    // As many are running as may.
    let limits = TaskLimits { running_per_owner: 1, ..TaskLimits::default() };
    let mut raw = Raw::start(server(limits));
    let task = start(&mut raw, "now", json!({})).await;
    assert_eq!(text(&raw.ask(&able(call(4, "later", json!({})))).await), "a task: false");
    until(&mut raw, &task, "completed").await;
    let task = start(&mut raw, "later", json!({})).await;
    let done = until(&mut raw, &task, "completed").await;
    assert_eq!(done["result"]["content"][0]["text"], "a task: true");
}

#[tokio::test(start_paused = true)]
async fn a_handler_may_ask_for_a_task_from_another_one() {
    let work = |context: Context| async move {
        let other = context.clone();
        let background = tokio::spawn(async move { other.background().await });
        background.await.unwrap();
        format!("a task: {}", context.task_id().is_some())
    };
    let tool = Tool::new("work", work).task(TaskMode::OnDemand);
    let mut raw = Raw::start(Server::new("tasks", "1.0.0").with(tool));
    let task = start(&mut raw, "work", json!({})).await;
    let done = until(&mut raw, &task, "completed").await;
    assert_eq!(done["result"]["content"][0]["text"], "a task: true");
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_panics_before_it_first_waits_fails_its_task() {
    let runs = Arc::new(AtomicUsize::new(0));
    let panics = move |context: Context| {
        assert_eq!(runs.fetch_add(1, Ordering::Relaxed), 0, "on purpose");
        async move { Ok::<_, HandlerError>(name(&context, "who").await?) }
    };
    let tool = Tool::new("panics", panics).task(TaskMode::Optional);
    let mut raw = Raw::start(Server::new("tasks", "1.0.0").with(tool));
    let task = start(&mut raw, "panics", json!({})).await;
    until(&mut raw, &task, "input_required").await;
    answer(&mut raw, &task, json!({ "who": accept("Ada") })).await;
    let failed = until(&mut raw, &task, "failed").await;
    assert!(!failed.to_string().contains("on purpose"), "{failed}");
}

#[tokio::test(start_paused = true)]
async fn a_long_legacy_session_follows_its_tasks_only_while_they_last() {
    let limits = TaskLimits { tasks_per_owner: 5_000, ..TaskLimits::default() };
    let quick = Tool::new("quick", || async { "done" }).task(TaskMode::Optional);
    let server = Server::new("tasks", "1.0.0")
        .with((quick, Resource::text("note://a", "a", "x")))
        .tasks(Tasks::in_memory_with(limits));
    let mut raw = Raw::session(server, Revision::V2025_11_25).await;
    let mut told = 0;
    // More than one session may follow at a time.
    for _ in 0..1_100 {
        raw.send(&requested("c", "quick", json!({}))).await;
        let mut created_at = None;
        // Its end is told, even of the last one.
        loop {
            let message = raw.next().await;
            if message["id"] == "c" {
                created_at = Some(created(&message));
                continue;
            }
            assert_eq!(message["method"], "notifications/tasks/status", "{message}");
            if message["params"]["status"] == "completed" {
                assert_eq!(message["params"]["taskId"].as_str(), created_at.as_deref());
                break;
            }
        }
        told += 1;
    }
    assert_eq!(told, 1_100);
    let params = json!({ "uri": "note://a" });
    let answer = next_answer(&mut raw, &request("s", "resources/subscribe", params)).await;
    assert!(answer["result"].is_object(), "{answer}");
}

/// A handler that returns its questions, always under the same key.
#[tokio::test(start_paused = true)]
async fn returned_questions_never_use_a_key_again() {
    let twice = |context: Context| async move {
        let given = context.answer::<ElicitResult>("name");
        let given = given.and_then(|it| Some(it.content?.get("name")?.as_str()?.to_owned()));
        let mut names = context.request_state::<Vec<String>>().unwrap_or_default();
        names.extend(given);
        if names.len() == 3 {
            return Step::Done(names.join(" "));
        }
        let form = ElicitFormParams { message: "Name?".to_owned(), ..Default::default() };
        let question = InputRequest::Elicit(ElicitParams::Form(form));
        Step::Ask(InputRequired::new().ask("name", question).state(json!(names)))
    };
    let tool = Tool::new("twice", twice).task(TaskMode::Optional);
    let mut raw = Raw::start(Server::new("tasks", "1.0.0").with(tool));
    let task = start(&mut raw, "twice", json!({})).await;
    for (key, name) in [("name", "Ada"), ("name-2", "King"), ("name-3", "Lovelace")] {
        let asked = until(&mut raw, &task, "input_required").await;
        let keys: Vec<_> = asked["inputRequests"].as_object().unwrap().keys().collect();
        assert_eq!(keys, [key]);
        answer(&mut raw, &task, json!({ key: accept(name) })).await;
    }
    let done = until(&mut raw, &task, "completed").await;
    assert_eq!(done["result"]["content"][0]["text"], "Ada King Lovelace");
}

/// An answer to a returned question that does not fit its form is rejected, and the task waits on.
#[tokio::test(start_paused = true)]
async fn answers_to_returned_questions_of_a_task_fit_the_form() {
    let picky = |context: Context| async move {
        if let Some(answer) = context.answer::<ElicitResult>("name") {
            return Step::Done(json!(answer.content).to_string());
        }
        let schema = json!({ "type": "object", "required": ["name"], "properties":
            { "name": { "type": "string", "maxLength": 5 } } });
        let form = ElicitFormParams {
            requested_schema: serde_json::from_value(schema).unwrap(),
            ..ElicitFormParams::default()
        };
        let question = InputRequest::Elicit(ElicitParams::Form(form));
        Step::Ask(InputRequired::new().ask("name", question))
    };
    let tool = Tool::new("picky", picky).task(TaskMode::Optional);
    let mut raw = Raw::start(Server::new("tasks", "1.0.0").with(tool));
    let task = start(&mut raw, "picky", json!({})).await;
    until(&mut raw, &task, "input_required").await;
    let refused = answer(&mut raw, &task, json!({ "name": accept("Lovelace") })).await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.contains("inputResponses.name: content.name"), "{message}");
    until(&mut raw, &task, "input_required").await;
    answer(&mut raw, &task, json!({ "name": accept("Ada") })).await;
    let done = until(&mut raw, &task, "completed").await;
    assert_eq!(done["result"]["content"][0]["text"], r#"{"name":"Ada"}"#);
}

/// Requests the result of a task, and answers what is asked meanwhile with these members, if any.
async fn result_with(raw: &mut Raw, task: &str, mut replies: Vec<Option<Value>>) -> Value {
    raw.send(&about("tasks/result", task)).await;
    loop {
        let message = raw.next().await;
        if message["id"] == "tasks/result" {
            return message;
        }
        if message.get("id").is_some()
            && let Some(mut reply) = replies.remove(0)
        {
            reply["jsonrpc"] = json!("2.0");
            reply["id"] = message["id"].clone();
            raw.send(&reply).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_that_a_legacy_client_does_not_answer_is_dismissed() {
    let three = |context: Context| async move {
        let mut names = Vec::new();
        for key in ["first", "second", "third"] {
            names.push(name(&context, key).await?);
        }
        Ok::<_, HandlerError>(names.join(" "))
    };
    let limits = Limits { ask_timeout: Duration::from_secs(5), ..Limits::default() };
    let tool = Tool::new("three", three).task(TaskMode::Optional);
    let server = Server::new("tasks", "1.0.0").with(tool).limits(limits);
    let mut raw = Raw::session(server, Revision::V2025_11_25).await;
    let task = created(&next_answer(&mut raw, &requested("c", "three", json!({}))).await);
    let error = json!({ "error": { "code": -32603, "message": "no window" } });
    let replies = vec![Some(error), Some(json!({ "result": { "action": 1 } })), None];
    let result = result_with(&mut raw, &task, replies).await;
    assert_eq!(text(&result), "nobody nobody nobody");
}

#[tokio::test(start_paused = true)]
async fn a_task_fails_when_a_legacy_client_does_not_sample() {
    let server = Server::new("tasks", "1.0.0").with(curious());
    let mut raw = Raw::session(server, Revision::V2025_11_25).await;
    let task = created(&next_answer(&mut raw, &requested("c", "curious", json!({}))).await);
    let error = json!({ "error": { "code": -1, "message": "the user said no" } });
    let result = result_with(&mut raw, &task, vec![Some(error)]).await;
    assert!(result["error"]["message"].as_str().unwrap().contains("the user said no"), "{result}");
    let got = next_answer(&mut raw, &about("tasks/get", &task)).await;
    assert_eq!(got["result"]["status"], "failed");
}
