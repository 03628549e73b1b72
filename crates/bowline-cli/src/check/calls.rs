//! Calling tools without doing harm: those that say they only read and need no arguments, and
//! those that the user names. Each is called once for all checks of a revision.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::evidence::Evidence;
use super::probe::{Probe, TOOLS, Trouble};
use super::wire::Lost;

/// One call, and what came of it.
#[derive(Clone)]
pub(super) struct Called {
    pub(super) tool: Value,
    pub(super) name: String,
    pub(super) arguments: Value,
    /// What progress notifications must carry.
    pub(super) token: String,
    /// All messages, the answer among them.
    pub(super) messages: Vec<Value>,
    pub(super) answer: Result<Value, Lost>,
    pub(super) took: Duration,
    pub(super) evidence: Vec<Evidence>,
}

impl Called {
    /// Its result, if it is one.
    pub(super) fn result(&self) -> Option<&Value> {
        self.answer.as_ref().ok()?.get("result")
    }

    /// A result that is not the report of a failure.
    pub(super) fn success(&self) -> Option<&Value> {
        self.result().filter(|result| result.get("isError") != Some(&Value::Bool(true)))
    }
}

impl Probe {
    /// The calls that may be made, made.
    pub(super) async fn calls(&mut self) -> Result<Vec<Called>, Trouble> {
        if let Some(known) = &self.called {
            return Ok(known.clone());
        }
        let tools = self.list(&TOOLS).await?;
        let mut chosen: Vec<(Value, Value)> = Vec::new();
        for (name, arguments) in &self.settings.calls {
            let tool = tools.iter().find(|tool| tool.get("name") == Some(&json!(name)));
            let tool = tool.cloned().unwrap_or_else(|| json!({"name": name}));
            chosen.push((tool, arguments.clone()));
        }
        let safe = tools.iter().filter(|tool| reads_only(tool) && !needs_arguments(tool));
        chosen.extend(safe.take(self.settings.samples).map(|tool| (tool.clone(), json!({}))));
        let mut called = Vec::new();
        for (tool, arguments) in chosen {
            called.push(self.call(tool, arguments).await?);
        }
        self.called = Some(called.clone());
        Ok(called)
    }

    async fn call(&mut self, tool: Value, arguments: Value) -> Result<Called, Trouble> {
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
            Ok(reply) => {
                let answer = reply.message().cloned().unwrap_or_default();
                (reply.heard.messages, Ok(answer))
            }
            Err(Trouble::Lost(lost)) => {
                self.drop_link();
                (Vec::new(), Err(lost))
            }
            Err(other) => return Err(other),
        };
        self.collect();
        let evidence = self.evidence.split_off(before.min(self.evidence.len()));
        Ok(Called { tool, name, arguments, token, messages, answer, took, evidence })
    }

    /// Shows the exchange of a call that a check complains about.
    pub(super) fn show(&mut self, called: &Called) {
        self.evidence.extend(called.evidence.iter().cloned());
    }
}

/// Whether a tool says that it changes nothing.
pub(super) fn reads_only(tool: &Value) -> bool {
    tool.pointer("/annotations/readOnlyHint") == Some(&Value::Bool(true))
}

/// Whether a tool has arguments that it cannot do without.
pub(super) fn needs_arguments(tool: &Value) -> bool {
    let required = tool.pointer("/inputSchema/required").and_then(Value::as_array);
    required.is_some_and(|required| !required.is_empty())
}
