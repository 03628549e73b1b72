//! JSON Schemas of Rust types, in the form that clients handle best.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::portable;

/// The schema of a type, for building schemas by hand, in the form that all clients take.
pub fn schema_for<T: JsonSchema>() -> Value {
    portable::output(schema_of::<T>())
}

/// The schema of a type.
///
/// Subschemas are inlined unless they are recursive, since many clients and models do not follow
/// `$ref`. There is no `$schema`, because 2020-12 is the protocol's default, and no title with the
/// name of the Rust type.
pub(crate) fn schema_of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    if let Value::Object(members) = &mut schema {
        members.remove("title");
    }
    schema
}

/// The schema of a type as a tool's arguments, which must be an object. Unless the type says which
/// further members it takes, it takes none.
pub(crate) fn arguments_schema_of<T: JsonSchema>() -> Value {
    let mut schema = schema_of::<T>();
    match &mut schema {
        Value::Object(members) => {
            members.remove("description");
            if is_plain_struct(members) {
                members.insert("additionalProperties".to_owned(), false.into());
            }
            members.entry("type").or_insert_with(|| "object".into());
            schema
        }
        _ => json!({ "type": "object" }),
    }
}

/// Whether `properties` are all that an object can have. An enumeration has more in its branches,
/// and a map says so itself.
fn is_plain_struct(members: &Map<String, Value>) -> bool {
    let more = ["additionalProperties", "patternProperties", "unevaluatedProperties"];
    let branches = ["oneOf", "anyOf", "allOf", "$ref", "if"];
    members.get("type").is_some_and(|kind| kind == "object")
        && !more.iter().chain(&branches).any(|key| members.contains_key(*key))
}

/// Whether an object can only have the members that the schema names.
pub(crate) fn is_closed(schema: &Value) -> bool {
    schema.get("additionalProperties") == Some(&Value::Bool(false))
}

/// The schema of a type as a tool's output. An enumeration whose variants are all objects says that
/// it is one, because older clients take nothing else.
pub(crate) fn output_schema_of<T: JsonSchema>() -> Value {
    let mut schema = schema_of::<T>();
    if let Value::Object(members) = &mut schema
        && !members.contains_key("type")
    {
        let branches = ["oneOf", "anyOf"].iter().find_map(|key| members.get(*key)?.as_array());
        if branches.is_some_and(|branches| branches.iter().all(is_object)) {
            members.insert("type".to_owned(), "object".into());
        }
    }
    schema
}

/// The schema of a tool without arguments.
pub(crate) fn no_arguments() -> Value {
    json!({ "type": "object", "additionalProperties": false })
}

/// One named property of a schema.
pub(crate) struct Property<'a> {
    pub(crate) name: &'a str,
    pub(crate) schema: &'a Value,
    pub(crate) is_required: bool,
}

/// The properties of an object schema, in order.
pub(crate) fn properties(schema: &Value) -> Vec<Property<'_>> {
    let required = schema.get("required").and_then(Value::as_array);
    let is_required =
        |name: &str| required.is_some_and(|names| names.iter().any(|it| it.as_str() == Some(name)));
    let properties = schema.get("properties").and_then(Value::as_object);
    properties
        .into_iter()
        .flatten()
        .map(|(name, schema)| Property { name, schema, is_required: is_required(name) })
        .collect()
}

/// The values that a property is restricted to, if it is an enumeration.
pub(crate) fn words(schema: &Value) -> Vec<String> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        return values.iter().filter_map(text).collect();
    }
    // An enumeration whose variants are documented one by one.
    let branches = ["oneOf", "anyOf"].iter().find_map(|key| schema.get(key)?.as_array());
    let branch_words = |branch: &Value| match branch.get("const") {
        Some(word) => text(word).into_iter().collect(),
        None => words(branch),
    };
    branches.into_iter().flatten().flat_map(branch_words).collect()
}

/// The text of `description`.
pub(crate) fn description(schema: &Value) -> Option<String> {
    schema.get("description").and_then(Value::as_str).map(str::to_owned)
}

/// Whether the schema describes an object.
pub(crate) fn is_object(schema: &Value) -> bool {
    schema.get("type").and_then(Value::as_str) == Some("object")
}
