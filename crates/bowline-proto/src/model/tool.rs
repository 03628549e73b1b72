//! Tools: functions of the server that a model may call.

use std::borrow::Cow;

use crate::raw::Raw;
use serde::{Deserialize, Serialize};

use super::page::list_result;
use super::{
    ContentBlock, Icon, Meta, RequestMeta, ResultType, TaskMetadata, request_params, result_body,
};
use crate::json::{Json, Sparse, present};
use crate::members::RawMembers;

/// A tool, as a server lists it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tool {
    /// The name to call it by, unique on its server.
    pub name: String,
    /// The display name. Since 2025-06-18.
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
    /// Whether it can run as a task. 2025-11-25 only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution: Option<ToolExecution>,
    /// Icons. Since 2025-11-25.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub icons: Option<Vec<Icon>>,
    /// Metadata. Since 2025-06-18.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Members that the specification does not define.
    #[serde(flatten)]
    pub extra: Sparse,
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
            extra: Sparse::default(),
        }
    }

    /// The name to display: the title, the title in the annotations, or the name.
    pub fn display_name(&self) -> &str {
        let annotated = self.annotations.as_ref().and_then(|hints| hints.title.as_deref());
        self.title.as_deref().or(annotated).unwrap_or(&self.name)
    }
}

/// Hints on what calling a tool may do. Untrusted, like everything a server says about itself.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolAnnotations {
    /// The display name; [`Tool::title`] takes precedence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// It changes nothing. Absence means that it may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only_hint: Option<bool>,
    /// Its changes may be destructive. Absence means that they may be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destructive_hint: Option<bool>,
    /// Calling it twice has the same effect as once. Absence means that it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotent_hint: Option<bool>,
    /// It interacts with external systems. Absence means that it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_world_hint: Option<bool>,
}

/// How a tool can run. 2025-11-25 only.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolExecution {
    /// Whether it can run as a task; absence means that it cannot.
    #[serde(
        default,
        deserialize_with = "super::identity::known_or_none",
        skip_serializing_if = "Option::is_none"
    )]
    pub task_support: Option<TaskSupport>,
}

/// Whether a tool can run as a task. 2025-11-25 only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TaskSupport {
    /// Never.
    Forbidden,
    /// If the caller requests it.
    Optional,
    /// Always.
    Required,
}

list_result! {
    /// The result of `tools/list`.
    pub struct ListToolsResult {
        /// The tools of this page.
        pub tools: Vec<Tool>,
    }
}

/// The parameters of `tools/call`, borrowed from the frame.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallToolParams<'a> {
    /// The name of the tool.
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    /// Its arguments, for the tool to parse into its own type.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Raw<'a>>,
    /// Requests to run it as a task. 2025-11-25 only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskMetadata>,
    /// Responses to the input requests of the previous round, not parsed yet: only the handler
    /// that asked knows their types. Since 2026-07-28.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub input_responses: Option<RawMembers<'a>>,
    /// The state from the previous round, verbatim. Since 2026-07-28.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_state: Option<String>,
    /// Metadata.
    #[serde(borrow, rename = "_meta", default, skip_serializing_if = "RequestMeta::is_empty")]
    pub meta: RequestMeta<'a>,
}

/// The result of `tools/call`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallToolResult {
    /// The kind of result. Since 2026-07-28.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_type: Option<ResultType>,
    /// The result, for people and models.
    #[serde(default)]
    pub content: Vec<ContentBlock>,
    /// The result as data: an object up to 2025-11-25, any value since, `null` included.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub structured_content: Option<Json>,
    /// Never sent: whether the tool's output schema allows other values than objects. Up to
    /// 2025-11-25 its structured content is then sent as `{"result": …}`, even if it is an object.
    #[serde(skip)]
    pub wraps_content: bool,
    /// Whether the tool failed. A failed tool is not a protocol error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
    /// Metadata.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Members that the specification does not define.
    #[serde(flatten)]
    pub extra: Sparse,
}

impl CallToolResult {
    /// A successful result with these blocks.
    pub fn success(content: Vec<ContentBlock>) -> Self {
        Self { content, is_error: Some(false), ..Self::default() }
    }

    /// A failed result, with a sentence that the model can act on.
    pub fn failure(message: impl Into<String>) -> Self {
        Self { content: vec![ContentBlock::text(message)], is_error: Some(true), ..Self::default() }
    }
}

request_params!(CallToolParams { name, arguments });
result_body!(CallToolResult);
