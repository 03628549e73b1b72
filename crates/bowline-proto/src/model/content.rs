//! Content: what tools return, prompts contain and models write.

use serde::de::MapAccess;
use serde::{Deserialize, Deserializer, Serialize};

use super::{Meta, Resource, ResourceContents};
use crate::json::{Extra, Json, present};
use crate::tagged::{Rest, Tagged, read_tagged};

/// One piece of a tool's result or of a prompt's message.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ContentBlock {
    /// Text.
    Text(TextContent),
    /// An image.
    Image(ImageContent),
    /// Audio. Since 2025-03-26.
    Audio(AudioContent),
    /// A link to a resource. Since 2025-06-18.
    ResourceLink(Resource),
    /// A resource with its contents.
    #[serde(rename = "resource")]
    EmbeddedResource(EmbeddedResource),
    /// A kind unknown to this library, with all its members.
    #[serde(untagged)]
    Other(Extra),
}

impl ContentBlock {
    /// A block of text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(TextContent { text: text.into(), ..TextContent::default() })
    }

    /// An image, as base64.
    pub fn image(data: impl Into<String>, mime_type: impl Into<String>) -> Self {
        Self::Image(ImageContent {
            data: data.into(),
            mime_type: mime_type.into(),
            ..ImageContent::default()
        })
    }

    /// Audio, as base64.
    pub fn audio(data: impl Into<String>, mime_type: impl Into<String>) -> Self {
        Self::Audio(AudioContent {
            data: data.into(),
            mime_type: mime_type.into(),
            ..AudioContent::default()
        })
    }

    /// A resource with its contents.
    pub fn resource(resource: ResourceContents) -> Self {
        Self::EmbeddedResource(EmbeddedResource { resource, annotations: None, meta: None })
    }

    /// The text, if it is text.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(content) => Some(&content.text),
            _ => None,
        }
    }
}

impl From<&str> for ContentBlock {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<String> for ContentBlock {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

impl Tagged for ContentBlock {
    const TAG: &'static str = "type";
    const WHAT: &'static str = "a content block";

    fn read<'de, A: MapAccess<'de>>(
        kind: Option<&str>,
        rest: Rest<'de, A>,
    ) -> Result<Self, A::Error> {
        match kind {
            Some("text") => TextContent::deserialize(rest).map(Self::Text),
            Some("image") => ImageContent::deserialize(rest).map(Self::Image),
            Some("audio") => AudioContent::deserialize(rest).map(Self::Audio),
            Some("resource_link") => Resource::deserialize(rest).map(Self::ResourceLink),
            Some("resource") => EmbeddedResource::deserialize(rest).map(Self::EmbeddedResource),
            kind => read_other(kind, rest).map(Self::Other),
        }
    }
}

impl<'de> Deserialize<'de> for ContentBlock {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read_tagged(deserializer)
    }
}

/// One piece of a message to or from a model.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum SamplingContent {
    /// Text.
    Text(TextContent),
    /// An image.
    Image(ImageContent),
    /// Audio. Since 2025-03-26.
    Audio(AudioContent),
    /// The model wants to call a tool. Since 2025-11-25.
    ToolUse(ToolUseContent),
    /// The result of a tool. Since 2025-11-25.
    ToolResult(ToolResultContent),
    /// A kind unknown to this library, with all its members.
    #[serde(untagged)]
    Other(Extra),
}

impl SamplingContent {
    /// A block of text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(TextContent { text: text.into(), ..TextContent::default() })
    }

    /// The text, if it is text.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(content) => Some(&content.text),
            _ => None,
        }
    }
}

impl Tagged for SamplingContent {
    const TAG: &'static str = "type";
    const WHAT: &'static str = "a content block";

    fn read<'de, A: MapAccess<'de>>(
        kind: Option<&str>,
        rest: Rest<'de, A>,
    ) -> Result<Self, A::Error> {
        match kind {
            Some("text") => TextContent::deserialize(rest).map(Self::Text),
            Some("image") => ImageContent::deserialize(rest).map(Self::Image),
            Some("audio") => AudioContent::deserialize(rest).map(Self::Audio),
            Some("tool_use") => ToolUseContent::deserialize(rest).map(Self::ToolUse),
            Some("tool_result") => ToolResultContent::deserialize(rest).map(Self::ToolResult),
            kind => read_other(kind, rest).map(Self::Other),
        }
    }
}

impl<'de> Deserialize<'de> for SamplingContent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read_tagged(deserializer)
    }
}

/// Reads a block of an unknown kind, with all its members.
fn read_other<'de, A: MapAccess<'de>>(
    kind: Option<&str>,
    rest: Rest<'de, A>,
) -> Result<Extra, A::Error> {
    let kind = kind.ok_or_else(|| serde::de::Error::missing_field("type"))?;
    let mut members = Extra::deserialize(rest)?;
    members.insert("type".to_owned(), kind.into());
    Ok(members)
}

/// Text.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TextContent {
    /// The text itself.
    pub text: String,
    /// Audience and priority.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Metadata. Since 2025-06-18.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

/// An image.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ImageContent {
    /// The bytes, in base64.
    pub data: String,
    /// Their type.
    pub mime_type: String,
    /// Audience and priority.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Metadata. Since 2025-06-18.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

/// Audio. Since 2025-03-26.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AudioContent {
    /// The bytes, in base64.
    pub data: String,
    /// Their type.
    pub mime_type: String,
    /// Audience and priority.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Metadata. Since 2025-06-18.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

/// A resource with its contents.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EmbeddedResource {
    /// The contents.
    pub resource: ResourceContents,
    /// Audience and priority.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Metadata. Since 2025-06-18.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

/// A model wants to call a tool. Since 2025-11-25.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolUseContent {
    /// The id that the result must refer to.
    pub id: String,
    /// The name of the tool.
    pub name: String,
    /// The arguments, an object.
    pub input: Json,
    /// Metadata.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

/// The result of a tool, for a model. Since 2025-11-25.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolResultContent {
    /// The id of the [`ToolUseContent`] this answers.
    pub tool_use_id: String,
    /// The result, for people and models.
    #[serde(default)]
    pub content: Vec<ContentBlock>,
    /// The result as data: an object up to 2025-11-25, any value since.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub structured_content: Option<Json>,
    /// Whether the tool failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
    /// Metadata.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

/// Hints on how to show or use a piece of content.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Annotations {
    /// The intended audience.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audience: Option<Vec<Role>>,
    /// The importance: 1 is required, 0 is entirely optional.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<f64>,
    /// When it last changed, in ISO 8601. Since 2025-06-18.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_modified: Option<String>,
}

/// The sender or recipient of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The user.
    User,
    /// The model.
    Assistant,
}
