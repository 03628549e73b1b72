//! Sampling: a server asks the client's model. Deprecated since 2026-07-28.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Meta, ResultType, Role, SamplingContent, TaskMetadata, Tool, result_body};
use crate::json::Extra;

/// The parameters of `sampling/createMessage`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CreateMessageParams {
    /// The conversation so far.
    pub messages: Vec<SamplingMessage>,
    /// Which model would suit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_preferences: Option<ModelPreferences>,
    /// What the model is told first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// Whose context to add.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub include_context: Option<IncludeContext>,
    /// How freely to choose words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// How long the answer may get.
    pub max_tokens: u64,
    /// Where to stop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_sequences: Option<Vec<String>>,
    /// Settings for the provider of the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Extra>,
    /// Tools the model may use. Since 2025-11-25.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<Tool>>,
    /// Whether it must. Since 2025-11-25.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<ToolChoice>,
    /// Asks to run it as a task. 2025-11-25 only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskMetadata>,
    /// What travels beside the parameters.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

/// One message to or from a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SamplingMessage {
    /// Who says it.
    pub role: Role,
    /// What is said.
    pub content: SamplingContents,
    /// What travels beside it. Since 2025-11-25.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl SamplingMessage {
    /// Something the user says.
    pub fn user(text: impl Into<String>) -> Self {
        Self::text(Role::User, text)
    }

    /// Something the model says.
    pub fn assistant(text: impl Into<String>) -> Self {
        Self::text(Role::Assistant, text)
    }

    fn text(role: Role, text: impl Into<String>) -> Self {
        Self { role, content: SamplingContent::text(text).into(), meta: None }
    }
}

/// One block, or since 2025-11-25 several.
///
/// One block alone is written without an array around it, which every revision reads, unless it
/// came in one.
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

    /// The blocks, to be changed.
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

/// Reading one block or an array of them.
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

/// Whose context a model should be given. Other values than `none` are deprecated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum IncludeContext {
    /// Nobody's.
    None,
    /// The asking server's.
    ThisServer,
    /// All servers'.
    AllServers,
}

/// Which model would suit. The client decides.
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
    /// How much ability matters, 0 to 1.
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
    /// Members that the specification does not name.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Whether a model must use tools. Since 2025-11-25.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolChoice {
    /// Absent means it may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<ToolChoiceMode>,
}

/// Whether a model must use tools. Since 2025-11-25.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolChoiceMode {
    /// It may.
    Auto,
    /// It must use one at least.
    Required,
    /// It must not.
    None,
}

/// The result of `sampling/createMessage`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CreateMessageResult {
    /// Never sent: the modern era embeds this answer without a type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_type: Option<ResultType>,
    /// Always the model, in practice.
    pub role: Role,
    /// What it wrote.
    pub content: SamplingContents,
    /// Which model it was.
    pub model: String,
    /// Why it stopped: `endTurn`, `stopSequence`, `maxTokens`, `toolUse`, or another word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<String>,
    /// What travels beside the result.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Members that the specification does not name.
    #[serde(flatten)]
    pub extra: Extra,
}

result_body!(CreateMessageResult);
