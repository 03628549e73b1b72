//! Tasks that run, in both generations: requested in 2025-11-25, decided on by the server since.
//! Only tools that say they only read are run, and those that the user names.

use bowline::Revision::V2025_11_25;
use bowline::model::meta_key::RELATED_TASK;
use serde_json::{Value, json};

use crate::probe::{Outcome, PASS, Probe, all_good, ensure, none_of, skip, when};
use crate::rule::{Rule, table};
use crate::task_runs::{TaskRun, id_of, status};

/// The page of the extension.
const PAGE: &str =
    "https://github.com/modelcontextprotocol/ext-tasks/blob/main/specification/2026-07-28/tasks.md";

table! { |probe| Rule::eras("basic/utilities/tasks", PAGE).since(V2025_11_25);
    Must "tasks.create" => create(probe),
        "a call that becomes a task returns a complete task",
        "Return taskId, status, createdAt, lastUpdatedAt (ISO 8601) and ttl, ttlMs since 2026-07-28 (a number, or null): in task, and since 2026-07-28 beside resultType \"task\" and without an outcome.";
    Must "tasks.get" => get(probe),
        "tasks/get knows a task as soon as it has been created",
        "Store the task before answering the call, and answer tasks/get with the same taskId and a status.";
    Must "tasks.result" => result(probe),
        "a task that has ended has an outcome that fits its status",
        "In 2025-11-25, answer tasks/result with the result or the error of the call. Since then, return result in tasks/get if the task has completed, and error if it has failed.";
    Must "tasks.related" [.only(V2025_11_25)] => related(probe),
        "the answer to tasks/result names its task",
        "Set _meta[\"io.modelcontextprotocol/related-task\"] to {\"taskId\": …} in the result.";
    Must "tasks.final" => ended(probe),
        "a task that has ended stays as it is",
        "Never change a task whose status is completed, failed or cancelled.";
    Must "tasks.cancel" => cancel(probe),
        "tasks/cancel is acknowledged",
        "In 2025-11-25, return the task as cancelled, or error -32602 if it has ended. Since then, return an empty result of the type \"complete\", whatever becomes of the task.";
    Must "tasks.undeclared" [.modern()] => undeclared(probe),
        "clients that do not declare the extension get no tasks",
        "Answer their calls plainly, and tasks/get, tasks/update and tasks/cancel with error -32021, before the task is looked up.";
    Must "tasks.gone" [.modern()] => gone(probe, &["tasks/get"]),
        "tasks/get for a task that does not exist is rejected with -32602",
        "Answer clients that declare the extension with error -32602 for ids that are unknown or have expired.";
    Should "tasks.gone-others" [.modern()] => gone(probe, &["tasks/update", "tasks/cancel"]),
        "so are tasks/update and tasks/cancel",
        "Answer clients that declare the extension with error -32602 for ids that are unknown or have expired.";
    Must "tasks.retired" [.modern()] => retired(probe),
        "tasks/result and tasks/list, which the extension does not have, are rejected with -32601",
        "Serve tasks/result and tasks/list in 2025-11-25 only, whatever the client declares.";
    Should "tasks.forbidden" [.only(V2025_11_25)] => forbidden(probe),
        "a tool that cannot run as a task is not run as one",
        "Reject a call with params.task with error -32601 unless the tool has execution.taskSupport optional or required.";
}

async fn create(probe: &mut Probe) -> Outcome {
    let is_modern = probe.revision.is_modern();
    probe.judge_tasks("", |run| Some(incomplete(&run.created, is_modern))).await
}

/// What is wrong with a task that was created.
fn incomplete(created: &Value, is_modern: bool) -> Vec<String> {
    let (task, ttl) = match (is_modern, created.get("task")) {
        (true, _) => (created, "ttlMs"),
        (false, Some(task)) => (task, "ttl"),
        (false, None) => {
            return vec!["the result has no task, though one was requested".to_owned()];
        }
    };
    let mut found = Vec::new();
    if id_of(created).is_empty() {
        found.push("taskId is missing or empty".to_owned());
    }
    let status = task["status"].as_str().unwrap_or_default();
    let known = ["working", "input_required", "completed", "failed", "cancelled"];
    if !known.contains(&status) || !is_modern && status != "working" {
        found.push(format!("status is {}", task["status"]));
    }
    for name in ["createdAt", "lastUpdatedAt"] {
        if !task[name].as_str().is_some_and(is_time) {
            found.push(format!("{name} is {}, not a time in ISO 8601", task[name]));
        }
    }
    if !task.get(ttl).is_some_and(|ttl| ttl.is_null() || ttl.is_u64()) {
        found.push(format!("{ttl} is neither a number nor null"));
    }
    let outcome = ["result", "error", "inputRequests", "requestState"].into_iter();
    found.extend(
        outcome
            .filter(|name| is_modern && task.get(name).is_some())
            .map(|name| format!("{name} does not belong here")),
    );
    found
}

/// Whether a text begins like `2026-07-28T12:00:00`.
fn is_time(text: &str) -> bool {
    let shape = "0000-00-00T00:00:00";
    let is_like = |(letter, wanted): (char, char)| match wanted {
        '0' => letter.is_ascii_digit(),
        wanted => letter == wanted,
    };
    text.len() > shape.len() && text.chars().zip(shape.chars()).all(is_like)
}

async fn get(probe: &mut Probe) -> Outcome {
    let judge = |run: &TaskRun| {
        if run.id.is_empty() {
            return None;
        }
        let found = match run.first.get("result") {
            None => Some(format!("tasks/get right after the call got {}", run.first["error"])),
            Some(result) if result["taskId"] != run.id.as_str() => {
                Some(format!("tasks/get returns the task {}, not {:?}", result["taskId"], run.id))
            }
            Some(result) if status(&run.first).is_none() => {
                Some(format!("tasks/get returns the status {}", result["status"]))
            }
            Some(_) => None,
        };
        Some(found.into_iter().collect())
    };
    probe.judge_tasks("no task has an id", judge).await
}

/// Why nothing is known about ends.
const ENDLESS: &str = "no task ended in time, or each asked something";

async fn result(probe: &mut Probe) -> Outcome {
    let is_modern = probe.revision.is_modern();
    let judge = |run: &TaskRun| {
        let end = run.end().filter(|end| *end != "cancelled")?;
        let task = &run.last["result"];
        let problem = match end {
            _ if !is_modern => {
                let answer = &run.outcome;
                let is_there = answer.get("result").is_some_and(Value::is_object);
                // What the call would have got: a result, or an error if it failed.
                let is_good = is_there || end == "failed" && answer.get("error").is_some();
                when(!is_good, "tasks/result returns no result of the call")
            }
            "completed" => when(!task["result"].is_object(), "it has completed without a result"),
            _ => {
                let is_error = task.pointer("/error/code").is_some_and(Value::is_i64)
                    && task.pointer("/error/message").is_some_and(Value::is_string);
                when(!is_error, "it has failed without an error")
            }
        };
        Some(problem.into_iter().collect())
    };
    probe.judge_tasks(ENDLESS, judge).await
}

async fn related(probe: &mut Probe) -> Outcome {
    let judge = |run: &TaskRun| {
        let related = &run.outcome.get("result")?["_meta"][RELATED_TASK]["taskId"];
        let problem = format!("_meta[{RELATED_TASK:?}].taskId is {related}, not {:?}", run.id);
        Some(when(*related != run.id.as_str(), &problem).into_iter().collect())
    };
    probe.judge_tasks("tasks/result returned nothing", judge).await
}

async fn ended(probe: &mut Probe) -> Outcome {
    let judge = |run: &TaskRun| {
        let end = run.end()?;
        let later = status(&run.later);
        let problem = format!("its status was {end}, and is {later:?} later");
        Some(when(later != Some(end), &problem).into_iter().collect())
    };
    probe.judge_tasks(ENDLESS, judge).await
}

async fn cancel(probe: &mut Probe) -> Outcome {
    let is_modern = probe.revision.is_modern();
    if !is_modern && probe.capabilities().await?["tasks"].get("cancel").is_none() {
        return skip("the server does not declare tasks.cancel");
    }
    let runs = probe.task_runs().await?;
    let Some(run) = runs.first() else { return PASS };
    let created = probe.start_task(&run.name, &run.arguments).await?.into_result()?;
    let id = id_of(&created);
    if id.is_empty() {
        return skip("the call did not become a task again");
    }
    let reply = probe.ask_about_tasks("tasks/cancel", json!({ "taskId": id })).await?;
    if !is_modern && reply.code() == Some(-32602) {
        // It was faster.
        return PASS;
    }
    let result = reply.into_result()?;
    if !is_modern {
        let status = &result["status"];
        return ensure(status == "cancelled", || format!("the task is {status} on return"));
    }
    let members = ["taskId", "status", "result", "error", "inputRequests"];
    let stray = members.into_iter().filter(|name| result.get(name).is_some());
    all_good(stray.map(|name| format!("the answer to tasks/cancel has {name}")))
}

async fn undeclared(probe: &mut Probe) -> Outcome {
    probe.needs_tasks().await?;
    let calls = probe.calls().await?;
    let became = calls.iter().find(|it| it.result().is_some_and(|it| it["resultType"] == "task"));
    let became = became.map(|it| format!("{} became a task", it.name));
    let mut found = vec![became];
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let reply = probe.ask(method, about_nothing(method)).await?;
        let problem = format!("{method} got {}, expected error -32021", reply.describe());
        found.push(when(reply.code() != Some(-32021), &problem));
    }
    none_of(found)
}

/// The parameters of a request for a task that does not exist.
fn about_nothing(method: &str) -> Value {
    let mut params = json!({ "taskId": "bowline-no-such-task" });
    if method == "tasks/update" {
        params["inputResponses"] = json!({});
    }
    params
}

async fn gone(probe: &mut Probe, methods: &[&str]) -> Outcome {
    answers(probe, methods, -32602).await
}

async fn retired(probe: &mut Probe) -> Outcome {
    answers(probe, &["tasks/result", "tasks/list"], -32601).await
}

/// Whether a client that declares the extension gets this error for a task that does not exist.
async fn answers(probe: &mut Probe, methods: &[&str], code: i64) -> Outcome {
    probe.needs_tasks().await?;
    let mut found = Vec::new();
    for method in methods {
        let reply = probe.ask_about_tasks(method, about_nothing(method)).await?;
        let problem = format!("{method} got {}, expected error {code}", reply.describe());
        found.push(when(reply.code() != Some(code), &problem));
    }
    none_of(found)
}

async fn forbidden(probe: &mut Probe) -> Outcome {
    probe.needs_tasks().await?;
    let Some((name, arguments)) = probe.without_tasks().await? else {
        return skip("each tool that may be called without harm can run as a task");
    };
    let reply = probe.start_task(&name, &arguments).await?;
    reply.expect_code(&format!("a call of {name:?} with params.task"), &[-32601])
}
