//! What servers do wrong with tasks that run, one fault per row.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use bowline::{Revision, Server, TaskMode, Tool};
use serde_json::{Value, json};

use super::rewrite::{Rewrite, Way};
use super::{check, good, not_found, settings};
use crate::report::Verdict;

const R11: Revision = Revision::V2025_11_25;
const R26: Revision = Revision::LATEST;

/// A server whose tool can run as a task.
pub(super) fn tasked() -> Server {
    let job = Tool::new("job", || async { "done" }).description("Does a job").read_only();
    good().with(job.task(TaskMode::Optional))
}

/// The rule, the revision, and what happens to the answer of a request.
type Row = (&'static str, Revision, fn(&Value, &mut Value, &mut Vec<Vec<u8>>));

const ROWS: &[Row] = &[
    ("tasks.create", R11, |_, a, _| {
        if let Some(task) = a.pointer_mut("/result/task") {
            task["status"] = json!("completed");
        }
    }),
    ("tasks.create", R11, |q, a, _| {
        if is_job(q) {
            a["result"] = json!({"content": []});
        }
    }),
    ("tasks.create", R26, |q, a, _| in_created(q, a, |it| it["ttlMs"] = json!("1h"))),
    ("tasks.create", R26, |q, a, _| in_created(q, a, |it| it["createdAt"] = json!("today"))),
    ("tasks.create", R26, |q, a, _| in_created(q, a, |it| it["result"] = json!({}))),
    ("tasks.create", R26, |q, a, _| in_created(q, a, |it| it["taskId"] = json!(""))),
    ("tasks.get", R26, |q, a, _| {
        if is(q, "tasks/get") {
            *a = json!({"jsonrpc": "2.0", "id": a["id"],
                "error": {"code": -32602, "message": "unknown"}});
        }
    }),
    ("tasks.get", R11, |q, a, _| {
        if is(q, "tasks/get") {
            a["result"]["taskId"] = json!("another");
        }
    }),
    ("tasks.result", R26, |q, a, _| in_task(q, a, |it| it["result"] = Value::Null)),
    ("tasks.result", R26, |q, a, _| in_task(q, a, |it| it["status"] = json!("failed"))),
    ("tasks.result", R11, |q, a, _| {
        if is(q, "tasks/result") {
            *a = json!({"jsonrpc": "2.0", "id": a["id"],
                "error": {"code": -32603, "message": "lost"}});
        }
    }),
    ("tasks.related", R11, |q, a, _| {
        if is(q, "tasks/result") {
            a["result"]["_meta"] = json!({});
        }
    }),
    ("tasks.final", R26, |q, a, _| {
        // It is completed once, and then no more.
        static SEEN: AtomicBool = AtomicBool::new(false);
        in_task(q, a, |it| {
            if SEEN.swap(true, Ordering::Relaxed) {
                it["status"] = json!("working");
            }
        });
    }),
    ("tasks.cancel", R26, |q, a, _| {
        if is(q, "tasks/cancel") {
            a["result"]["status"] = json!("cancelled");
        }
    }),
    ("tasks.cancel", R11, |q, a, _| {
        if is(q, "tasks/cancel") {
            *a = json!({"jsonrpc": "2.0", "id": a["id"], "result": {"status": "working"}});
        }
    }),
    ("tasks.undeclared", R26, |q, a, _| {
        if is(q, "tasks/cancel") && a.get("error").is_some() {
            a["error"]["code"] = json!(-32602);
        }
    }),
    ("tasks.undeclared", R26, |q, a, _| {
        if is(q, "tools/call") && a.get("result").is_some() {
            a["result"]["resultType"] = json!("task");
        }
    }),
    ("tasks.gone", R26, |q, a, _| {
        if is(q, "tasks/get") && a.get("error").is_some() {
            a["error"]["code"] = json!(-32603);
        }
    }),
    ("tasks.gone-others", R26, |q, a, _| {
        if is(q, "tasks/update") && a.get("error").is_some() {
            *a = json!({"jsonrpc": "2.0", "id": a["id"], "result": {"resultType": "complete"}});
        }
    }),
    ("tasks.retired", R26, |q, a, _| {
        if is(q, "tasks/list") {
            *a = json!({"jsonrpc": "2.0", "id": a["id"],
                "result": {"resultType": "complete", "tasks": []}});
        }
    }),
    ("tasks.forbidden", R11, |q, a, _| {
        if is(q, "tools/call") && a.get("error").is_some() {
            *a = json!({"jsonrpc": "2.0", "id": a["id"], "result": {"content": []}});
        }
    }),
];

/// The rules of this file.
pub(super) fn ids() -> impl Iterator<Item = &'static str> {
    ROWS.iter().map(|(id, ..)| *id)
}

fn is(request: &Value, method: &str) -> bool {
    request["method"] == method
}

/// Whether a request is the call that becomes a task.
fn is_job(request: &Value) -> bool {
    is(request, "tools/call") && request["params"]["name"] == "job"
}

/// Changes a task that was just created.
fn in_created(request: &Value, reply: &mut Value, change: fn(&mut Value)) {
    if is_job(request) && reply["result"]["resultType"] == "task" {
        change(&mut reply["result"]);
    }
}

/// Changes a task that is looked at after it has ended.
fn in_task(request: &Value, reply: &mut Value, change: fn(&mut Value)) {
    if is(request, "tasks/get") && reply["result"]["status"] == "completed" {
        change(&mut reply["result"]);
    }
}

#[tokio::test]
async fn each_fault_is_found() {
    let mut missed = Vec::new();
    for (at, (id, revision, message)) in ROWS.iter().enumerate() {
        let (frame, message) = (|_: &str| Way::Pass, *message);
        let rewrite = Rewrite { make: tasked, frame, message, stays: false, ticks: false };
        let findings = check(&settings(rewrite.target()), id, &[*revision]).await;
        missed.extend(not_found(id, &findings).map(|it| format!("row {at}: {it}")));
    }
    assert_eq!(missed, [""; 0]);
}

/// Counts the runs that were stopped.
static STOPPED: AtomicUsize = AtomicUsize::new(0);

struct Stopped;

impl Drop for Stopped {
    fn drop(&mut self) {
        STOPPED.fetch_add(1, Ordering::Relaxed);
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_without_an_end_is_cancelled_and_not_judged_by_it() {
    fn endless() -> Server {
        let tool = Tool::new("endless", || async {
            let _stopped = Stopped;
            std::future::pending::<&str>().await
        });
        Server::new("endless", "1.0.0").with(tool.read_only().task(TaskMode::Required))
    }
    let settings = settings(Rewrite::none(endless).target());
    for (runs, revision) in [R11, R26].into_iter().enumerate() {
        let findings = check(&settings, "tasks", &[revision]).await;
        let problems: Vec<_> = findings.iter().filter(|it| it.verdict.is_problem()).collect();
        assert!(problems.is_empty(), "{problems:?}");
        let of = |id: &str| findings.iter().find(|it| it.rule.id == id).map(|it| it.verdict);
        assert_eq!(of("tasks.get"), Some(Verdict::Passed));
        assert_eq!(of("tasks.result"), Some(Verdict::Skipped));
        // One that was watched, and one that was only cancelled.
        assert_eq!(STOPPED.load(Ordering::Relaxed), 2 * (runs + 1));
    }
}
