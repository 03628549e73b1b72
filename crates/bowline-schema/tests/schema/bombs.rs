//! Schemas and values made to hurt. Costs are counted in steps, never in time.

use bowline_schema::{Invalid, Limits, Schema, SchemaError};
use serde_json::{Map, Value, json};

/// `{key: {key: … last}}`, without the recursion of `json!`.
fn nested(key: &str, depth: usize, last: Value) -> Value {
    (0..depth).fold(last, |inner, _| Value::Object(Map::from_iter([(key.to_owned(), inner)])))
}

#[track_caller]
fn check_too_big(schema: &Value) {
    let error = Schema::compile(schema).unwrap_err();
    assert!(matches!(error, SchemaError::TooBig { .. }), "{error}");
}

fn doubling(keyword: &str, levels: usize) -> Value {
    let mut defs = Map::new();
    for level in 0..levels {
        let next = json!({"$ref": format!("#/$defs/d{}", level + 1)});
        defs.insert(format!("d{level}"), json!({keyword: [next, next]}));
    }
    defs.insert(format!("d{levels}"), json!({"type": "integer"}));
    json!({"$ref": "#/$defs/d0", "$defs": defs})
}

#[test]
fn references_that_double_are_refused() {
    for keyword in ["allOf", "anyOf", "oneOf"] {
        check_too_big(&doubling(keyword, 40));
        check_too_big(&doubling(keyword, 20));
        let modest = Schema::compile(&doubling(keyword, 8)).unwrap();
        assert!(modest.steps(&json!("x")).unwrap() < 2_000);
    }
}

#[test]
fn references_that_double_further_in_run_out_of_steps() {
    let next = json!({"properties": {"a": {"$ref": "#"}}});
    let schema = Schema::compile(&json!({"allOf": [next, next, next]})).unwrap();
    let value = nested("a", 60, json!(1));
    let max_steps = Limits::default().max_steps;
    assert_eq!(schema.validate("value", &value), Err(Invalid::TooCostly { max_steps }));
    assert_eq!(schema.steps(&value), None);
    assert!(schema.validate("value", &nested("a", 8, json!(1))).is_ok());
}

#[test]
fn long_chains_of_references_are_refused() {
    let mut defs = Map::new();
    for level in 0..5000 {
        defs.insert(format!("d{level}"), json!({"$ref": format!("#/$defs/d{}", level + 1)}));
    }
    defs.insert("d5000".to_owned(), json!({"type": "integer"}));
    check_too_big(&json!({"$ref": "#/$defs/d0", "$defs": defs}));
}

#[test]
fn big_schemas_are_refused() {
    let many: Vec<Value> = (0..10_001).map(|n| json!({"const": n})).collect();
    check_too_big(&json!({"anyOf": many}));
    let fewer = Schema::compile(&json!({"anyOf": many[..9_000]})).unwrap();
    assert!(fewer.steps(&json!("x")).unwrap() <= 40_000);
    assert!(fewer.validate("value", &json!("x")).is_err());
    for keyword in ["items", "not", "additionalProperties", "const", "x-anything", "$defs"] {
        let deep = nested(keyword, 10_000, json!({}));
        check_too_big(&deep);
        // Dropping a tree recurses as deep as the tree is.
        std::mem::forget(deep);
    }
}

#[test]
fn deep_values_are_refused() {
    let tree = json!({"additionalProperties": {"$ref": "#"}});
    let unique = json!({"additionalProperties": {"uniqueItems": true}});
    let deep = nested("a", 100_000, json!(1));
    let schema = Schema::compile(&tree).unwrap();
    assert!(matches!(schema.validate("value", &deep), Err(Invalid::TooDeep { .. })));
    let lists = (0..100_000).fold(json!(1), |inner, _| Value::Array(vec![inner]));
    let lists = Value::Object(Map::from_iter([("a".to_owned(), lists)]));
    let schema = Schema::compile(&unique).unwrap();
    assert!(matches!(schema.validate("value", &lists), Err(Invalid::TooDeep { .. })));
    std::mem::forget((deep, lists));
    // As deep as a frame may be, through as much of a schema as people write.
    let schema = Schema::compile(&json!({
        "$ref": "#/$defs/tree",
        "$defs": {"tree": {"additionalProperties": {"$ref": "#/$defs/tree"}}},
    }));
    assert!(schema.unwrap().validate("value", &nested("a", 120, json!(1))).is_ok());
}

#[test]
fn the_limit_on_nesting_keeps_the_stack_small() {
    // Loud and quiet runs, references, alternatives and marks at every level.
    let schema = Schema::compile(&json!({
        "anyOf": [{"$ref": "#/$defs/tree"}, {"type": "null"}],
        "$defs": {"tree": {
            "oneOf": [{"properties": {"a": {"$ref": "#"}}}, false],
            "unevaluatedProperties": false,
        }},
    }));
    let schema = schema.unwrap();
    let run = move || {
        for depth in [40, 60, 1000] {
            assert!(schema.validate("value", &nested("a", depth, json!({"b": 1}))).is_err());
        }
    };
    std::thread::Builder::new().stack_size(1 << 20).spawn(run).unwrap().join().unwrap();
}

#[test]
fn evil_patterns_are_linear_or_refused() {
    let text = "a".repeat(5_000) + "!";
    for pattern in ["^(a+)+$", "^(a|aa)+$", "^(a*)*b", "(x+x+)+y", "^(([a-z])+.)+[A-Z]([a-z])+$"] {
        let schema = Schema::compile(&json!({"pattern": pattern})).unwrap();
        assert!(schema.steps(&json!(text)).unwrap() < 30_000, "{pattern}");
    }
    for pattern in ["((a{1,100}){1,100}){1,100}", "a{1,1000000000}"] {
        assert!(Schema::compile(&json!({"pattern": pattern})).is_err(), "{pattern}");
    }
    let schema = Schema::compile(&json!({"pattern": "^(.{1,1000})$"})).unwrap();
    let verdict = schema.validate("value", &json!("a".repeat(1_000_000)));
    assert!(matches!(verdict, Err(Invalid::TooCostly { .. })));
    let many: Map<String, Value> =
        (0..5_000).map(|n| (format!("^[a-z]{{1,40}}{n}$"), json!({}))).collect();
    let error = Schema::compile(&json!({"patternProperties": many})).unwrap_err();
    assert!(matches!(error, SchemaError::TooBig { .. } | SchemaError::Pattern { .. }), "{error}");
    check_too_big(&json!({"pattern": "a".repeat(10_000)}));
}

#[test]
fn unique_items_are_not_compared_with_each_other() {
    let schema = Schema::compile(&json!({"uniqueItems": true})).unwrap();
    let items: Vec<u32> = (0..20_000).collect();
    assert!(schema.steps(&json!(items)).unwrap() < 50_000);
    let objects: Vec<Value> = (0..5_000).map(|n| json!({"a": n, "b": [n]})).collect();
    assert!(schema.steps(&json!(objects)).unwrap() < 60_000);
}

#[test]
fn big_values_against_big_choices_run_out_of_steps() {
    let choices: Vec<Value> = (0..5_000).map(|n| json!([0, 0, 0, 0, n])).collect();
    let schema = Schema::compile(&json!({"items": {"not": {"enum": choices}}})).unwrap();
    let value = json!(vec![json!([0, 0, 0, 0, -1]); 5_000]);
    assert!(matches!(schema.validate("value", &value), Err(Invalid::TooCostly { .. })));
}

#[test]
fn a_usual_call_takes_few_steps() {
    let schema = Schema::compile(&json!({
        "type": "object",
        "properties": {
            "location": {"type": "string", "minLength": 1},
            "units": {"enum": ["metric", "imperial"]},
        },
        "required": ["location"],
        "additionalProperties": false,
    }));
    let steps = schema.unwrap().steps(&json!({"location": "Oslo", "units": "metric"}));
    assert_eq!(steps, Some(5));
}

#[test]
fn limits_are_the_callers() {
    let mut limits = Limits::default().with_max_steps(10);
    limits.max_subschemas = 2;
    let schema = json!({"items": {"type": "integer"}});
    let compiled = Schema::compile_with(&schema, &limits).unwrap();
    assert!(compiled.validate("value", &json!([1, 2])).is_ok());
    let verdict = compiled.validate("value", &json!(vec![1; 10]));
    assert_eq!(verdict, Err(Invalid::TooCostly { max_steps: 10 }));
    limits.max_subschemas = 1;
    assert!(Schema::compile_with(&schema, &limits).is_err());
}
