//! Walks the tasks of our server with rmcp's client: `tasks COMMAND [ARGUMENTS]` starts the server.
//!
//! It prints `ok <mode> <check>` or `not ok <mode> <check>: <reason>` for each check, as the other
//! walks do. rmcp's client leaves it to its users to poll a task and to answer what it asks.

use std::process::{ExitCode, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use rmcp::model::*;
use rmcp::service::{RoleClient, RunningService};
use rmcp::{ClientLifecycleMode, ClientServiceExt};
use serde_json::{Value, json};
use tokio::process::Command;
use tokio::time::{sleep, timeout};

const MODE: &str = "2026-07-28";
const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::main]
async fn main() -> Result<ExitCode> {
    let mut arguments = std::env::args().skip(1);
    let program = arguments.next().context("usage: tasks COMMAND [ARGUMENTS]")?;
    let mut server = Command::new(program);
    server.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
    let mut server = server.spawn()?;
    let pipes = server.stdout.take().zip(server.stdin.take()).context("no pipes")?;
    let capabilities = ClientCapabilities::builder().enable_elicitation().enable_tasks().build();
    let config = ClientConfig::new(capabilities, Implementation::new("rmcp", "3.8.0"));
    let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
    let mode = ClientLifecycleMode::Discover { preferred_versions };
    let guest = Guest(config.serve_with_lifecycle(pipes, mode).await?);
    let mut failures = 0;
    for name in ["completes", "cancel", "fails", "asks", "asks_twice"] {
        let checked = timeout(PATIENCE, guest.check(name)).await;
        match checked.unwrap_or_else(|_| bail!("timed out")) {
            Ok(()) => println!("ok {MODE} {name}"),
            Err(error) => {
                failures += 1;
                println!("not ok {MODE} {name}: {error}");
            }
        }
    }
    Ok(ExitCode::from(u8::from(failures > 0)))
}

struct Guest(RunningService<RoleClient, ClientConfig>);

impl Guest {
    async fn check(&self, name: &str) -> Result<()> {
        match name {
            "completes" => {
                let arguments = json!({ "seconds": 0.2, "label": "it" });
                self.says("slow_compute", arguments, "it took 0.2 seconds").await
            }
            "cancel" => {
                let task = self.start("slow_compute", json!({ "seconds": 60 })).await?;
                let params = CancelTaskParams::new(&task);
                let request = CancelTaskRequest::new(params);
                self.acknowledge(ClientRequest::CancelTaskRequest(request)).await?;
                let end = self.end(&task).await?;
                ensure!(matches!(end, TaskPayload::Cancelled), "it ended with {end:?}");
                Ok(())
            }
            "fails" => {
                self.says("failing_job", json!({}), "the job failed, as it should").await?;
                let task = self.start("protocol_error_job", json!({})).await?;
                let end = self.end(&task).await?;
                let TaskPayload::Failed { error } = &end else { bail!("it ended with {end:?}") };
                ensure!(error["message"] == "the job failed, as it should", "{error:?}");
                Ok(())
            }
            "asks" => {
                let arguments = json!({ "filename": "a.txt" });
                self.says("confirm_delete", arguments, "a.txt was deleted").await
            }
            _ => self.says("multi_input", json!({}), "answers: [true, true]").await,
        }
    }

    /// Runs a tool as a task, and compares the text of its result.
    async fn says(&self, tool: &'static str, arguments: Value, expected: &str) -> Result<()> {
        let task = self.start(tool, arguments).await?;
        let end = self.end(&task).await?;
        let TaskPayload::Completed { result } = &end else { bail!("it ended with {end:?}") };
        ensure!(result["content"][0]["text"] == expected, "{result:?}");
        Ok(())
    }

    async fn start(&self, tool: &'static str, arguments: Value) -> Result<String> {
        let Value::Object(arguments) = arguments else { bail!("no arguments") };
        let params = CallToolRequestParams::new(tool).with_arguments(arguments);
        match self.0.call_tool_once(params).await? {
            CallToolResponse::Task(created) => Ok(created.task.task_id),
            other => bail!("it is not a task: {other:?}"),
        }
    }

    /// Sends a request whose result is empty. rmcp's own functions for that fail if the result has
    /// `_meta`, which every result may have: they take it for the result of a tool.
    async fn acknowledge(&self, request: ClientRequest) -> Result<()> {
        match self.0.peer().send_request(request).await? {
            ServerResult::CallToolResult(result) if result.content.is_empty() => Ok(()),
            ServerResult::TaskAckResult(_) | ServerResult::EmptyResult(_) => Ok(()),
            other => bail!("it is not acknowledged: {other:?}"),
        }
    }

    /// Waits for the end of a task, and agrees to everything that it asks.
    async fn end(&self, task: &str) -> Result<TaskPayload> {
        loop {
            let found = self.0.peer().get_task(GetTaskParams::new(task)).await?;
            match found.task.payload {
                TaskPayload::Working => {}
                TaskPayload::InputRequired { input_requests } => {
                    let answer = json!({ "action": "accept", "content": { "confirm": true } });
                    let answers = input_requests.into_keys().map(|key| (key, answer.clone()));
                    let params = UpdateTaskParams::new(task, answers.collect());
                    let request = UpdateTaskRequest::new(params);
                    self.acknowledge(ClientRequest::UpdateTaskRequest(request)).await?;
                }
                end => return Ok(end),
            }
            sleep(Duration::from_millis(100)).await;
        }
    }
}
