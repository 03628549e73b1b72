//! Completion: suggestions for an argument that is being typed.

use serde::de::MapAccess;
use serde::{Deserialize, Deserializer, Serialize};

use super::{Meta, RequestMeta, ResultType, request_params, result_body};
use crate::json::Sparse;
use crate::members::Members;
use crate::tagged::{Rest, Tagged, read_tagged, unknown_kind};

/// The parameters of `completion/complete`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CompleteParams<'a> {
    /// The prompt or resource template that has the argument.
    #[serde(rename = "ref")]
    pub reference: Reference,
    /// The argument so far.
    pub argument: CompleteArgument,
    /// The arguments filled in already. Since 2025-06-18.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<CompleteContext>,
    /// Metadata.
    #[serde(borrow, rename = "_meta", default, skip_serializing_if = "RequestMeta::is_empty")]
    pub meta: RequestMeta<'a>,
}

/// The prompt or resource template whose argument is being completed.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type")]
pub enum Reference {
    /// A prompt.
    #[serde(rename = "ref/prompt")]
    Prompt(PromptReference),
    /// A resource template.
    #[serde(rename = "ref/resource")]
    ResourceTemplate(ResourceTemplateReference),
}

impl Tagged for Reference {
    const TAG: &'static str = "type";
    const WHAT: &'static str = "a reference to a prompt or a resource template";

    fn read<'de, A: MapAccess<'de>>(
        kind: Option<&str>,
        rest: Rest<'de, A>,
    ) -> Result<Self, A::Error> {
        match kind {
            Some("ref/prompt") => PromptReference::deserialize(rest).map(Self::Prompt),
            Some("ref/resource") => {
                ResourceTemplateReference::deserialize(rest).map(Self::ResourceTemplate)
            }
            kind => Err(unknown_kind("type", kind, "ref/prompt or ref/resource")),
        }
    }
}

impl<'de> Deserialize<'de> for Reference {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read_tagged(deserializer)
    }
}

/// A prompt, by name.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PromptReference {
    /// Its name.
    pub name: String,
    /// The display name. Since 2025-06-18.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
}

/// A resource template, by its URI.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceTemplateReference {
    /// The URI with `{parts}`.
    pub uri: String,
}

/// An argument that is being typed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CompleteArgument {
    /// Its name.
    pub name: String,
    /// What has been typed so far.
    pub value: String,
}

/// The arguments filled in already.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CompleteContext {
    /// Other arguments and their values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Members<String>>,
}

/// The result of `completion/complete`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CompleteResult {
    /// The kind of result. Since 2026-07-28.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_type: Option<ResultType>,
    /// The suggestions.
    pub completion: Completion,
    /// Metadata.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Members that the specification does not define.
    #[serde(flatten)]
    pub extra: Sparse,
}

/// Suggestions for an argument.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Completion {
    /// At most [`Completion::MAX_VALUES`] of them, best first.
    pub values: Vec<String>,
    /// The total number of suggestions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// Whether there are more than these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub has_more: Option<bool>,
}

impl Completion {
    /// The maximum number of values in a result.
    pub const MAX_VALUES: usize = 100;
}

request_params!(CompleteParams);
result_body!(CompleteResult);
