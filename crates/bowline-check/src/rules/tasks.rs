//! Tasks of 2025-11-25: the declaration, the list, and tasks that do not exist. `task_runs` has the
//! others.

use bowline::Revision::V2025_11_25;
use bowline::model::ListTasksResult;
use serde_json::{Value, json};

use super::{bad_cursor, unreadable};
use crate::probe::{NotPassed, Outcome, PASS, Probe, Reply, TASKS, all_good, skip};
use crate::rule::{Rule, table};

table! { |probe| Rule::group("basic/utilities/tasks").only(V2025_11_25);
    Must "tasks.declaration" => declaration(probe),
        "the capability tasks consists of objects",
        "Declare {\"list\": {}, \"cancel\": {}, \"requests\": {\"tools\": {\"call\": {}}}}, and of that only what is implemented.";
    Must "tasks.list" => list(probe),
        "tasks/list returns complete tasks, and ends",
        "Give each task taskId, status, createdAt, lastUpdatedAt and ttl (a number, or null); omit nextCursor on the last page.";
    Should "tasks.bad-cursor" => unlisted_cursor(probe),
        "a made-up cursor is rejected with -32602",
        "Reject cursors that the server did not create with error -32602.";
    Must "tasks.unknown" => unknown(probe, Reply::expect_failure),
        "requests for a task that does not exist return an error",
        "Answer tasks/get and tasks/cancel for an unknown or expired id with error -32602.";
    Should "tasks.unknown-code" => unknown(probe, |reply, what| reply.expect_code(what, &[-32602])),
        "a task that does not exist is rejected with -32602",
        "Use error -32602 for ids that are unknown or have expired.";
}

async fn declared(probe: &mut Probe) -> Result<Value, NotPassed> {
    probe.needs("tasks").await?;
    Ok(probe.capabilities().await?["tasks"].clone())
}

async fn declaration(probe: &mut Probe) -> Outcome {
    let tasks = declared(probe).await?;
    let parts = ["", "/list", "/cancel", "/requests", "/requests/tools", "/requests/tools/call"];
    let problem = |part: &str| {
        let found = tasks.pointer(part).filter(|it| !it.is_object())?;
        Some(format!("tasks{} is {found}, not an object", part.replace('/', ".")))
    };
    all_good(parts.into_iter().filter_map(problem))
}

async fn needs_list(probe: &mut Probe) -> Result<(), NotPassed> {
    match declared(probe).await?.get("list") {
        Some(_) => Ok(()),
        None => skip("the server does not declare tasks.list"),
    }
}

async fn list(probe: &mut Probe) -> Outcome {
    needs_list(probe).await?;
    let (tasks, _) = probe.pages(TASKS).await?;
    let problem = |task: &Value| {
        // Null means for ever, and must be there.
        let missing = || task.get("ttl").is_none().then(|| format!("{task} has no ttl"));
        unreadable::<ListTasksResult>(TASKS, task).or_else(missing)
    };
    all_good(tasks.iter().filter_map(problem))?;
    Ok(Some(format!("{} tasks", tasks.len())))
}

async fn unlisted_cursor(probe: &mut Probe) -> Outcome {
    needs_list(probe).await?;
    bad_cursor(probe, TASKS).await
}

const UNKNOWN: &str = "bowline-no-such-task";

/// Requests for a task that does not exist.
async fn unknown(probe: &mut Probe, judge: fn(&Reply, &str) -> Outcome) -> Outcome {
    let can_cancel = declared(probe).await?.get("cancel").is_some();
    for method in ["tasks/get", "tasks/cancel"].into_iter().take(1 + usize::from(can_cancel)) {
        let reply = probe.ask(method, json!({"taskId": UNKNOWN})).await?;
        judge(&reply, &format!("{method} of {UNKNOWN}"))?;
    }
    PASS
}
