//! The forms of elicitation: a flat object of simple fields.

mod flat;

use serde::{Deserialize, Serialize};
use serde_json::Number;

use self::flat::FlatSchema;
use crate::members::Members;

/// The fields of a form, in the order they are shown.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ElicitSchema {
    /// The dialect. Since 2025-11-25.
    #[serde(rename = "$schema", default, skip_serializing_if = "Option::is_none")]
    pub dialect: Option<String>,
    /// Always `object`.
    #[serde(rename = "type", default)]
    pub kind: ObjectType,
    /// The fields.
    pub properties: Members<PrimitiveSchema>,
    /// The fields that must be filled in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required: Option<Vec<String>>,
}

/// The word `object`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ObjectType {
    /// The only value.
    #[default]
    Object,
}

/// One field of a form.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "FlatSchema", into = "FlatSchema")]
pub enum PrimitiveSchema {
    /// A line of text.
    String(StringSchema),
    /// A number.
    Number(NumberSchema),
    /// Yes or no.
    Boolean(BooleanSchema),
    /// One of several choices.
    SingleSelect(SingleSelectSchema),
    /// Any of several choices. Since 2025-11-25.
    MultiSelect(MultiSelectSchema),
}

/// A line of text.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StringSchema {
    /// The display name.
    pub title: Option<String>,
    /// What to fill in.
    pub description: Option<String>,
    /// The minimum length.
    pub min_length: Option<u64>,
    /// The maximum length.
    pub max_length: Option<u64>,
    /// The format: `email`, `uri`, `date` or `date-time`.
    pub format: Option<StringFormat>,
    /// A pattern it must match. Only in the prose of 2025-11-25; accepted, but never sent.
    pub pattern: Option<String>,
    /// The default value. Since 2025-11-25.
    pub default: Option<String>,
}

/// The format of a line of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StringFormat {
    /// An email address.
    Email,
    /// A URI.
    Uri,
    /// A date.
    Date,
    /// A date and time.
    DateTime,
}

/// A number.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NumberSchema {
    /// Whether fractions are allowed.
    pub kind: NumberType,
    /// The display name.
    pub title: Option<String>,
    /// What to fill in.
    pub description: Option<String>,
    /// The minimum.
    pub minimum: Option<Number>,
    /// The maximum.
    pub maximum: Option<Number>,
    /// The default value. Since 2025-11-25.
    pub default: Option<Number>,
}

/// Whether fractions are allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum NumberType {
    /// Yes.
    #[default]
    Number,
    /// No.
    Integer,
}

/// Yes or no.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BooleanSchema {
    /// The display name.
    pub title: Option<String>,
    /// What it means.
    pub description: Option<String>,
    /// The default value.
    pub default: Option<bool>,
}

/// One of several choices.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SingleSelectSchema {
    /// The display name.
    pub title: Option<String>,
    /// What to choose.
    pub description: Option<String>,
    /// The choices.
    pub choices: Choices,
    /// The default choice. Since 2025-11-25.
    pub default: Option<String>,
}

/// Any of several choices. Since 2025-11-25.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MultiSelectSchema {
    /// The display name.
    pub title: Option<String>,
    /// What to choose.
    pub description: Option<String>,
    /// The minimum number of choices.
    pub min_items: Option<u64>,
    /// The maximum number of choices.
    pub max_items: Option<u64>,
    /// The choices.
    pub choices: Choices,
    /// The default choices.
    pub default: Option<Vec<String>>,
}

/// The choices, and how they are written.
#[derive(Debug, Clone, PartialEq)]
pub enum Choices {
    /// Values alone.
    Untitled(Vec<String>),
    /// Values, each with a title. Since 2025-11-25.
    Titled(Vec<Choice>),
    /// Values, with titles in a second list: `enumNames`, as in 2025-06-18. Not for
    /// [`MultiSelectSchema`], which writes it as [`Choices::Titled`].
    Named(Vec<String>, Vec<String>),
}

impl Default for Choices {
    fn default() -> Self {
        Self::Untitled(Vec::new())
    }
}

/// A value with a title.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Choice {
    /// The value.
    #[serde(rename = "const")]
    pub value: String,
    /// What to display.
    pub title: String,
}
