//! `OpenAI`'s chat completions.

use bowline_proto::json::Extra;
use bowline_proto::model::{CallToolResult, Tool};
use serde_json::{Value, json};

use super::result::Shown;
use super::schema::{Dangling, alternatives, inline, is_required, merge_all, plain_root, types};
use super::{Called, FunctionCall, description, list, string};

pub(super) fn definition(name: &str, tool: &Tool, schema: &Value) -> Value {
    let parameters = plain_root(schema);
    let function =
        json!({ "name": name, "description": description(tool), "parameters": parameters });
    json!({ "type": "function", "function": function })
}

pub(super) fn strict_definition(name: &str, tool: &Tool, schema: Value) -> Value {
    let mut definition = definition(name, tool, &schema);
    definition["function"]["parameters"] = schema;
    definition["function"]["strict"] = true.into();
    definition
}

/// The schema as strict mode demands it. `None` if it cannot be expressed.
pub(super) fn strict(schema: &Value) -> Option<Value> {
    let Value::Object(root) = inline(schema, Dangling::Refuse)? else { return None };
    let mut root = merge_all(root);
    if alternatives(&root).is_some() {
        return None;
    }
    // Without arguments there is nothing to leave open.
    root.entry("properties").or_insert_with(|| Value::Object(Extra::new()));
    root.insert("type".to_owned(), "object".into());
    strict_object(&root).map(Value::Object)
}

/// Keywords that strict mode understands beside those that are rewritten.
const KEPT: [&str; 10] = [
    "description",
    "enum",
    "pattern",
    "multipleOf",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "minItems",
    "maxItems",
];

const FORMATS: [&str; 9] =
    ["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"];

fn strict_value(schema: &Value) -> Option<Value> {
    let schema = merge_all(schema.as_object()?.clone());
    let mut kept: Extra = KEPT
        .iter()
        .filter_map(|key| Some(((*key).to_owned(), schema.get(*key)?.clone())))
        .collect();
    if let Some(format) = schema.get("format").and_then(Value::as_str)
        && FORMATS.contains(&format)
    {
        kept.insert("format".to_owned(), format.into());
    }
    if let Some(value) = schema.get("const") {
        kept.insert("enum".to_owned(), Value::Array(vec![value.clone()]));
    }
    if let Some(alternatives) = alternatives(&schema) {
        let strict: Option<Vec<_>> = alternatives.iter().map(strict_value).collect();
        kept.insert("anyOf".to_owned(), Value::Array(strict?));
        return Some(Value::Object(kept));
    }
    let types = types(&schema);
    if types.contains(&"object") {
        kept.extend(strict_object(&schema)?);
    }
    if types.contains(&"array") {
        kept.insert("items".to_owned(), strict_value(schema.get("items")?)?);
    }
    match schema.get("type") {
        Some(kind) => drop(kept.insert("type".to_owned(), kind.clone())),
        // A schema that allows anything is not strict.
        None if !kept.contains_key("enum") => return None,
        None => {}
    }
    Some(Value::Object(kept))
}

/// Closes an object. `None` if its keys are arbitrary.
fn strict_object(schema: &Extra) -> Option<Extra> {
    let properties = schema.get("properties")?.as_object()?;
    let is_open =
        schema.get("additionalProperties").is_some_and(|more| *more != Value::Bool(false));
    if is_open || schema.contains_key("patternProperties") {
        return None;
    }
    let mut closed = Extra::new();
    for (name, property) in properties {
        let property = strict_value(property)?;
        let is_needed = is_required(schema, name);
        closed.insert(name.clone(), if is_needed { property } else { nullable(property) });
    }
    let required = closed.keys().cloned().map(Value::String).collect();
    let mut object = Extra::new();
    object.insert("type".to_owned(), "object".into());
    if let Some(description) = schema.get("description") {
        object.insert("description".to_owned(), description.clone());
    }
    object.insert("properties".to_owned(), Value::Object(closed));
    object.insert("required".to_owned(), Value::Array(required));
    object.insert("additionalProperties".to_owned(), Value::Bool(false));
    Some(object)
}

/// The same, or null.
fn nullable(mut schema: Value) -> Value {
    let null = json!({ "type": "null" });
    if let Some(Value::Array(alternatives)) = schema.get_mut("anyOf") {
        if !alternatives.contains(&null) {
            alternatives.push(null);
        }
        return schema;
    }
    if let Some(Value::Array(values)) = schema.get_mut("enum")
        && !values.contains(&Value::Null)
    {
        values.push(Value::Null);
    }
    match schema.get_mut("type") {
        Some(Value::Array(types)) if !types.contains(&"null".into()) => types.push("null".into()),
        Some(kind @ Value::String(_)) if kind != "null" => *kind = json!([kind.take(), "null"]),
        _ => {}
    }
    schema
}

pub(super) fn calls(message: &Value) -> Vec<Called> {
    let called = list(message, "tool_calls").map(|call| {
        let function = call.get("function").unwrap_or(&Value::Null);
        let text = string(function, "arguments").unwrap_or_default();
        // Models leave it empty where a function has no arguments.
        let text = if text.trim().is_empty() { "{}" } else { &text };
        Called {
            id: string(call, "id"),
            function: string(function, "name").unwrap_or_default(),
            arguments: serde_json::from_str(text).map_err(|error| error.to_string()),
        }
    });
    called.collect()
}

/// One message for each result, which takes only text; then the images, as the user's.
pub(super) fn results(results: &[(FunctionCall, CallToolResult)]) -> Vec<Value> {
    let mut messages = Vec::new();
    let mut images = Vec::new();
    for (call, result) in results {
        let shown = Shown::of(result);
        let content = if shown.is_error { format!("Error: {}", shown.text) } else { shown.text };
        messages.push(json!({ "role": "tool", "tool_call_id": call.id, "content": content }));
        if !shown.images.is_empty() {
            let text = format!("Images that {} returned:", call.function);
            images.push(json!({ "type": "text", "text": text }));
        }
        images.extend(shown.images.iter().map(|image| {
            let url = format!("data:{};base64,{}", image.mime_type, image.data);
            json!({ "type": "image_url", "image_url": { "url": url } })
        }));
    }
    if !images.is_empty() {
        messages.push(json!({ "role": "user", "content": images }));
    }
    messages
}
