//! Calls: made, followed, and reported whatever ends them.

use std::time::Duration;

use bowline::client::{CallError, TaskState};
use bowline::model::skill::Skill;
use bowline::model::{CallToolResult, ProgressParams, ResourceContents};
use bowline::{Client, Json};
use bowline_inspector::{Feed, Keep, Problem};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::link::Link;
use crate::commands::call::mismatch;
use crate::commands::skills;
use crate::failure::{Code, Failure};

/// How long a call may take: a person may have to answer a question first.
const PATIENCE: Duration = Duration::from_secs(24 * 3600);

/// What pages hear about a call. When it is dropped before it has ended, it was cancelled.
struct Told {
    feed: Feed,
    key: String,
    event: Value,
}

impl Told {
    fn publish(&self) {
        self.feed.publish(Keep::Result(&self.key), &self.event);
    }

    /// Says whether a result keeps the promise of its tool: `mismatch` is null, or says why not.
    fn judge(&mut self, result: &Json, schema: &Value) {
        let Ok(result) = result.parse::<CallToolResult>() else { return };
        let is_task = result.structured_content.is_none() && result.content.is_empty();
        if result.is_error != Some(true) && !is_task {
            self.event["mismatch"] = json!(mismatch(&result, schema));
        }
    }

    fn end(mut self, outcome: Result<Json, Failure>, took: Duration) {
        self.event["took"] = json!(took.as_secs_f64());
        match outcome {
            Ok(result) => {
                self.event["state"] = "done".into();
                self.event["isError"] = Code::of_result(&result).is_some().into();
                self.event["result"] = result.as_str().into();
            }
            Err(failure) => {
                self.event["state"] = "failed".into();
                self.event["error"] = json!(failure.error);
                self.event["problem"] = json!(Problem::from(failure));
            }
        }
        self.publish();
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        if self.event["state"] == "running" {
            self.event["state"] = "cancelled".into();
            self.publish();
        }
    }
}

impl Link {
    /// Makes a call, and reports what becomes of it.
    pub(super) async fn call(&self, name: &str, method: &str, params: Json) {
        let mut told = self.told(name, method, params.as_str());
        let promise = if method == "tools/call" { self.promise(&params) } else { None };
        let begun = Instant::now();
        let outcome = async {
            let call = self.client()?.call_json(method, params);
            let call = call.on_progress(self.progress(name)).on_status(self.status(name));
            Ok::<_, Stopped>(call.idle_timeout(PATIENCE).timeout(PATIENCE).await?)
        };
        let outcome = outcome.await;
        let took = begun.elapsed();
        if let (Some(schema), Ok(result)) = (promise, &outcome) {
            told.judge(result, &schema);
        }
        told.end(outcome.map_err(Failure::from), took);
    }

    /// What the tool that is called promises of its structured results.
    fn promise(&self, params: &Json) -> Option<Value> {
        let name = params.to_value()["name"].take();
        let tools = self.tools.borrow();
        let tool = tools.iter().find(|tool| tool["name"] == name)?;
        tool.get("outputSchema").cloned()
    }

    /// Waits for the end of a task, and answers its questions.
    pub(super) async fn resume(&self, name: &str, task: &str) {
        let params = json!({ "taskId": task }).to_string();
        let told = self.told(name, "tasks/result", &params);
        let begun = Instant::now();
        let outcome = async {
            let task = self.client()?.resume_task(task).timeout(Duration::MAX);
            Ok::<_, Stopped>(task.on_status(self.status(name)).wait_json().await?)
        };
        told.end(outcome.await.map_err(Failure::from), begun.elapsed());
    }

    /// Reads a skill, or a file of it, if it is what was listed.
    pub(super) async fn skill(&self, entry: &Json, file: Option<&str>) -> Result<Value, Problem> {
        let skill: Skill = serde_json::from_str(entry.as_str())
            .map_err(|error| Problem::new(format!("the skill as listed: {error}")))?;
        let client: Client = self.client()?;
        let loaded = client.load_skill(&skill).await.map_err(skills::failure)?;
        let file = file.unwrap_or(&skill.uri);
        let bytes = loaded.read(file).await.map_err(skills::failure)?;
        let contents: ResourceContents = skills::contents_of(file, bytes);
        Ok(json!({ "contents": [contents] }))
    }

    /// Tells that a call has begun.
    fn told(&self, name: &str, method: &str, params: &str) -> Told {
        let at = self.session.borrow().as_ref().map(|session| session.journal.elapsed());
        let event = json!({
            "event": "call", "connection": self.number, "call": name, "method": method,
            "params": params, "state": "running", "at": at,
        });
        let key = format!("c{}/call/{name}", self.number);
        let told = Told { feed: self.feed.clone(), key, event };
        told.publish();
        told
    }

    fn progress(&self, call: &str) -> impl FnMut(ProgressParams) + Send + 'static {
        let (feed, call, number) = (self.feed.clone(), call.to_owned(), self.number);
        move |it| {
            let event = json!({
                "event": "progress", "call": call, "progress": it.progress, "total": it.total,
                "message": it.message,
            });
            feed.publish(Keep::Result(&format!("c{number}/progress/{call}")), &event);
        }
    }

    fn status(&self, call: &str) -> impl FnMut(&TaskState) + Send + 'static {
        let (feed, call, number) = (self.feed.clone(), call.to_owned(), self.number);
        move |state| {
            let event = json!({
                "event": "task", "connection": number, "call": call, "task": state.id,
                "status": state.status, "message": state.message,
            });
            feed.publish(Keep::As(&format!("c{number}/task/{}", state.id)), &event);
        }
    }
}

/// Why a call has no result.
enum Stopped {
    /// There is no connection.
    Closed(Problem),
    Failed(CallError),
}

impl From<Problem> for Stopped {
    fn from(problem: Problem) -> Self {
        Self::Closed(problem)
    }
}

impl From<CallError> for Stopped {
    fn from(error: CallError) -> Self {
        Self::Failed(error)
    }
}

impl From<Stopped> for Failure {
    fn from(stopped: Stopped) -> Self {
        match stopped {
            Stopped::Closed(problem) => Self::new(Code::Unreachable, problem.what),
            Stopped::Failed(error) => error.into(),
        }
    }
}
