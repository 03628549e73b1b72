//! Forms as they are filled in, and what people type into them.

use serde_json::json;

use super::*;

/// Fills in a form; each answer with the start of the prompt that it answers.
fn fill(schema: &Value, answers: &[(&str, &str)]) -> Value {
    let mut form = Form::new(schema, false);
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
    let mut form = Form::new(schema, false);
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
            ("name (string, required)", "Ada"),
            ("count (integer, required, Enter for 2)", ""),
            ("size (one of, optional)", ""),
            ("note (string | null, optional)", ""),
            ("express (boolean, optional)", ""),
        ],
    );
    assert_eq!(filled, json!({ "name": "Ada", "count": 2 }));
    assert_eq!(fill(&json!({ "type": "object" }), &[]), json!({}));
}

#[test]
fn a_question_comes_filled_in_and_an_argument_does_not() {
    let schema = json!({ "properties": { "level": { "type": "string", "default": "low" } } });
    for (has_defaults, prompt, expected) in [
        (true, "level (string, optional, Enter for low)", json!({ "level": "low" })),
        (false, "level (string, optional, the server's default is low)", json!({})),
    ] {
        for answer in ["", "."] {
            let mut form = Form::new(&schema, has_defaults);
            let Step::Ask(ask) = form.step() else { panic!("nothing to ask") };
            assert!(ask.prompt.starts_with(prompt), "{}", ask.prompt);
            form.take(answer).unwrap();
            assert_eq!(form.step(), Step::Done(expected.as_object().unwrap().clone()));
        }
    }
}

#[test]
fn formats_of_questions_are_checked() {
    let of =
        |format: &str| json!({ "properties": { "it": { "type": "string", "format": format } } });
    refuse(&of("email"), "ada", "it: expected an address such as ada@example.org, got \"ada\"");
    refuse(&of("uri"), "example.org", "expected a URI");
    refuse(&of("date"), "tomorrow", "expected a date");
    refuse(&of("date-time"), "2026-07-28", "expected a date, a time");
    assert_eq!(
        fill(&of("email"), &[("it", "ada@example.org")]),
        json!({ "it": "ada@example.org" })
    );
    // Whatever the schema says.
    assert_eq!(fill(&of("email"), &[("it", "=\"ada\"")]), json!({ "it": "ada" }));
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
    refuse(&order(), "={", "invalid JSON");
    let count = json!({ "properties": { "count": { "type": "integer", "minimum": 1 } } });
    refuse(&count, "0", "count");
    refuse(&count, "x", "expected integer");
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
    assert_eq!(fill(&schema, &[(place, "2"), ("place (string", "7")]), json!({ "place": "7" }));
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
    let mut form = Form::new(&schema, false);
    let Step::Ask(ask) = form.step() else { panic!("nothing to ask") };
    assert_eq!(ask.about, ["  1 By name", "  2 By code"]);
    let filled = fill(&schema, &[("(one of several", "2"), ("id", "1"), ("code", "x")]);
    assert_eq!(filled, json!({ "id": 1, "code": "x" }));
}

#[test]
fn choices_are_shown_and_can_be_completed() {
    let schema = json!({ "properties": { "color": { "oneOf": [
        { "const": "r", "title": "Red" }, { "const": "b", "title": "Blue" }] } } });
    let Step::Ask(ask) = Form::new(&schema, false).step() else { panic!("nothing to ask") };
    assert_eq!(ask.about, ["  1 r  Red", "  2 b  Blue"]);
    assert_eq!(ask.choices, ["r", "b"]);
}

#[test]
fn a_schema_without_end_is_no_trouble() {
    let schema = json!({ "$defs": { "Node": { "type": "object", "required": ["next"],
        "properties": { "next": { "$ref": "#/$defs/Node" } } } },
        "$ref": "#/$defs/Node" });
    let Step::Ask(ask) = Form::new(&schema, false).step() else { panic!("nothing to ask") };
    assert!(ask.prompt.starts_with("next.next.next"), "{ask:?}");
}

fn check(schema: &Value, text: &str, expected: Result<Value, &str>) {
    match (read(&View::new(schema), text), expected) {
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
    check(&json!({ "type": "integer" }), "5.5", Err("expected integer"));
    check(&json!({ "type": "number" }), "5.5", Ok(json!(5.5)));
    check(&json!({ "type": "number" }), "five", Err("expected number"));
    check(&json!({ "type": "boolean" }), "yes", Ok(json!(true)));
    check(&json!({ "type": "boolean" }), "N", Ok(json!(false)));
    check(&json!({ "type": "boolean" }), "5", Err("expected boolean"));
    check(&json!({ "type": "object" }), "{a: 1}", Ok(json!({ "a": 1 })));
    check(&json!({ "type": "object" }), "[1]", Err("expected object"));
    check(&json!({}), "5", Ok(json!(5)));
    check(&json!({}), "{a: [b]}", Ok(json!({ "a": ["b"] })));
    check(&json!({}), "plain words", Ok(json!("plain words")));
}

#[test]
fn lists_are_parts_between_commas_or_json() {
    let numbers = json!({ "type": "array", "items": { "type": "integer" } });
    check(&numbers, "1, 2,3", Ok(json!([1, 2, 3])));
    check(&numbers, "[1, 2]", Ok(json!([1, 2])));
    check(&numbers, "1, x", Err("expected integer"));
    let pets = json!({ "type": "array", "items": { "enum": ["cat", "dog"] } });
    check(&pets, "2, cat", Ok(json!(["dog", "cat"])));
    check(&pets, "bird", Err("one of cat, dog"));
    check(&json!({ "type": "array" }), "[{a: 1}]", Ok(json!([{ "a": 1 }])));
}

#[test]
fn choices_go_by_value_label_and_number() {
    let sizes = json!({ "enum": ["small", "large"], "enumNames": ["Small one", "Large one"] });
    check(&sizes, "large", Ok(json!("large")));
    check(&sizes, "Large one", Ok(json!("large")));
    check(&sizes, "1", Ok(json!("small")));
    check(&sizes, "0", Err("one of small, large"));
    check(&sizes, "3", Err("expected one of"));
    // A number that is a value is the value.
    check(&json!({ "enum": [3, 1, 2] }), "1", Ok(json!(1)));
    let titled = json!({ "oneOf": [{ "const": "r", "title": "Red" }, { "const": "b" }] });
    check(&titled, "Red", Ok(json!("r")));
}

#[test]
fn composition_is_taken_apart() {
    let nullable = json!({ "anyOf": [{ "type": "integer" }, { "type": "null" }] });
    check(&nullable, "5", Ok(json!(5)));
    check(&nullable, "null", Ok(json!(null)));
    check(&nullable, "five", Err("expected integer | null"));
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
    let found = View::new(&root).own_properties();
    let told: Vec<_> = found.iter().map(|it| (it.name.as_str(), it.is_required)).collect();
    assert_eq!(told, [("loop", false), ("gone", false), ("a", true), ("b", true)]);
    assert_eq!(found[3].view.about(), Some("How big"));
    assert_eq!(found[3].view.choices().map(|choices| choices.len()), Some(2));
    assert_eq!(found[0].view.kinds(), Kinds::ANY);
    assert_eq!(found[1].view.kinds(), Kinds::ANY);
    let several = json!({ "oneOf": [
        { "type": "object", "properties": { "city": {} } },
        { "type": "object", "properties": { "lat": {}, "lon": {} }, "title": "A point" },
        { "type": "string" }
    ] });
    let several = forms(&View::new(&several));
    let titles: Vec<_> = several.iter().enumerate().map(|(at, form)| title(form, at)).collect();
    assert_eq!(titles, ["object with city", "A point", "string"]);
}

#[test]
fn values_are_checked_with_the_definitions_of_the_whole() {
    let root = json!({
        "$defs": { "Short": { "type": "string", "maxLength": 3 } },
        "properties": { "names": { "type": "array", "items": { "$ref": "#/$defs/Short" } } }
    });
    let names = View::new(&root).property("names").unwrap();
    assert_eq!(names.check("names", &json!(["abc"])), Ok(()));
    assert!(names.check("names", &json!(["abcd"])).unwrap_err().contains("names"));
}
