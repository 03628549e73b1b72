//! Schemas of Rust types as every client takes them.
//!
//! What agent frameworks and model providers trip over is said in another way, as
//! `cargo xtask frameworks` checks with nine of them. Only what is listed is rewritten. Values are
//! validated against the schema as it was generated, which accepts all that this one does, and null
//! for what is optional.

use schemars::Schema;
use schemars::transform::{RecursiveTransform, Transform};
use serde_json::{Map, Value, json};

type Members = Map<String, Value>;

/// A schema of arguments: what is optional is left out, so it need not be null as well.
pub(crate) fn arguments(schema: Value) -> Value {
    let mut schema = rewritten(schema, |members| {
        optional_without_null(members);
        null_apart(members);
        plain(members);
    });
    ensure_properties(&mut schema);
    schema
}

/// A schema of what a tool returns, where null is null.
pub(crate) fn output(schema: Value) -> Value {
    rewritten(schema, plain)
}

/// Adds `properties` where there are none, which some clients require.
pub(crate) fn ensure_properties(schema: &mut Value) {
    if let Value::Object(members) = schema {
        members.entry("properties").or_insert_with(|| Value::Object(Members::new()));
    }
}

/// Rewrites a schema, and then all schemas within it.
fn rewritten(schema: Value, rewrite: fn(&mut Members)) -> Value {
    let Ok(mut schema) = Schema::try_from(schema) else { return Value::Bool(true) };
    let rewrite = |schema: &mut Schema| schema.as_object_mut().into_iter().for_each(rewrite);
    RecursiveTransform(rewrite).transform(&mut schema);
    schema.to_value()
}

fn plain(members: &mut Members) {
    let properties = members.get_mut("properties").and_then(Value::as_object_mut);
    properties.into_iter().flatten().for_each(|(_, property)| unrestricted(property));
    members.get_mut("items").into_iter().for_each(unrestricted);
    if !members.get("format").and_then(Value::as_str).is_none_or(|it| FORMATS.contains(&it)) {
        members.remove("format");
    }
    join_words(members);
    // Fewer clients know the strict words than the lax ones, and for types they mean the same: no
    // value belongs to two variants, and a tag is a choice of one word.
    if !members.contains_key("anyOf")
        && let Some(variants) = members.remove("oneOf")
    {
        members.insert("anyOf".to_owned(), variants);
    }
    if let Some(word @ Value::String(_)) = members.get_mut("const").map(Value::take) {
        members.remove("const");
        members.insert("enum".to_owned(), Value::Array(vec![word]));
    }
}

/// Spells a schema that allows anything as an object, because few clients expect `true`.
fn unrestricted(schema: &mut Value) {
    if *schema == Value::Bool(true) {
        *schema = Value::Object(Members::new());
    }
}

/// The formats that JSON Schema 2020-12 defines. Others, such as `uint8`, are names of Rust types.
const FORMATS: [&str; 19] = [
    "date-time",
    "date",
    "time",
    "duration",
    "email",
    "idn-email",
    "hostname",
    "idn-hostname",
    "ipv4",
    "ipv6",
    "uri",
    "uri-reference",
    "iri",
    "iri-reference",
    "uuid",
    "uri-template",
    "json-pointer",
    "relative-json-pointer",
    "regex",
];

/// Takes null from the properties that need not be there.
fn optional_without_null(members: &mut Members) {
    let required = members.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    let properties = members.get_mut("properties").and_then(Value::as_object_mut);
    for (name, property) in properties.into_iter().flatten() {
        if !required.iter().any(|it| it == name) {
            without_null(property);
        }
    }
}

/// Makes null an alternative where it is a value of its own, because few clients expect a list of
/// types.
fn null_apart(members: &mut Members) {
    let is_null = |kinds: &Vec<Value>| kinds.iter().any(|kind| kind == "null");
    if !members.get("type").and_then(Value::as_array).is_some_and(is_null) {
        return;
    }
    let (about, rest) = std::mem::take(members).into_iter().partition(|(key, _)| is_about(key));
    *members = about;
    let mut other = Value::Object(rest);
    without_null(&mut other);
    members.insert("anyOf".to_owned(), Value::Array(vec![other, json!({ "type": "null" })]));
}

/// Whether a keyword says something about a value without restricting it.
fn is_about(keyword: &str) -> bool {
    ["title", "description", "default", "deprecated", "examples"].contains(&keyword)
}

/// Takes null from what a schema allows, however it says so.
pub(crate) fn without_null(schema: &mut Value) {
    let Value::Object(members) = schema else { return };
    if let Some(Value::Array(kinds)) = members.get_mut("type") {
        kinds.retain(|kind| kind != "null");
        if let [only] = kinds.as_mut_slice() {
            let only = only.take();
            members.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(words)) = members.get_mut("enum") {
        words.retain(|word| !word.is_null());
    }
    if members.get("default").is_some_and(Value::is_null) {
        members.remove("default");
    }
    if let Some(Value::Array(branches)) = members.get_mut("anyOf") {
        branches.retain(|branch| branch.get("type").is_none_or(|kind| kind != "null"));
        if let [Value::Object(only)] = branches.as_mut_slice() {
            // What is said of the property comes before what is said of its type.
            let only = std::mem::take(only);
            members.remove("anyOf");
            for (key, value) in only {
                members.entry(key).or_insert(value);
            }
        }
    }
}

/// Turns alternatives that are words, each with its documentation, into one list of words, with
/// the documentation in the description.
fn join_words(members: &mut Members) {
    let Some(Value::Array(branches)) = members.get("oneOf") else { return };
    let Some(choices) = branches.iter().map(choice).collect::<Option<Vec<_>>>() else { return };
    let line = |(words, about): &(Vec<Value>, Option<&str>)| {
        let words: Vec<_> = words.iter().filter_map(Value::as_str).collect();
        about.map(|about| format!("- {}: {}", words.join(", "), about.replace('\n', " ")))
    };
    let lines = choices.iter().filter_map(line).collect::<Vec<_>>().join("\n");
    let description = members.get("description").and_then(Value::as_str);
    let description = [description.unwrap_or_default(), &lines].join("\n\n").trim().to_owned();
    let words = choices.into_iter().flat_map(|(words, _)| words).collect();
    members.remove("oneOf");
    members.insert("type".to_owned(), "string".into());
    members.insert("enum".to_owned(), Value::Array(words));
    if !description.is_empty() {
        members.insert("description".to_owned(), description.into());
    }
}

/// The words of an alternative and what they mean, if it is nothing else.
fn choice(branch: &Value) -> Option<(Vec<Value>, Option<&str>)> {
    let branch = branch.as_object()?;
    let is_known =
        |key: &String| ["type", "const", "enum", "title", "description"].contains(&key.as_str());
    let is_text = branch.get("type").is_some_and(|kind| kind == "string");
    if !is_text || !branch.keys().all(is_known) {
        return None;
    }
    let words = match (branch.get("const"), branch.get("enum")) {
        (Some(word), None) => vec![word.clone()],
        (None, Some(Value::Array(words))) => words.clone(),
        _ => return None,
    };
    let about = branch.get("description").or_else(|| branch.get("title")).and_then(Value::as_str);
    Some((words, about))
}

#[cfg(test)]
mod tests {
    use schemars::JsonSchema;

    use super::*;
    use crate::server::schema::{arguments_schema_of, output_schema_of};

    /// How to sort.
    #[derive(JsonSchema)]
    #[serde(rename_all = "lowercase")]
    #[expect(dead_code, reason = "only its schema is used")]
    enum Order {
        /// By name,
        /// from A to Z.
        Name,
        Size,
        /// The newest first.
        Date,
    }

    #[derive(JsonSchema)]
    #[serde(tag = "kind", rename_all = "lowercase")]
    #[expect(dead_code, reason = "only its schema is used")]
    enum Figure {
        /// All points at a distance.
        Circle {
            radius: f32,
            order: Option<Order>,
        },
        Nothing,
    }

    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "only its schema is used")]
    struct Inner {
        word: Option<String>,
        bytes: Vec<Option<u8>>,
        next: Option<Box<Self>>,
    }

    const CHOICES: &str = "- name: By name, from A to Z.\n- date: The newest first.";

    /// The listed schema of a member of this type: required, optional, and of a result.
    #[expect(clippy::needless_pass_by_value, reason = "`json!` at the call reads best")]
    fn check<T: JsonSchema>(expected: Value) {
        #[derive(JsonSchema)]
        #[expect(dead_code, reason = "only its schema is used")]
        struct Of<T> {
            member: T,
        }
        let member = |schema: Value| schema["properties"]["member"].clone();
        assert_eq!(member(arguments(arguments_schema_of::<Of<T>>())), expected);
        assert_eq!(member(arguments(arguments_schema_of::<Of<Option<T>>>())), expected);
        assert_eq!(member(output(output_schema_of::<Of<T>>())), expected);
    }

    #[test]
    fn members_are_plain() {
        check::<u8>(json!({ "type": "integer", "minimum": 0, "maximum": 255 }));
        check::<usize>(json!({ "type": "integer", "minimum": 0 }));
        check::<i64>(json!({ "type": "integer" }));
        check::<f32>(json!({ "type": "number" }));
        check::<String>(json!({ "type": "string" }));
        check::<std::net::Ipv4Addr>(json!({ "type": "string", "format": "ipv4" }));
        check::<std::net::IpAddr>(json!({ "type": "string" }));
        let words = json!({
            "type": "string",
            "enum": ["size", "name", "date"],
            "description": format!("How to sort.\n\n{CHOICES}")
        });
        check::<Vec<u16>>(json!({ "type": "array",
            "items": { "type": "integer", "minimum": 0, "maximum": 65535 } }));
        check::<Vec<Order>>(json!({ "type": "array", "items": words }));
        check::<Order>(words);
    }

    #[test]
    fn what_is_optional_is_not_null_as_well() {
        #[derive(JsonSchema)]
        #[expect(dead_code, reason = "only its schema is used")]
        struct Arguments {
            /// The order.
            #[serde(default)]
            order: Option<Order>,
            inner: Option<Inner>,
            any: Option<Value>,
            #[schemars(required)]
            must: Option<bool>,
        }
        let listed = arguments(arguments_schema_of::<Arguments>());
        let order = json!({
            "type": "string",
            "enum": ["size", "name", "date"],
            "description": format!("The order.\n\n{CHOICES}")
        });
        let properties = &listed["properties"];
        assert_eq!(properties["order"], order);
        assert_eq!(properties["any"], json!({}));
        assert_eq!(properties["must"], json!({ "type": "boolean" }));
        assert_eq!(listed["required"], json!(["must"]));
        // Within a list it is a value of its own.
        let byte = json!({ "type": "integer", "minimum": 0, "maximum": 255 });
        let byte = json!({ "anyOf": [byte, { "type": "null" }] });
        let inner = json!({
            "type": "object",
            "properties": {
                "word": { "type": "string" },
                "bytes": { "type": "array", "items": byte },
                "next": { "$ref": "#/$defs/Inner" }
            },
            "required": ["bytes"]
        });
        assert_eq!(listed["$defs"]["Inner"], inner);
    }

    #[test]
    fn null_in_results_stays() {
        let listed = output(output_schema_of::<Inner>());
        assert_eq!(listed["properties"]["word"], json!({ "type": ["string", "null"] }));
        let item = json!({ "type": ["integer", "null"], "minimum": 0, "maximum": 255 });
        assert_eq!(listed["properties"]["bytes"]["items"], item);
    }

    #[test]
    fn variants_with_data_stay_alternatives() {
        let tag = |word: &str| json!({ "type": "string", "enum": [word] });
        let order = json!({
            "type": "string",
            "enum": ["size", "name", "date"],
            "description": format!("How to sort.\n\n{CHOICES}")
        });
        let circle = json!({
            "type": "object",
            "properties": { "kind": tag("circle"), "radius": { "type": "number" }, "order": order },
            "required": ["kind", "radius"],
            "description": "All points at a distance."
        });
        let nothing = json!({
            "type": "object",
            "properties": { "kind": tag("nothing") },
            "required": ["kind"]
        });
        let listed = arguments(arguments_schema_of::<Vec<Figure>>());
        assert_eq!(listed["items"], json!({ "anyOf": [circle, nothing] }));
    }

    #[test]
    fn there_are_always_properties() {
        let listed = json!({ "type": "object", "properties": {}, "additionalProperties": false });
        assert_eq!(arguments(crate::server::schema::no_arguments()), listed);
        #[derive(JsonSchema)]
        struct Nothing {}
        assert_eq!(arguments(arguments_schema_of::<Nothing>()), listed);
    }
}
