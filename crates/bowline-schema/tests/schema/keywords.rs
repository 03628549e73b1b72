//! Every keyword: what passes and what does not.

use bowline_schema::Schema;
use serde_json::{Value, json};

#[track_caller]
fn check(schema: Value, passing: &[Value], failing: &[Value]) {
    let compiled = Schema::compile(&schema).unwrap();
    for value in passing {
        let verdict = compiled.validate("value", value);
        assert!(verdict.is_ok(), "{schema} should take {value}: {verdict:?}");
    }
    for value in failing {
        assert!(compiled.validate("value", value).is_err(), "{schema} should refuse {value}");
    }
}

fn draft7(mut schema: Value) -> Value {
    schema["$schema"] = json!("http://json-schema.org/draft-07/schema#");
    schema
}

#[test]
fn any_value() {
    check(json!(true), &[json!(1), json!(null)], &[]);
    check(json!(false), &[], &[json!(1), json!(null)]);
    check(
        json!({"type": "integer"}),
        &[json!(1), json!(1.0), json!(1e300)],
        &[json!(1.5), json!("1")],
    );
    check(json!({"type": ["string", "null"]}), &[json!(""), json!(null)], &[json!(false)]);
    check(json!({"enum": [1, "a", [1.0]]}), &[json!(1.0), json!("a"), json!([1])], &[json!("b")]);
    check(json!({"const": {"a": 0, "b": 1}}), &[json!({"b": 1.0, "a": -0.0})], &[json!({"a": 0})]);
    check(json!({"const": false}), &[json!(false)], &[json!(0), json!([false])]);
    check(json!({"format": "email"}), &[json!("no address")], &[]);
}

#[test]
fn numbers() {
    check(json!({"minimum": 1}), &[json!(1), json!(1.0), json!("0")], &[json!(0), json!(0.99)]);
    check(json!({"maximum": 3.0}), &[json!(3)], &[json!(3.01), json!(u64::MAX)]);
    check(json!({"exclusiveMinimum": 0}), &[json!(0.1)], &[json!(0), json!(-0.0)]);
    check(
        json!({"exclusiveMaximum": 9007199254740993_i64}),
        &[json!(9007199254740992_i64)],
        &[json!(9007199254740993_i64)],
    );
    check(json!({"multipleOf": 0.01}), &[json!(19.99), json!(4), json!(0)], &[json!(0.015)]);
}

#[test]
fn strings() {
    check(json!({"minLength": 2}), &[json!("é💩"), json!(1)], &[json!("💩")]);
    check(json!({"maxLength": 2.0}), &[json!("💩💩")], &[json!("abc")]);
    check(json!({"pattern": "^a+$"}), &[json!("aa"), json!(3)], &[json!("ab")]);
}

#[test]
fn arrays() {
    let tuple = json!({"prefixItems": [{"type": "integer"}], "items": {"type": "string"}});
    check(tuple, &[json!([]), json!([1]), json!([1, "a"])], &[json!(["a"]), json!([1, 2])]);
    let tuple = json!({"items": [{"type": "integer"}], "additionalItems": false});
    check(draft7(tuple), &[json!([]), json!([1])], &[json!(["a"]), json!([1, 2])]);
    check(json!({"minItems": 1, "maxItems": 2}), &[json!([1])], &[json!([]), json!([1, 2, 3])]);
    let unique = json!({"uniqueItems": true});
    let different = json!([1, true, "1", [1], {"a": 1, "b": 2}, {"a": 2, "b": 1}, null, 0, false]);
    check(unique, &[different], &[json!([1, 1.0]), json!([{"a": 1, "b": 2}, {"b": 2, "a": 1.0}])]);
    check(json!({"contains": {"const": 1}}), &[json!([2, 1])], &[json!([]), json!([2])]);
    let counted = json!({"contains": {"const": 1}, "minContains": 2, "maxContains": 3});
    check(counted, &[json!([1, 1]), json!([1, 1, 1])], &[json!([1]), json!([1, 1, 1, 1])]);
    check(json!({"contains": false, "minContains": 0}), &[json!([]), json!([1])], &[]);
    let rest =
        json!({"prefixItems": [true], "contains": {"type": "string"}, "unevaluatedItems": false});
    check(rest, &[json!([1, "a", "b"])], &[json!([1, "a", 2])]);
}

#[test]
fn objects() {
    let schema = json!({
        "properties": {"a": {"type": "integer"}},
        "patternProperties": {"^x-": {"type": "string"}},
        "additionalProperties": false,
        "required": ["a"],
    });
    check(
        schema,
        &[json!({"a": 1, "x-b": ""}), json!(1)],
        &[json!({}), json!({"a": ""}), json!({"a": 1, "x-b": 1}), json!({"a": 1, "b": 1})],
    );
    check(
        json!({"minProperties": 1, "maxProperties": 1}),
        &[json!({"a": 1})],
        &[json!({}), json!({"a": 1, "b": 1})],
    );
    check(json!({"propertyNames": {"maxLength": 1}}), &[json!({"a": 1})], &[json!({"ab": 1})]);
    let needs = json!({"dependentRequired": {"a": ["b"]}});
    check(needs, &[json!({"b": 1}), json!({"a": 1, "b": 1})], &[json!({"a": 1})]);
    let needs = json!({"dependentSchemas": {"a": {"minProperties": 2}}});
    check(needs, &[json!({"b": 1}), json!({"a": 1, "b": 1})], &[json!({"a": 1})]);
    let needs = json!({"dependencies": {"a": ["b"], "c": {"minProperties": 2}}});
    check(draft7(needs), &[json!({"a": 1, "b": 1})], &[json!({"a": 1}), json!({"c": 1})]);
    let closed = json!({
        "anyOf": [{"properties": {"a": true}, "required": ["a"]}, {"properties": {"b": true}}],
        "unevaluatedProperties": false,
    });
    check(closed, &[json!({"a": 1, "b": 1}), json!({"b": 1})], &[json!({"c": 1})]);
}

#[test]
fn combinations() {
    let (text, short) = (json!({"type": "string"}), json!({"maxLength": 2}));
    check(json!({"allOf": [text, short]}), &[json!("ab")], &[json!("abc"), json!(1)]);
    check(json!({"anyOf": [text, short]}), &[json!("abc"), json!(1)], &[]);
    check(json!({"oneOf": [text, short]}), &[json!("abc"), json!(1)], &[json!("ab")]);
    check(json!({"not": text}), &[json!(1)], &[json!("ab")]);
    let choice = json!({"if": text, "then": short, "else": {"minimum": 0}});
    check(choice.clone(), &[json!("ab"), json!(0)], &[json!("abc"), json!(-1)]);
    let mut draft6 = choice;
    draft6["$schema"] = json!("http://json-schema.org/draft-06/schema#");
    check(draft6, &[json!("abc"), json!(-1)], &[]);
}

#[test]
fn references() {
    let tree = json!({
        "type": "object",
        "properties": {"children": {"type": "array", "items": {"$ref": "#"}}},
        "additionalProperties": false,
    });
    check(tree, &[json!({"children": [{"children": []}]})], &[json!({"children": [{"child": 1}]})]);
    let beside =
        json!({"$ref": "#/$defs/a~1b%25", "maximum": 5, "$defs": {"a/b%": {"minimum": 1}}});
    check(beside, &[json!(3)], &[json!(0), json!(9)]);
    let alone =
        json!({"$ref": "#/definitions/a", "maximum": 5, "definitions": {"a": {"minimum": 1}}});
    check(draft7(alone), &[json!(9)], &[json!(0)]);
    let named = json!({"$ref": "#x", "$defs": {"a": {"$anchor": "x", "type": "null"}}});
    check(named, &[json!(null)], &[json!(0)]);
    let parts = json!({
        "$id": "https://a.example/root.json",
        "$ref": "part.json#x",
        "$defs": {"p": {"$id": "part.json", "$defs": {"q": {"$anchor": "x", "type": "null"}}}},
    });
    check(parts, &[json!(null)], &[json!(0)]);
    let anywhere = json!({"$ref": "#/x-parts/0", "x-parts": [{"type": "null"}]});
    check(anywhere, &[json!(null)], &[json!(0)]);
    let dynamic = json!({
        "$dynamicAnchor": "node",
        "properties": {"next": {"$dynamicRef": "#node"}, "n": {"type": "integer"}},
    });
    check(dynamic, &[json!({"next": {"n": 1}})], &[json!({"next": {"next": {"n": ""}}})]);
}
