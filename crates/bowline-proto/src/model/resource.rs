//! Resources: data of the server, named by URIs.

use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};

use super::page::millis;
use super::{
    Annotations, CacheScope, Icon, Meta, RequestMeta, ResultType, request_params, result_body,
};
use crate::json::Extra;
use crate::members::RawMembers;

/// A resource, as a server lists it or a tool links to it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Resource {
    /// What to read it by.
    pub uri: String,
    /// The name programs use.
    pub name: String,
    /// The name people see. Since 2025-06-18.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// For whom, how important.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// How many bytes it has, before any encoding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
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

/// A family of resources: a URI with parts to fill in (RFC 6570).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceTemplate {
    /// The URI with `{parts}`.
    pub uri_template: String,
    /// The name programs use.
    pub name: String,
    /// The name people see. Since 2025-06-18.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What the resources hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Their type, if all have the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// For whom, how important.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
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

/// What a resource holds.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "FlatContents")]
pub struct ResourceContents {
    /// Which resource, or which part of it.
    pub uri: String,
    /// Its type.
    pub mime_type: Option<String>,
    /// The data itself.
    pub data: ResourceData,
    /// What travels beside it. Since 2025-06-18.
    pub meta: Option<Meta>,
    /// Members that the specification does not name.
    pub extra: Extra,
}

/// Text or bytes, never both.
#[derive(Debug, Clone, PartialEq)]
pub enum ResourceData {
    /// Text.
    Text(String),
    /// Bytes, in base64.
    Blob(String),
}

impl ResourceContents {
    /// Contents that are text.
    pub fn text(uri: impl Into<String>, text: impl Into<String>) -> Self {
        Self::new(uri, ResourceData::Text(text.into()))
    }

    /// Contents that are bytes, in base64.
    pub fn blob(uri: impl Into<String>, base64: impl Into<String>) -> Self {
        Self::new(uri, ResourceData::Blob(base64.into()))
    }

    fn new(uri: impl Into<String>, data: ResourceData) -> Self {
        Self { uri: uri.into(), mime_type: None, data, meta: None, extra: Extra::new() }
    }

    /// The same contents with their type.
    #[must_use]
    pub fn with_mime_type(mut self, mime_type: impl Into<String>) -> Self {
        self.mime_type = Some(mime_type.into());
        self
    }

    /// The text, if they are text.
    pub fn as_text(&self) -> Option<&str> {
        match &self.data {
            ResourceData::Text(text) => Some(text),
            ResourceData::Blob(_) => None,
        }
    }
}

/// [`ResourceContents`] as it is read.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FlatContents {
    uri: String,
    mime_type: Option<String>,
    text: Option<String>,
    blob: Option<String>,
    #[serde(rename = "_meta")]
    meta: Option<Meta>,
    #[serde(flatten)]
    extra: Extra,
}

impl TryFrom<FlatContents> for ResourceContents {
    type Error = &'static str;

    fn try_from(flat: FlatContents) -> Result<Self, &'static str> {
        let data = match (flat.text, flat.blob) {
            (Some(text), None) => ResourceData::Text(text),
            (None, Some(blob)) => ResourceData::Blob(blob),
            (None, None) => return Err("contents have neither text nor blob"),
            (Some(_), Some(_)) => return Err("contents have both text and blob"),
        };
        let FlatContents { uri, mime_type, meta, extra, .. } = flat;
        Ok(Self { uri, mime_type, data, meta, extra })
    }
}

// By hand, because the derived form would copy the data to write it.
impl Serialize for ResourceContents {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("uri", &self.uri)?;
        if let Some(mime_type) = &self.mime_type {
            map.serialize_entry("mimeType", mime_type)?;
        }
        match &self.data {
            ResourceData::Text(text) => map.serialize_entry("text", text)?,
            ResourceData::Blob(blob) => map.serialize_entry("blob", blob)?,
        }
        if let Some(meta) = &self.meta {
            map.serialize_entry("_meta", meta)?;
        }
        for (key, value) in &self.extra {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

/// The result of `resources/list`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListResourcesResult {
    /// Which form of result this is. Since 2026-07-28.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_type: Option<ResultType>,
    /// The resources of this page.
    pub resources: Vec<Resource>,
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

/// The result of `resources/templates/list`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListResourceTemplatesResult {
    /// Which form of result this is. Since 2026-07-28.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_type: Option<ResultType>,
    /// The templates of this page.
    pub resource_templates: Vec<ResourceTemplate>,
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

/// The parameters of `resources/read`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReadResourceParams<'a> {
    /// Which resource.
    pub uri: String,
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

/// The result of `resources/read`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReadResourceResult {
    /// Which form of result this is. Since 2026-07-28.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_type: Option<ResultType>,
    /// The contents: several where a resource has parts, as a folder has.
    pub contents: Vec<ResourceContents>,
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

/// The parameters of `resources/subscribe` and `resources/unsubscribe`. Up to 2025-11-25.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SubscribeParams<'a> {
    /// Which resource.
    pub uri: String,
    /// What travels beside the parameters.
    #[serde(borrow, rename = "_meta", default, skip_serializing_if = "RequestMeta::is_empty")]
    pub meta: RequestMeta<'a>,
}

/// The parameters of `notifications/resources/updated`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceUpdatedParams {
    /// What changed: the resource subscribed to, or something below it.
    pub uri: String,
    /// What travels beside the parameters.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

request_params!(ReadResourceParams, SubscribeParams);
result_body!(ListResourcesResult, ListResourceTemplatesResult, ReadResourceResult);
