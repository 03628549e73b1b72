//! Skills, as defined by the draft extension `io.modelcontextprotocol/skills`: instructions for a
//! model that a server lists and serves as resources.

use serde::{Deserialize, Serialize};

use super::page::{list_result, millis};
use super::{CacheScope, Meta, RequestMeta, Resource, ResultType, request_params, result_body};
use crate::json::{Extra, Json, Sparse};

/// The identifier of the extension.
pub const ID: &str = "io.modelcontextprotocol/skills";

/// A skill, as a server lists it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Skill {
    /// The URI of its `SKILL.md`.
    pub uri: String,
    /// The front matter of that file, as JSON.
    pub frontmatter: Extra,
    /// Its files, each with a digest, or the string `dynamic`.
    pub resources: Json,
    /// Members that the specification does not define.
    #[serde(flatten)]
    pub extra: Sparse,
}

list_result! {
    /// The result of `skills/list`.
    pub struct ListSkillsResult {
        /// The skills of this page.
        pub skills: Vec<Skill>,
    }
}

/// The parameters of `skills/get`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GetSkillParams<'a> {
    /// The URI of its `SKILL.md`.
    pub uri: String,
    /// Metadata.
    #[serde(borrow, rename = "_meta", default, skip_serializing_if = "RequestMeta::is_empty")]
    pub meta: RequestMeta<'a>,
}

/// The result of `skills/get`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GetSkillResult {
    /// The kind of result. Since 2026-07-28.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_type: Option<ResultType>,
    /// The skill.
    pub skill: Skill,
    /// How long the result stays fresh, in milliseconds. Since 2026-07-28.
    #[serde(default, deserialize_with = "millis", skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
    /// Who may reuse the cached result. Since 2026-07-28.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_scope: Option<CacheScope>,
    /// Metadata.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Members that the specification does not define.
    #[serde(flatten)]
    pub extra: Sparse,
}

/// The parameters of `resources/directory/read`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReadDirectoryParams<'a> {
    /// The URI of the folder.
    pub uri: String,
    /// The cursor from the previous page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Metadata.
    #[serde(borrow, rename = "_meta", default, skip_serializing_if = "RequestMeta::is_empty")]
    pub meta: RequestMeta<'a>,
}

/// The result of `resources/directory/read`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReadDirectoryResult {
    /// The kind of result. Since 2026-07-28.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_type: Option<ResultType>,
    /// Its direct children.
    pub resources: Vec<Resource>,
    /// The cursor of the next page; absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// Metadata.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Members that the specification does not define.
    #[serde(flatten)]
    pub extra: Sparse,
}

request_params!(GetSkillParams, ReadDirectoryParams);
result_body!(GetSkillResult, ReadDirectoryResult);
