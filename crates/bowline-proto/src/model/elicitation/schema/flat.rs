//! The fields of a form as they are written: distinguished by `type` and by the members that are
//! present.

use serde::{Deserialize, Serialize};
use serde_json::Number;

use super::{
    BooleanSchema, Choice, Choices, MultiSelectSchema, NumberSchema, NumberType, PrimitiveSchema,
    SingleSelectSchema, StringFormat, StringSchema,
};

/// A field as it is written, with every member that any kind of field can have.
#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct FlatSchema {
    #[serde(rename = "type")]
    kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    min_length: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_length: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<StringFormat>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pattern: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    minimum: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    maximum: Option<Number>,
    #[serde(rename = "enum", skip_serializing_if = "Option::is_none")]
    values: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    enum_names: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    one_of: Option<Vec<Choice>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    min_items: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_items: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    items: Option<FlatItems>,
    #[serde(skip_serializing_if = "Option::is_none")]
    default: Option<serde_json::Value>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct FlatItems {
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    #[serde(rename = "enum", skip_serializing_if = "Option::is_none")]
    values: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    any_of: Option<Vec<Choice>>,
}

impl FlatSchema {
    fn take_default<T: serde::de::DeserializeOwned>(&mut self) -> Result<Option<T>, String> {
        let Some(value) = self.default.take() else {
            return Ok(None);
        };
        serde_json::from_value(value).map(Some).map_err(|error| format!("default: {error}"))
    }
}

impl TryFrom<FlatSchema> for PrimitiveSchema {
    type Error = String;

    fn try_from(mut flat: FlatSchema) -> Result<Self, String> {
        match flat.kind.as_str() {
            "string" if flat.values.is_some() || flat.one_of.is_some() => {
                single_select(flat).map(Self::SingleSelect)
            }
            "string" => Ok(Self::String(StringSchema {
                default: flat.take_default()?,
                title: flat.title,
                description: flat.description,
                min_length: flat.min_length,
                max_length: flat.max_length,
                format: flat.format,
                pattern: flat.pattern,
            })),
            "number" => number(flat, NumberType::Number).map(Self::Number),
            "integer" => number(flat, NumberType::Integer).map(Self::Number),
            "boolean" => Ok(Self::Boolean(BooleanSchema {
                default: flat.take_default()?,
                title: flat.title,
                description: flat.description,
            })),
            "array" => multi_select(flat).map(Self::MultiSelect),
            "" => Err("type is missing".to_owned()),
            kind => Err(format!("type {kind:?} is not allowed in a form")),
        }
    }
}

fn number(mut flat: FlatSchema, kind: NumberType) -> Result<NumberSchema, String> {
    Ok(NumberSchema {
        default: flat.take_default()?,
        kind,
        title: flat.title,
        description: flat.description,
        minimum: flat.minimum,
        maximum: flat.maximum,
    })
}

fn single_select(mut flat: FlatSchema) -> Result<SingleSelectSchema, String> {
    let default = flat.take_default()?;
    let choices = match (flat.values, flat.enum_names, flat.one_of) {
        (Some(values), None, None) => Choices::Untitled(values),
        (Some(values), Some(names), None) => Choices::Named(values, names),
        (None, None, Some(choices)) => Choices::Titled(choices),
        _ => return Err("choices must be either enum or oneOf".to_owned()),
    };
    Ok(SingleSelectSchema { title: flat.title, description: flat.description, choices, default })
}

fn multi_select(mut flat: FlatSchema) -> Result<MultiSelectSchema, String> {
    let default = flat.take_default()?;
    let items = flat.items.take().unwrap_or_default();
    let choices = match (items.values, items.any_of) {
        (Some(values), None) => Choices::Untitled(values),
        (None, Some(choices)) => Choices::Titled(choices),
        _ => return Err("items must have either enum or anyOf".to_owned()),
    };
    Ok(MultiSelectSchema {
        title: flat.title,
        description: flat.description,
        min_items: flat.min_items,
        max_items: flat.max_items,
        choices,
        default,
    })
}

impl From<PrimitiveSchema> for FlatSchema {
    fn from(schema: PrimitiveSchema) -> Self {
        match schema {
            PrimitiveSchema::String(it) => Self {
                kind: "string".to_owned(),
                title: it.title,
                description: it.description,
                min_length: it.min_length,
                max_length: it.max_length,
                format: it.format,
                pattern: it.pattern,
                default: it.default.map(Into::into),
                ..Self::default()
            },
            PrimitiveSchema::Number(it) => Self {
                kind: match it.kind {
                    NumberType::Number => "number".to_owned(),
                    NumberType::Integer => "integer".to_owned(),
                },
                title: it.title,
                description: it.description,
                minimum: it.minimum,
                maximum: it.maximum,
                default: it.default.map(Into::into),
                ..Self::default()
            },
            PrimitiveSchema::Boolean(it) => Self {
                kind: "boolean".to_owned(),
                title: it.title,
                description: it.description,
                default: it.default.map(Into::into),
                ..Self::default()
            },
            PrimitiveSchema::SingleSelect(it) => it.into(),
            PrimitiveSchema::MultiSelect(it) => it.into(),
        }
    }
}

impl From<SingleSelectSchema> for FlatSchema {
    fn from(schema: SingleSelectSchema) -> Self {
        let (values, enum_names, one_of) = match schema.choices {
            Choices::Untitled(values) => (Some(values), None, None),
            Choices::Titled(choices) => (None, None, Some(choices)),
            Choices::Named(values, names) => (Some(values), Some(names), None),
        };
        Self {
            kind: "string".to_owned(),
            title: schema.title,
            description: schema.description,
            values,
            enum_names,
            one_of,
            default: schema.default.map(Into::into),
            ..Self::default()
        }
    }
}

impl From<MultiSelectSchema> for FlatSchema {
    fn from(schema: MultiSelectSchema) -> Self {
        let items = match schema.choices {
            Choices::Untitled(values) => {
                FlatItems { kind: Some("string".to_owned()), values: Some(values), any_of: None }
            }
            Choices::Titled(choices) => FlatItems { any_of: Some(choices), ..FlatItems::default() },
            Choices::Named(values, names) => {
                FlatItems { any_of: Some(titled(values, names)), ..FlatItems::default() }
            }
        };
        Self {
            kind: "array".to_owned(),
            title: schema.title,
            description: schema.description,
            min_items: schema.min_items,
            max_items: schema.max_items,
            items: Some(items),
            default: schema.default.map(Into::into),
            ..Self::default()
        }
    }
}

/// Merges two lists. A value without a title is its own title.
fn titled(values: Vec<String>, names: Vec<String>) -> Vec<Choice> {
    let mut names = names.into_iter();
    let choice =
        |value: String| Choice { title: names.next().unwrap_or_else(|| value.clone()), value };
    values.into_iter().map(choice).collect()
}
