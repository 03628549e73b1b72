//! Lines as they stand when Tab is pressed.

use super::*;

fn tool(name: &str, schema: &Value) -> Tool {
    serde_json::from_value(json!({ "name": name, "inputSchema": schema })).unwrap()
}

fn catalog() -> Catalog {
    let order = json!({ "properties": {
        "name": { "type": "string" },
        "size": { "enum": ["small", "large"] },
        "express": { "type": "boolean" }
    } });
    Catalog {
        tools: vec![tool("order", &order), tool("orders", &json!({ "type": "object" }))],
        prompts: vec![
            serde_json::from_value(json!({
                "name": "greet", "arguments": [{ "name": "name" }, { "name": "style" }] }))
            .unwrap(),
        ],
        resources: vec!["test://static".to_owned()],
        templates: vec!["test://users/{name}".to_owned()],
    }
}

fn check(line: &str, expected: &[&str]) {
    let offer = offer(line, &catalog()).unwrap_or_else(|| panic!("{line}: nothing"));
    let Source::Known(found) = offer.source else { panic!("{line}: {offer:?}") };
    let found: Vec<String> =
        found.into_iter().map(|it| format!("{}{it}", &line[..offer.start])).collect();
    assert_eq!(found, expected, "{line}");
}

#[test]
fn words_tools_and_arguments_are_known() {
    check("st", &["status"]);
    check("ord", &["order(", "orders()"]);
    check("call ord", &["call order ", "call orders "]);
    check("call order s", &["call order size="]);
    check("call order size=", &["call order size=large", "call order size=small"]);
    check("call order name=a ", &["call order name=a express=", "call order name=a size="]);
    check("order e", &["order express="]);
    check("order(", &["order(express: ", "order(name: ", "order(size: "]);
    check("order(name: a, s", &["order(name: a, size: "]);
    check("order(size: l", &["order(size: large"]);
    check("order(express:", &["order(express:false", "order(express:true"]);
    check("order {\"s", &["order {\"size\": "]);
    check("order {\"size\": ", &["order {\"size\": \"large\"", "order {\"size\": \"small\""]);
    check("set ver", &["set verbose "]);
    check("set verbose ", &["set verbose off", "set verbose on"]);
    check("log err", &["log errors"]);
    check("help sta", &["help status"]);
    check("raw tools/c", &["raw tools/call "]);
    check("prompt ", &["prompt greet "]);
    check("prompt greet ", &["prompt greet name=", "prompt greet style="]);
    check("prompt greet name=a ", &["prompt greet name=a style="]);
    check("read test://s", &["read test://static"]);
    check("read test://", &["read test://static", "read test://users/"]);
    check("zzz", &[]);
}

#[test]
fn values_of_prompts_and_templates_are_asked_of_the_server() {
    let check = |line: &str, at: usize, before: &str, expected: Value| {
        let Some(Offer { start, source: Source::Server { params, prefix } }) =
            offer(line, &catalog())
        else {
            panic!("{line}");
        };
        assert_eq!((start, prefix.as_str(), params), (at, before, expected), "{line}");
    };
    check(
        "prompt greet name=ada style=f",
        28,
        "",
        json!({
            "ref": { "type": "ref/prompt", "name": "greet" },
            "argument": { "name": "style", "value": "f" },
            "context": { "arguments": { "name": "ada" } }
        }),
    );
    check(
        "read test://users/a",
        5,
        "test://users/",
        json!({
            "ref": { "type": "ref/resource", "uri": "test://users/{name}" },
            "argument": { "name": "name", "value": "a" }
        }),
    );
}

#[test]
fn where_nothing_is_known_nothing_is_offered() {
    for line in ["nothing(a", "ping x", "set roots x", "order(nothing: x"] {
        let offer = offer(line, &catalog());
        assert!(matches!(offer, None | Some(Offer { source: Source::Known(_), .. })), "{line}");
        if let Some(Offer { source: Source::Known(found), .. }) = offer {
            assert!(found.is_empty(), "{line}: {found:?}");
        }
    }
}

#[test]
fn the_common_start_is_found_by_characters() {
    let check = |all: &[&str], expected: &str| {
        let all: Vec<String> = all.iter().map(|it| (*it).to_owned()).collect();
        assert_eq!(common_start(&all), expected);
    };
    check(&[], "");
    check(&["abc"], "abc");
    check(&["abc", "abd", "ab"], "ab");
    check(&["é1", "è1"], "");
    check(&["ab", "abc"], "ab");
}
