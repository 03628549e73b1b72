//! Calls of tools, and what a client remembers about them: which arguments headers repeat, and the
//! schema of their output.

use std::borrow::Cow;
use std::collections::HashMap;
use std::future::IntoFuture;
use std::sync::{Arc, Mutex};

#[cfg(feature = "client-http")]
use bowline_proto::http::ParamHeaders;
use bowline_proto::json::Json;
use bowline_proto::method::{CallTool, Method as _};
use bowline_proto::model::{CallToolResult, ContentBlock, TaskSupport, Tool};
use bowline_schema::Schema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Client;
use super::call::Call;
use super::error::CallError;
use super::limits::ClientLimits;
use super::notification::Boxed;
use super::outgoing::{Outgoing, Repeated};
use super::shared::lock;

/// What is known about the tools that were listed.
pub(super) struct ToolBook {
    most: usize,
    most_bytes: usize,
    /// The longest schema that is read.
    longest: usize,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    tools: HashMap<String, Arc<KnownTool>>,
    bytes: usize,
}

/// What is known about one tool.
#[derive(Default)]
pub(super) struct KnownTool {
    #[cfg(feature = "client-http")]
    pub(super) headers: ParamHeaders,
    output: Option<Schema>,
    /// Whether it can run as a task. 2025-11-25.
    pub(super) task: Option<TaskSupport>,
    /// The bytes of its name and of the schemas that are kept.
    bytes: usize,
}

impl ToolBook {
    pub(super) fn new(limits: &ClientLimits) -> Self {
        let ClientLimits { tools, tool_bytes, schema_bytes, .. } = *limits;
        let known = Mutex::default();
        Self { most: tools, most_bytes: tool_bytes, longest: schema_bytes, known }
    }

    pub(super) fn find(&self, name: &str) -> Option<Arc<KnownTool>> {
        lock(&self.known).tools.get(name).cloned()
    }

    /// Checks the result of a tool against its output schema, if that is known.
    pub(super) fn check(
        &self,
        tool: &str,
        result: CallToolResult,
    ) -> Result<CallToolResult, CallError> {
        match self.find(tool) {
            Some(known) => known.check(tool, result),
            None => Ok(result),
        }
    }

    /// Remembers a tool. Returns whether it may be used: over HTTP, tools with invalid annotations
    /// may not (2026-07-28, basic/transports/streamable-http).
    pub(super) fn learn(&self, tool: &Tool, needs_headers: bool) -> bool {
        let known = match read(tool, needs_headers, self.longest) {
            Ok(known) => known,
            Err(problem) => {
                tracing::warn!(tool = tool.name, problem, "a tool was left out of the list");
                return false;
            }
        };
        lock(&self.known).keep(tool, known, self.most, self.most_bytes);
        true
    }
}

impl Known {
    /// Keeps what is known about a tool, in place of what was known before, if there is room.
    fn keep(&mut self, tool: &Tool, known: KnownTool, most: usize, most_bytes: usize) {
        let before = self.tools.remove(&tool.name).map_or(0, |before| before.bytes);
        self.bytes -= before;
        if self.tools.len() < most && self.bytes.saturating_add(known.bytes) <= most_bytes {
            self.bytes += known.bytes;
            self.tools.insert(tool.name.clone(), Arc::new(known));
        }
    }
}

fn read(tool: &Tool, needs_headers: bool, longest: usize) -> Result<KnownTool, String> {
    let is_short = |schema: &&Json| schema.as_str().len() <= longest;
    let mut bytes = tool.name.len();
    let task = tool.execution.as_ref().and_then(|execution| execution.task_support);
    let output = tool.output_schema.as_ref().filter(is_short).and_then(|schema| {
        bytes += schema.as_str().len();
        let compiled = Schema::compile(&schema.to_value());
        compiled
            .inspect_err(|error| {
                tracing::warn!(tool = tool.name, %error, "an output schema cannot be used");
            })
            .ok()
    });
    #[cfg(feature = "client-http")]
    {
        let schema = Some(&tool.input_schema).filter(is_short);
        let headers = match schema.map(|schema| ParamHeaders::parse(&schema.to_value())) {
            Some(Ok(headers)) => headers,
            Some(Err(error)) if needs_headers => return Err(error.to_string()),
            Some(Err(_)) | None => ParamHeaders::default(),
        };
        if !headers.is_empty() {
            bytes += tool.input_schema.as_str().len();
        }
        Ok(KnownTool { headers, output, task, bytes })
    }
    #[cfg(not(feature = "client-http"))]
    {
        let _ = needs_headers;
        Ok(KnownTool { output, task, bytes })
    }
}

/// A call of a tool.
pub type ToolCall = Call<ToolRequest>;

/// A tool with its arguments.
pub struct ToolRequest {
    pub(super) name: String,
    /// `params` as text, or what is wrong with the arguments.
    params: Result<Params, String>,
}

/// The parameters of `tools/call` as text.
struct Params {
    text: String,
    /// Where the arguments start in it; they end before the last brace.
    arguments: usize,
}

impl Call<ToolRequest> {
    pub(super) fn tool(client: &Client, name: String, arguments: &impl Serialize) -> Self {
        let params = Params::write(&name, arguments);
        Self::new(client, ToolRequest { name, params })
    }

    /// Makes the call, and returns its structured content as a type of the caller's.
    ///
    /// Servers of older revisions can only send objects, and send other values as `{"result": …}`:
    /// the value is found there, too.
    ///
    /// # Errors
    /// Like the call itself; also when the tool fails, or its structured content is missing or of
    /// another type.
    pub async fn structured<T: DeserializeOwned>(self) -> Result<T, CallError> {
        self.finish(|tool, result| {
            let (tool, result) = success(tool, result)?;
            let invalid = |problem| CallError::InvalidOutput { tool: tool.clone(), problem };
            let content = result.structured_content;
            let content = content.ok_or_else(|| invalid("is missing".to_owned()))?;
            let parsed = content.parse().or_else(|error| unwrapped(&content).ok_or(error));
            parsed.map_err(|error: serde_json::Error| invalid(error.to_string()))
        })
        .await
    }

    /// Makes the call, and returns the text of all content blocks, one a line.
    ///
    /// # Errors
    /// Like the call itself; also when the tool fails.
    pub async fn text(self) -> Result<String, CallError> {
        self.finish(|tool, result| success(tool, result).map(|(_, result)| text_of(result))).await
    }

    #[expect(clippy::manual_async_fn, reason = "an async fn would store `self` twice")]
    fn finish<T>(
        self,
        finish: impl FnOnce(String, CallToolResult) -> Result<T, CallError>,
    ) -> impl Future<Output = Result<T, CallError>> {
        async move {
            let result = self.make().await?;
            let result = self.client.shared.tools.check(&self.request.name, result)?;
            finish(self.request.name, result)
        }
    }
}

impl Call<ToolRequest> {
    /// Makes the call: plainly, unless the tool can only run as a task that the client requests.
    async fn make(&self) -> Result<CallToolResult, CallError> {
        let rejected = match self.client.shared.must_request_task(&self.request.name) {
            true => None,
            false => {
                let build = |_| self.request.outgoing();
                match self.client.shared.call::<CallTool>(build, &self.options).await {
                    Ok(result) => return Ok(result),
                    Err(error) => Some(error),
                }
            }
        };
        Box::pin(self.make_as_task(rejected)).await
    }
}

impl ToolRequest {
    pub(super) fn outgoing(&self) -> Result<Outgoing<'_>, CallError> {
        let Params { text, arguments } = self.params()?;
        let name = Some(Cow::Borrowed(self.name.as_str()));
        let repeated = Repeated { name, arguments: text.get(*arguments..text.len() - 1) };
        Ok(Outgoing::written(CallTool::NAME, text, repeated))
    }

    /// The parameters with the request to run as a task. 2025-11-25.
    pub(super) fn params_as_task(&self) -> Result<String, CallError> {
        let Params { text, .. } = self.params()?;
        Ok(format!(r#"{},"task":{{}}}}"#, &text[..text.len() - 1]))
    }

    fn params(&self) -> Result<&Params, CallError> {
        let unsendable = |problem| CallError::unsendable(CallTool::NAME, problem);
        self.params.as_ref().map_err(unsendable)
    }
}

impl IntoFuture for Call<ToolRequest> {
    type Output = Result<CallToolResult, CallError>;
    type IntoFuture = Boxed<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.finish(|_, result| Ok(result)))
    }
}

/// The value inside `{"result": …}`.
fn unwrapped<T: DeserializeOwned>(content: &Json) -> Option<T> {
    #[derive(serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Wrapped<T> {
        result: T,
    }
    content.parse::<Wrapped<T>>().ok().map(|wrapped| wrapped.result)
}

/// The result, if the tool did not fail.
fn success(tool: String, result: CallToolResult) -> Result<(String, CallToolResult), CallError> {
    match result.is_error {
        Some(true) => Err(CallError::ToolFailed { tool, message: text_of(result) }),
        _ => Ok((tool, result)),
    }
}

impl Params {
    /// Writes them, straight from the caller's type.
    fn write(name: &str, arguments: &impl Serialize) -> Result<Self, String> {
        const ROOM: usize = 128;
        let mut out = Vec::with_capacity(ROOM + name.len());
        out.extend_from_slice(br#"{"name":"#);
        serde_json::to_writer(&mut out, name).map_err(|error| format!("name: {error}"))?;
        out.extend_from_slice(br#","arguments":"#);
        let arguments_start = out.len();
        serde_json::to_writer(&mut out, arguments)
            .map_err(|error| format!("arguments: {error}"))?;
        match &out[arguments_start..] {
            [b'{', ..] => {}
            b"null" => {
                out.truncate(arguments_start);
                out.extend_from_slice(b"{}");
            }
            _ => return Err("arguments must be an object".to_owned()),
        }
        out.push(b'}');
        let text = String::from_utf8(out).map_err(|error| format!("arguments: {error}"))?;
        Ok(Self { text, arguments: arguments_start })
    }
}

impl KnownTool {
    /// Checks the result against the output schema.
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

/// The text of all blocks. A single block, as nearly always, is not copied.
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
