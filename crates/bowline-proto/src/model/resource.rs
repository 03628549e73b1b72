//! Resources: data of the server, identified by URIs.

use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};

use super::page::{list_result, millis};
use super::{
    Annotations, CacheScope, Icon, Meta, RequestMeta, ResultType, request_params, result_body,
};
use crate::json::Sparse;
use crate::members::RawMembers;

/// A resource, as a server lists it or a tool links to it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Resource {
    /// Its URI.
    pub uri: String,
    /// The name for programs.
    pub name: String,
    /// The display name. Since 2025-06-18.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it contains.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its MIME type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// Audience and priority.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Its size in bytes, before any encoding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
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

/// A resource template: a URI with variables (RFC 6570).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceTemplate {
    /// The URI with `{variables}`.
    pub uri_template: String,
    /// The name for programs.
    pub name: String,
    /// The display name. Since 2025-06-18.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What the resources contain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Their MIME type, if they all have the same one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// Audience and priority.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
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

/// The contents of a resource.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "FlatContents")]
pub struct ResourceContents {
    /// The URI of the resource, or of a part of it.
    pub uri: String,
    /// Its MIME type.
    pub mime_type: Option<String>,
    /// The data itself.
    pub data: ResourceData,
    /// Metadata. Since 2025-06-18.
    pub meta: Option<Meta>,
    /// Members that the specification does not define.
    pub extra: Sparse,
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
    /// Text contents.
    pub fn text(uri: impl Into<String>, text: impl Into<String>) -> Self {
        Self::new(uri, ResourceData::Text(text.into()))
    }

    /// Binary contents, in base64.
    pub fn blob(uri: impl Into<String>, base64: impl Into<String>) -> Self {
        Self::new(uri, ResourceData::Blob(base64.into()))
    }

    fn new(uri: impl Into<String>, data: ResourceData) -> Self {
        Self { uri: uri.into(), mime_type: None, data, meta: None, extra: Sparse::default() }
    }

    /// Sets the MIME type.
    #[must_use]
    pub fn with_mime_type(mut self, mime_type: impl Into<String>) -> Self {
        self.mime_type = Some(mime_type.into());
        self
    }

    /// The text, if it is text.
    pub fn as_text(&self) -> Option<&str> {
        match &self.data {
            ResourceData::Text(text) => Some(text),
            ResourceData::Blob(_) => None,
        }
    }
}

/// [`ResourceContents`] as it appears on the wire.
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
    extra: Sparse,
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

// By hand, because the derived form would copy the data.
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
        for (key, value) in self.extra.iter() {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

list_result! {
    /// The result of `resources/list`.
    pub struct ListResourcesResult {
        /// The resources of this page.
        pub resources: Vec<Resource>,
    }
}

list_result! {
    /// The result of `resources/templates/list`.
    pub struct ListResourceTemplatesResult {
        /// The templates of this page.
        pub resource_templates: Vec<ResourceTemplate>,
    }
}

/// The parameters of `resources/read`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReadResourceParams<'a> {
    /// The URI of the resource.
    pub uri: String,
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

/// The result of `resources/read`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReadResourceResult {
    /// The kind of result. Since 2026-07-28.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_type: Option<ResultType>,
    /// The contents: several if a resource has parts, like a folder.
    pub contents: Vec<ResourceContents>,
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

/// The parameters of `resources/subscribe` and `resources/unsubscribe`. Up to 2025-11-25.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SubscribeParams<'a> {
    /// The URI of the resource.
    pub uri: String,
    /// Metadata.
    #[serde(borrow, rename = "_meta", default, skip_serializing_if = "RequestMeta::is_empty")]
    pub meta: RequestMeta<'a>,
}

/// The parameters of `notifications/resources/updated`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceUpdatedParams {
    /// The resource that changed: the one subscribed to, or one below it.
    pub uri: String,
    /// Metadata.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

request_params!(ReadResourceParams { uri }, SubscribeParams);
result_body!(ReadResourceResult);
