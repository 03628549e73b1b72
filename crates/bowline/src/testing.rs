//! Calling a server from a unit test: in memory, in one line, in any revision.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), bowline::testing::TestError> {
//! use bowline::{Server, Tool, testing};
//! use serde_json::json;
//!
//! let server = Server::new("greeter", "1.0.0").with(Tool::new("hello", || async { "hello" }));
//! let client = testing::connect(server).await?;
//! assert_eq!(client.call_text("hello", json!({})).await?, "hello");
//! # Ok(())
//! # }
//! ```
//!
//! The server runs as it would on stdio: every frame is encoded and parsed. A test client answers
//! the server's questions with the functions it is given, in both eras, and remembers every
//! notification.

mod answers;
mod builder;
mod link;

use std::fmt;

use bowline_proto::decode::DecodeError;
use bowline_proto::error::ErrorObject;
use bowline_proto::json::Json;
use bowline_proto::members::Members;
use bowline_proto::method::{
    CallTool, Complete, GetPrompt, Initialize, Initialized, ListPrompts, ListResourceTemplates,
    ListResources, ListTools, Method, Notice, ReadResource,
};
use bowline_proto::model::{
    CallToolResult, ClientCapabilities, CompleteResult, GetPromptResult, Implementation,
    InitializeResult, InputRequiredResult, ListPromptsResult, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, LoggingLevel, Prompt, ReadResourceResult, Resource,
    ResourceTemplate, Tool, meta_key,
};
use bowline_proto::revision::{Adapt, Outcome, Revision, decode_outcome};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use self::answers::Answers;
pub use self::builder::TestClientBuilder;
use self::link::Link;
use crate::{ServeError, Server};

/// Connects to a server in the newest revision.
///
/// # Errors
/// When the server cannot be built.
pub async fn connect(server: Server) -> Result<TestClient, TestError> {
    TestClient::builder().connect(server).await
}

/// Connects to a server in a revision of choice.
///
/// # Errors
/// When the server cannot be built, or refuses the revision.
pub async fn connect_in(server: Server, revision: Revision) -> Result<TestClient, TestError> {
    TestClient::builder().revision(revision).connect(server).await
}

/// A client for tests.
pub struct TestClient {
    link: Link,
    revision: Revision,
    answers: Answers,
    log_level: Option<LoggingLevel>,
    initialized: Option<InitializeResult>,
}

/// A notification that the server sent.
#[derive(Debug, Clone, PartialEq)]
pub struct Notified {
    /// Which kind.
    pub method: String,
    /// Its parameters.
    pub params: Value,
}

/// What went wrong in a test.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TestError {
    /// The server refused the request.
    #[error("the server refused: {0}")]
    Refused(#[from] ErrorObject),
    /// The server's answer is not what the method answers.
    #[error(transparent)]
    Malformed(#[from] DecodeError),
    /// A tool failed, where its text was wanted.
    #[error("the tool failed: {0}")]
    ToolFailed(String),
    /// The server ended.
    #[error("the server is gone")]
    Closed,
    /// The server could not start, or failed.
    #[error("the server failed")]
    Serve(#[from] ServeError),
    /// The server asked more often than a test should need.
    #[error("the server asked more than {0} times")]
    TooManyRounds(u32),
}

/// How often a modern request is repeated with answers.
const MAX_ROUNDS: u32 = 20;

impl TestClient {
    /// A client with more to it than a revision.
    pub fn builder() -> TestClientBuilder {
        TestClientBuilder {
            revision: Revision::LATEST,
            answers: Answers::default(),
            log_level: None,
        }
    }

    async fn initialize(&mut self) -> Result<(), TestError> {
        let mut capabilities = self.answers.capabilities();
        let mut info = Implementation::new("test", "1.0.0");
        // Neither can be unsupported: what a revision lacks is dropped.
        let _ = capabilities.adapt(self.revision);
        let _ = info.adapt(self.revision);
        let params = json!({
            "protocolVersion": self.revision,
            "capabilities": capabilities,
            "clientInfo": info,
        });
        let result = self.link.call(Initialize::NAME, &params, &self.answers).await?;
        let result: InitializeResult = read(Initialize::NAME, &result)?;
        self.initialized = Some(result);
        self.notify(Initialized::NAME, &json!({})).await?;
        if let Some(level) = self.log_level {
            self.request("logging/setLevel", json!({ "level": level })).await?;
        }
        Ok(())
    }

    /// What the server said in the handshake. `None` in the modern era, which has none.
    pub fn initialize_result(&self) -> Option<&InitializeResult> {
        self.initialized.as_ref()
    }

    /// Sends any request and waits for its result. Modern requests get their `_meta`.
    ///
    /// # Errors
    /// When the server refuses it or ends.
    pub async fn request(&self, method: &str, params: Value) -> Result<Value, TestError> {
        let result = self.link.call(method, &self.with_meta(params), &self.answers).await?;
        Ok(result.to_value())
    }

    /// Sends any notification.
    ///
    /// # Errors
    /// When the server has ended.
    pub async fn notify(&self, method: &str, params: &Value) -> Result<(), TestError> {
        self.link.notify(method, params).await
    }

    /// Sends bytes as they are, with a line break behind them.
    ///
    /// # Errors
    /// When the server has ended.
    pub async fn send_line(&self, line: &[u8]) -> Result<(), TestError> {
        self.link.send_line(line).await
    }

    /// Calls a tool.
    ///
    /// # Errors
    /// When the server refuses the call. A tool that fails is an answer.
    pub async fn call_tool(
        &self,
        name: &str,
        arguments: impl Serialize,
    ) -> Result<CallToolResult, TestError> {
        self.ask::<CallTool>(json!({ "name": name, "arguments": arguments })).await
    }

    /// Calls a tool and gives the text of its answer.
    ///
    /// # Errors
    /// When the server refuses the call, or the tool fails.
    pub async fn call_text(
        &self,
        name: &str,
        arguments: impl Serialize,
    ) -> Result<String, TestError> {
        let result = self.call_tool(name, arguments).await?;
        let text = result.content.iter().filter_map(|block| block.as_text()).collect();
        if result.is_error == Some(true) { Err(TestError::ToolFailed(text)) } else { Ok(text) }
    }

    /// Gets a prompt.
    ///
    /// # Errors
    /// When the server refuses it.
    pub async fn get_prompt(
        &self,
        name: &str,
        arguments: &[(&str, &str)],
    ) -> Result<GetPromptResult, TestError> {
        let arguments: Members<&str> = arguments.iter().copied().collect();
        self.ask::<GetPrompt>(json!({ "name": name, "arguments": arguments })).await
    }

    /// Reads a resource.
    ///
    /// # Errors
    /// When the server refuses it.
    pub async fn read_resource(&self, uri: &str) -> Result<ReadResourceResult, TestError> {
        self.ask::<ReadResource>(json!({ "uri": uri })).await
    }

    /// Completes an argument of a prompt (`{"type":"ref/prompt",…}`) or a part of a URI.
    ///
    /// # Errors
    /// When the server refuses it.
    pub async fn complete(
        &self,
        reference: Value,
        argument: &str,
        value: &str,
    ) -> Result<CompleteResult, TestError> {
        let argument = json!({ "name": argument, "value": value });
        self.ask::<Complete>(json!({ "ref": reference, "argument": argument })).await
    }

    /// All tools, from all pages.
    ///
    /// # Errors
    /// When the server refuses it.
    pub async fn list_tools(&self) -> Result<Vec<Tool>, TestError> {
        let page = |result: ListToolsResult| (result.tools, result.next_cursor);
        self.list::<ListTools, _>(page).await
    }

    /// All prompts, from all pages.
    ///
    /// # Errors
    /// When the server refuses it.
    pub async fn list_prompts(&self) -> Result<Vec<Prompt>, TestError> {
        let page = |result: ListPromptsResult| (result.prompts, result.next_cursor);
        self.list::<ListPrompts, _>(page).await
    }

    /// All resources, from all pages.
    ///
    /// # Errors
    /// When the server refuses it.
    pub async fn list_resources(&self) -> Result<Vec<Resource>, TestError> {
        let page = |result: ListResourcesResult| (result.resources, result.next_cursor);
        self.list::<ListResources, _>(page).await
    }

    /// All families of resources, from all pages.
    ///
    /// # Errors
    /// When the server refuses it.
    pub async fn list_resource_templates(&self) -> Result<Vec<ResourceTemplate>, TestError> {
        let page =
            |result: ListResourceTemplatesResult| (result.resource_templates, result.next_cursor);
        self.list::<ListResourceTemplates, _>(page).await
    }

    async fn list<M: Method, T>(
        &self,
        page: impl Fn(M::Result) -> (Vec<T>, Option<String>),
    ) -> Result<Vec<T>, TestError> {
        let mut all = Vec::new();
        let mut params = json!({});
        loop {
            let (items, next) = page(self.ask::<M>(params).await?);
            all.extend(items);
            match next {
                Some(cursor) => params = json!({ "cursor": cursor }),
                None => return Ok(all),
            }
        }
    }

    /// Asks, answers what is asked back, and asks again, until there is a result.
    async fn ask<M: Method>(&self, params: Value) -> Result<M::Result, TestError> {
        let mut round = params.clone();
        for _ in 0..MAX_ROUNDS {
            let sent = self.with_meta(round);
            let raw = self.link.call(M::NAME, &sent, &self.answers).await?;
            match decode_outcome::<M>(self.revision, raw.as_raw())? {
                Outcome::Complete(result) => return Ok(result),
                Outcome::InputRequired(asked) => round = self.repeat(&params, asked),
                Outcome::Task(_) => return Err(DecodeError::new(M::NAME, "is a task").into()),
            }
        }
        Err(TestError::TooManyRounds(MAX_ROUNDS))
    }

    /// The same request with answers, and the state to the letter.
    fn repeat(&self, params: &Value, asked: InputRequiredResult) -> Value {
        let mut next = params.clone();
        let questions = asked.input_requests.unwrap_or_default();
        let answers: Members<Value> = questions
            .into_iter()
            .map(|(key, question)| (key, self.answers.answer(question)))
            .collect();
        next["inputResponses"] = json!(answers);
        if let Some(state) = asked.request_state {
            next["requestState"] = state.into();
        }
        next
    }

    fn with_meta(&self, mut params: Value) -> Value {
        let mut meta = params.get("_meta").cloned().unwrap_or_else(|| json!({}));
        if meta.get(meta_key::PROGRESS_TOKEN).is_none() {
            meta[meta_key::PROGRESS_TOKEN] = self.link.next_token().into();
        }
        if self.revision.is_modern() {
            let mut capabilities: ClientCapabilities = self.answers.capabilities();
            let _ = capabilities.adapt(self.revision);
            meta[meta_key::PROTOCOL_VERSION] = json!(self.revision);
            meta[meta_key::CLIENT_CAPABILITIES] = json!(capabilities);
            meta[meta_key::CLIENT_INFO] = json!(Implementation::new("test", "1.0.0"));
            if let Some(level) = self.log_level {
                meta[meta_key::LOG_LEVEL] = json!(level);
            }
        }
        params["_meta"] = meta;
        params
    }

    /// The notifications so far that were not taken yet, in order.
    pub fn notifications(&self) -> Vec<Notified> {
        self.link.take_notifications()
    }

    /// Waits for the next notification of a kind, and forgets those before it.
    ///
    /// # Errors
    /// When the server ends first.
    pub async fn notified(&self, method: &str) -> Result<Notified, TestError> {
        self.link.notified(method).await
    }

    /// Closes the client's side and waits for the server to end.
    ///
    /// # Errors
    /// When the server failed.
    pub async fn close(self) -> Result<(), TestError> {
        self.link.close().await
    }
}

impl fmt::Debug for TestClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestClient").field("revision", &self.revision).finish_non_exhaustive()
    }
}

fn read<T: DeserializeOwned>(method: &str, result: &Json) -> Result<T, TestError> {
    Ok(bowline_proto::decode::decode_result(method, result.as_raw())?)
}
