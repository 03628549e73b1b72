//! Schemas that are refused when compiled, with words for their authors.

use bowline_schema::Schema;
use proptest::prelude::*;
use serde_json::{Value, json};

#[track_caller]
fn check(schema: Value, expected: &str) {
    assert_eq!(Schema::compile(&schema).unwrap_err().to_string(), expected);
}

#[test]
fn malformed() {
    check(json!(3), "schema #: a schema must be an object or a boolean");
    check(json!({"type": "strin"}), r##"schema #/type: "strin" is not a type"##);
    check(
        json!({"properties": {"a/b": {"minimum": "3"}}}),
        "schema #/properties/a~1b/minimum: is a string; expected a number",
    );
    check(json!({"required": true}), "schema #/required: is a boolean; expected an array");
    check(json!({"minLength": -1}), "schema #/minLength: is -1; expected a non-negative integer");
    check(json!({"multipleOf": 0}), "schema #/multipleOf: is 0; expected more than 0");
    check(json!({"anyOf": []}), "schema #/anyOf: is empty");
    check(json!({"items": [{}]}), "schema #/items: is an array; 2020-12 calls that `prefixItems`");
    check(json!({"allOf": [1]}), "schema #/allOf/0: a schema must be an object or a boolean");
}

#[test]
fn dialects() {
    for name in [
        "https://json-schema.org/draft/2019-09/schema",
        "http://json-schema.org/draft-04/schema#",
        "x",
    ] {
        check(
            json!({"$schema": name}),
            &format!(
                "schema #/$schema: {name:?} is not supported; expected 2020-12, draft-07 or draft-06"
            ),
        );
    }
}

#[test]
fn references() {
    check(
        json!({"properties": {"a": {"$ref": "https://evil.example/a.json#/b"}}}),
        "schema #/properties/a/$ref: \"https://evil.example/a.json#/b\" is not in this document, \
         and schemas are never fetched",
    );
    for reference in ["#/$defs/none", "#none", "other.json", "file:///etc/passwd", "#/%zz", "#/a/b"]
    {
        let schema = json!({"$ref": reference, "a": 1});
        let said = Schema::compile(&schema).unwrap_err().to_string();
        assert!(said.contains(reference), "{said}");
    }
    for schema in [
        json!({"$ref": "#"}),
        json!({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"anyOf": [{"$ref": "#/$defs/a"}]}}}),
        json!({"not": {"$ref": "#"}}),
    ] {
        let said = Schema::compile(&schema).unwrap_err().to_string();
        assert!(said.ends_with("applies itself to the same value endlessly"), "{said}");
    }
}

#[test]
fn patterns() {
    check(
        json!({"patternProperties": {"^(?!a)": {}}}),
        "schema #/patternProperties: pattern \"^(?!a)\" cannot be used: it uses lookaround, \
         which takes unbounded time",
    );
}

const KEYWORDS: [&str; 30] = [
    "$ref",
    "$id",
    "$anchor",
    "$dynamicRef",
    "$dynamicAnchor",
    "$defs",
    "type",
    "enum",
    "const",
    "minimum",
    "multipleOf",
    "minLength",
    "pattern",
    "items",
    "prefixItems",
    "contains",
    "minContains",
    "uniqueItems",
    "properties",
    "patternProperties",
    "additionalProperties",
    "propertyNames",
    "required",
    "dependentRequired",
    "dependentSchemas",
    "dependencies",
    "anyOf",
    "if",
    "unevaluatedProperties",
    "description",
];

fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        prop::sample::select(vec!["#", "#/$defs", "#a", "string", "object", "a", ""])
            .prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 5, |inner| {
        let name = prop::sample::select(KEYWORDS.to_vec());
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(name, inner, 0..5).prop_map(|map| json!(map)),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn anything_is_compiled_or_refused(schema in anything(), value in anything()) {
        if let Ok(schema) = Schema::compile(&schema) {
            let _ = schema.validate("value", &value).map_err(|error| error.to_string());
        }
    }

    #[test]
    fn any_pattern_is_compiled_or_refused(
        pattern in r"([\\\[\](){}?*+.^$|,<>!=:a-zA-Z0-9-]|\\[a-zA-Z0-9<>]|.){0,24}",
        text in ".{0,20}",
    ) {
        if let Ok(schema) = Schema::compile(&json!({"pattern": pattern})) {
            let _ = schema.validate("value", &json!(text));
        }
    }
}
