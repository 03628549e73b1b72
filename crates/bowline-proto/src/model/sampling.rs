//! Sampling: a server asks the client's model. Deprecated since 2026-07-28.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Meta, ResultType, Role, SamplingContent, TaskMetadata, Tool, result_body};
use crate::json::{Extra, Sparse};

/// The parameters of `sampling/createMessage`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CreateMessageParams {
    /// The conversation so far.
    pub messages: Vec<SamplingMessage>,
    /// Which model to prefer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_preferences: Option<ModelPreferences>,
    /// The system prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// Which servers' context to include.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub include_context: Option<IncludeContext>,
    /// The sampling temperature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// The maximum length of the response.
    pub max_tokens: u64,
    /// Texts at which to stop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_sequences: Option<Vec<String>>,
    /// Settings for the model's provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Extra>,
    /// Tools the model may use. Since 2025-11-25.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<Tool>>,
    /// Whether it must use them. Since 2025-11-25.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<ToolChoice>,
    /// Requests to run it as a task. 2025-11-25 only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskMetadata>,
    /// Metadata.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl CreateMessageParams {
    /// Asks a model to go on with this conversation, in at most so many tokens.
    pub fn new(messages: Vec<SamplingMessage>, max_tokens: u64) -> Self {
        Self { messages, max_tokens, ..Self::default() }
    }
}

/// One message to or from a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SamplingMessage {
    /// The sender.
    pub role: Role,
    /// The content.
    pub content: SamplingContents,
    /// Metadata. Since 2025-11-25.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl SamplingMessage {
    /// A message from the user.
    pub fn user(text: impl Into<String>) -> Self {
        Self::text(Role::User, text)
    }

    /// A message from the model.
    pub fn assistant(text: impl Into<String>) -> Self {
        Self::text(Role::Assistant, text)
    }

    fn text(role: Role, text: impl Into<String>) -> Self {
        Self { role, content: SamplingContent::text(text).into(), meta: None }
    }
}

/// One content block, or several since 2025-11-25.
///
/// A single block is written without an array, which every revision accepts, unless it was read
/// from one.
#[derive(Debug, Clone, PartialEq)]
pub struct SamplingContents {
    blocks: Vec<SamplingContent>,
    in_array: bool,
}

impl SamplingContents {
    /// The blocks.
    pub fn blocks(&self) -> &[SamplingContent] {
        &self.blocks
    }

    /// The blocks, mutably.
    pub fn blocks_mut(&mut self) -> &mut Vec<SamplingContent> {
        &mut self.blocks
    }

    /// All text blocks, joined.
    pub fn text(&self) -> String {
        self.blocks.iter().filter_map(SamplingContent::as_text).collect()
    }

    /// Writes one block without an array around it.
    pub(crate) fn leave_array(&mut self) {
        self.in_array = false;
    }
}

impl From<SamplingContent> for SamplingContents {
    fn from(block: SamplingContent) -> Self {
        Self { blocks: vec![block], in_array: false }
    }
}

impl From<Vec<SamplingContent>> for SamplingContents {
    fn from(blocks: Vec<SamplingContent>) -> Self {
        let in_array = blocks.len() != 1;
        Self { blocks, in_array }
    }
}

impl Serialize for SamplingContents {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.blocks.as_slice() {
            [block] if !self.in_array => block.serialize(serializer),
            blocks => blocks.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for SamplingContents {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(contents::OneOrMany)
    }
}

/// Reads one block or an array of them.
mod contents {
    use std::fmt;

    use serde::Deserialize;
    use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
    use serde::de::{MapAccess, SeqAccess, Visitor};

    use super::{SamplingContent, SamplingContents};

    pub(super) struct OneOrMany;

    impl<'de> Visitor<'de> for OneOrMany {
        type Value = SamplingContents;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a content block or an array of them")
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
            SamplingContent::deserialize(MapAccessDeserializer::new(map)).map(Into::into)
        }

        fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Self::Value, A::Error> {
            let blocks = Vec::deserialize(SeqAccessDeserializer::new(seq))?;
            Ok(SamplingContents { blocks, in_array: true })
        }
    }
}

/// Which servers' context to include. Values other than `none` are deprecated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum IncludeContext {
    /// No context.
    None,
    /// The context of the requesting server.
    ThisServer,
    /// The context of all servers.
    AllServers,
}

/// Which model to prefer. The client decides.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelPreferences {
    /// Names or parts of names, best first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hints: Option<Vec<ModelHint>>,
    /// How much cost matters, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_priority: Option<f64>,
    /// How much speed matters, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed_priority: Option<f64>,
    /// How much intelligence matters, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intelligence_priority: Option<f64>,
}

/// A name or part of a name of a model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelHint {
    /// The name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Members that the specification does not define.
    #[serde(flatten)]
    pub extra: Sparse,
}

/// Whether a model must use tools. Since 2025-11-25.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolChoice {
    /// Absence means that it may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<ToolChoiceMode>,
}

/// Whether a model must use tools. Since 2025-11-25.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolChoiceMode {
    /// It may.
    Auto,
    /// It must use at least one.
    Required,
    /// It must not.
    None,
}

/// The result of `sampling/createMessage`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CreateMessageResult {
    /// Never sent: the modern era embeds this response without a type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_type: Option<ResultType>,
    /// In practice always the model.
    pub role: Role,
    /// What it wrote.
    pub content: SamplingContents,
    /// The name of the model.
    pub model: String,
    /// Why it stopped: `endTurn`, `stopSequence`, `maxTokens`, `toolUse`, or another value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<String>,
    /// Metadata.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Members that the specification does not define.
    #[serde(flatten)]
    pub extra: Sparse,
}

impl CreateMessageResult {
    /// What a model of this name wrote.
    pub fn new(model: impl Into<String>, content: impl Into<SamplingContents>) -> Self {
        Self {
            result_type: None,
            role: Role::Assistant,
            content: content.into(),
            model: model.into(),
            stop_reason: None,
            meta: None,
            extra: Sparse::default(),
        }
    }

    /// Text that a model of this name wrote.
    pub fn text(model: impl Into<String>, text: impl Into<String>) -> Self {
        Self::new(model, SamplingContent::text(text))
    }
}

result_body!(CreateMessageResult);
