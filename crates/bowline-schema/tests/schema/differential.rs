//! Made-up schemas and values: the crate `jsonschema` must come to the same verdict.

use bowline_schema::{Schema, SchemaError};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

const DRAFT_2020: &str = "https://json-schema.org/draft/2020-12/schema";
const DRAFT_7: &str = "http://json-schema.org/draft-07/schema#";

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-5_i64..10).prop_map(Value::from),
        (-10_i64..20).prop_map(|n| json!(n as f64 / 4.0)),
        "[ab1é]{0,4}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map("[abc]|xy", inner, 0..4)
                .prop_map(|map| Value::Object(Map::from_iter(map))),
        ]
    })
}

fn names() -> impl Strategy<Value = Value> {
    prop::collection::btree_set("[abc]|xy", 0..3).prop_map(|names| json!(names))
}

/// Keywords that hold no subschema.
fn flat() -> impl Strategy<Value = (String, Value)> {
    let kind = prop::sample::select(vec![
        "null", "boolean", "integer", "number", "string", "array", "object",
    ]);
    let pattern = prop::sample::select(vec!["^a", "b$", "^[ab]+$", "é", r"^\w*$", "a|1", r"\d{2}"]);
    let count = || (0_u64..4).prop_map(Value::from);
    let number =
        || (-6_i64..12).prop_map(|n| if n % 2 == 0 { json!(n / 2) } else { json!(n as f64 / 2.0) });
    let named = |names: &'static [&'static str], value: BoxedStrategy<Value>| {
        (prop::sample::select(names.to_vec()), value)
            .prop_map(|(name, value)| (name.to_owned(), value))
    };
    prop_oneof![
        named(&["type"], kind.clone().prop_map(Value::from).boxed()),
        named(
            &["type"],
            prop::collection::btree_set(kind, 1..4).prop_map(|kinds| json!(kinds)).boxed()
        ),
        named(&["const"], value().boxed()),
        named(&["enum"], prop::collection::vec(value(), 1..4).prop_map(Value::from).boxed()),
        named(&["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"], number().boxed()),
        named(
            &["multipleOf"],
            prop::sample::select(vec![json!(2), json!(0.5), json!(0.75)]).boxed()
        ),
        named(&["minLength", "maxLength", "minItems", "maxItems"], count().boxed()),
        named(&["minProperties", "maxProperties"], count().boxed()),
        named(&["pattern"], pattern.prop_map(Value::from).boxed()),
        named(&["uniqueItems"], any::<bool>().prop_map(Value::from).boxed()),
        named(&["required"], names().boxed()),
        named(&["minContains", "maxContains"], count().boxed()),
        named(
            &["dependentRequired"],
            prop::collection::btree_map("[abc]", names(), 0..3).prop_map(|map| json!(map)).boxed()
        ),
    ]
}

fn schema() -> impl Strategy<Value = Value> {
    let flat_schema =
        || prop::collection::vec(flat(), 0..3).prop_map(|list| Value::Object(Map::from_iter(list)));
    let leaf = prop_oneof![
        6 => flat_schema(),
        1 => any::<bool>().prop_map(Value::from),
        1 => Just(json!({"$ref": "#/definitions/d"})),
    ];
    leaf.prop_recursive(4, 32, 4, move |inner| {
        let one = (
            prop::sample::select(vec![
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
            ]),
            inner.clone(),
        );
        let list = (
            prop::sample::select(vec!["allOf", "anyOf", "oneOf", "prefixItems"]),
            prop::collection::vec(inner.clone(), 1..4).prop_map(Value::from),
        );
        let map = (
            prop::sample::select(vec!["properties", "dependentSchemas"]),
            prop::collection::btree_map("[abc]|xy", inner.clone(), 0..4).prop_map(|map| json!(map)),
        );
        let patterns = (
            Just("patternProperties"),
            prop::collection::btree_map("\\^a|b|y\\$", inner, 0..3).prop_map(|map| json!(map)),
        );
        let keyword = prop_oneof![3 => one, 2 => list, 2 => map, 1 => patterns];
        (flat_schema(), prop::collection::vec(keyword, 1..4)).prop_map(|(mut schema, more)| {
            for (keyword, value) in more {
                schema[keyword] = value;
            }
            schema
        })
    })
}

fn whole(schema: Value, definition: Value, dialect: &str) -> Value {
    let mut map = match schema {
        Value::Object(map) => map,
        other => Map::from_iter([("allOf".to_owned(), json!([other]))]),
    };
    map.insert("$schema".to_owned(), dialect.into());
    map.insert("definitions".to_owned(), json!({"d": definition}));
    Value::Object(map)
}

fn agree(schema: &Value, values: &[Value]) -> Result<(), TestCaseError> {
    let ours = match Schema::compile(schema) {
        Ok(ours) => ours,
        // `jsonschema` follows a circle of references until its stack ends.
        Err(SchemaError::Endless { .. }) => return Ok(()),
        Err(error) => return Err(TestCaseError::fail(error.to_string())),
    };
    let theirs =
        jsonschema::validator_for(schema).map_err(|e| TestCaseError::fail(e.to_string()))?;
    for value in values {
        let verdict = ours.validate("value", value);
        prop_assert_eq!(
            verdict.is_ok(),
            theirs.is_valid(value),
            "{} {} {:?}",
            schema,
            value,
            verdict
        );
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn verdicts_agree_in_2020_12(
        schema in schema(),
        definition in schema(),
        values in prop::collection::vec(value(), 8),
    ) {
        agree(&whole(schema, definition, DRAFT_2020), &values)?;
    }

    #[test]
    fn verdicts_agree_in_draft_7(
        schema in schema(),
        definition in schema(),
        values in prop::collection::vec(value(), 8),
    ) {
        agree(&whole(schema, definition, DRAFT_7), &values)?;
    }
}
