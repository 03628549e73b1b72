//! The forms that elicitation can show: a flat object of simple fields.

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
    /// One of some words.
    SingleSelect(SingleSelectSchema),
    /// Some of some words. Since 2025-11-25.
    MultiSelect(MultiSelectSchema),
}

/// A line of text.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StringSchema {
    /// The name people see.
    pub title: Option<String>,
    /// What to fill in.
    pub description: Option<String>,
    /// How short it may be.
    pub min_length: Option<u64>,
    /// How long it may be.
    pub max_length: Option<u64>,
    /// What it must look like: `email`, `uri`, `date` or `date-time`.
    pub format: Option<StringFormat>,
    /// What it must match. In the prose of 2025-11-25 only; read, and sent to nobody.
    pub pattern: Option<String>,
    /// What is filled in already. Since 2025-11-25.
    pub default: Option<String>,
}

/// What a line of text must look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StringFormat {
    /// A mail address.
    Email,
    /// A URI.
    Uri,
    /// A day.
    Date,
    /// A moment.
    DateTime,
}

/// A number.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NumberSchema {
    /// Whether fractions are allowed.
    pub kind: NumberType,
    /// The name people see.
    pub title: Option<String>,
    /// What to fill in.
    pub description: Option<String>,
    /// How small it may be.
    pub minimum: Option<Number>,
    /// How large it may be.
    pub maximum: Option<Number>,
    /// What is filled in already. Since 2025-11-25.
    pub default: Option<Number>,
}

/// Whether fractions are allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum NumberType {
    /// They are.
    #[default]
    Number,
    /// They are not.
    Integer,
}

/// Yes or no.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BooleanSchema {
    /// The name people see.
    pub title: Option<String>,
    /// What it means.
    pub description: Option<String>,
    /// What is filled in already.
    pub default: Option<bool>,
}

/// One of some words.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SingleSelectSchema {
    /// The name people see.
    pub title: Option<String>,
    /// What to pick.
    pub description: Option<String>,
    /// The words.
    pub choices: Choices,
    /// What is picked already. Since 2025-11-25.
    pub default: Option<String>,
}

/// Some of some words. Since 2025-11-25.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MultiSelectSchema {
    /// The name people see.
    pub title: Option<String>,
    /// What to pick.
    pub description: Option<String>,
    /// How many at least.
    pub min_items: Option<u64>,
    /// How many at most.
    pub max_items: Option<u64>,
    /// The words.
    pub choices: Choices,
    /// What is picked already.
    pub default: Option<Vec<String>>,
}

/// Words to pick from, and how they are written.
#[derive(Debug, Clone, PartialEq)]
pub enum Choices {
    /// The words alone.
    Untitled(Vec<String>),
    /// Each with a title of its own. Since 2025-11-25.
    Titled(Vec<Choice>),
    /// The words, and titles in a second list beside them: `enumNames`, the way of 2025-06-18. Not
    /// for [`MultiSelectSchema`], which writes it as [`Choices::Titled`].
    Named(Vec<String>, Vec<String>),
}

impl Default for Choices {
    fn default() -> Self {
        Self::Untitled(Vec::new())
    }
}

/// A word with a title.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Choice {
    /// The word.
    #[serde(rename = "const")]
    pub value: String,
    /// What people see.
    pub title: String,
}
