//! Tasks as the extension `io.modelcontextprotocol/tasks` has them: decided by the server, polled
//! by the client, answers inline.
//!
//! Apart from [`task`](super::Task) of 2025-11-25, whose methods have the same names and other
//! shapes.

use serde::{Deserialize, Serialize};

use super::{
    InputRequests, Meta, RequestMeta, ResultType, TaskStatus, request_params, result_body,
};
use crate::error::ErrorObject;
use crate::json::{Extra, Json};
use crate::members::RawMembers;

/// The identifier of the extension.
pub const ID: &str = "io.modelcontextprotocol/tasks";

/// The result of a request that became a task.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CreateTaskResult {
    /// Which form of result this is. Since 2026-07-28.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_type: Option<ResultType>,
    /// Its name, hard to guess.
    pub task_id: String,
    /// How it stands.
    pub status: TaskStatus,
    /// How it stands, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_message: Option<String>,
    /// When it began, in ISO 8601.
    pub created_at: String,
    /// When it last changed, in ISO 8601.
    pub last_updated_at: String,
    /// How long it is kept, in milliseconds from its creation; `None` is for ever.
    pub ttl_ms: Option<u64>,
    /// How often to ask, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub poll_interval_ms: Option<u64>,
    /// What travels beside the result.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Members that the specification does not name.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The result of `tasks/get`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GetTaskResult {
    /// Which form of result this is. Since 2026-07-28.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_type: Option<ResultType>,
    /// Its name, hard to guess.
    pub task_id: String,
    /// How it stands.
    pub status: TaskStatus,
    /// How it stands, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_message: Option<String>,
    /// When it began, in ISO 8601.
    pub created_at: String,
    /// When it last changed, in ISO 8601.
    pub last_updated_at: String,
    /// How long it is kept, in milliseconds from its creation; `None` is for ever.
    pub ttl_ms: Option<u64>,
    /// How often to ask, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub poll_interval_ms: Option<u64>,
    /// The questions it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_requests: Option<InputRequests>,
    /// What it was for, once completed: the shape of the original result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Json>,
    /// What went wrong, once failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorObject>,
    /// What travels beside the result.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Members that the specification does not name.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The parameters of `notifications/tasks`: what `tasks/get` would tell.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskChangedParams {
    /// Its name, hard to guess.
    pub task_id: String,
    /// How it stands.
    pub status: TaskStatus,
    /// How it stands, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_message: Option<String>,
    /// When it began, in ISO 8601.
    pub created_at: String,
    /// When it last changed, in ISO 8601.
    pub last_updated_at: String,
    /// How long it is kept, in milliseconds from its creation; `None` is for ever.
    pub ttl_ms: Option<u64>,
    /// How often to ask, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub poll_interval_ms: Option<u64>,
    /// The questions it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_requests: Option<InputRequests>,
    /// What it was for, once completed: the shape of the original result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Json>,
    /// What went wrong, once failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorObject>,
    /// What travels beside the parameters.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

/// The parameters of `tasks/get` and `tasks/cancel`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskParams<'a> {
    /// Which task.
    pub task_id: String,
    /// What travels beside the parameters.
    #[serde(borrow, rename = "_meta", default, skip_serializing_if = "RequestMeta::is_empty")]
    pub meta: RequestMeta<'a>,
}

/// The parameters of `tasks/update`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UpdateTaskParams<'a> {
    /// Which task.
    pub task_id: String,
    /// Answers to some of its questions, not read yet.
    #[serde(borrow)]
    pub input_responses: RawMembers<'a>,
    /// What travels beside the parameters.
    #[serde(borrow, rename = "_meta", default, skip_serializing_if = "RequestMeta::is_empty")]
    pub meta: RequestMeta<'a>,
}

request_params!(TaskParams, UpdateTaskParams);
result_body!(CreateTaskResult, GetTaskResult);
