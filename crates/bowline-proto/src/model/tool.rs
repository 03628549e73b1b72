//! Tools: functions of the server that a model may call.

use std::borrow::Cow;

use crate::raw::Raw;
use serde::{Deserialize, Serialize};

use super::page::millis;
use super::{
    CacheScope, ContentBlock, Icon, Meta, RequestMeta, ResultType, TaskMetadata, request_params,
    result_body,
};
use crate::json::{Extra, Json, present};
use crate::members::RawMembers;

/// A tool, as a server lists it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tool {
    /// The name to call it by, unique on its server.
    pub name: String,
    /// The name people see. Since 2025-06-18.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it does, for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The JSON Schema of its arguments: an object, with any keywords.
    pub input_schema: Json,
    /// The JSON Schema of its structured content. Since 2025-06-18.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Json>,
    /// What calling it may do. Since 2025-03-26.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<ToolAnnotations>,
    /// Whether it can be a task. 2025-11-25 only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution: Option<ToolExecution>,
    /// Pictures. Since 2025-11-25.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub icons: Option<Vec<Icon>>,
    /// What travels beside it. Since 2025-06-18.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Members that the specification does not name.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Tool {
    /// A tool with a name and an input schema, nothing else.
    pub fn new(name: impl Into<String>, input_schema: Json) -> Self {
        Self {
            name: name.into(),
            title: None,
            description: None,
            input_schema,
            output_schema: None,
            annotations: None,
            execution: None,
            icons: None,
            meta: None,
            extra: Extra::new(),
        }
    }

    /// What to show to people: the title, the title among the annotations, or the name.
    pub fn display_name(&self) -> &str {
        let annotated = self.annotations.as_ref().and_then(|hints| hints.title.as_deref());
        self.title.as_deref().or(annotated).unwrap_or(&self.name)
    }
}

/// Hints on what calling a tool may do. Untrusted, like everything a server says of itself.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolAnnotations {
    /// The name people see; [`Tool::title`] wins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// It changes nothing. Absent means it may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only_hint: Option<bool>,
    /// What it changes may be lost. Absent means it may be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destructive_hint: Option<bool>,
    /// Calling it twice is the same as once. Absent means it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotent_hint: Option<bool>,
    /// It reaches out of its own system. Absent means it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_world_hint: Option<bool>,
}

/// How a tool can be run. 2025-11-25 only.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolExecution {
    /// Whether it can be a task; absent means it cannot.
    #[serde(
        default,
        deserialize_with = "super::identity::known_or_none",
        skip_serializing_if = "Option::is_none"
    )]
    pub task_support: Option<TaskSupport>,
}

/// Whether a tool can be run as a task. 2025-11-25 only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TaskSupport {
    /// Never.
    Forbidden,
    /// If the caller wishes.
    Optional,
    /// Always.
    Required,
}

/// The result of `tools/list`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListToolsResult {
    /// Which form of result this is. Since 2026-07-28.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_type: Option<ResultType>,
    /// The tools of this page.
    pub tools: Vec<Tool>,
    /// Where the next page starts; absent on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// For how long the result stays fresh. Since 2026-07-28.
    #[serde(default, deserialize_with = "millis", skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
    /// Who may reuse it. Since 2026-07-28.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_scope: Option<CacheScope>,
    /// What travels beside the result.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Members that the specification does not name.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The parameters of `tools/call`, borrowed from the frame.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallToolParams<'a> {
    /// Which tool.
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    /// Its arguments, for the tool to read into its own type.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Raw<'a>>,
    /// Asks to run it as a task. 2025-11-25 only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskMetadata>,
    /// Answers to the questions of the round before, not read yet: only whoever asked knows their
    /// types. Since 2026-07-28.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub input_responses: Option<RawMembers<'a>>,
    /// The state of the round before, to the letter. Since 2026-07-28.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_state: Option<String>,
    /// What travels beside the parameters.
    #[serde(borrow, rename = "_meta", default, skip_serializing_if = "RequestMeta::is_empty")]
    pub meta: RequestMeta<'a>,
}

/// The result of `tools/call`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallToolResult {
    /// Which form of result this is. Since 2026-07-28.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_type: Option<ResultType>,
    /// The answer, for people and models.
    #[serde(default)]
    pub content: Vec<ContentBlock>,
    /// The answer as data: an object up to 2025-11-25, any value, `null` included, after.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub structured_content: Option<Json>,
    /// Whether the tool failed. A failure of the tool is no error of the protocol.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
    /// What travels beside the result.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Members that the specification does not name.
    #[serde(flatten)]
    pub extra: Extra,
}

impl CallToolResult {
    /// A success with these blocks.
    pub fn success(content: Vec<ContentBlock>) -> Self {
        Self { content, is_error: Some(false), ..Self::default() }
    }

    /// A failure of the tool, told in one sentence that the model can act on.
    pub fn failure(message: impl Into<String>) -> Self {
        Self { content: vec![ContentBlock::text(message)], is_error: Some(true), ..Self::default() }
    }
}

request_params!(CallToolParams);
result_body!(ListToolsResult, CallToolResult);
