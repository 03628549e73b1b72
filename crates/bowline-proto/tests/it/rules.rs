//! The official schemas, as published and closed.
//!
//! The published schemas leave nearly every object open. The closed form rejects members that the
//! revision does not define, which proves that nothing is sent to a peer that does not know it.

use std::cell::RefCell;
use std::collections::HashMap;

use bowline_proto::revision::Revision;
use jsonschema::{Draft, Validator};
use serde_json::{Map, Value, json};

use crate::shared;

/// The schemas of one revision.
pub(crate) struct Rules {
    revision: Revision,
    published: Value,
    closed: Value,
    validators: RefCell<HashMap<(bool, String), Validator>>,
}

impl Rules {
    /// The schemas of a revision, if the official texts are available.
    pub(crate) fn load(revision: Revision) -> Option<Self> {
        let mut published = shared::json(&format!("spec/schema/{revision}/schema.json"))?;
        amend(&mut published);
        let mut closed = published.clone();
        let all = definitions(&published).clone();
        for (name, definition) in definitions_mut(&mut closed) {
            close_definition(name, definition, &all, revision);
        }
        Some(Self { revision, published, closed, validators: RefCell::default() })
    }

    /// Checks a value against a definition, both as published and closed.
    pub(crate) fn check(&self, definition: &str, value: &Value) -> Result<(), String> {
        self.check_published(definition, value)?;
        self.check_in(true, definition, value)
    }

    /// Checks a value against a definition as published.
    pub(crate) fn check_published(&self, definition: &str, value: &Value) -> Result<(), String> {
        self.check_in(false, definition, value)
    }

    fn check_in(&self, closed: bool, definition: &str, value: &Value) -> Result<(), String> {
        let mut validators = self.validators.borrow_mut();
        let key = (closed, definition.to_owned());
        let validator = validators.entry(key).or_insert_with(|| self.compile(closed, definition));
        let wrong = |error: jsonschema::ValidationError<'_>| {
            format!("{}: {error} at {}", self.revision, error.instance_path())
        };
        let form = if closed { "closed " } else { "" };
        let errors: Vec<_> = validator.iter_errors(value).map(wrong).collect();
        if errors.is_empty() {
            return Ok(());
        }
        Err(format!("not a {form}{definition}: {}\n{value}", errors.join("; ")))
    }

    fn compile(&self, closed: bool, definition: &str) -> Validator {
        let mut schema = if closed { self.closed.clone() } else { self.published.clone() };
        let key = key_of(&schema);
        assert!(schema[key].get(definition).is_some(), "{}: no {definition}", self.revision);
        schema["$ref"] = format!("#/{key}/{definition}").into();
        let draft = if key == "$defs" { Draft::Draft202012 } else { Draft::Draft7 };
        let options = jsonschema::options().with_draft(draft).should_validate_formats(true);
        options.build(&schema).unwrap()
    }
}

fn key_of(schema: &Value) -> &'static str {
    if schema.get("$defs").is_some() { "$defs" } else { "definitions" }
}

fn definitions(schema: &Value) -> &Map<String, Value> {
    schema[key_of(schema)].as_object().unwrap()
}

fn definitions_mut(schema: &mut Value) -> &mut Map<String, Value> {
    let key = key_of(schema);
    schema[key].as_object_mut().unwrap()
}

/// Corrects errors of the published files, which were generated from `schema.ts`.
fn amend(schema: &mut Value) {
    match schema {
        Value::Object(members) => members.values_mut().for_each(amend),
        Value::Array(items) => items.iter_mut().for_each(amend),
        _ => {}
    }
    // `number` became `integer` in unions: for the values of a form, and for any JSON in
    // 2026-07-28, which lost `null` as well.
    if schema["type"] == json!(["string", "integer", "boolean"]) {
        schema["type"] = json!(["string", "number", "boolean", "null"]);
    }
}

fn close_definition(
    name: &str,
    definition: &mut Value,
    all: &Map<String, Value>,
    revision: Revision,
) {
    match (name, revision) {
        // It contains the result of any request.
        ("GetTaskPayloadResult", _) => return,
        // Extensions are declared there in practice, although the revision does not define the
        // member.
        ("ClientCapabilities" | "ServerCapabilities", Revision::V2025_11_25) => {
            definition["properties"]["extensions"] = json!({ "type": "object" });
        }
        // A member of the tasks extension.
        ("SubscriptionFilter", _) => {
            definition["properties"]["taskIds"] = json!({ "type": "array" });
        }
        _ => merge_all_of(definition, all),
    }
    close(definition);
}

/// Merges an intersection into one object, so that it can be closed as a whole.
fn merge_all_of(definition: &mut Value, all: &Map<String, Value>) {
    let Some(parts) = definition["allOf"].as_array() else { return };
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for part in parts {
        let name = part["$ref"].as_str().and_then(|path| path.rsplit('/').next()).unwrap();
        properties.extend(all[name]["properties"].as_object().unwrap().clone());
        required.extend(all[name]["required"].as_array().cloned().unwrap_or_default());
    }
    *definition = json!({ "type": "object", "properties": properties, "required": required });
}

/// Closes every object that has properties. Open maps (`"additionalProperties": true`) stay open;
/// `{}` beside properties only marks the open base type of requests and results.
fn close(schema: &mut Value) {
    for word in ["items", "additionalProperties"] {
        if let Some(inner) = schema.get_mut(word).filter(|inner| inner.is_object()) {
            close(inner);
        }
    }
    for word in ["anyOf", "oneOf", "allOf"] {
        if let Some(Value::Array(parts)) = schema.get_mut(word) {
            parts.iter_mut().for_each(close);
        }
    }
    let open = schema.get("additionalProperties").is_some_and(|more| *more != json!({}));
    let Some(Value::Object(properties)) = schema.get_mut("properties") else { return };
    for (name, property) in &mut *properties {
        close_property(name, property);
    }
    if !open {
        schema["additionalProperties"] = false.into();
    }
}

fn close_property(name: &str, property: &mut Value) {
    match name {
        // Belongs to the sender, whatever the revision reserves in it.
        "_meta" => *property = json!({ "type": "object" }),
        // JSON Schemas: the types of the protocol never define all keywords.
        "inputSchema" | "outputSchema" => {}
        // All requests and notifications may carry it (basic/index). Until 2025-06-18 only the base
        // types declare it; in 2025-11-25 it is missing from the requests about tasks.
        "params" if property.get("properties").is_some() => {
            property["properties"]["_meta"] = json!({ "type": "object" });
            close(property);
        }
        _ => close(property),
    }
}
