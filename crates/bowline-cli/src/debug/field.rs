//! What a JSON schema asks of a person: fields with names, kinds and choices. References within the
//! schema are followed, `allOf` is put together, `null` beside something else is remembered.

use bowline_schema::Schema;
use serde_json::{Map, Value};

use super::loose::{self, Typed};
use crate::arguments::typed;
use crate::schema::View;

/// References that are followed from one place: 16.
const MOST_HOPS: usize = 16;

/// One thing to fill in.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Field {
    /// Its name.
    pub(crate) name: String,
    /// What goes into it.
    pub(crate) kind: Kind,
    /// Whether it must be there.
    pub(crate) is_required: bool,
    /// Whether `null` is a value of it.
    pub(crate) can_be_null: bool,
    /// What it is if it is left out.
    pub(crate) default: Option<Value>,
    /// What it is for.
    pub(crate) about: Option<String>,
    /// All that is known of it, references of its own followed.
    pub(crate) schema: Value,
}

/// What goes into a field.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Kind {
    /// Text.
    Text,
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// Yes or no.
    Boolean,
    /// One of these.
    Choice(Vec<Choice>),
    /// Some of these.
    Choices(Vec<Choice>),
    /// Several of one kind.
    List(Box<Self>),
    /// Fields of its own.
    Object,
    /// Something of one of these forms.
    Variants(Vec<Variant>),
    /// Anything.
    Any,
}

/// A value that can be chosen.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Choice {
    /// The value.
    pub(crate) value: Value,
    /// What people call it.
    pub(crate) label: Option<String>,
}

/// One of several forms.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Variant {
    /// What it is called.
    pub(crate) title: String,
    /// What it looks like.
    pub(crate) schema: Value,
}

impl Field {
    /// The field that a schema describes.
    pub(crate) fn new(root: &Value, name: &str, schema: &Value, is_required: bool) -> Self {
        let schema = resolve(root, schema);
        let (kind, can_be_null) = kind(root, &schema);
        Self {
            name: name.to_owned(),
            kind,
            is_required,
            can_be_null,
            default: schema.get("default").cloned(),
            about: text_of(&schema, "description").or_else(|| text_of(&schema, "title")),
            schema,
        }
    }

    /// Reads what a person typed into it.
    pub(crate) fn read(&self, text: &str) -> Result<Value, String> {
        if self.can_be_null && text == "null" {
            return Ok(Value::Null);
        }
        self.kind.read(text).map_err(|problem| format!("{}: {problem}", self.name))
    }

    /// Whether a value fits, in words if not.
    pub(crate) fn check(&self, root: &Value, value: &Value) -> Result<(), String> {
        let mut schema = self.schema.clone();
        for shared in ["$defs", "definitions"] {
            if let (Some(members), Some(definitions)) = (schema.as_object_mut(), root.get(shared)) {
                members.entry(shared).or_insert_with(|| definitions.clone());
            }
        }
        // A schema that cannot be used checks nothing; the server will.
        let Ok(compiled) = Schema::compile(&schema) else { return Ok(()) };
        compiled.validate(&self.name, value).map_err(|invalid| invalid.to_string())
    }
}

/// The fields of an object.
pub(crate) fn fields(root: &Value, schema: &Value) -> Vec<Field> {
    let schema = resolve(root, schema);
    let required = schema.get("required").and_then(Value::as_array);
    let is_required =
        |name: &str| required.is_some_and(|names| names.iter().any(|it| it.as_str() == Some(name)));
    let properties = schema.get("properties").and_then(Value::as_object);
    let fields = properties.into_iter().flatten();
    fields.map(|(name, field)| Field::new(root, name, field, is_required(name))).collect()
}

/// The arguments of a call, each read as its field wants it. What does not fit is sent as it looks:
/// a server should be seen to refuse it.
pub(crate) fn arguments(schema: &Value, given: Vec<(String, Typed)>) -> Value {
    let view = View::new(schema);
    let read = |(name, value): (String, Typed)| {
        let value = match (view.property(&name), &value) {
            (Some(view), Typed::Bare(text)) if !view.kinds().is_any() => {
                typed(text, view).unwrap_or_else(|()| value.into_value())
            }
            _ => value.into_value(),
        };
        (name, value)
    };
    Value::Object(given.into_iter().map(read).collect())
}

impl Kind {
    /// What it is, in a word.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Text => "text".to_owned(),
            Self::Integer => "whole number".to_owned(),
            Self::Number => "number".to_owned(),
            Self::Boolean => "yes or no".to_owned(),
            Self::Choice(_) => "one of".to_owned(),
            Self::Choices(_) => "some of, with commas".to_owned(),
            Self::List(of) => format!("list of {}, with commas", of.name()),
            Self::Object => "object".to_owned(),
            Self::Variants(_) => "one of several forms".to_owned(),
            Self::Any => "anything, as JSON or text".to_owned(),
        }
    }

    /// What can be chosen.
    pub(crate) fn choices(&self) -> &[Choice] {
        match self {
            Self::Choice(choices) | Self::Choices(choices) => choices,
            _ => &[],
        }
    }

    fn read(&self, text: &str) -> Result<Value, String> {
        match self {
            Self::Text => Ok(Value::String(text.to_owned())),
            Self::Integer => match loose::number(text) {
                Some(number) if is_whole(&number) => Ok(Value::Number(number)),
                _ => Err(format!("{text:?} is no whole number")),
            },
            Self::Number => loose::number(text)
                .map(Value::Number)
                .ok_or_else(|| format!("{text:?} is no number")),
            Self::Boolean => match text.to_ascii_lowercase().as_str() {
                "true" | "yes" | "y" => Ok(Value::Bool(true)),
                "false" | "no" | "n" => Ok(Value::Bool(false)),
                _ => Err(format!("{text:?} is neither yes nor no")),
            },
            Self::Choice(choices) => choose(choices, text),
            Self::Choices(choices) => list(text, |part| choose(choices, part)),
            Self::List(of) => list(text, |part| of.read(part)),
            Self::Object => match loose::parse_value(text) {
                Ok(value @ Value::Object(_)) => Ok(value),
                Ok(_) => Err(format!("{text:?} is no object")),
                Err(error) => Err(error.to_string()),
            },
            Self::Variants(_) | Self::Any => {
                let starts = text.starts_with(['{', '[', '"']);
                match starts {
                    true => loose::parse_value(text).map_err(|error| error.to_string()),
                    false => Ok(Typed::Bare(text.to_owned()).into_value()),
                }
            }
        }
    }
}

fn is_whole(number: &serde_json::Number) -> bool {
    !number.is_f64() || number.as_f64().is_some_and(|number| number.fract() == 0.0)
}

/// A JSON array, or parts between commas.
fn list(text: &str, read: impl Fn(&str) -> Result<Value, String>) -> Result<Value, String> {
    if text.starts_with('[') {
        return loose::parse_value(text).map_err(|error| error.to_string());
    }
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    parts.map(read).collect::<Result<Vec<_>, _>>().map(Value::Array)
}

/// A choice by its value, its label, or its number from 1 on.
fn choose(choices: &[Choice], text: &str) -> Result<Value, String> {
    let by_value = choices.iter().find(|choice| plain(&choice.value) == text);
    let by_label = || choices.iter().find(|choice| choice.label.as_deref() == Some(text));
    let by_number = || {
        let number: usize = text.parse().ok()?;
        choices.get(number.checked_sub(1)?)
    };
    let found = by_value.or_else(by_label).or_else(by_number);
    found.map(|choice| choice.value.clone()).ok_or_else(|| {
        let all: Vec<String> = choices.iter().map(|choice| plain(&choice.value)).collect();
        format!("{text:?} is none of {}", all.join(", "))
    })
}

/// A value without the quotes of a string.
pub(crate) fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// What a schema wants, and whether `null` will do as well.
fn kind(root: &Value, schema: &Value) -> (Kind, bool) {
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        let has_null = values.contains(&Value::Null);
        let values = values.iter().filter(|value| !value.is_null());
        let choices = values.map(|value| Choice { value: value.clone(), label: None });
        return (Kind::Choice(labelled(schema, choices.collect())), has_null);
    }
    if let Some(value) = schema.get("const") {
        let choice = Choice { value: value.clone(), label: text_of(schema, "title") };
        return (Kind::Choice(vec![choice]), value.is_null());
    }
    for several in ["oneOf", "anyOf"] {
        if let Some(forms) = schema.get(several).and_then(Value::as_array) {
            return variants(root, schema, forms);
        }
    }
    let names: Vec<&str> = match schema.get("type") {
        Some(Value::String(name)) => vec![name],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let has_null = names.contains(&"null");
    let mut others = names.into_iter().filter(|name| *name != "null");
    let kind = match (others.next(), others.next()) {
        (Some("string"), None) => Kind::Text,
        (Some("integer"), None) => Kind::Integer,
        (Some("number"), None) => Kind::Number,
        (Some("boolean"), None) => Kind::Boolean,
        (Some("array"), None) => list_kind(root, schema),
        (Some("object"), None) => Kind::Object,
        (None, _) if schema.get("properties").is_some() => Kind::Object,
        _ => Kind::Any,
    };
    (kind, has_null)
}

/// Names for choices, as elicitation had them before 2025-11-25.
fn labelled(schema: &Value, mut choices: Vec<Choice>) -> Vec<Choice> {
    let labels = schema.get("enumNames").and_then(Value::as_array);
    for (choice, label) in choices.iter_mut().zip(labels.into_iter().flatten()) {
        choice.label = label.as_str().map(str::to_owned);
    }
    choices
}

fn list_kind(root: &Value, schema: &Value) -> Kind {
    let items = schema.get("items").map(|items| resolve(root, items));
    match items.as_ref().map(|items| kind(root, items).0) {
        Some(Kind::Choice(choices)) => Kind::Choices(choices),
        Some(of @ (Kind::Text | Kind::Integer | Kind::Number | Kind::Boolean)) => {
            Kind::List(Box::new(of))
        }
        _ => Kind::Any,
    }
}

/// Several forms: constants are a choice, one form beside `null` is that form.
fn variants(root: &Value, schema: &Value, forms: &[Value]) -> (Kind, bool) {
    let forms: Vec<Value> = forms.iter().map(|form| resolve(root, form)).collect();
    let is_null = |form: &Value| form.get("type").and_then(Value::as_str) == Some("null");
    let has_null = forms.iter().any(is_null);
    let forms: Vec<Value> = forms.into_iter().filter(|form| !is_null(form)).collect();
    if let [only] = forms.as_slice() {
        return (kind(root, &merged(without_forms(schema), only)).0, has_null);
    }
    let constants: Option<Vec<Choice>> = forms.iter().map(constant).collect();
    if let Some(choices) = constants.filter(|choices| !choices.is_empty()) {
        return (Kind::Choice(choices), has_null);
    }
    let base = without_forms(schema);
    let variants = forms.iter().enumerate().map(|(index, form)| {
        let schema = merged(base.clone(), form);
        Variant { title: title(root, &schema, index), schema }
    });
    (Kind::Variants(variants.collect()), has_null)
}

fn constant(form: &Value) -> Option<Choice> {
    let value = match (form.get("const"), form.get("enum").and_then(Value::as_array)) {
        (Some(value), _) => value.clone(),
        (None, Some(values)) if values.len() == 1 => values[0].clone(),
        _ => return None,
    };
    let label = text_of(form, "title").or_else(|| text_of(form, "description"));
    Some(Choice { value, label })
}

fn title(root: &Value, schema: &Value, index: usize) -> String {
    if let Some(title) = text_of(schema, "title").or_else(|| text_of(schema, "description")) {
        return title;
    }
    match kind(root, schema).0 {
        Kind::Object => {
            let names: Vec<String> =
                fields(root, schema).into_iter().map(|field| field.name).collect();
            format!("object with {}", names.join(", "))
        }
        Kind::Any => format!("form {}", index + 1),
        other => other.name(),
    }
}

fn without_forms(schema: &Value) -> Value {
    let mut schema = schema.clone();
    if let Some(members) = schema.as_object_mut() {
        for several in ["oneOf", "anyOf", "default"] {
            members.remove(several);
        }
    }
    schema
}

/// A schema with its references followed and its `allOf` put together.
pub(crate) fn resolve(root: &Value, schema: &Value) -> Value {
    resolve_within(root, schema, MOST_HOPS)
}

fn resolve_within(root: &Value, schema: &Value, hops: usize) -> Value {
    let Some(members) = schema.as_object() else { return schema.clone() };
    let Some(hops) = hops.checked_sub(1) else { return Value::Object(Map::new()) };
    let mut found = members.clone();
    let mut parts = Vec::new();
    if let Some(Value::String(reference)) = found.remove("$ref") {
        let target = reference.strip_prefix('#').and_then(|pointer| root.pointer(pointer));
        parts.extend(target.cloned());
    }
    if let Some(Value::Array(all)) = found.remove("allOf") {
        parts.extend(all);
    }
    let mut whole = Value::Object(found);
    for part in parts {
        whole = merged(whole, &resolve_within(root, &part, hops));
    }
    whole
}

/// Two schemas that both hold. Where they say the same member, the first one stands.
fn merged(mut first: Value, second: &Value) -> Value {
    let (Some(into), Some(from)) = (first.as_object_mut(), second.as_object()) else {
        return first;
    };
    for (name, value) in from {
        match (into.get_mut(name), value) {
            (Some(Value::Object(known)), Value::Object(more)) if name == "properties" => {
                for (name, field) in more {
                    known.entry(name.clone()).or_insert_with(|| field.clone());
                }
            }
            (Some(Value::Array(known)), Value::Array(more)) if name == "required" => {
                known.extend(more.iter().cloned());
            }
            (Some(_), _) => {}
            (None, _) => {
                into.insert(name.clone(), value.clone());
            }
        }
    }
    first
}

fn text_of(schema: &Value, member: &str) -> Option<String> {
    schema.get(member).and_then(Value::as_str).map(str::to_owned)
}

#[cfg(test)]
#[path = "field/tests.rs"]
mod tests;
