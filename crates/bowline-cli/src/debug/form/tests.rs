//! Forms as they are filled in: a line a field.

use serde_json::json;

use super::*;

/// Fills in a form; each answer with the start of the prompt that it answers.
fn fill(schema: &Value, answers: &[(&str, &str)]) -> Value {
    let mut form = Form::new(schema);
    for (prompt, answer) in answers {
        match form.step() {
            Step::Ask(ask) => assert!(ask.prompt.starts_with(prompt), "{ask:?}, not {prompt}"),
            Step::Done(filled) => panic!("done before {prompt}: {filled:?}"),
        }
        form.take(answer).unwrap_or_else(|error| panic!("{prompt} {answer}: {error}"));
    }
    match form.step() {
        Step::Done(filled) => Value::Object(filled),
        Step::Ask(ask) => panic!("not done: {ask:?}"),
    }
}

fn refuse(schema: &Value, answer: &str, part: &str) {
    let mut form = Form::new(schema);
    let before = form.step();
    let error = form.take(answer).unwrap_err();
    assert!(error.contains(part), "{error}");
    assert_eq!(form.step(), before, "it asks again");
}

fn order() -> Value {
    json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "description": "Who orders" },
            "count": { "type": "integer", "minimum": 1, "default": 2 },
            "size": { "enum": ["small", "large"] },
            "note": { "type": ["string", "null"] },
            "express": { "type": "boolean" }
        },
        "required": ["name", "count"]
    })
}

#[test]
fn what_is_not_touched_stays_away() {
    let filled = fill(
        &order(),
        &[
            ("name (text, required)", "Ada"),
            ("count (whole number, required, default 2)", ""),
            ("size (one of, optional)", ""),
            ("note (text, optional)", ""),
            ("express (yes or no, optional)", ""),
        ],
    );
    assert_eq!(filled, json!({ "name": "Ada", "count": 2 }));
    assert_eq!(fill(&json!({ "type": "object" }), &[]), json!({}));
}

#[test]
fn each_field_takes_its_kind_or_json() {
    let filled = fill(
        &order(),
        &[("name", "=\"\""), ("count", "7"), ("size", "2"), ("note", "null"), ("express", "yes")],
    );
    let expected =
        json!({ "name": "", "count": 7, "size": "large", "note": null, "express": true });
    assert_eq!(filled, expected);
    // JSON after an equals sign is sent as it is, whatever the schema says.
    assert_eq!(fill(&order(), &[("name", "=5"), ("count", ".")]), json!({ "name": 5, "count": 2 }));
}

#[test]
fn a_wrong_answer_is_asked_again() {
    refuse(&order(), "", "name is required");
    refuse(&order(), ".", "name is required");
    refuse(&order(), "={", "no JSON");
    let count = json!({ "properties": { "count": { "type": "integer", "minimum": 1 } } });
    refuse(&count, "0", "count");
    refuse(&count, "x", "no whole number");
}

#[test]
fn objects_within_are_asked_for_where_they_must_be_there() {
    let schema = json!({
        "$defs": { "Point": { "type": "object", "required": ["x"],
            "properties": { "x": { "type": "number" }, "y": { "type": "number" } } } },
        "properties": {
            "from": { "$ref": "#/$defs/Point" },
            "to": { "$ref": "#/$defs/Point" },
            "via": { "$ref": "#/$defs/Point" }
        },
        "required": ["from"]
    });
    let filled = fill(
        &schema,
        &[
            ("from.x (number, required)", "1"),
            ("from.y", ""),
            ("to (object, optional", ""),
            ("via (object, optional, + to fill in", "+"),
            ("via.x", "2"),
            ("via.y", "3"),
        ],
    );
    assert_eq!(filled, json!({ "from": { "x": 1 }, "via": { "x": 2, "y": 3 } }));
    let answers = [("from.x", "1"), ("from.y", ".")];
    assert_eq!(fill(&schema, &answers), json!({ "from": { "x": 1 } }));
}

#[test]
fn forms_of_a_union_are_chosen_by_number_or_given_as_json() {
    let schema = json!({ "properties": { "place": { "oneOf": [
        { "type": "object", "properties": { "city": { "type": "string" } },
          "required": ["city"] },
        { "type": "string", "title": "A code" }
    ] } }, "required": ["place"] });
    let place = "place (one of several forms, required";
    let filled = fill(&schema, &[(place, "1"), ("place.city", "Rome")]);
    assert_eq!(filled, json!({ "place": { "city": "Rome" } }));
    assert_eq!(fill(&schema, &[(place, "2"), ("place (text", "7")]), json!({ "place": "7" }));
    let answers = [(place, "{city: Oslo}")];
    assert_eq!(fill(&schema, &answers), json!({ "place": { "city": "Oslo" } }));
}

#[test]
fn the_whole_can_be_a_union() {
    let schema = json!({ "type": "object",
        "properties": { "id": { "type": "integer" } },
        "oneOf": [
            { "title": "By name", "properties": { "name": { "type": "string" } } },
            { "title": "By code", "properties": { "code": { "type": "string" } } }
        ] });
    let mut form = Form::new(&schema);
    let Step::Ask(ask) = form.step() else { panic!("nothing to ask") };
    assert_eq!(ask.about, ["  1 By name", "  2 By code"]);
    let filled = fill(&schema, &[("(one of several", "2"), ("id", "1"), ("code", "x")]);
    assert_eq!(filled, json!({ "id": 1, "code": "x" }));
}

#[test]
fn choices_are_shown_and_can_be_completed() {
    let schema = json!({ "properties": { "color": { "oneOf": [
        { "const": "r", "title": "Red" }, { "const": "b", "title": "Blue" }] } } });
    let Step::Ask(ask) = Form::new(&schema).step() else { panic!("nothing to ask") };
    assert_eq!(ask.about, ["  1 r  Red", "  2 b  Blue"]);
    assert_eq!(ask.choices, ["r", "b"]);
}

#[test]
fn a_schema_without_end_is_no_trouble() {
    let schema = json!({ "$defs": { "Node": { "type": "object", "required": ["next"],
        "properties": { "next": { "$ref": "#/$defs/Node" } } } },
        "$ref": "#/$defs/Node" });
    let Step::Ask(ask) = Form::new(&schema).step() else { panic!("nothing to ask") };
    assert!(ask.prompt.starts_with("next.next.next"), "{ask:?}");
}
