//! Which arguments a tool or prompt takes: the same rules for every form, in every revision.

use std::collections::BTreeMap;

use bowline::{Context, Prompt, Revision, Server, Tool, testing};
use serde_json::{Value, json};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Search {
    /// What to find.
    query: String,
    #[serde(default)]
    limit: u64,
    #[serde(default, alias = "from")]
    start: i64,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Bounded {
    #[schemars(range(min = 1, max = 10))]
    size: u8,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Open {
    name: String,
    #[serde(flatten)]
    others: BTreeMap<String, Value>,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Flat {
    name: String,
    #[serde(flatten)]
    bounded: Bounded,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Empty {}

/// Serde and the schema disagree: the schema only says `string`.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Address {
    address: std::net::Ipv4Addr,
    #[serde(default)]
    #[schemars(with = "String")]
    number: u8,
}

fn server() -> Server {
    let found = |search: Search| async move {
        format!("{} {} {}", search.query, search.limit, search.start)
    };
    let schema = json!({ "type": "object", "properties": { "a": { "type": "integer" } } });
    Server::new("arguments", "1.0.0")
        .with(Tool::new("search", found))
        .with(Tool::new("lenient", found).lenient())
        .with(Tool::new("bounded", |it: Bounded| async move { it.size }))
        .with(Tool::new("open", |it: Open| async move { format!("{}{:?}", it.name, it.others) }))
        .with(Tool::new(
            "flat",
            |it: Flat| async move { format!("{}{}", it.name, it.bounded.size) },
        ))
        .with(Tool::new("none", || async { "none" }))
        .with(Tool::new("empty", |_: Context, _: Empty| async { "empty" }))
        .with(Tool::new(
            "address",
            |it: Address| async move { format!("{}{}", it.address, it.number) },
        ))
        .with(Tool::raw("raw", schema, |_, arguments| async move { arguments.as_str().to_owned() }))
        .with(Prompt::new("write", |search: Search| async move { search.query }))
        .with(Prompt::new("plain", || async { "plain" }))
}

/// The text that a tool returns, or what is wrong with its arguments, in every revision.
async fn check(tool: &str, arguments: Value, expected: Result<&str, &str>) {
    for revision in Revision::ALL {
        let client = testing::connect_in(server(), revision).await.unwrap();
        let called = client.call_tool(tool, &arguments).text().await;
        match (called, expected) {
            (Ok(text), Ok(expected)) => assert_eq!(text, expected, "{revision}: {arguments}"),
            (Err(error), Err(expected)) => {
                let error = error.to_string();
                assert!(error.contains(expected), "{revision}: {arguments}: {error}");
                assert!(!error.contains("invalid type"), "{revision}: {arguments}: {error}");
            }
            (called, _) => panic!("{revision}: {arguments}: {called:?}, expected {expected:?}"),
        }
    }
}

#[tokio::test]
async fn unknown_arguments_are_rejected_by_every_form() {
    let known = "search: arguments.x is unknown; the known names are limit, query, start";
    check("search", json!({ "query": "a", "x": 1 }), Err(known)).await;
    check("none", json!({ "x": 1 }), Err("arguments.x is unknown; no members are allowed")).await;
    check("empty", json!({ "x": 1 }), Err("arguments.x is unknown; no members are allowed")).await;
    check("bounded", json!({ "size": 1, "x": 1 }), Err("arguments.x is unknown")).await;
    check("flat", json!({ "name": "a", "size": 1, "x": 1 }), Err("arguments.x is unknown")).await;
    check("flat", json!({ "name": "a", "size": 1 }), Ok("a1")).await;
    // A map takes the rest, and a schema of one's own decides itself.
    check("open", json!({ "name": "a", "x": 1 }), Ok(r#"a{"x": Number(1)}"#)).await;
    check("raw", json!({ "x": 1 }), Ok(r#"{"x":1}"#)).await;
    check("none", json!({}), Ok("none")).await;
    check("empty", json!({}), Ok("empty")).await;
    check("search", json!({ "query": "a", "from": 2 }), Ok("a 0 2")).await;
}

#[tokio::test]
async fn the_schema_says_which_arguments_there_are() {
    let client = testing::connect(server()).await.unwrap();
    for tool in client.list_tools().await.unwrap() {
        let schema = tool.input_schema.to_value();
        let expected = match tool.name.as_str() {
            "open" => Some(json!(true)),
            "raw" => None,
            _ => Some(json!(false)),
        };
        assert_eq!(schema.get("additionalProperties"), expected.as_ref(), "{}", tool.name);
    }
}

#[tokio::test]
async fn whole_numbers_are_integers_and_null_is_absent() {
    check("search", json!({ "query": "a", "limit": 5.0, "start": -2e3 }), Ok("a 5 -2000")).await;
    check("search", json!({ "query": "a", "limit": null, "from": 1 }), Ok("a 0 1")).await;
    check("bounded", json!({ "size": 7.0 }), Ok("7")).await;
    check("raw", json!({ "a": null, "b": null }), Ok(r#"{"b":null}"#)).await;
    check("search", json!({ "query": null }), Err("arguments.query is null")).await;
}

#[tokio::test]
async fn messages_say_what_is_expected_in_words_of_json() {
    check("search", json!({}), Err("arguments.query is missing")).await;
    check("search", json!({ "query": "a", "limit": 5.5 }), Err("arguments.limit is 5.5")).await;
    check("search", json!({ "query": "a", "limit": "5" }), Err(r#"arguments.limit is "5""#)).await;
    check("bounded", json!({ "size": 11 }), Err("arguments.size is 11; expected at most 10")).await;
    check("address", json!({ "address": "x" }), Err("arguments.address: invalid IPv4")).await;
    let error = r#"arguments.number is "ab", not an integer from 0 to 255"#;
    check("address", json!({ "address": "1.2.3.4", "number": "ab" }), Err(error)).await;
}

#[tokio::test]
async fn lenient_tools_read_json_in_strings_and_ignore_what_they_do_not_know() {
    check("lenient", json!({ "query": "5", "limit": "7", "x": 1 }), Ok("5 7 0")).await;
    check("lenient", json!({ "query": "a", "start": "-3.0" }), Ok("a 0 -3")).await;
    check("lenient", json!({ "query": "a", "limit": "x" }), Err("arguments.limit is")).await;
    check("lenient", json!({ "query": 5 }), Err("arguments.query is 5")).await;
}

#[tokio::test]
async fn prompts_follow_the_same_rule() {
    for revision in Revision::ALL {
        let client = testing::connect_in(server(), revision).await.unwrap();
        let get = |name, texts: &[(&str, &str)]| client.get_prompt(name, texts);
        let error = get("write", &[("query", "a"), ("x", "1")]).await.unwrap_err().to_string();
        let expected = "params.arguments.x is unknown; the known names are query, limit, start";
        assert!(error.contains(expected), "{revision}: {error}");
        let error = get("plain", &[("x", "1")]).await.unwrap_err().to_string();
        assert!(error.contains("x is unknown; there are no arguments"), "{revision}: {error}");
        assert!(get("write", &[("query", "a"), ("from", "1")]).await.is_ok(), "{revision}");
    }
}
