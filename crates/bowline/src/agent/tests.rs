//! One table per provider: schemas, calls and results.

#![expect(clippy::needless_pass_by_value, reason = "`json!` at the call reads best")]

use bowline_proto::model::{CallToolResult, ContentBlock, Tool};
use serde_json::{Value, json};

use super::{FunctionCall, Functions, ToolUse};

fn tool(properties: Value, required: Value) -> Tool {
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": properties,
        "required": required,
        "$defs": {
            "Unit": { "type": "string", "enum": ["c", "f"], "description": "of temperature" },
            "Place": {
                "type": "object",
                "properties": { "city": { "type": "string", "minLength": 1 }, "unit": { "$ref": "#/$defs/Unit" } },
                "required": ["city"]
            },
            "Tree": { "type": "object", "properties": { "next": { "$ref": "#/$defs/Tree" } } }
        }
    });
    Tool::new("t", schema.into())
}

/// The schema of one property, required or not, as a provider gets it; and whether it is strict.
fn written(functions: fn(&[Tool]) -> Functions, property: &Value, required: bool) -> (Value, bool) {
    let required = if required { json!(["p"]) } else { json!([]) };
    let functions = functions(&[tool(json!({ "p": property }), required)]);
    let definition = &functions.definitions()[0];
    let place = ["/function/parameters", "/input_schema", "/functionDeclarations/0/parameters"];
    let schema = place.iter().find_map(|place| definition.pointer(place)).unwrap();
    let is_strict = definition["function"]["strict"] == true;
    (schema["properties"]["p"].clone(), is_strict)
}

#[test]
fn strict_functions_of_openai() {
    let check = |property: Value, required: bool, expected: Value| {
        let (found, is_strict) = written(Functions::openai_strict, &property, required);
        assert!(is_strict, "{property}");
        assert_eq!(found, expected, "{property}");
    };
    check(json!({ "type": "string" }), true, json!({ "type": "string" }));
    check(json!({ "type": "string" }), false, json!({ "type": ["string", "null"] }));
    let text =
        json!({ "type": "string", "minLength": 2, "default": "x", "format": "uri", "title": "T" });
    check(text, true, json!({ "type": "string" }));
    check(
        json!({ "type": "integer", "minimum": 1, "format": "int64", "description": "d" }),
        true,
        json!({ "type": "integer", "minimum": 1, "description": "d" }),
    );
    let unit = json!({ "type": "string", "enum": ["c", "f"], "description": "of temperature" });
    check(json!({ "$ref": "#/$defs/Unit" }), true, unit);
    let described = json!({ "$ref": "#/$defs/Unit", "description": "mine" });
    let unit =
        json!({ "type": ["string", "null"], "enum": ["c", "f", null], "description": "mine" });
    check(described, false, unit);
    check(json!({ "const": 3 }), true, json!({ "enum": [3] }));
    let place = json!({
        "type": "object",
        "properties": {
            "city": { "type": "string" },
            "unit": { "type": ["string", "null"], "enum": ["c", "f", null], "description": "of temperature" }
        },
        "required": ["city", "unit"],
        "additionalProperties": false
    });
    check(json!({ "$ref": "#/$defs/Place" }), true, place.clone());
    check(json!({ "allOf": [{ "$ref": "#/$defs/Place" }] }), true, place.clone());
    let places =
        json!({ "type": "array", "items": { "$ref": "#/$defs/Place" }, "uniqueItems": true });
    check(places, true, json!({ "type": "array", "items": place }));
    let union = json!({ "oneOf": [{ "type": "string" }, { "type": "null" }] });
    check(union, false, json!({ "anyOf": [{ "type": "string" }, { "type": "null" }] }));
    let union = json!({ "anyOf": [{ "type": "string" }, { "type": "integer" }] });
    let nullable =
        json!({ "anyOf": [{ "type": "string" }, { "type": "integer" }, { "type": "null" }] });
    check(union, false, nullable);
    // What strict mode cannot express stays as it is.
    for property in [
        json!({ "type": "object", "additionalProperties": { "type": "string" } }),
        json!({ "type": "object" }),
        json!({ "$ref": "#/$defs/Tree" }),
        json!({ "$ref": "https://example.com/x" }),
        json!({}),
        json!(true),
    ] {
        let (found, is_strict) = written(Functions::openai_strict, &property, true);
        assert_eq!((found, is_strict), (property, false));
    }
}

#[test]
fn functions_of_openai_and_anthropic_keep_their_schemas() {
    for functions in [Functions::openai, Functions::anthropic] {
        let property = json!({ "$ref": "#/$defs/Tree", "x": 1 });
        assert_eq!(written(functions, &property, false), (property, false));
        let root = json!({ "anyOf": [
            { "properties": { "a": { "type": "string" }, "b": {} }, "required": ["a", "b"] },
            { "properties": { "a": { "type": "string" }, "c": {} }, "required": ["a"] }
        ] });
        let functions = functions(&[Tool::new("t", root.into()), Tool::new("e", json!({}).into())]);
        let definitions = functions.definitions().to_string();
        assert!(!definitions.contains("anyOf"), "{definitions}");
        let joined = json!({
            "type": "object",
            "properties": { "a": { "type": "string" }, "b": {}, "c": {} },
            "required": ["a"]
        });
        let definition = &functions.definitions()[0];
        let schema =
            definition.get("input_schema").unwrap_or_else(|| &definition["function"]["parameters"]);
        assert_eq!(schema, &joined);
        assert!(definitions.contains(r#""properties":{}"#), "{definitions}");
    }
}

#[test]
fn functions_of_gemini() {
    let check = |property: Value, expected: Value| {
        assert_eq!(written(Functions::gemini, &property, true).0, expected, "{property}");
    };
    check(json!({ "type": ["string", "null"] }), json!({ "type": "string", "nullable": true }));
    check(
        json!({ "type": ["string", "integer"] }),
        json!({ "anyOf": [{ "type": "string" }, { "type": "integer" }] }),
    );
    check(
        json!({ "type": "integer", "format": "uint8", "exclusiveMinimum": 0, "maximum": 9 }),
        json!({ "type": "integer", "maximum": 9 }),
    );
    let unit = json!({ "type": "string", "enum": ["c", "f"], "description": "of temperature" });
    check(json!({ "$ref": "#/$defs/Unit" }), unit.clone());
    check(
        json!({ "type": "integer", "enum": [1, 2] }),
        json!({ "type": "string", "enum": ["1", "2"] }),
    );
    check(
        json!({ "enum": ["a", null] }),
        json!({ "type": "string", "enum": ["a"], "nullable": true }),
    );
    check(
        json!({ "oneOf": [{ "const": "a" }, { "const": "b" }] }),
        json!({ "type": "string", "enum": ["a", "b"] }),
    );
    let place = json!({
        "type": "object",
        "properties": { "city": { "type": "string", "minLength": 1 }, "unit": unit },
        "required": ["city"]
    });
    check(
        json!({ "type": "array", "items": { "$ref": "#/$defs/Place" } }),
        json!({ "type": "array", "items": place }),
    );
    let mut nullable = place;
    nullable["nullable"] = json!(true);
    check(json!({ "anyOf": [{ "$ref": "#/$defs/Place" }, { "type": "null" }] }), nullable);
    check(
        json!({ "type": "object", "additionalProperties": { "type": "string" } }),
        json!({ "type": "object" }),
    );
    let tree = written(Functions::gemini, &json!({ "$ref": "#/$defs/Tree" }), true).0;
    assert!(!tree.to_string().contains("$ref"), "{tree}");
    let empty = Functions::gemini(&[Tool::new("e", json!({ "type": "object" }).into())]);
    assert_eq!(
        empty.definitions(),
        &json!([{ "functionDeclarations": [{ "name": "e", "description": "e" }] }])
    );
}

fn all(schema: Value) -> [Functions; 4] {
    let mut tool = Tool::new("get.it", schema.into());
    tool.description = Some("Gets it.".to_owned());
    let tools = [tool];
    [
        Functions::openai(&tools),
        Functions::openai_strict(&tools),
        Functions::anthropic(&tools),
        Functions::gemini(&tools),
    ]
}

fn message(functions: &Functions, name: &str, arguments: Value) -> Value {
    match functions.provider {
        super::Provider::OpenAi => json!({ "role": "assistant", "content": null, "tool_calls": [
            { "id": "7", "type": "function", "function": { "name": name, "arguments": arguments.to_string() } }
        ] }),
        super::Provider::Anthropic => json!({ "role": "assistant", "content": [
            { "type": "text", "text": "Let me see." },
            { "type": "tool_use", "id": "7", "name": name, "input": arguments }
        ] }),
        super::Provider::Gemini => json!({ "role": "model", "parts": [
            { "text": "Let me see." }, { "functionCall": { "id": "7", "name": name, "args": arguments } }
        ] }),
    }
}

#[test]
fn calls_are_found_and_named_as_the_server_names_them() {
    let schema = json!({ "type": "object", "properties": {
        "a": { "type": "integer" }, "maybe": { "type": ["string", "null"] }
    } });
    for functions in all(schema) {
        let call =
            functions.calls(&message(&functions, "get_it", json!({ "a": 1, "maybe": null })));
        let [FunctionCall { id, function, tool: Ok(ToolUse { name, arguments }) }] = &call[..]
        else {
            panic!("{call:?}");
        };
        assert_eq!(
            (id.as_deref(), function.as_str(), name.as_str()),
            (Some("7"), "get_it", "get.it")
        );
        assert_eq!(Value::Object(arguments.clone()), json!({ "a": 1, "maybe": null }));
        let unknown = functions.calls(&message(&functions, "got", json!({}))).remove(0);
        assert_eq!(unknown.tool.unwrap_err(), r#"there is no function "got""#);
        let list = functions.calls(&message(&functions, "get_it", json!([]))).remove(0);
        assert_eq!(list.tool.unwrap_err(), r#"the arguments of "get_it" must be an object"#);
        assert_eq!(functions.calls(&json!({ "role": "assistant", "content": "Done." })), []);
    }
    let [functions, ..] = all(json!({}));
    let mut broken = message(&functions, "get_it", json!({}));
    broken["tool_calls"][0]["function"]["arguments"] = json!("{");
    let problem = functions.calls(&broken).remove(0).tool.unwrap_err();
    assert!(problem.contains("not valid JSON"), "{problem}");
    broken["tool_calls"][0]["function"]["arguments"] = json!("");
    assert!(functions.calls(&broken).remove(0).tool.is_ok());
}

#[test]
fn arguments_are_restored() {
    let schema = json!({
        "type": "object",
        "properties": {
            "must": { "type": ["string", "null"] },
            "may": { "type": "string" },
            "null": { "type": ["string", "null"] },
            "place": { "$ref": "#/$defs/Place" },
            "places": { "type": "array", "items": { "$ref": "#/$defs/Place" } },
            "either": { "anyOf": [
                { "type": "object", "properties": { "x": { "type": "string" } }, "additionalProperties": false },
                { "type": "object", "properties": { "y": { "type": "string" } }, "additionalProperties": false }
            ] },
            "size": { "enum": [1, 2, "3"] }
        },
        "required": ["must"],
        "$defs": { "Place": { "type": "object", "properties": { "city": { "type": "string" } } } }
    });
    let given = json!({
        "must": null, "may": null, "null": null, "place": { "city": null }, "size": null,
        "places": [{ "city": null }, { "city": "Rome" }], "either": { "y": null }
    });
    let restored = json!({
        "must": null, "null": null, "place": {}, "places": [{}, { "city": "Rome" }], "either": {}
    });
    let [_, strict, _, gemini] = all(schema);
    assert_eq!(strict.definitions()[0]["function"]["strict"], true);
    let restore = |functions: &Functions, arguments: Value| {
        let call = functions.calls(&message(functions, "get_it", arguments)).remove(0);
        Value::Object(call.tool.unwrap().arguments)
    };
    assert_eq!(restore(&strict, given), restored);
    for (given, restored) in [("1", json!(1)), ("3", json!("3")), ("9", json!("9"))] {
        assert_eq!(restore(&gemini, json!({ "size": given })), json!({ "size": restored }));
    }
}

#[test]
fn results_become_messages() {
    let call = FunctionCall {
        id: Some("7".to_owned()),
        function: "get_it".to_owned(),
        tool: Err(String::new()),
    };
    let content = vec![ContentBlock::text("one"), ContentBlock::image("QUJD", "image/png")];
    let result = CallToolResult::success(content);
    let failure = CallToolResult::failure("no such thing");
    let mut data = CallToolResult::success(Vec::new());
    data.structured_content = Some(json!({ "x": 1 }).into());
    let results = [(call.clone(), result), (call.clone(), failure), (call, data)];
    let [openai, _, anthropic, gemini] = all(json!({}));
    let tool = |content: &str| json!({ "role": "tool", "tool_call_id": "7", "content": content });
    let image = json!({ "url": "data:image/png;base64,QUJD" });
    let images = json!({ "role": "user", "content": [
        { "type": "text", "text": "Images that get_it returned:" },
        { "type": "image_url", "image_url": image }
    ] });
    let expected = [tool("one"), tool("Error: no such thing"), tool(r#"{"x":1}"#), images];
    assert_eq!(openai.results(&results), expected);
    let source = json!({ "type": "base64", "media_type": "image/png", "data": "QUJD" });
    let block =
        |content: Value| json!({ "type": "tool_result", "tool_use_id": "7", "content": content });
    let mut failed = block(json!([{ "type": "text", "text": "no such thing" }]));
    failed["is_error"] = json!(true);
    let expected = json!([{ "role": "user", "content": [
        block(json!([{ "type": "text", "text": "one" }, { "type": "image", "source": source }])),
        failed,
        block(json!([{ "type": "text", "text": r#"{"x":1}"# }]))
    ] }]);
    assert_eq!(json!(anthropic.results(&results)), expected);
    let response = |response: Value| json!({ "functionResponse": { "id": "7", "name": "get_it", "response": response } });
    let expected = json!([{ "role": "user", "parts": [
        response(json!({ "output": "one" })),
        { "inlineData": { "mimeType": "image/png", "data": "QUJD" } },
        response(json!({ "error": "no such thing" })),
        response(json!({ "output": { "x": 1 } }))
    ] }]);
    assert_eq!(json!(gemini.results(&results)), expected);
    for functions in [openai, anthropic, gemini] {
        assert!(functions.results(&[]).is_empty());
    }
}

/// References that multiply do not exhaust the memory.
#[test]
fn references_that_multiply_are_bounded() {
    let mut definitions = serde_json::Map::new();
    definitions.insert("d0".to_owned(), json!({ "type": "string" }));
    for step in 1..40 {
        let twice = json!({ "$ref": format!("#/$defs/d{}", step - 1) });
        let properties = json!({ "a": twice, "b": twice });
        let schema = json!({ "type": "object", "properties": properties });
        definitions.insert(format!("d{step}"), schema);
    }
    let schema = json!({
        "type": "object",
        "properties": { "p": { "$ref": "#/$defs/d39" } },
        "$defs": definitions
    });
    for functions in all(schema) {
        assert!(functions.definitions().is_array());
    }
}
