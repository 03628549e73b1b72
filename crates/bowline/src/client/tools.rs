//! What a client remembers of a server's tools: which arguments become headers, what their output
//! must look like.

use std::collections::HashMap;
use std::future::IntoFuture;
use std::sync::{Arc, Mutex};

#[cfg(feature = "client-http")]
use bowline_proto::http::ParamHeaders;
use bowline_proto::method::{CallTool, Method as _};
use bowline_proto::model::{CallToolResult, ContentBlock, Tool};
use bowline_schema::Schema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Client;
use super::call::{CallOptions, OnProgress, settings};
use super::error::CallError;
use super::notification::Boxed;
use super::outgoing::Outgoing;
use super::shared::lock;

/// What is known of the tools that were listed.
pub(super) struct ToolBook {
    most: usize,
    tools: Mutex<HashMap<String, Arc<Known>>>,
}

/// What is known of one tool.
#[derive(Default)]
pub(super) struct Known {
    #[cfg(feature = "client-http")]
    pub(super) headers: ParamHeaders,
    output: Option<Schema>,
}

impl ToolBook {
    pub(super) fn new(most: usize) -> Self {
        Self { most, tools: Mutex::default() }
    }

    pub(super) fn find(&self, name: &str) -> Option<Arc<Known>> {
        lock(&self.tools).get(name).cloned()
    }

    /// Remembers a tool. Says whether it may be used: over HTTP, one whose annotations break the
    /// rules may not (2026-07-28, basic/transports/streamable-http).
    pub(super) fn learn(&self, tool: &Tool, needs_headers: bool) -> bool {
        let known = match read(tool, needs_headers) {
            Ok(known) => known,
            Err(problem) => {
                tracing::warn!(tool = tool.name, problem, "a tool was left out");
                return false;
            }
        };
        let mut tools = lock(&self.tools);
        if tools.len() < self.most || tools.contains_key(&tool.name) {
            tools.insert(tool.name.clone(), Arc::new(known));
        }
        true
    }
}

fn read(tool: &Tool, needs_headers: bool) -> Result<Known, String> {
    let output = tool.output_schema.as_ref().and_then(|schema| {
        let compiled = Schema::compile(&schema.to_value());
        compiled
            .inspect_err(|error| {
                tracing::warn!(tool = tool.name, %error, "an output schema cannot be used");
            })
            .ok()
    });
    #[cfg(feature = "client-http")]
    {
        let headers = ParamHeaders::parse(&tool.input_schema.to_value());
        let headers = match headers {
            Ok(headers) => headers,
            Err(error) if needs_headers => return Err(error.to_string()),
            Err(_) => ParamHeaders::default(),
        };
        Ok(Known { headers, output })
    }
    #[cfg(not(feature = "client-http"))]
    {
        let _ = needs_headers;
        Ok(Known { output })
    }
}

/// A call of a tool that has not been sent: await it.
///
/// # Cancel safety
/// Dropped while it waits, it is cancelled: the server is told, and a late answer is ignored.
#[must_use = "a call does nothing until it is awaited"]
pub struct ToolCall {
    client: Client,
    name: String,
    /// `params` as text, or what is wrong with the arguments.
    params: Result<String, String>,
    options: CallOptions,
    on_progress: Option<OnProgress>,
}

impl ToolCall {
    pub(super) fn new(client: &Client, name: String, arguments: &impl Serialize) -> Self {
        let params = write(&name, arguments);
        let options = CallOptions::default();
        Self { client: client.clone(), name, params, options, on_progress: None }
    }

    settings!();

    /// The structured content, as a type of the caller's.
    ///
    /// # Errors
    /// As a call; and when the tool fails, or its content is missing or of another type.
    pub async fn structured<T: DeserializeOwned>(self) -> Result<T, CallError> {
        self.finish(|tool, result| {
            let (tool, result) = success(tool, result)?;
            let invalid = |problem| CallError::InvalidOutput { tool: tool.clone(), problem };
            let content = result.structured_content;
            let content = content.ok_or_else(|| invalid("is missing".to_owned()))?;
            content.parse().map_err(|error| invalid(error.to_string()))
        })
        .await
    }

    /// The text of the answer, all blocks of it.
    ///
    /// # Errors
    /// As a call; and when the tool fails.
    pub async fn text(self) -> Result<String, CallError> {
        self.finish(|tool, result| success(tool, result).map(|(_, result)| text_of(result))).await
    }

    /// Makes the call, and something of its answer.
    #[expect(clippy::manual_async_fn, reason = "its future has room for the arguments twice")]
    fn finish<T>(
        mut self,
        finish: impl FnOnce(String, CallToolResult) -> Result<T, CallError>,
    ) -> impl Future<Output = Result<T, CallError>> {
        async move {
            let params = std::mem::replace(&mut self.params, Ok(String::new()));
            let params =
                params.map_err(|problem| CallError::unsendable(CallTool::NAME, problem))?;
            let build = |_| Ok(Outgoing::written(CallTool::NAME, params));
            let (shared, hear) = (&self.client.shared, self.on_progress.take());
            let result = shared.call_heard::<CallTool>(build, &mut self.options, hear).await?;
            let result = match shared.tools.find(&self.name) {
                Some(known) => known.check(&self.name, result)?,
                None => result,
            };
            finish(self.name, result)
        }
    }
}

impl IntoFuture for ToolCall {
    type Output = Result<CallToolResult, CallError>;
    type IntoFuture = Boxed<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.finish(|_, result| Ok(result)))
    }
}

/// An answer, if the tool did not fail.
fn success(tool: String, result: CallToolResult) -> Result<(String, CallToolResult), CallError> {
    match result.is_error {
        Some(true) => Err(CallError::ToolFailed { tool, message: text_of(result) }),
        _ => Ok((tool, result)),
    }
}

/// Writes the parameters of a call, straight from the caller's type.
fn write(name: &str, arguments: &impl Serialize) -> Result<String, String> {
    const ROOM: usize = 128;
    let mut out = Vec::with_capacity(ROOM + name.len());
    out.extend_from_slice(br#"{"name":"#);
    serde_json::to_writer(&mut out, name).map_err(|error| format!("name: {error}"))?;
    out.extend_from_slice(br#","arguments":"#);
    let start = out.len();
    serde_json::to_writer(&mut out, arguments).map_err(|error| format!("arguments: {error}"))?;
    match &out[start..] {
        [b'{', ..] => {}
        b"null" => {
            out.truncate(start);
            out.extend_from_slice(b"{}");
        }
        _ => return Err("arguments must be an object".to_owned()),
    }
    out.push(b'}');
    String::from_utf8(out).map_err(|error| format!("arguments: {error}"))
}

impl Known {
    /// Whether the result is what the tool promised.
    fn check(&self, tool: &str, result: CallToolResult) -> Result<CallToolResult, CallError> {
        let Some(schema) = self.output.as_ref().filter(|_| result.is_error != Some(true)) else {
            return Ok(result);
        };
        let invalid = |problem: String| CallError::InvalidOutput { tool: tool.to_owned(), problem };
        let Some(content) = &result.structured_content else {
            return Err(invalid("is missing, though the tool has an output schema".to_owned()));
        };
        schema
            .validate("structuredContent", &content.to_value())
            .map_err(|error| invalid(error.to_string()))?;
        Ok(result)
    }
}

/// All text, block by block. One alone, as nearly always, is not copied.
fn text_of(result: CallToolResult) -> String {
    let mut texts = result.content.into_iter().filter_map(|block| match block {
        ContentBlock::Text(text) => Some(text.text),
        _ => None,
    });
    let mut all = texts.next().unwrap_or_default();
    for text in texts {
        all.push('\n');
        all += &text;
    }
    all
}
