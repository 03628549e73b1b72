//! What a model reads when its arguments are wrong.

use bowline_schema::{Invalid, Schema, Violations};
use serde_json::{Value, json};

#[track_caller]
fn check(schema: Value, value: Value, expected: &str) {
    let error = Schema::compile(&schema).unwrap().validate("arguments", &value).unwrap_err();
    assert_eq!(error.to_string(), expected);
}

fn property(schema: Value) -> Value {
    json!({"properties": {"a": schema}})
}

#[test]
fn flat_values() {
    let a = |schema: Value, value: Value, expected: &str| {
        check(property(schema), json!({"a": value}), expected);
    };
    a(json!({"type": "integer"}), json!("3"), r#"arguments.a is "3"; expected an integer"#);
    a(
        json!({"type": ["string", "null"]}),
        json!([1]),
        "arguments.a is an array of 1; expected a string or null",
    );
    a(
        json!({"enum": ["metric", "imperial", "kelvin"]}),
        json!("celcius"),
        r#"arguments.a is "celcius"; expected "metric", "imperial" or "kelvin""#,
    );
    a(
        json!({"enum": ["metric", "imperial"]}),
        json!("Metrics"),
        r#"arguments.a is "Metrics"; expected "metric" or "imperial" (did you mean "metric"?)"#,
    );
    a(json!({"const": 1}), json!(2), "arguments.a is 2; expected 1");
    a(json!({"minimum": 1}), json!(0), "arguments.a is 0; expected at least 1");
    a(json!({"exclusiveMaximum": 1.5}), json!(2), "arguments.a is 2; expected less than 1.5");
    a(json!({"multipleOf": 5}), json!(7), "arguments.a is 7; expected a multiple of 5");
    a(json!({"minLength": 3}), json!("é"), "arguments.a has 1 character; expected at least 3");
    a(
        json!({"pattern": "^[0-9]+$"}),
        json!("x1"),
        r#"arguments.a is "x1"; expected a match for the pattern ^[0-9]+$"#,
    );
    a(json!(false), json!("x"), "arguments.a is not allowed here");
    a(
        json!({"not": {"const": "root", "description": "the superuser"}}),
        json!("root"),
        r#"arguments.a is "root", which is not allowed: the superuser"#,
    );
    let long = "x".repeat(10_000);
    let cut = format!(r#"arguments.a is "{}…"; expected null"#, "x".repeat(60));
    a(json!({"type": "null"}), json!(long), &cut);
}

#[test]
fn arrays_and_objects() {
    check(
        json!({"properties": {"items": {"items": {"properties": {"size": {"maximum": 9}}}}}}),
        json!({"items": [{}, {}, {"size": 10}]}),
        "arguments.items[2].size is 10; expected at most 9",
    );
    check(
        json!({"minItems": 1, "contains": {"const": 1}}),
        json!([]),
        "arguments has 0 items; expected at least 1\n\
         arguments has 0 matching items; expected at least 1",
    );
    check(
        json!({"uniqueItems": true}),
        json!([1, 2, 1.0]),
        "arguments has equal items [0] and [2]; items must be unique",
    );
    check(
        json!({
            "properties": {
                "location": {"type": "string", "description": "City name, address, or coordinates"},
                "units": {"$ref": "#/$defs/Units", "description": "Of the answer"},
                "days": {"type": "integer"},
            },
            "required": ["location", "units", "days", "more"],
            "$defs": {"Units": {"enum": ["metric", "imperial"]}},
        }),
        json!({}),
        "arguments.location is missing (a string: City name, address, or coordinates)\n\
         arguments.units is missing (one of \"metric\", \"imperial\": Of the answer)\n\
         arguments.days is missing (an integer)\n\
         arguments.more is missing",
    );
    check(
        json!({"properties": {"location": true, "units": true}, "additionalProperties": false}),
        json!({"foo": 1, "Location": "x"}),
        "arguments.foo is unknown; the known names are location, units\n\
         arguments.Location is unknown; the known names are location, units (did you mean location?)",
    );
    check(
        json!({"additionalProperties": {"type": "null"}}),
        json!({"a b": 1, "": 2}),
        "arguments[\"a b\"] is 1; expected null\narguments[\"\"] is 2; expected null",
    );
    check(
        json!({"dependentRequired": {"a": ["b"]}}),
        json!({"a": 1}),
        "arguments.b is missing; a requires it",
    );
    check(
        json!({"propertyNames": {"maxLength": 1}}),
        json!({"ab": 1}),
        "arguments.ab has a name that is not allowed",
    );
}

#[test]
fn alternatives() {
    check(
        json!({"anyOf": [{"type": "string"}, {"type": ["number", "null"]}]}),
        json!(true),
        "arguments is true; expected a string, a number or null",
    );
    check(
        json!({"oneOf": [{"const": "a", "title": "A"}, {"const": "b"}]}),
        json!("c"),
        r#"arguments is "c"; expected "a" or "b""#,
    );
    check(
        json!({"anyOf": [{"properties": {"n": {"minimum": 1}}, "type": "object"}, {"type": "null"}]}),
        json!({"n": 0}),
        "arguments.n is 0; expected at least 1",
    );
    let shape = |kind: &str, size: &str| {
        json!({
            "type": "object",
            "properties": {"kind": {"const": kind}, size: {"type": "number"}},
            "required": ["kind", size],
        })
    };
    let shapes = json!({"oneOf": [shape("circle", "radius"), shape("square", "side")]});
    check(
        shapes,
        json!({"kind": "square", "radius": 2}),
        "arguments.side is missing (a number) (the closest of 2 alternatives)",
    );
    check(
        json!({"oneOf": [{"minimum": 1}, {"maximum": 5}, true]}),
        json!(3),
        "arguments is 3; it matches alternatives 1 and 2 of 3, but must match exactly one",
    );
}

#[test]
fn secrets_are_not_repeated() {
    let secret = "hunter2";
    let schemas = [
        json!({"type": "string", "writeOnly": true, "minLength": 20, "pattern": "^x"}),
        json!({"type": "string", "format": "password", "enum": ["a", "b"]}),
        json!({"allOf": [{"writeOnly": true}, {"pattern": "^x"}]}),
        json!({"allOf": [{"pattern": "^x"}, {"writeOnly": true}]}),
        json!({"$ref": "#/$defs/secret", "const": 1}),
        json!({"anyOf": [{"type": "null"}, {"pattern": "^x", "format": "password"}]}),
    ];
    for schema in schemas {
        let whole = json!({"properties": {"key": schema}});
        let other = json!({"properties": {"key": {"maxLength": 1, "const": 1}}});
        let twice = json!({"allOf": [other, whole]});
        for mut schema in [whole, twice] {
            schema["$defs"] = json!({"secret": {"writeOnly": true}});
            for value in [json!({"key": secret}), json!({"key": secret, "x": 1})] {
                let compiled = Schema::compile(&schema).unwrap();
                for root in ["arguments", ""] {
                    let said = compiled.validate(root, &value).unwrap_err().to_string();
                    assert!(!said.contains(secret), "{schema}: {said}");
                }
            }
        }
    }
    check(
        property(json!({"pattern": "^x", "writeOnly": true})),
        json!({"a": secret}),
        "arguments.a is a string; expected a match for the pattern ^x",
    );
}

#[test]
fn many_violations_are_counted() {
    let schema = Schema::compile(&json!({"items": {"type": "string"}})).unwrap();
    let Err(Invalid::Violations(violations)) = schema.validate("list", &json!(vec![1; 20])) else {
        panic!("twenty numbers are not strings")
    };
    assert_eq!(violations.iter().count(), Violations::MAX);
    assert_eq!(violations.more(), 12);
    assert!(violations.to_string().ends_with("list[7] is 1; expected a string\nand 12 more"));
}
