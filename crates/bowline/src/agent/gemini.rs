//! Google's Gemini, whose schemas are a part of `OpenAPI`'s.

use bowline_proto::json::{Extra, Json};
use bowline_proto::model::{CallToolResult, Tool};
use serde_json::{Value, json};

use super::result::Shown;
use super::schema::{Dangling, alternatives, inline, merge_all, plain_root, types};
use super::{Called, FunctionCall, description, list, string};

pub(super) fn definition(name: &str, tool: &Tool, schema: &Value) -> Value {
    let mut definition = json!({ "name": name, "description": description(tool) });
    let inlined = inline(schema, Dangling::Cut).unwrap_or_default();
    let parameters = openapi(&plain_root(&inlined));
    // An object without properties is not accepted.
    if parameters["properties"].as_object().is_some_and(|properties| !properties.is_empty()) {
        definition["parameters"] = parameters;
    }
    definition
}

/// Keywords that mean the same.
const KEPT: [&str; 12] = [
    "title",
    "description",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "minLength",
    "maxLength",
    "pattern",
    "minimum",
    "maximum",
    "required",
];

const FORMATS: [&str; 5] = ["date-time", "int32", "int64", "float", "double"];

/// A schema without references, in the dialect of Gemini.
fn openapi(schema: &Value) -> Value {
    let Value::Object(schema) = schema else { return json!({ "type": "string" }) };
    let schema = merge_all(schema.clone());
    let mut written: Extra = KEPT
        .iter()
        .filter_map(|key| Some(((*key).to_owned(), schema.get(*key)?.clone())))
        .collect();
    let mut kinds = types(&schema);
    let mut is_nullable = kinds.contains(&"null");
    kinds.retain(|kind| *kind != "null");
    let is_known = |format: &&Value| FORMATS.contains(&format.as_str().unwrap_or_default());
    if let Some(format) = schema.get("format").filter(is_known) {
        written.insert("format".to_owned(), format.clone());
    }
    if let Some(values) = words(&schema, &mut is_nullable) {
        written.remove("minimum");
        written.remove("maximum");
        written.insert("type".to_owned(), "string".into());
        written.insert("enum".to_owned(), values);
    } else if let Some(branches) = alternatives(&schema) {
        choose(&mut written, branches.iter().map(openapi).collect(), &mut is_nullable);
    } else if let [kind] = kinds[..] {
        written.extend(typed(&schema, kind));
    } else if kinds.is_empty() {
        let kind = if schema.contains_key("properties") { "object" } else { "string" };
        written.extend(typed(&schema, if is_nullable { "null" } else { kind }));
    } else {
        let each = kinds.iter().map(|kind| Value::Object(typed(&schema, kind)));
        written.insert("anyOf".to_owned(), each.collect());
    }
    keep_required(&mut written);
    if is_nullable {
        written.insert("nullable".to_owned(), true.into());
    }
    Value::Object(written)
}

/// What a schema says about values of one type.
fn typed(schema: &Extra, kind: &str) -> Extra {
    let mut typed = Extra::new();
    typed.insert("type".to_owned(), kind.into());
    if kind == "object"
        && let Some(Value::Object(properties)) = schema.get("properties")
    {
        let properties = properties.iter().map(|(name, it)| (name.clone(), openapi(it))).collect();
        typed.insert("properties".to_owned(), Value::Object(properties));
    }
    if kind == "array" {
        let items = schema.get("items").map_or_else(|| json!({ "type": "string" }), openapi);
        typed.insert("items".to_owned(), items);
    }
    typed
}

/// The values of an enumeration, all as text.
fn words(schema: &Extra, is_nullable: &mut bool) -> Option<Value> {
    let values = match schema.get("const") {
        Some(only) => std::slice::from_ref(only),
        None => schema.get("enum")?.as_array()?,
    };
    *is_nullable |= values.contains(&Value::Null);
    let values = values.iter().filter(|value| !value.is_null());
    let word = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    Some(values.map(word).collect())
}

/// Writes alternatives: `null` is a flag, enumerations are joined, and a single one stands alone.
fn choose(written: &mut Extra, branches: Vec<Value>, is_nullable: &mut bool) {
    let is_null = |branch: &Value| branch["type"] == "null";
    let had = branches.len();
    let mut branches: Vec<_> = branches.into_iter().filter(|branch| !is_null(branch)).collect();
    *is_nullable |= branches.len() < had;
    let all_words = !branches.is_empty() && branches.iter().all(|it| it.get("enum").is_some());
    if all_words {
        let words = branches.iter_mut().filter_map(|branch| match branch["enum"].take() {
            Value::Array(words) => Some(words),
            _ => None,
        });
        let words: Vec<Value> = words.flatten().collect();
        written.insert("type".to_owned(), "string".into());
        written.insert("enum".to_owned(), Value::Array(words));
    } else if let [Value::Object(only)] = branches.as_mut_slice() {
        for (key, value) in std::mem::take(only) {
            written.entry(key).or_insert(value);
        }
    } else {
        written.insert("anyOf".to_owned(), Value::Array(branches));
    }
}

/// Only properties that exist may be required.
fn keep_required(written: &mut Extra) {
    let Some(Value::Array(mut required)) = written.remove("required") else { return };
    let Some(properties) = written.get("properties").and_then(Value::as_object) else { return };
    required.retain(|name| name.as_str().is_some_and(|name| properties.contains_key(name)));
    if !required.is_empty() {
        written.insert("required".to_owned(), Value::Array(required));
    }
}

pub(super) fn calls(message: &Value) -> Vec<Called> {
    let calls = list(message, "parts").filter_map(|part| part.get("functionCall"));
    let called = calls.map(|call| Called {
        id: string(call, "id"),
        function: string(call, "name").unwrap_or_default(),
        arguments: Ok(call.get("args").cloned().unwrap_or_default()),
    });
    called.collect()
}

/// One message of the user with all results; images stand beside them.
pub(super) fn results(results: &[(FunctionCall, CallToolResult)]) -> Vec<Value> {
    let mut parts = Vec::new();
    for (call, result) in results {
        let shown = Shown::of(result);
        let data = result.structured_content.as_ref().filter(|_| !shown.is_error);
        let output = data.map_or_else(|| Value::String(shown.text), Json::to_value);
        let key = if shown.is_error { "error" } else { "output" };
        let mut response = json!({ "name": call.function, "response": { key: output } });
        if let Some(id) = &call.id {
            response["id"] = id.as_str().into();
        }
        parts.push(json!({ "functionResponse": response }));
        parts.extend(shown.images.iter().map(
            |image| json!({ "inlineData": { "mimeType": image.mime_type, "data": image.data } }),
        ));
    }
    if parts.is_empty() { Vec::new() } else { vec![json!({ "role": "user", "parts": parts })] }
}
