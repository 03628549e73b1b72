//! Calling tools without doing harm: those that are marked read-only and need no arguments, and
//! those that the user names. Each is called once for all checks of a revision.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::evidence::Evidence;
use crate::frames::Lost;
use crate::probe::{NotPassed, Outcome, Probe, TOOLS, all_good, skip};

/// One call and its answer.
#[derive(Clone)]
pub(crate) struct ToolCall {
    pub(crate) tool: Value,
    pub(crate) name: String,
    pub(crate) arguments: Value,
    /// What progress notifications must carry.
    pub(crate) token: String,
    /// All messages, the answer among them.
    pub(crate) messages: Vec<Value>,
    pub(crate) answer: Result<Value, Lost>,
    pub(crate) took: Duration,
    evidence: Vec<Evidence>,
}

impl ToolCall {
    /// Its result, if it has one.
    pub(crate) fn result(&self) -> Option<&Value> {
        self.answer.as_ref().ok()?.get("result")
    }

    /// A result that does not report a failure.
    pub(crate) fn success(&self) -> Option<&Value> {
        self.result().filter(|result| result.get("isError") != Some(&Value::Bool(true)))
    }
}

impl Probe {
    /// Makes the calls that may be made.
    pub(crate) async fn calls(&mut self) -> Result<Vec<ToolCall>, NotPassed> {
        if let Some(known) = &self.called {
            return Ok(known.clone());
        }
        let tools = self.list(TOOLS).await?;
        let mut chosen: Vec<(Value, Value)> = Vec::new();
        for (name, arguments) in &self.settings.calls {
            let tool = tools.iter().find(|tool| tool.get("name") == Some(&json!(name)));
            let tool = tool.cloned().unwrap_or_else(|| json!({"name": name}));
            chosen.push((tool, arguments.clone()));
        }
        let safe = tools.iter().filter(|tool| is_read_only(tool) && !needs_arguments(tool));
        chosen.extend(safe.take(self.settings.samples).map(|tool| (tool.clone(), json!({}))));
        let mut called = Vec::new();
        for (tool, arguments) in chosen {
            called.push(self.call(tool, arguments).await?);
        }
        self.called = Some(called.clone());
        Ok(called)
    }

    /// Looks at each call; the exchanges of those with problems become evidence. `judge` returns
    /// `None` for calls that do not matter; if none does, the check passes, or is skipped for the
    /// given reason.
    pub(crate) async fn judge_calls(
        &mut self,
        skipped: Option<&str>,
        judge: impl Fn(&ToolCall) -> Option<Vec<String>>,
    ) -> Outcome {
        let mut found = Vec::new();
        let mut is_tried = false;
        for call in self.calls().await? {
            let Some(problems) = judge(&call) else { continue };
            is_tried = true;
            if !problems.is_empty() {
                self.evidence.extend(call.evidence);
            }
            found.extend(problems.into_iter().map(|problem| format!("{}: {problem}", call.name)));
        }
        match skipped {
            Some(why) if !is_tried => skip(why),
            _ => all_good(found),
        }
    }

    async fn call(&mut self, tool: Value, arguments: Value) -> Result<ToolCall, NotPassed> {
        self.collect();
        let before = self.evidence.len();
        let name = tool.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
        let token = format!("progress of {name}");
        let params =
            json!({"name": name, "arguments": arguments, "_meta": {"progressToken": token}});
        let began = Instant::now();
        let reply = self.ask("tools/call", params).await;
        let took = began.elapsed();
        let (messages, answer) = match reply {
            Ok(reply) => (reply.received.messages, Ok(reply.message.unwrap_or_default())),
            Err(NotPassed::Lost(lost)) => {
                self.drop_connection();
                (Vec::new(), Err(lost))
            }
            Err(other) => return Err(other),
        };
        self.collect();
        let evidence = self.evidence.split_off(before.min(self.evidence.len()));
        Ok(ToolCall { tool, name, arguments, token, messages, answer, took, evidence })
    }
}

/// Whether a tool is marked as changing nothing.
pub(crate) fn is_read_only(tool: &Value) -> bool {
    tool.pointer("/annotations/readOnlyHint") == Some(&Value::Bool(true))
}

/// Whether a tool has required arguments.
pub(crate) fn needs_arguments(tool: &Value) -> bool {
    let required = tool.pointer("/inputSchema/required").and_then(Value::as_array);
    required.is_some_and(|required| !required.is_empty())
}
