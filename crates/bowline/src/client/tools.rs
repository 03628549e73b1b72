//! What a client remembers of a server's tools: which arguments become headers, what their output
//! must look like.

use std::collections::HashMap;
use std::future::IntoFuture;
use std::sync::{Arc, Mutex};

#[cfg(feature = "client-http")]
use bowline_proto::http::ParamHeaders;
use bowline_proto::json::Json;
use bowline_proto::method::CallTool;
use bowline_proto::model::{CallToolParams, CallToolResult, ContentBlock, Tool};
use bowline_schema::Schema;
use serde::de::DeserializeOwned;

use super::Client;
use super::call::{CallOptions, OnProgress, building, settings};
use super::error::CallError;
use super::notification::Boxed;
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
    arguments: Result<Json, String>,
    options: CallOptions,
    on_progress: Option<OnProgress>,
}

impl ToolCall {
    pub(super) fn new(client: &Client, name: String, arguments: Result<Json, String>) -> Self {
        let options = CallOptions::default();
        Self { client: client.clone(), name, arguments, options, on_progress: None }
    }

    settings!();

    /// The structured content, as a type of the caller's.
    ///
    /// # Errors
    /// As a call; and when the tool fails, or its content is missing or of another type.
    pub async fn structured<T: DeserializeOwned>(self) -> Result<T, CallError> {
        let tool = self.name.clone();
        let result = self.succeed().await?;
        let invalid = |problem: String| CallError::InvalidOutput { tool: tool.clone(), problem };
        let content = result.structured_content.ok_or_else(|| invalid("is missing".to_owned()))?;
        content.parse().map_err(|error| invalid(error.to_string()))
    }

    /// The text of the answer, all blocks of it.
    ///
    /// # Errors
    /// As a call; and when the tool fails.
    pub async fn text(self) -> Result<String, CallError> {
        let result = self.succeed().await?;
        Ok(text_of(&result))
    }

    async fn succeed(self) -> Result<CallToolResult, CallError> {
        let tool = self.name.clone();
        let result = self.await?;
        match result.is_error {
            Some(true) => Err(CallError::ToolFailed { tool, message: text_of(&result) }),
            _ => Ok(result),
        }
    }
}

impl IntoFuture for ToolCall {
    type Output = Result<CallToolResult, CallError>;
    type IntoFuture = Boxed<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let Self { client, name, arguments, options, on_progress } = self;
            let arguments =
                arguments.map_err(|problem| CallError::unsendable("tools/call", problem))?;
            let params = CallToolParams {
                name: name.as_str().into(),
                arguments: Some(arguments.as_raw()),
                ..CallToolParams::default()
            };
            let result = client
                .shared
                .call_heard::<CallTool>(building::<CallTool>(params), options, on_progress)
                .await?;
            match client.shared.tools.find(&name) {
                Some(known) => known.check(&name, result),
                None => Ok(result),
            }
        })
    }
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

fn text_of(result: &CallToolResult) -> String {
    let texts: Vec<&str> = result.content.iter().filter_map(ContentBlock::as_text).collect();
    texts.join("\n")
}
