//! Finds out which schemas demand nothing beyond what deserializing into a Rust type checks.

use serde_json::{Map, Value};

/// How deep schemas may nest here; deeper ones count as needing validation.
const MAX_DEPTH: usize = 64;

/// Keywords that do not restrict values.
const ANNOTATIONS: [&str; 14] = [
    "$schema",
    "$id",
    "$comment",
    "title",
    "description",
    "default",
    "deprecated",
    "examples",
    "readOnly",
    "writeOnly",
    "format",
    "contentEncoding",
    "contentMediaType",
    "nullable",
];

/// Whether a schema generated from a Rust type demands more than deserializing into it checks.
///
/// Deserializing checks types, members, the variants of an enum, tags, tuples and the natural
/// bounds of integers. It does not check lengths, patterns, other bounds, uniqueness and
/// conditions. In doubt, this returns true. It says nothing about schemas that were written by
/// hand: always validate against those.
pub fn needs_validation(schema: &Value) -> bool {
    asks_more(schema, Position::Anywhere, 0)
}

/// Where a subschema stands, which decides what `const` means.
#[derive(Clone, Copy, PartialEq)]
enum Position {
    Anywhere,
    /// An alternative of an enum: `const` may be its name.
    Alternative,
    /// A required member of an alternative: `const` may be its tag.
    Tag,
}

fn asks_more(schema: &Value, position: Position, depth: usize) -> bool {
    let Value::Object(map) = schema else { return *schema != Value::Bool(true) };
    if depth > MAX_DEPTH {
        return true;
    }
    map.iter().any(|(keyword, value)| keyword_asks_more(keyword, value, (map, position, depth)))
}

fn keyword_asks_more(
    keyword: &str,
    value: &Value,
    (map, position, depth): (&Map<String, Value>, Position, usize),
) -> bool {
    let inner = |schema: &Value| asks_more(schema, Position::Anywhere, depth + 1);
    match keyword {
        "type" | "required" => false,
        "$ref" => !value.as_str().is_some_and(|text| text.starts_with("#/")),
        "enum" => !is_names(value),
        "const" => position == Position::Anywhere || !value.is_string(),
        "minimum" | "maximum" => !is_natural_bound(keyword, value, map),
        // `false` here is a type that takes no unknown members.
        "additionalProperties" => *value != Value::Bool(false) && inner(value),
        "items" => *value != Value::Bool(false) && inner(value),
        "$defs" | "definitions" => members(value).any(inner),
        "properties" => members_named(value).any(|(name, schema)| {
            let is_tag = position == Position::Alternative && is_required(map, name);
            let position = if is_tag { Position::Tag } else { Position::Anywhere };
            asks_more(schema, position, depth + 1)
        }),
        "prefixItems" => !is_tuple(map) || elements(value).any(inner),
        "minItems" | "maxItems" => !is_tuple(map),
        "oneOf" | "anyOf" => {
            elements(value).any(|schema| asks_more(schema, Position::Alternative, depth + 1))
        }
        other => !ANNOTATIONS.contains(&other) && !other.starts_with("x-"),
    }
}

/// Whether these are the names of an enum's variants, or of a nullable one's.
fn is_names(choices: &Value) -> bool {
    choices.as_array().is_some_and(|list| list.iter().all(|one| one.is_string() || one.is_null()))
}

fn is_required(map: &Map<String, Value>, name: &str) -> bool {
    map.get("required").is_some_and(|required| elements(required).any(|one| *one == name))
}

/// Whether the array is a tuple: exactly as many items as subschemas.
fn is_tuple(map: &Map<String, Value>) -> bool {
    let length = map.get("prefixItems").and_then(Value::as_array).map(|list| list.len() as u64);
    let is_length =
        |keyword| map.get(keyword).and_then(Value::as_u64).is_some_and(|n| Some(n) == length);
    length.is_some() && is_length("minItems") && is_length("maxItems")
}

/// Whether a bound is the natural one of the integer type that `format` names.
fn is_natural_bound(keyword: &str, value: &Value, map: &Map<String, Value>) -> bool {
    let (least, most) = match map.get("format").and_then(Value::as_str) {
        Some("int8") => (i8::MIN.into(), i8::MAX.into()),
        Some("int16") => (i16::MIN.into(), i16::MAX.into()),
        Some("int32") => (i32::MIN.into(), i32::MAX.into()),
        Some("int64") => (i64::MIN.into(), i64::MAX.into()),
        Some("uint8") => (0, u8::MAX.into()),
        Some("uint16") => (0, u16::MAX.into()),
        Some("uint32") => (0, u32::MAX.into()),
        Some("uint64") => (0, u64::MAX.into()),
        Some("uint") => (0, usize::MAX as i128),
        _ => return false,
    };
    let signed = value.as_i64().map(i128::from);
    let bound = signed.or_else(|| value.as_u64().map(i128::from));
    bound == Some(if keyword == "minimum" { least } else { most })
}

fn members(value: &Value) -> impl Iterator<Item = &Value> {
    members_named(value).map(|(_, member)| member)
}

fn members_named(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

fn elements(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_type_checks_needs_no_validation() {
        let cases = [
            json!(true),
            json!({}),
            json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}),
            json!({"type": "object", "additionalProperties": false, "x-mcp-header": "A"}),
            json!({"type": "object", "additionalProperties": {"type": "integer"}}),
            json!({"type": "array", "items": {"$ref": "#/$defs/A"}, "$defs": {"A": {"type": "null"}}}),
            json!({"type": "integer", "format": "uint8", "minimum": 0, "maximum": 255}),
            json!({"type": "integer", "format": "uint64", "minimum": 0}),
            json!({"type": ["integer", "null"], "format": "int8", "minimum": -128, "maximum": 127}),
            json!({"type": "string", "enum": ["metric", "imperial"]}),
            json!({"oneOf": [{"type": "string", "const": "A", "description": "x"}, {"const": "B"}]}),
            json!({"oneOf": [{"type": "object", "required": ["kind"],
                "properties": {"kind": {"type": "string", "const": "a"}, "n": {"type": "number"}}}]}),
            json!({"anyOf": [{"$ref": "#/$defs/A"}, {"type": "null"}], "$defs": {"A": {}}}),
            json!({"type": "array", "prefixItems": [{}, {}], "minItems": 2, "maxItems": 2}),
        ];
        for case in cases {
            assert!(!needs_validation(&case), "{case}");
        }
    }

    #[test]
    fn what_a_type_does_not_check_needs_validation() {
        let cases = [
            json!(false),
            json!({"minLength": 1}),
            json!({"type": "object", "properties": {"a": {"type": "string", "pattern": "x"}}}),
            json!({"type": "integer", "format": "uint8", "minimum": 1, "maximum": 255}),
            json!({"type": "integer", "minimum": 0}),
            json!({"type": "number", "maximum": 10}),
            json!({"type": "array", "uniqueItems": true}),
            json!({"type": "array", "items": {}, "minItems": 1}),
            json!({"type": "array", "prefixItems": [{}], "minItems": 1}),
            json!({"const": "a"}),
            json!({"type": "object", "properties": {"a": {"const": "a"}}}),
            json!({"anyOf": [{"properties": {"a": {"const": "a"}}}]}),
            json!({"enum": [1, 2]}),
            json!({"allOf": [{}]}),
            json!({"not": {}}),
            json!({"if": {}, "then": {}}),
            json!({"$defs": {"A": {"multipleOf": 2}}}),
            json!({"dependentRequired": {}}),
            json!({"$ref": "other.json"}),
            json!({"somethingNew": 1}),
        ];
        for case in cases {
            assert!(needs_validation(&case), "{case}");
        }
        let mut deep = json!({});
        for _ in 0..100_000 {
            deep = Value::Object(Map::from_iter([("items".to_owned(), deep)]));
        }
        assert!(needs_validation(&deep));
        // Dropping a value recurses as deep as it is.
        std::mem::forget(deep);
    }
}
