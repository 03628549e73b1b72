//! Schemas and values from the bytes of a fuzzer, as those of the property tests of
//! `bowline-schema` are made.

use bowline_fuzz::Bytes;
use serde_json::{Map, Value, json};

const DIALECTS: [&str; 2] =
    ["https://json-schema.org/draft/2020-12/schema", "http://json-schema.org/draft-07/schema#"];
const KINDS: [&str; 7] = ["null", "boolean", "integer", "number", "string", "array", "object"];
const NAMES: [&str; 4] = ["a", "b", "c", "xy"];
const PATTERNS: [&str; 7] = ["^a", "b$", "^[ab]+$", "é", r"^\w*$", "a|1", r"\d{2}"];
const NESTED: [&str; 11] = [
    "items",
    "additionalItems",
    "contains",
    "additionalProperties",
    "propertyNames",
    "not",
    "if",
    "then",
    "else",
    "unevaluatedProperties",
    "unevaluatedItems",
];

/// A whole schema, with a definition that its parts may refer to.
pub(crate) fn schema(bytes: &mut Bytes<'_>) -> Value {
    let dialect = bytes.pick(&DIALECTS);
    let definition = part(bytes, 2);
    let mut map = match part(bytes, 3) {
        Value::Object(map) => map,
        other => Map::from_iter([("allOf".to_owned(), json!([other]))]),
    };
    map.insert("$schema".to_owned(), dialect.into());
    map.insert("definitions".to_owned(), json!({ "d": definition }));
    Value::Object(map)
}

fn part(bytes: &mut Bytes<'_>, depth: usize) -> Value {
    match bytes.below(8) {
        0 => return bytes.flag().into(),
        1 => return json!({ "$ref": "#/definitions/d" }),
        _ => {}
    }
    let mut schema = Map::new();
    for _ in 0..bytes.below(3) {
        let (keyword, value) = flat(bytes);
        schema.insert(keyword.to_owned(), value);
    }
    for _ in 0..if depth == 0 { 0 } else { bytes.below(4) } {
        let (keyword, value) = nested(bytes, depth - 1);
        schema.insert(keyword.to_owned(), value);
    }
    Value::Object(schema)
}

/// A keyword that holds no schema.
fn flat(bytes: &mut Bytes<'_>) -> (&'static str, Value) {
    match bytes.below(11) {
        0 => ("type", bytes.pick(&KINDS).into()),
        1 => ("const", value(bytes, 2)),
        2 => ("enum", (0..=bytes.below(3)).map(|_| value(bytes, 2)).collect()),
        3 => {
            let names = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"];
            (bytes.pick(&names), number(bytes))
        }
        4 => ("multipleOf", bytes.pick(&[json!(2), json!(0.5), json!(0.75)])),
        5 => {
            let names = ["minLength", "maxLength", "minItems", "maxItems"];
            (bytes.pick(&names), bytes.below(4).into())
        }
        6 => (bytes.pick(&["minProperties", "maxProperties"]), bytes.below(4).into()),
        7 => ("pattern", bytes.pick(&PATTERNS).into()),
        8 => ("uniqueItems", bytes.flag().into()),
        9 => ("required", names(bytes)),
        _ => ("dependentRequired", json!({ (bytes.pick(&NAMES)): names(bytes) })),
    }
}

fn nested(bytes: &mut Bytes<'_>, depth: usize) -> (&'static str, Value) {
    match bytes.below(8) {
        0..=3 => (bytes.pick(&NESTED), part(bytes, depth)),
        4 | 5 => {
            let keyword = bytes.pick(&["allOf", "anyOf", "oneOf", "prefixItems"]);
            (keyword, (0..=bytes.below(3)).map(|_| part(bytes, depth)).collect())
        }
        6 => {
            let keyword = bytes.pick(&["properties", "dependentSchemas"]);
            let members = (0..bytes.below(4)).map(|_| bytes.pick(&NAMES).to_owned());
            let names: Vec<String> = members.collect();
            let members = names.into_iter().map(|name| (name, part(bytes, depth)));
            (keyword, Value::Object(members.collect()))
        }
        _ => {
            let pattern = bytes.pick(&["^a", "b", "y$"]);
            ("patternProperties", json!({ (pattern): part(bytes, depth) }))
        }
    }
}

/// Some names, each once.
fn names(bytes: &mut Bytes<'_>) -> Value {
    let chosen = bytes.byte();
    let names = NAMES.iter().enumerate().filter(|(at, _)| chosen >> at & 1 == 1);
    names.map(|(_, name)| *name).collect()
}

fn number(bytes: &mut Bytes<'_>) -> Value {
    let halves = i64::from(bytes.byte() % 32) - 12;
    if halves % 2 == 0 { json!(halves / 2) } else { json!(halves as f64 / 2.0) }
}

/// A value.
pub(crate) fn value(bytes: &mut Bytes<'_>, depth: usize) -> Value {
    match bytes.below(if depth == 0 { 5 } else { 8 }) {
        0 => Value::Null,
        1 => bytes.flag().into(),
        2 => (i64::from(bytes.byte() % 16) - 5).into(),
        3 => json!(f64::from(bytes.byte() % 32) / 4.0 - 2.0),
        4 => {
            let letters = (0..bytes.below(5)).map(|_| bytes.pick(&["a", "b", "1", "é"]));
            letters.collect::<String>().into()
        }
        5 | 6 => (0..bytes.below(5)).map(|_| value(bytes, depth - 1)).collect(),
        _ => {
            let names: Vec<_> = (0..bytes.below(4)).map(|_| bytes.pick(&NAMES)).collect();
            let members = names.into_iter().map(|name| (name.to_owned(), value(bytes, depth - 1)));
            Value::Object(members.collect())
        }
    }
}
