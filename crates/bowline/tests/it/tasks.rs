//! Tasks, in both generations of the protocol. Time is virtual throughout.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bowline::tasks::OutsideError;
use bowline::{
    Answer, AskError, Context, Elsewhere, ErrorObject, HandlerError, Incoming, Next, Revision,
    Server, Structured, TaskLimits, TaskMode, Tasks, Tool, testing,
};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::raw::{Raw, call, code, modern, notification, request, text};

pub(crate) const EXTENSION: &str = "io.modelcontextprotocol/tasks";
const RELATED: &str = "io.modelcontextprotocol/related-task";

#[derive(serde::Deserialize, schemars::JsonSchema)]
pub(crate) struct Seconds {
    pub(crate) seconds: u64,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Name {
    name: String,
}

pub(crate) async fn name(context: &Context, key: &str) -> Result<String, AskError> {
    let answer = context.ask(key).elicit::<Name>(format!("{key}?")).await?;
    Ok(answer.accepted().map_or_else(|| "nobody".to_owned(), |it| it.name))
}

fn server() -> Server {
    let wait = |context: Context, Seconds { seconds }: Seconds| async move {
        context.status(format!("waiting for {seconds} seconds"));
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        format!("waited for {seconds} seconds")
    };
    let two = |context: Context| async move {
        let (first, last) = tokio::join!(name(&context, "first"), name(&context, "last"));
        Ok::<_, HandlerError>(format!("{} {}", first?, last?))
    };
    Server::new("tasks", "1.0.0")
        .with(Tool::new("wait", wait).task(TaskMode::Optional))
        .with(Tool::new("must", wait).task(TaskMode::Required))
        .with(Tool::new("soon", wait).task(TaskMode::After(Duration::from_secs(2))))
        .with(Tool::new("plain", wait))
        .with(Tool::new("two", two).task(TaskMode::Optional))
        .with(
            Tool::new("fails", || async { Err::<String, _>("it broke") }).task(TaskMode::Optional),
        )
        .with(
            Tool::new("refuses", || async { Err::<String, _>(ErrorObject::internal("no")) })
                .task(TaskMode::Optional),
        )
        .with(
            Tool::new("panics", || async { if true { panic!("on purpose") } else { "never" } })
                .task(TaskMode::Optional),
        )
}

/// A modern request of a client that can use tasks.
pub(crate) fn able(request: Value) -> Value {
    let mut request = modern(request);
    let capabilities =
        &mut request["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"];
    capabilities["extensions"] = json!({ EXTENSION: {} });
    request
}

pub(crate) fn about(method: &str, task: &str) -> Value {
    request(method, method, json!({ "taskId": task }))
}

/// Starts a task in the modern era, and returns its id.
pub(crate) async fn start(raw: &mut Raw, tool: &str, arguments: Value) -> String {
    let created = raw.ask(&able(call("start", tool, arguments))).await;
    assert_eq!(created["result"]["resultType"], "task", "{created}");
    created["result"]["taskId"].as_str().unwrap().to_owned()
}

/// Polls a task until it has this status.
pub(crate) async fn until(raw: &mut Raw, task: &str, status: &str) -> Value {
    for _ in 0..10_000 {
        let answer = raw.ask(&able(about("tasks/get", task))).await;
        let result = &answer["result"];
        if result["status"] == status {
            return result.clone();
        }
        let found = result["status"].as_str().unwrap_or_else(|| panic!("{answer}"));
        let is_final = ["completed", "failed", "cancelled"].contains(&found);
        assert!(!is_final, "expected {status}: {result}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("the task never was {status}")
}

pub(crate) async fn answer(raw: &mut Raw, task: &str, responses: Value) -> Value {
    let params = json!({ "taskId": task, "inputResponses": responses });
    raw.ask(&able(request("update", "tasks/update", params))).await
}

pub(crate) fn accept(name: &str) -> Value {
    json!({ "action": "accept", "content": { "name": name } })
}

#[tokio::test(start_paused = true)]
async fn a_modern_call_becomes_a_task() {
    let mut raw = Raw::start(server());
    let created = raw.ask(&able(call(1, "wait", json!({ "seconds": 60 })))).await;
    let created = &created["result"];
    assert_eq!(created["resultType"], "task");
    assert_eq!(created["status"], "working");
    assert_eq!(created["ttlMs"], 3_600_000);
    assert_eq!(created["pollIntervalMs"], 1_000);
    for absent in ["task", "result", "error", "inputRequests", "requestState", "ttl"] {
        assert_eq!(created.get(absent), None, "{absent}");
    }
    let task = created["taskId"].as_str().unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let working = until(&mut raw, task, "working").await;
    assert_eq!(working["resultType"], "complete");
    assert_eq!(working["statusMessage"], "waiting for 60 seconds");
    let done = until(&mut raw, task, "completed").await;
    assert_eq!(done["result"]["content"][0]["text"], "waited for 60 seconds");
    assert_eq!(done["result"].get("_meta"), None);
    // Polled less often with age.
    assert!(done["pollIntervalMs"].as_u64().unwrap() > 2_000);
}

#[tokio::test(start_paused = true)]
async fn clients_without_tasks_call_the_same_tool() {
    let mut raw = Raw::start(server());
    let answer = raw.ask(&modern(call(1, "wait", json!({ "seconds": 1 })))).await;
    assert_eq!(text(&answer), "waited for 1 seconds");
    for revision in Revision::ALL.into_iter().filter(|it| !it.is_modern()) {
        let mut raw = Raw::session(server(), revision).await;
        let answer = raw.ask(&call(1, "wait", json!({ "seconds": 1 }))).await;
        assert_eq!(text(&answer), "waited for 1 seconds", "{revision}");
        let refused = raw.ask(&call(2, "must", json!({ "seconds": 1 }))).await;
        assert_eq!(code(&refused), -32601, "{revision}: {refused}");
    }
    let mut raw = Raw::start(server());
    let refused = raw.ask(&modern(call(1, "must", json!({ "seconds": 1 })))).await;
    assert_eq!(code(&refused), -32021);
    let required = &refused["error"]["data"]["requiredCapabilities"];
    assert_eq!(*required, json!({ "extensions": { EXTENSION: {} } }));
}

#[tokio::test(start_paused = true)]
async fn methods_are_there_for_clients_that_declare_the_extension() {
    let mut raw = Raw::start(server());
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let params = json!({ "taskId": "nobody", "inputResponses": {} });
        let undeclared = raw.ask(&modern(request(1, method, params.clone()))).await;
        assert_eq!(code(&undeclared), -32021, "{method}");
        let unknown = raw.ask(&able(request(2, method, params))).await;
        assert_eq!(code(&unknown), -32602, "{method}");
    }
    for method in ["tasks/result", "tasks/list"] {
        let answer = raw.ask(&able(request(3, method, json!({ "taskId": "nobody" })))).await;
        assert_eq!(code(&answer), -32601, "{method}");
    }
    let discovered = raw.ask(&modern(request(4, "server/discover", json!({})))).await;
    let capabilities = &discovered["result"]["capabilities"];
    assert!(capabilities["extensions"][EXTENSION].is_object());
    assert_eq!(capabilities.get("tasks"), None);
}

#[tokio::test(start_paused = true)]
async fn bad_arguments_are_reported_at_once() {
    let mut raw = Raw::start(server());
    let answer = raw.ask(&able(call(1, "wait", json!({ "seconds": "many" })))).await;
    assert_eq!(answer["result"]["isError"], true);
    assert_eq!(answer["result"]["resultType"], "complete");
}

#[tokio::test(start_paused = true)]
async fn failures_are_those_of_the_call() {
    let mut raw = Raw::start(server());
    let task = start(&mut raw, "fails", json!({})).await;
    let done = until(&mut raw, &task, "completed").await;
    assert_eq!(done["result"]["isError"], true);
    let task = start(&mut raw, "refuses", json!({})).await;
    let failed = until(&mut raw, &task, "failed").await;
    assert_eq!(failed["error"], json!({ "code": -32603, "message": "no" }));
    let task = start(&mut raw, "panics", json!({})).await;
    let failed = until(&mut raw, &task, "failed").await;
    assert!(!failed.to_string().contains("on purpose"), "{failed}");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_quick_enough_is_answered_at_once() {
    let mut raw = Raw::start(server());
    let quick = raw.ask(&able(call(1, "soon", json!({ "seconds": 1 })))).await;
    assert_eq!(text(&quick), "waited for 1 seconds");
    let task = start(&mut raw, "soon", json!({ "seconds": 400 })).await;
    // Longer than the deadline of a request.
    let done = until(&mut raw, &task, "completed").await;
    assert_eq!(done["result"]["content"][0]["text"], "waited for 400 seconds");
    let slow = raw.ask(&modern(call(2, "soon", json!({ "seconds": 3 })))).await;
    assert_eq!(text(&slow), "waited for 3 seconds");
}

#[tokio::test(start_paused = true)]
async fn a_task_asks_and_takes_its_answers_one_by_one() {
    let mut raw = Raw::start(server());
    let task = start(&mut raw, "two", json!({})).await;
    let asked = until(&mut raw, &task, "input_required").await;
    let keys: Vec<_> = asked["inputRequests"].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["first", "last"]);
    let ignored = answer(&mut raw, &task, json!({ "other": { "any": "thing" } })).await;
    assert_eq!(ignored["result"]["resultType"], "complete");
    let refused = answer(&mut raw, &task, json!({ "first": { "content": 1 } })).await;
    assert_eq!(code(&refused), -32602);
    assert!(refused.to_string().contains("inputResponses.first"), "{refused}");
    let partly = answer(&mut raw, &task, json!({ "first": accept("Ada") })).await;
    assert_eq!(partly["result"].get("status"), None);
    let asked = until(&mut raw, &task, "input_required").await;
    let keys: Vec<_> = asked["inputRequests"].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["last"]);
    // What is answered is not asked, or answered, again.
    answer(&mut raw, &task, json!({ "first": accept("Eve"), "last": accept("Lovelace") })).await;
    let done = until(&mut raw, &task, "completed").await;
    assert_eq!(done["result"]["content"][0]["text"], "Ada Lovelace");
    let late = answer(&mut raw, &task, json!({ "last": accept("Eve") })).await;
    assert_eq!(late["result"]["resultType"], "complete");
    assert_eq!(until(&mut raw, &task, "completed").await["result"], done["result"]);
}

#[tokio::test(start_paused = true)]
async fn keys_are_never_used_again_and_work_is_done_once() {
    static RUNS: AtomicUsize = AtomicUsize::new(0);
    static DONE: AtomicUsize = AtomicUsize::new(0);
    let fickle = |context: Context| async move {
        let run = RUNS.fetch_add(1, Ordering::Relaxed);
        let work = async { DONE.fetch_add(1, Ordering::Relaxed) };
        let number = context.once("work", work).await;
        // Another question under the same key in the second run.
        let message = format!("in run {}", run.min(1));
        let answer = context.ask("who").elicit::<Name>(message).await?;
        let name = answer.accepted().map(|it| it.name).unwrap_or_default();
        Ok::<_, HandlerError>(format!("{name} {number}"))
    };
    let tool = Tool::new("fickle", fickle).task(TaskMode::Optional);
    let mut raw = Raw::start(Server::new("tasks", "1.0.0").with(tool));
    let task = start(&mut raw, "fickle", json!({})).await;
    let first = until(&mut raw, &task, "input_required").await;
    assert!(first["inputRequests"]["who"].is_object(), "{first}");
    answer(&mut raw, &task, json!({ "who": accept("Ada") })).await;
    let second = until(&mut raw, &task, "input_required").await;
    let keys: Vec<_> = second["inputRequests"].as_object().unwrap().keys().cloned().collect();
    assert_eq!(keys.len(), 1);
    assert_ne!(keys[0], "who");
    answer(&mut raw, &task, json!({ keys[0].as_str(): accept("Grace") })).await;
    let done = until(&mut raw, &task, "completed").await;
    assert_eq!(done["result"]["content"][0]["text"], "Grace 0");
    assert_eq!((RUNS.load(Ordering::Relaxed), DONE.load(Ordering::Relaxed)), (3, 1));
}

#[tokio::test(start_paused = true)]
async fn questions_before_the_task_belong_to_the_call() {
    let later = |context: Context| async move {
        let first = name(&context, "before").await?;
        context.background().await;
        let last = name(&context, "after").await?;
        Ok::<_, HandlerError>(format!("{first} {last}, {}", context.task_id().is_some()))
    };
    let server = || {
        let tool = Tool::new("later", later).task(TaskMode::OnDemand);
        Server::new("tasks", "1.0.0").with(tool)
    };
    let mut raw = Raw::start(server());
    let asked = raw.ask(&able(call(1, "later", json!({})))).await;
    assert_eq!(asked["result"]["resultType"], "input_required");
    let mut retry = call(2, "later", json!({}));
    retry["params"]["requestState"] = asked["result"]["requestState"].clone();
    retry["params"]["inputResponses"] = json!({ "before": accept("Ada") });
    let created = raw.ask(&able(retry)).await;
    assert_eq!(created["result"]["resultType"], "task", "{created}");
    let task = created["result"]["taskId"].as_str().unwrap();
    let asked = until(&mut raw, task, "input_required").await;
    assert!(asked["inputRequests"]["after"].is_object());
    answer(&mut raw, task, json!({ "after": accept("Lovelace") })).await;
    let done = until(&mut raw, task, "completed").await;
    assert_eq!(done["result"]["content"][0]["text"], "Ada Lovelace, true");
    // For a client without tasks, all of it is one call.
    let mut raw = Raw::session(server(), Revision::V2025_06_18).await;
    raw.send(&call(1, "later", json!({}))).await;
    for who in ["Ada", "Lovelace"] {
        let asked = raw.next().await;
        assert_eq!(asked["method"], "elicitation/create");
        raw.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": accept(who) })).await;
    }
    assert_eq!(text(&raw.next().await), "Ada Lovelace, false");
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_task_stays_so() {
    let dropped = Arc::new(Notify::new());
    struct OnDrop(Arc<Notify>);
    impl Drop for OnDrop {
        fn drop(&mut self) {
            self.0.notify_one();
        }
    }
    let guard = Arc::clone(&dropped);
    let hang = move || {
        let guard = OnDrop(Arc::clone(&guard));
        async move {
            let _guard = guard;
            std::future::pending::<&'static str>().await
        }
    };
    let tool = Tool::new("hang", hang).task(TaskMode::Optional);
    let mut raw = Raw::start(server().with(tool));
    let task = start(&mut raw, "hang", json!({})).await;
    // The request is over: cancelling it does not cancel the task.
    raw.send(&notification("notifications/cancelled", json!({ "requestId": "start" }))).await;
    until(&mut raw, &task, "working").await;
    let ack = raw.ask(&able(about("tasks/cancel", &task))).await;
    assert_eq!(ack["result"]["resultType"], "complete");
    assert_eq!(ack["result"].get("status"), None);
    dropped.notified().await;
    until(&mut raw, &task, "cancelled").await;
    let again = raw.ask(&able(about("tasks/cancel", &task))).await;
    assert_eq!(again["result"]["resultType"], "complete");
}

#[tokio::test(start_paused = true)]
async fn cancelling_and_ending_at_once_has_one_outcome() {
    let mut raw = Raw::start(server());
    for millis in 0..50 {
        let task = start(&mut raw, "wait", json!({ "seconds": 1 })).await;
        tokio::time::sleep(Duration::from_millis(975 + millis)).await;
        raw.ask(&able(about("tasks/cancel", &task))).await;
        let first = raw.ask(&able(about("tasks/get", &task))).await["result"]["status"].clone();
        assert!(first == "cancelled" || first == "completed", "{first}");
        tokio::time::sleep(Duration::from_secs(2)).await;
        let last = raw.ask(&able(about("tasks/get", &task))).await["result"]["status"].clone();
        assert_eq!(first, last);
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_expires_and_is_forgotten() {
    let limits = TaskLimits { ttl: Duration::from_secs(30), ..TaskLimits::default() };
    let mut raw = Raw::start(server().tasks(Tasks::in_memory_with(limits)));
    let task = start(&mut raw, "wait", json!({ "seconds": 600 })).await;
    let parked = start(&mut raw, "two", json!({})).await;
    tokio::time::sleep(Duration::from_secs(35)).await;
    for task in [&task, &parked] {
        let failed = until(&mut raw, task, "failed").await;
        assert!(failed["error"]["message"].as_str().unwrap().contains("expired"), "{failed}");
        // Long enough for whoever still polls.
        assert!(failed["ttlMs"].as_u64().unwrap() >= 330_000);
    }
    tokio::time::sleep(Duration::from_secs(15 * 60)).await;
    for task in [&task, &parked] {
        assert_eq!(code(&raw.ask(&able(about("tasks/get", task))).await), -32602);
    }
}

#[tokio::test(start_paused = true)]
async fn results_are_kept_for_a_while_after_the_end() {
    let limits = TaskLimits { ttl: Duration::from_secs(30), ..TaskLimits::default() };
    let mut raw = Raw::start(server().tasks(Tasks::in_memory_with(limits)));
    let task = start(&mut raw, "wait", json!({ "seconds": 29 })).await;
    tokio::time::sleep(Duration::from_secs(29 + 5 * 60 - 5)).await;
    until(&mut raw, &task, "completed").await;
}

#[tokio::test(start_paused = true)]
async fn there_are_only_so_many_tasks() {
    let limits = TaskLimits { tasks_per_owner: 2, result: 100, ..TaskLimits::default() };
    let long = Tool::new("long", || async { "x".repeat(200) }).task(TaskMode::Optional);
    let mut raw = Raw::start(server().with(long).tasks(Tasks::in_memory_with(limits)));
    let task = start(&mut raw, "long", json!({})).await;
    let failed = until(&mut raw, &task, "failed").await;
    assert!(failed["error"]["message"].as_str().unwrap().contains("bytes"), "{failed}");
    start(&mut raw, "wait", json!({ "seconds": 600 })).await;
    let refused = raw.ask(&able(call(1, "wait", json!({ "seconds": 1 })))).await;
    assert_eq!(code(&refused), -32603);
    assert!(refused.to_string().contains("no room for another task"), "{refused}");
    // Plain calls still work.
    let plain = raw.ask(&modern(call(2, "wait", json!({ "seconds": 1 })))).await;
    assert_eq!(text(&plain), "waited for 1 seconds");
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_tasks() {
    let limits = TaskLimits {
        tasks_per_owner: 10_000,
        running: 10_000,
        running_per_owner: 10_000,
        ..TaskLimits::default()
    };
    let mut raw = Raw::start(server().tasks(Tasks::in_memory_with(limits)));
    let mut tasks = Vec::new();
    for _ in 0..10_000 {
        tasks.push(start(&mut raw, "wait", json!({ "seconds": 60 })).await);
    }
    tokio::time::sleep(Duration::from_secs(61)).await;
    for task in &tasks {
        until(&mut raw, task, "completed").await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_listener_hears_of_its_tasks_and_no_others() {
    let mut raw = Raw::start(server());
    let task = start(&mut raw, "two", json!({})).await;
    until(&mut raw, &task, "input_required").await;
    let filter = json!({ "notifications": { "taskIds": [task, "unknown"] } });
    let undeclared = modern(request("l", "subscriptions/listen", filter.clone()));
    assert_eq!(code(&raw.ask(&undeclared).await), -32021);
    raw.send(&able(request("listen", "subscriptions/listen", filter))).await;
    let ack = raw.next().await;
    assert_eq!(ack["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(ack["params"]["notifications"]["taskIds"], json!([task]));
    // What it is now, in case that was missed.
    let now = raw.next().await;
    assert_eq!(now["method"], "notifications/tasks");
    assert_eq!(now["params"]["status"], "input_required");
    assert_eq!(now["params"]["taskId"], task);
    let id = &now["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"];
    assert_eq!(*id, "listen");
    let answers = json!({ "first": accept("Ada"), "last": accept("Lovelace") });
    let params = json!({ "taskId": task, "inputResponses": answers });
    raw.send(&able(request("update", "tasks/update", params))).await;
    loop {
        let message = raw.next().await;
        if message["params"]["status"] == "completed" {
            assert_eq!(message["params"]["result"]["content"][0]["text"], "Ada Lovelace");
            break;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn work_can_end_outside_the_server() {
    let tasks = Tasks::in_memory();
    let away = Tool::new("away", || async { Elsewhere }).task(TaskMode::Required);
    let optional = Tool::new("wrong", || async { Elsewhere });
    let mut raw =
        Raw::start(Server::new("tasks", "1.0.0").with((away, optional)).tasks(tasks.clone()));
    let wrong = raw.ask(&able(call(1, "wrong", json!({})))).await;
    assert!(wrong["error"]["message"].as_str().unwrap().contains("task = \"required\""), "{wrong}");
    let [one, two, three] = [
        start(&mut raw, "away", json!({})).await,
        start(&mut raw, "away", json!({})).await,
        start(&mut raw, "away", json!({})).await,
    ];
    // The handlers have returned.
    tokio::time::sleep(Duration::from_secs(1)).await;
    tasks.outside(&one).status("in the queue").await.unwrap();
    assert_eq!(until(&mut raw, &one, "working").await["statusMessage"], "in the queue");
    tasks.outside(&one).complete("built").await.unwrap();
    let done = until(&mut raw, &one, "completed").await;
    assert_eq!(done["result"]["content"][0]["text"], "built");
    assert!(matches!(tasks.outside(&one).complete("again").await, Err(OutsideError::Ended)));
    tasks.outside(&two).fail(ErrorObject::internal("broken")).await.unwrap();
    until(&mut raw, &two, "failed").await;
    raw.ask(&able(about("tasks/cancel", &three))).await;
    assert!(matches!(tasks.outside(&three).status("still").await, Err(OutsideError::Ended)));
    assert!(matches!(tasks.outside("none").status("").await, Err(OutsideError::Unknown)));
}

/// Adds up, somewhere else.
#[derive(serde::Serialize, schemars::JsonSchema)]
struct Sum {
    sum: u32,
}

#[tokio::test(start_paused = true)]
async fn work_elsewhere_may_end_before_the_handler_has_returned() {
    let tasks = Tasks::in_memory_with(TaskLimits { result: 200, ..TaskLimits::default() });
    let queue = tasks.clone();
    let away = move |context: Context, Seconds { seconds }: Seconds| {
        let queue = queue.clone();
        async move {
            let id = context.task_id().ok_or("this runs only as a task")?.to_owned();
            tokio::spawn(
                async move { queue.outside(id).complete(Structured(Sum { sum: 3 })).await },
            );
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            Ok::<_, HandlerError>(Elsewhere)
        }
    };
    let away = Tool::new("away", away).output_schema(json!(schemars::schema_for!(Sum)));
    let server = Server::new("tasks", "1.0.0").with(away.task(TaskMode::Required));
    let mut raw = Raw::start(server.tasks(tasks.clone()));
    let task = start(&mut raw, "away", json!({ "seconds": 2 })).await;
    let done = until(&mut raw, &task, "completed").await;
    assert_eq!(done["result"]["structuredContent"], json!({ "sum": 3 }));
    // What no tool may return cannot come from outside either.
    let task = start(&mut raw, "away", json!({ "seconds": 60 })).await;
    let outside = tasks.outside(&task);
    assert!(matches!(outside.status("early").await, Err(OutsideError::Running)));
    let unfit = outside.complete("three").await.unwrap_err().to_string();
    assert!(unfit.contains("does not match its output schema"), "{unfit}");
    let long = Err::<String, _>("x".repeat(300));
    let long = outside.complete(long).await.unwrap_err().to_string();
    assert!(long.contains("more than the 200"), "{long}");
}

#[tokio::test(start_paused = true)]
async fn middleware_sees_the_task_as_the_end_of_its_request() {
    let seen = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&seen);
    let watch = move |incoming: Incoming, next: Next| {
        let counted = Arc::clone(&counted);
        async move {
            let outcome = next.run(incoming).await;
            if matches!(outcome, Ok(Answer::Task(_))) {
                counted.fetch_add(1, Ordering::Relaxed);
            }
            outcome
        }
    };
    let mut raw = Raw::start(server().middleware(watch));
    let task = start(&mut raw, "two", json!({})).await;
    until(&mut raw, &task, "input_required").await;
    let answers = json!({ "first": accept("Ada"), "last": accept("Lovelace") });
    answer(&mut raw, &task, answers).await;
    until(&mut raw, &task, "completed").await;
    assert_eq!(seen.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn a_task_of_a_nested_server_finds_its_state_again() {
    let tell = |context: Context| async move {
        let name = name(&context, "who").await?;
        let greeting = context.state::<&'static str>()?;
        Ok::<_, HandlerError>(format!("{} {name}", *greeting))
    };
    let inner = Server::new("inner", "1.0.0")
        .state("Good morning,")
        .with(Tool::new("tell", tell).task(TaskMode::Optional));
    let mut raw = Raw::start(Server::new("outer", "1.0.0").nest("deep", inner));
    let task = start(&mut raw, "deep_tell", json!({})).await;
    until(&mut raw, &task, "input_required").await;
    answer(&mut raw, &task, json!({ "who": accept("Ada") })).await;
    let done = until(&mut raw, &task, "completed").await;
    assert_eq!(done["result"]["content"][0]["text"], "Good morning, Ada");
}

/// A call of 2025-11-25 that asks for a task.
pub(crate) fn requested(id: &str, tool: &str, arguments: Value) -> Value {
    let mut request = call(id, tool, arguments);
    request["params"]["task"] = json!({ "ttl": 60_000 });
    request
}

/// The id of the task that an answer of 2025-11-25 has created.
pub(crate) fn created(answer: &Value) -> String {
    assert_eq!(answer["result"]["task"]["status"], "working", "{answer}");
    answer["result"]["task"]["taskId"].as_str().unwrap().to_owned()
}

#[tokio::test(start_paused = true)]
async fn a_legacy_client_asks_for_a_task() {
    let mut raw = Raw::start(server());
    let hello = raw.ask(&crate::raw::initialize("2025-11-25")).await;
    let declared = &hello["result"]["capabilities"];
    assert_eq!(declared["tasks"], json!({ "cancel": {}, "requests": { "tools": { "call": {} } } }));
    assert_eq!(declared.get("extensions"), None);
    raw.send(&notification("notifications/initialized", json!({}))).await;
    let tools = raw.ask(&request("list", "tools/list", json!({}))).await;
    let support = |name: &str| {
        let tools = tools["result"]["tools"].as_array().unwrap();
        let tool = tools.iter().find(|it| it["name"] == name).unwrap();
        tool.get("execution").map(|it| it["taskSupport"].clone())
    };
    assert_eq!(support("wait"), Some(json!("optional")));
    assert_eq!(support("must"), Some(json!("required")));
    assert_eq!(support("plain"), None);
    let refused = raw.ask(&requested("r", "plain", json!({ "seconds": 1 }))).await;
    assert_eq!(code(&refused), -32601);
    let answer = raw.ask(&requested("c", "must", json!({ "seconds": 20 }))).await;
    assert_eq!(answer["result"]["task"]["ttl"], 60_000);
    let task = created(&answer);
    // The status comes by itself, and the result when it is there.
    raw.send(&about("tasks/result", &task)).await;
    let told = raw.until(json!("tasks/result")).await;
    let (result, notices) = told.split_last().unwrap();
    assert_eq!(text(result), "waited for 20 seconds");
    assert_eq!(result["result"]["_meta"][RELATED], json!({ "taskId": task }));
    assert!(notices.iter().all(|it| it["method"] == "notifications/tasks/status"), "{told:?}");
    assert_eq!(notices[0]["params"]["taskId"], task);
    let got = next_answer(&mut raw, &about("tasks/get", &task)).await;
    assert_eq!(got["result"]["status"], "completed");
    assert_eq!(got["result"].get("result"), None);
    let ended = next_answer(&mut raw, &about("tasks/cancel", &task)).await;
    assert_eq!(code(&ended), -32602);
    let unknown = next_answer(&mut raw, &about("tasks/result", "unknown")).await;
    assert_eq!(code(&unknown), -32602);
}

/// Sends a request, and returns its answer; notifications before it are skipped.
pub(crate) async fn next_answer(raw: &mut Raw, request: &Value) -> Value {
    raw.send(request).await;
    raw.until(request["id"].clone()).await.pop().unwrap()
}

/// Sends a request about a task, answers what is asked meanwhile, and returns its answer, with the
/// number of questions.
async fn ask_and_answer(raw: &mut Raw, method: &str, task: &str) -> (Value, u32) {
    raw.send(&about(method, task)).await;
    let mut asked = 0;
    loop {
        let message = raw.next().await;
        if message["method"] == "elicitation/create" {
            asked += 1;
            assert_eq!(message["params"]["_meta"][RELATED], json!({ "taskId": task }));
            let name = if asked == 1 { "Ada" } else { "Lovelace" };
            let id = &message["id"];
            raw.send(&json!({ "jsonrpc": "2.0", "id": id, "result": accept(name) })).await;
        } else if message["id"] == method {
            return (message, asked);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_legacy_task_asks_on_the_request_for_its_result() {
    let mut raw = Raw::session(server(), Revision::V2025_11_25).await;
    let task = created(&next_answer(&mut raw, &requested("c", "two", json!({}))).await);
    let (result, asked) = ask_and_answer(&mut raw, "tasks/result", &task).await;
    assert_eq!((text(&result), asked), ("Ada Lovelace", 2));
}

/// As the official client of tasks does, whose questions would wait for ever otherwise.
#[tokio::test(start_paused = true)]
async fn a_legacy_client_that_only_polls_is_asked_on_a_poll() {
    let mut raw = Raw::session(server(), Revision::V2025_11_25).await;
    let task = created(&next_answer(&mut raw, &requested("c", "two", json!({}))).await);
    let get = about("tasks/get", &task);
    while next_answer(&mut raw, &get).await["result"]["status"] != "input_required" {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    // Time for a client that requests the result instead.
    tokio::time::sleep(Duration::from_secs(3)).await;
    let (answer, asked) = ask_and_answer(&mut raw, "tasks/get", &task).await;
    assert_ne!(answer["result"]["status"], "input_required");
    assert_eq!(asked, 2);
    let result = next_answer(&mut raw, &about("tasks/result", &task)).await;
    assert_eq!(text(&result), "Ada Lovelace");
}

#[tokio::test(start_paused = true)]
async fn legacy_tasks_fail_and_are_cancelled() {
    let mut raw = Raw::session(server(), Revision::V2025_11_25).await;
    let broken = created(&next_answer(&mut raw, &requested("a", "fails", json!({}))).await);
    let result = next_answer(&mut raw, &about("tasks/result", &broken)).await;
    assert_eq!(result["result"]["isError"], true);
    let got = next_answer(&mut raw, &about("tasks/get", &broken)).await;
    assert_eq!(got["result"]["status"], "failed");
    let refused = created(&next_answer(&mut raw, &requested("b", "refuses", json!({}))).await);
    let result = next_answer(&mut raw, &about("tasks/result", &refused)).await;
    assert_eq!(result["error"], json!({ "code": -32603, "message": "no" }));
    let long = requested("c", "wait", json!({ "seconds": 50 }));
    let long = created(&next_answer(&mut raw, &long).await);
    raw.send(&about("tasks/result", &long)).await;
    let cancelled = next_answer(&mut raw, &about("tasks/cancel", &long)).await;
    // The waiting request is answered, too, before or after.
    let mut ends = vec![cancelled];
    if ends[0]["result"]["status"] != "cancelled" {
        ends.push(raw.next().await);
    }
    assert!(ends.iter().any(|it| it["result"]["status"] == "cancelled"), "{ends:?}");
}

#[tokio::test]
async fn tasks_are_listed_where_nobody_else_could_list_them() {
    // Others may be connected to the same server.
    let mut raw = Raw::session(server(), Revision::V2025_11_25).await;
    created(&next_answer(&mut raw, &requested("a", "fails", json!({}))).await);
    let refused = next_answer(&mut raw, &request("l", "tasks/list", json!({}))).await;
    assert_eq!(code(&refused), -32601);
    let client = testing::connect_in(server(), Revision::V2025_11_25).await.unwrap();
    for _ in 0..150 {
        client.call_tool("fails", json!({})).start().await.unwrap();
    }
    assert_eq!(client.list_tasks().await.unwrap().len(), 150, "two pages");
    let bad = client.call_json("tasks/list", json!({ "cursor": "x" })).await.unwrap_err();
    assert_eq!(bad.as_refusal().unwrap().code.0, -32602);
}
