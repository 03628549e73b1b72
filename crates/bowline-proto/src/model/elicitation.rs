//! Elicitation: a server asks the client's user for input. Since 2025-06-18.

mod schema;

use serde::de::MapAccess;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

pub use self::schema::*;
use super::{Meta, ResultType, TaskMetadata, result_body};
use crate::json::{Extra, Sparse};
use crate::tagged::{Rest, Tagged, read_tagged, unknown_kind};

/// The parameters of `elicitation/create`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum ElicitParams {
    /// Fill in a form.
    Form(ElicitFormParams),
    /// Visit a URL. Since 2025-11-25.
    Url(ElicitUrlParams),
}

/// A form for the user. Never for secrets.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ElicitFormParams {
    /// Sent since 2025-11-25; absence means a form too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<FormMode>,
    /// What is asked, and why.
    pub message: String,
    /// The fields.
    pub requested_schema: ElicitSchema,
    /// Requests to run it as a task. 2025-11-25 only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskMetadata>,
    /// Metadata.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

/// A URL for the user to visit. Since 2025-11-25.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ElicitUrlParams {
    /// Always sent.
    #[serde(default)]
    pub mode: UrlMode,
    /// Why to visit it.
    pub message: String,
    /// The URL.
    pub url: String,
    /// The id that `notifications/elicitation/complete` refers to. 2025-11-25 only, required there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elicitation_id: Option<String>,
    /// Requests to run it as a task. 2025-11-25 only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskMetadata>,
    /// Metadata.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

/// The word `form`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FormMode {
    /// The only value.
    #[default]
    Form,
}

/// The word `url`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UrlMode {
    /// The only value.
    #[default]
    Url,
}

impl Tagged for ElicitParams {
    const TAG: &'static str = "mode";
    const WHAT: &'static str = "a form or a URL to show";

    fn read<'de, A: MapAccess<'de>>(
        kind: Option<&str>,
        rest: Rest<'de, A>,
    ) -> Result<Self, A::Error> {
        match kind {
            None => ElicitFormParams::deserialize(rest).map(Self::Form),
            Some("form") => {
                let form = ElicitFormParams::deserialize(rest)?;
                Ok(Self::Form(ElicitFormParams { mode: Some(FormMode::Form), ..form }))
            }
            Some("url") => ElicitUrlParams::deserialize(rest).map(Self::Url),
            kind => Err(unknown_kind("mode", kind, "form or url")),
        }
    }
}

impl<'de> Deserialize<'de> for ElicitParams {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read_tagged(deserializer)
    }
}

/// The result of `elicitation/create`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ElicitResult {
    /// Never sent: the modern era embeds this response without a type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_type: Option<ResultType>,
    /// What the user did.
    pub action: ElicitAction,
    /// The values filled in: strings, numbers, booleans, lists of strings. Only for an accepted
    /// form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Extra>,
    /// Metadata.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Members that the specification does not define.
    #[serde(flatten)]
    pub extra: Sparse,
}

impl ElicitResult {
    /// The user filled in the form: a struct or a map. Anything that is not an object counts as
    /// empty.
    pub fn accept(content: &impl Serialize) -> Self {
        let content = match serde_json::to_value(content) {
            Ok(Value::Object(content)) => content,
            _ => Extra::new(),
        };
        Self { content: Some(content), ..Self::of(ElicitAction::Accept) }
    }

    /// The user declined.
    pub fn decline() -> Self {
        Self::of(ElicitAction::Decline)
    }

    /// The user dismissed the question without a choice.
    pub fn cancel() -> Self {
        Self::of(ElicitAction::Cancel)
    }

    fn of(action: ElicitAction) -> Self {
        Self { action, ..Self::default() }
    }
}

/// The user's reaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ElicitAction {
    /// The user submitted the form or opened the URL.
    Accept,
    /// The user declined.
    Decline,
    /// The user dismissed it without a choice.
    #[default]
    Cancel,
}

/// The parameters of `notifications/elicitation/complete`. 2025-11-25 only.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ElicitationCompleteParams {
    /// The id of the completed interaction.
    pub elicitation_id: String,
    /// Metadata.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

result_body!(ElicitResult);
