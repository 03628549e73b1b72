//! Running tools as tasks without doing harm: those that may be called at all (see `calls`), one
//! after another, each watched from its creation to its end, once for all checks of a revision.

use std::sync::Arc;
use std::time::Duration;

use bowline::model::meta_key::CLIENT_CAPABILITIES;
use bowline::model::task_extension::ID;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::calls::{is_read_only, needs_arguments};
use crate::evidence::Evidence;
use crate::probe::{NotPassed, Outcome, Probe, Reply, TOOLS, all_good, skip};

/// How many tasks are started to be watched.
const MOST: usize = 3;

/// One task, from its creation to its end. Answers that did not come are null.
#[derive(Debug)]
pub(crate) struct TaskRun {
    pub(crate) name: String,
    pub(crate) arguments: Value,
    /// The result of the call.
    pub(crate) created: Value,
    pub(crate) id: String,
    /// The answer to the first `tasks/get`.
    pub(crate) first: Value,
    /// The answer to the last one of those that waited for the end.
    pub(crate) last: Value,
    /// The answer to `tasks/result`, which is only sent in the legacy era, after the end.
    pub(crate) outcome: Value,
    /// The answer to a `tasks/get` after all that.
    pub(crate) later: Value,
    evidence: Vec<Evidence>,
}

impl TaskRun {
    /// The status with which it ended, if it did.
    pub(crate) fn end(&self) -> Option<&str> {
        status(&self.last).filter(|status| is_final(status))
    }
}

/// The status that an answer to `tasks/get` tells.
pub(crate) fn status(answer: &Value) -> Option<&str> {
    answer.pointer("/result/status")?.as_str()
}

fn is_final(status: &str) -> bool {
    matches!(status, "completed" | "failed" | "cancelled")
}

impl Probe {
    /// Skips the check unless the server has tasks.
    pub(crate) async fn needs_tasks(&mut self) -> Result<(), NotPassed> {
        let declared = self.capabilities().await?;
        let path = "/tasks/requests/tools/call";
        match self.revision.is_modern() {
            true if declared["extensions"].get(ID).is_none() => {
                skip(format!("the server does not declare the extension {ID}"))
            }
            false if declared.pointer(path).is_none() => {
                skip("the server does not declare tasks.requests.tools.call")
            }
            _ => Ok(()),
        }
    }

    /// A request by a client that can use tasks.
    pub(crate) async fn ask_about_tasks(
        &mut self,
        method: &str,
        mut params: Value,
    ) -> Result<Reply, NotPassed> {
        if self.revision.is_modern() {
            params["_meta"][CLIENT_CAPABILITIES] = json!({ "extensions": { ID: {} } });
        }
        self.ask(method, params).await
    }

    /// Calls a tool in a way that lets it become a task.
    pub(crate) async fn start_task(
        &mut self,
        name: &str,
        arguments: &Value,
    ) -> Result<Reply, NotPassed> {
        let mut params = json!({ "name": name, "arguments": arguments });
        if !self.revision.is_modern() {
            params["task"] = json!({});
        }
        self.ask_about_tasks("tools/call", params).await
    }

    /// Tools that may be called, with their arguments.
    async fn candidates(&mut self) -> Result<Vec<(Value, Value)>, NotPassed> {
        let tools = self.list(TOOLS).await?;
        let named = self.settings.calls.iter().filter_map(|(name, arguments)| {
            let tool = tools.iter().find(|tool| tool.get("name") == Some(&json!(name)))?;
            Some((tool.clone(), arguments.clone()))
        });
        let safe = tools.iter().filter(|tool| is_read_only(tool) && !needs_arguments(tool));
        let safe = safe.take(self.settings.samples).map(|tool| (tool.clone(), json!({})));
        Ok(named.chain(safe).collect())
    }

    /// The first tool that may be called, but not as a task. 2025-11-25.
    pub(crate) async fn without_tasks(&mut self) -> Result<Option<(String, Value)>, NotPassed> {
        let mut found = self.candidates().await?.into_iter().filter(|(tool, _)| !can_be_task(tool));
        Ok(found.next().map(|(tool, arguments)| (name_of(&tool), arguments)))
    }

    /// Runs some tools as tasks. Skips the check if there are none.
    pub(crate) async fn task_runs(&mut self) -> Result<Arc<Vec<TaskRun>>, NotPassed> {
        self.needs_tasks().await?;
        if self.task_runs.is_none() {
            let mut runs = Vec::new();
            for (tool, arguments) in self.candidates().await? {
                // Since 2026-07-28 the server decides, and says nothing about that beforehand.
                if runs.len() >= MOST || !self.revision.is_modern() && !can_be_task(&tool) {
                    continue;
                }
                match self.run_task(name_of(&tool), arguments).await {
                    Ok(run) => runs.extend(run),
                    Err(NotPassed::Lost(_)) => self.drop_connection(),
                    Err(other) => return Err(other),
                }
            }
            self.task_runs = Some(Arc::new(runs));
        }
        match &self.task_runs {
            Some(runs) if !runs.is_empty() => Ok(Arc::clone(runs)),
            _ => skip("no tool that may be called without harm becomes a task; see --call"),
        }
    }

    /// Looks at each task; the exchanges of those with problems become evidence. `judge` returns
    /// `None` for tasks that do not matter; if none does, the check is skipped.
    pub(crate) async fn judge_tasks(
        &mut self,
        skipped: &str,
        judge: impl Fn(&TaskRun) -> Option<Vec<String>>,
    ) -> Outcome {
        let runs = self.task_runs().await?;
        let mut found = Vec::new();
        let mut is_tried = false;
        for run in runs.iter() {
            let Some(problems) = judge(run) else { continue };
            is_tried = true;
            if !problems.is_empty() {
                self.evidence.extend(run.evidence.iter().cloned());
            }
            found.extend(problems.into_iter().map(|problem| format!("{}: {problem}", run.name)));
        }
        if is_tried { all_good(found) } else { skip(skipped) }
    }

    /// Runs a tool as a task. `None` if the server has answered at once, which it may do unless
    /// the task was requested.
    async fn run_task(
        &mut self,
        name: String,
        arguments: Value,
    ) -> Result<Option<TaskRun>, NotPassed> {
        self.collect();
        let before = self.evidence.len();
        let reply = self.start_task(&name, &arguments).await?;
        let Some(created) = reply.result().cloned() else { return Ok(None) };
        if self.revision.is_modern() && created["resultType"] != "task" {
            return Ok(None);
        }
        let id = id_of(&created).to_owned();
        let (first, last, outcome, later) =
            if id.is_empty() { Default::default() } else { self.follow(&id).await? };
        self.collect();
        let evidence = self.evidence.split_off(before.min(self.evidence.len()));
        Ok(Some(TaskRun { name, arguments, created, id, first, last, outcome, later, evidence }))
    }

    /// Looks at a task until it has ended. One that asks something, or takes too long, is
    /// cancelled.
    async fn follow(&mut self, id: &str) -> Result<(Value, Value, Value, Value), NotPassed> {
        let params = json!({ "taskId": id });
        let deadline = Instant::now() + self.settings.timeout;
        let look = |reply: Reply| reply.message.unwrap_or_default();
        let first = look(self.ask_about_tasks("tasks/get", params.clone()).await?);
        let mut last = first.clone();
        while status(&last) == Some("working") && Instant::now() < deadline {
            sleep(pause(&last)).await;
            last = look(self.ask_about_tasks("tasks/get", params.clone()).await?);
        }
        if !status(&last).is_some_and(is_final) {
            self.ask_about_tasks("tasks/cancel", params).await?;
            return Ok((first, last, Value::Null, Value::Null));
        }
        let mut outcome = Value::Null;
        if !self.revision.is_modern() {
            outcome = look(self.ask_about_tasks("tasks/result", params.clone()).await?);
        }
        let later = look(self.ask_about_tasks("tasks/get", params).await?);
        Ok((first, last, outcome, later))
    }
}

/// How long to wait before asking again.
fn pause(answer: &Value) -> Duration {
    let wanted = ["/result/pollIntervalMs", "/result/pollInterval"];
    let wanted = wanted.iter().find_map(|path| answer.pointer(path)?.as_u64());
    Duration::from_millis(wanted.unwrap_or(200).clamp(20, 1000))
}

/// The id of a task that was created, in either generation.
pub(crate) fn id_of(created: &Value) -> &str {
    let task = created.get("task").unwrap_or(created);
    task["taskId"].as_str().unwrap_or_default()
}

fn name_of(tool: &Value) -> String {
    tool["name"].as_str().unwrap_or_default().to_owned()
}

/// Whether a tool of 2025-11-25 says that it can run as a task.
fn can_be_task(tool: &Value) -> bool {
    let support = tool.pointer("/execution/taskSupport").and_then(Value::as_str);
    matches!(support, Some("optional" | "required"))
}
