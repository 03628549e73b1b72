//! Tasks of 2025-11-25: what is declared, the list, and tasks that are not there. No task is begun:
//! that would call a tool.

use bowline::Revision;
use bowline::model::ListTasksResult;
use bowline::proto::decode::decode;
use serde_json::{Value, json};

use super::tools::bad_cursor_of;
use crate::check::probe::{List, Outcome, PASS, Probe, Trouble, all_good, broken, skip};
use crate::check::table::Check;

const fn of(check: Check) -> Check {
    check.only(Revision::V2025_11_25).page("basic/utilities/tasks")
}

pub(super) const CHECKS: &[Check] = &[
    of(Check::must("tasks.declaration", "the capability tasks is made of objects", |probe| {
        Box::pin(declaration(probe))
    }))
    .fix("Declare {\"list\": {}, \"cancel\": {}, \"requests\": {\"tools\": {\"call\": {}}}}, and of that only what there is."),
    of(Check::must("tasks.list", "tasks/list gives tasks that are whole, and ends", |probe| {
        Box::pin(list(probe))
    }))
    .fix("Give each task taskId, status, createdAt, lastUpdatedAt and ttl (a number, or null); leave nextCursor out on the last page."),
    of(Check::should("tasks.bad-cursor", "a cursor that nobody gave out is refused with -32602", |probe| {
        Box::pin(bad_cursor(probe))
    }))
    .fix("Refuse cursors that the server did not make with error -32602."),
    of(Check::must("tasks.unknown", "a task that does not exist is not told of", |probe| {
        Box::pin(unknown(probe))
    }))
    .fix("Answer tasks/get and tasks/cancel of an id that was not given out, or has expired, with error -32602."),
    of(Check::should("tasks.unknown-code", "a task that does not exist is refused with -32602", |probe| {
        Box::pin(unknown_code(probe))
    }))
    .fix("Use error -32602 for ids that were not given out, or have expired."),
];

const TASKS: List = List { method: "tasks/list", member: "tasks", capability: "tasks" };

async fn declared(probe: &mut Probe) -> Result<Value, Trouble> {
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
    all_good(parts.into_iter().filter_map(problem).collect())
}

/// Skips the check unless there is a list.
async fn needs_list(probe: &mut Probe) -> Result<(), Trouble> {
    match declared(probe).await?.get("list") {
        Some(_) => Ok(()),
        None => skip("the server does not declare tasks.list"),
    }
}

async fn list(probe: &mut Probe) -> Outcome {
    needs_list(probe).await?;
    let (tasks, _) = probe.pages(&TASKS).await?;
    let problem = |task: &Value| {
        let one = json!({"tasks": [task]}).to_string();
        let read = decode::<ListTasksResult>(TASKS.method, "result", &one);
        // Null is for ever, and must be said.
        let missing = task.get("ttl").is_none().then(|| format!("{task} has no ttl"));
        read.err().map(|error| error.to_string()).or(missing)
    };
    all_good(tasks.iter().filter_map(problem).collect())?;
    Ok(Some(format!("{} tasks", tasks.len())))
}

async fn bad_cursor(probe: &mut Probe) -> Outcome {
    needs_list(probe).await?;
    bad_cursor_of(probe, TASKS.method).await
}

const NOBODYS: &str = "bowline-no-such-task";

/// The methods that are asked for a task.
async fn methods(probe: &mut Probe) -> Result<Vec<&'static str>, Trouble> {
    let can_cancel = declared(probe).await?.get("cancel").is_some();
    Ok(if can_cancel { vec!["tasks/get", "tasks/cancel"] } else { vec!["tasks/get"] })
}

async fn unknown(probe: &mut Probe) -> Outcome {
    for method in methods(probe).await? {
        let reply = probe.ask(method, json!({"taskId": NOBODYS})).await?;
        if reply.is_result() {
            return broken(format!("{method} of {NOBODYS} was answered with a result"));
        }
    }
    PASS
}

async fn unknown_code(probe: &mut Probe) -> Outcome {
    for method in methods(probe).await? {
        let reply = probe.ask(method, json!({"taskId": NOBODYS})).await?;
        reply.expect_code(&format!("{method} of {NOBODYS}"), &[-32602])?;
    }
    PASS
}
