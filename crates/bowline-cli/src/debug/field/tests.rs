//! Schemas as servers write them, and what people type into them.

use serde_json::json;

use super::*;

fn field(schema: &Value) -> Field {
    Field::new(schema, "x", schema, false)
}

fn check(schema: &Value, text: &str, expected: Result<Value, &str>) {
    match (field(schema).read(text), expected) {
        (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{schema} {text}"),
        (Err(found), Err(part)) => assert!(found.contains(part), "{schema} {text}: {found}"),
        (found, expected) => panic!("{schema} {text}: {found:?}, expected {expected:?}"),
    }
}

#[test]
fn text_is_read_as_the_schema_wants_it() {
    check(&json!({ "type": "string" }), "5", Ok(json!("5")));
    check(&json!({ "type": "string" }), "null", Ok(json!("null")));
    check(&json!({ "type": ["string", "null"] }), "null", Ok(json!(null)));
    check(&json!({ "type": "integer" }), "5", Ok(json!(5)));
    check(&json!({ "type": "integer" }), "123456789012345678", Ok(json!(123456789012345678_u64)));
    check(&json!({ "type": "integer" }), "5.5", Err("no whole number"));
    check(&json!({ "type": "number" }), "5.5", Ok(json!(5.5)));
    check(&json!({ "type": "number" }), "five", Err("no number"));
    check(&json!({ "type": "boolean" }), "yes", Ok(json!(true)));
    check(&json!({ "type": "boolean" }), "N", Ok(json!(false)));
    check(&json!({ "type": "boolean" }), "5", Err("neither yes nor no"));
    check(&json!({ "type": "object" }), "{a: 1}", Ok(json!({ "a": 1 })));
    check(&json!({ "type": "object" }), "[1]", Err("no object"));
    check(&json!({}), "5", Ok(json!(5)));
    check(&json!({}), "{a: [b]}", Ok(json!({ "a": ["b"] })));
    check(&json!({}), "plain words", Ok(json!("plain words")));
}

#[test]
fn lists_are_parts_between_commas_or_json() {
    let numbers = json!({ "type": "array", "items": { "type": "integer" } });
    check(&numbers, "1, 2,3", Ok(json!([1, 2, 3])));
    check(&numbers, "[1, 2]", Ok(json!([1, 2])));
    check(&numbers, "1, x", Err("no whole number"));
    let pets = json!({ "type": "array", "items": { "enum": ["cat", "dog"] } });
    check(&pets, "2, cat", Ok(json!(["dog", "cat"])));
    check(&pets, "bird", Err("none of cat, dog"));
    check(&json!({ "type": "array" }), "[{a: 1}]", Ok(json!([{ "a": 1 }])));
}

#[test]
fn choices_go_by_value_label_and_number() {
    let sizes = json!({ "enum": ["small", "large"], "enumNames": ["Small one", "Large one"] });
    check(&sizes, "large", Ok(json!("large")));
    check(&sizes, "Large one", Ok(json!("large")));
    check(&sizes, "1", Ok(json!("small")));
    check(&sizes, "0", Err("none of small, large"));
    check(&sizes, "3", Err("none of"));
    // A number that is a value is the value.
    check(&json!({ "enum": [3, 1, 2] }), "1", Ok(json!(1)));
    let titled = json!({ "oneOf": [{ "const": "r", "title": "Red" }, { "const": "b" }] });
    check(&titled, "Red", Ok(json!("r")));
}

#[test]
fn composition_is_taken_apart() {
    let nullable = json!({ "anyOf": [{ "type": "integer" }, { "type": "null" }] });
    assert_eq!(field(&nullable).kind, Kind::Integer);
    assert!(field(&nullable).can_be_null);
    let root = json!({
        "$defs": {
            "Size": { "enum": ["s", "l"], "description": "How big" },
            "Loop": { "$ref": "#/$defs/Loop" }
        },
        "type": "object",
        "allOf": [
            { "properties": { "a": { "type": "string" } }, "required": ["a"] },
            { "properties": { "b": { "$ref": "#/$defs/Size" } } }
        ],
        "properties": { "loop": { "$ref": "#/$defs/Loop" }, "gone": { "$ref": "#/$defs/No" } },
        "required": ["b"]
    });
    let found = fields(&root, &root);
    let told: Vec<_> = found.iter().map(|it| (it.name.as_str(), it.is_required)).collect();
    assert_eq!(told, [("loop", false), ("gone", false), ("a", true), ("b", true)]);
    assert_eq!(found[3].about.as_deref(), Some("How big"));
    assert_eq!(found[3].kind.choices().len(), 2);
    assert_eq!(found[0].kind, Kind::Any);
    assert_eq!(found[1].kind, Kind::Any);
    let forms = json!({ "oneOf": [
        { "type": "object", "properties": { "city": {} } },
        { "type": "object", "properties": { "lat": {}, "lon": {} }, "title": "A point" },
        { "type": "string" }
    ] });
    let Kind::Variants(variants) = field(&forms).kind else { panic!("{forms}") };
    let titles: Vec<_> = variants.iter().map(|it| it.title.as_str()).collect();
    assert_eq!(titles, ["object with city", "A point", "text"]);
}

#[test]
fn arguments_are_typed_by_their_fields_and_others_by_their_looks() {
    let schema = json!({ "type": "object", "properties": {
        "zip": { "type": "string" }, "count": { "type": "integer" } } });
    let bare = |name: &str, text: &str| (name.to_owned(), Typed::Bare(text.to_owned()));
    let typed = vec![bare("zip", "01234"), bare("count", "2"), bare("other", "3")];
    let expected = json!({ "zip": "01234", "count": 2, "other": 3 });
    assert_eq!(arguments(&schema, typed), expected);
    // It is the server who should refuse this.
    let wrong = arguments(&schema, vec![bare("count", "two")]);
    assert_eq!(wrong, json!({ "count": "two" }));
}

#[test]
fn values_are_checked_with_the_definitions_of_the_whole() {
    let root = json!({
        "$defs": { "Short": { "type": "string", "maxLength": 3 } },
        "properties": { "names": { "type": "array", "items": { "$ref": "#/$defs/Short" } } }
    });
    let names = &fields(&root, &root)[0];
    assert_eq!(names.check(&root, &json!(["abc"])), Ok(()));
    assert!(names.check(&root, &json!(["abcd"])).unwrap_err().contains("names"));
}
