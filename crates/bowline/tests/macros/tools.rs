//! `#[tool]`: names, descriptions, hints, results.

use bowline::model::{CallToolResult, ContentBlock};
use bowline::{HandlerError, Structured, tool};
use serde_json::json;

use crate::{answer, called, client_of, listed_tool};

/// Greet somebody.
///
/// With a second paragraph
/// of two lines.
#[tool]
async fn greet(
    /// Whom to greet.
    name: String,
) -> String {
    format!("Hello, {name}!")
}

#[tokio::test]
async fn a_function_is_a_tool() {
    let expected = json!({
        "name": "greet",
        "description": "Greet somebody.\n\nWith a second paragraph\nof two lines.",
        "inputSchema": {
            "type": "object",
            "properties": { "name": { "type": "string", "description": "Whom to greet." } },
            "required": ["name"],
            "additionalProperties": false,
        },
    });
    assert_eq!(listed_tool(greet).await, expected);
    assert_eq!(answer(greet, "greet", json!({ "name": "Ann" })).await, "Hello, Ann!");
}

#[tokio::test]
async fn a_tool_is_still_a_function() {
    assert_eq!(greet().call("Bob".to_owned()).await, "Hello, Bob!");
    assert_eq!(sum().call(2, 3), 5);
}

/// Not this.
#[tool(
    name = "erase-all",
    title = "Erase",
    description = concat!("Erase ", "everything."),
    destructive,
    idempotent,
    open_world = false,
    timeout = "5s",
    icon = "https://example.org/a.png",
    icon = "https://example.org/b.png"
)]
async fn erase() {}

#[tokio::test]
async fn options_say_the_rest() {
    let expected = json!({
        "name": "erase-all",
        "title": "Erase",
        "description": "Erase everything.",
        "inputSchema": { "type": "object", "properties": {}, "additionalProperties": false },
        // Older clients look for the title here.
        "annotations": {
            "title": "Erase",
            "destructiveHint": true,
            "idempotentHint": true,
            "openWorldHint": false,
        },
        "icons": [{ "src": "https://example.org/a.png" }, { "src": "https://example.org/b.png" }],
    });
    assert_eq!(listed_tool(erase).await, expected);
    let client = client_of(erase).await;
    assert_eq!(
        called(&client, "erase-all", json!({})).await,
        json!({ "content": [], "isError": false })
    );
}

#[tool(read_only = true, destructive = false, idempotent = false)]
async fn look() -> bool {
    true
}

#[tool(disabled)]
async fn hidden() -> &'static str {
    "here"
}

#[tokio::test]
async fn hints_can_be_denied_and_tools_disabled() {
    let hints = json!({ "readOnlyHint": true, "destructiveHint": false });
    assert_eq!(listed_tool((look, hidden)).await["annotations"], hints);
}

/// Blocks a thread, not the server.
#[tool]
fn sum(a: i64, b: i64) -> i64 {
    // A variable may have the name of the tool.
    let mut sum = a;
    sum += b;
    sum
}

#[tool]
fn factorial(n: u64) -> u64 {
    if n < 2 { 1 } else { n * factorial(n - 1) }
}

#[tokio::test]
async fn functions_need_not_be_async() {
    assert_eq!(answer(sum, "sum", json!({ "a": 2, "b": 3 })).await, "5");
    assert_eq!(answer(factorial, "factorial", json!({ "n": 5 })).await, "120");
}

#[derive(serde::Serialize, schemars::JsonSchema)]
struct Point {
    /// To the right.
    x: i32,
    y: i32,
}

#[tool]
async fn origin() -> Point {
    Point { x: 0, y: 0 }
}

#[tool]
fn diagonal(n: i32) -> Result<Point, String> {
    if n < 0 { Err(format!("{n} is negative")) } else { Ok(Point { x: n, y: n }) }
}

#[tool]
async fn points() -> Vec<Point> {
    vec![Point { x: 1, y: 2 }]
}

#[tool]
async fn wrapped() -> Structured<Point> {
    Structured(Point { x: 3, y: 4 })
}

#[tokio::test]
async fn structs_become_structured_content() {
    let schema = json!({
        "type": "object",
        "properties": {
            "x": { "type": "integer", "description": "To the right." },
            "y": { "type": "integer" },
        },
        "required": ["x", "y"],
    });
    for tool in [listed_tool(origin).await, listed_tool(diagonal).await, listed_tool(wrapped).await]
    {
        assert_eq!(tool["outputSchema"], schema, "{tool}");
    }
    let client = client_of((origin, diagonal, points)).await;
    let expected = json!({
        "content": [{ "type": "text", "text": r#"{"x":0,"y":0}"# }],
        "structuredContent": { "x": 0, "y": 0 },
        "isError": false,
    });
    assert_eq!(called(&client, "origin", json!({})).await, expected);
    let found = called(&client, "diagonal", json!({ "n": 7 })).await;
    assert_eq!(found["structuredContent"], json!({ "x": 7, "y": 7 }));
    let refused = json!({
        "content": [{ "type": "text", "text": "-7 is negative" }],
        "isError": true,
    });
    assert_eq!(called(&client, "diagonal", json!({ "n": -7 })).await, refused);
    let list = called(&client, "points", json!({})).await;
    assert_eq!(list["structuredContent"], json!([{ "x": 1, "y": 2 }]));
}

/// An alias, like that of `anyhow` and many programs.
type Result<T, E = Box<dyn std::error::Error + Send + Sync>> = std::result::Result<T, E>;

#[tool]
async fn halve(n: u32) -> Result<u32> {
    if n.is_multiple_of(2) { Ok(n / 2) } else { Err("odd".into()) }
}

#[tool]
async fn block() -> ContentBlock {
    ContentBlock::text("one")
}

#[tool]
async fn blocks() -> Vec<ContentBlock> {
    vec![ContentBlock::text("one"), ContentBlock::text("two")]
}

#[tool]
async fn whole() -> Result<CallToolResult, HandlerError> {
    Ok(CallToolResult::failure("no"))
}

#[tool]
async fn anything() -> impl Into<ContentBlock> + bowline::ToolOutput {
    "text".to_owned()
}

#[tokio::test]
async fn outputs_stay_what_they_are() {
    assert_eq!(answer(halve, "halve", json!({ "n": 4 })).await, "2");
    assert_eq!(answer(halve, "halve", json!({ "n": 5 })).await, "tool \"halve\" failed: odd");
    assert_eq!(answer(block, "block", json!({})).await, "one");
    assert_eq!(answer(blocks, "blocks", json!({})).await, "one\ntwo");
    assert_eq!(answer(whole, "whole", json!({})).await, "tool \"whole\" failed: no");
    assert_eq!(answer(anything, "anything", json!({})).await, "text");
    assert!(listed_tool(halve).await.get("outputSchema").is_none());
}

mod elsewhere {
    //! Without any import.

    /// A tool of another module.
    #[bowline::tool(crate = ::bowline)]
    pub(crate) async fn far() -> u8 {
        1
    }

    #[cfg(any())]
    #[bowline::tool]
    async fn never() -> Missing {}

    #[bowline::tool]
    #[cfg(any())]
    async fn never() -> Missing {}
}

#[tokio::test]
async fn tools_come_from_anywhere() {
    #[tool]
    #[allow(unused_variables)]
    async fn near(unused: Option<u8>) -> u8 {
        2
    }
    let client = client_of((elsewhere::far, near)).await;
    assert_eq!(client.call_tool("far", json!({})).text().await.unwrap(), "1");
    assert_eq!(client.call_tool("near", json!({})).text().await.unwrap(), "2");
}
