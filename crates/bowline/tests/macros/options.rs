//! Options: everything that the builders do.

use std::time::Duration;

use bowline::model::{Annotations, CallToolResult, Icon, ToolAnnotations};
use bowline::{
    Caller, Completing, Era, Revision, prompt, resource, schema_for, server, testing, tool,
};
use serde_json::{Value, json};

use crate::{client_of, listed, listed_tool};

fn icon(sizes: &str) -> Icon {
    Icon { sizes: Some(vec![sizes.to_owned()]), ..Icon::from("https://example.org/c.png") }
}

/// Draw a shape.
#[tool(
    read_only,
    annotations = ToolAnnotations { title: Some("Draw".to_owned()), ..ToolAnnotations::default() },
    icon = "data:,a",
    icon = format!("data:,{}", "b"),
    icon = icon("48x48"),
    meta(color = "red", "com.example/cost" = json!({ "cents": 5 }), r#type = 1 + 1),
    input_schema = json!({ "type": "object", "properties": { "sides": { "const": 3 } } }),
    output_schema = schema_for::<Shape>(),
    scopes = ["draw"],
)]
async fn draw(sides: Option<u8>) -> CallToolResult {
    let mut result = CallToolResult::success(Vec::new());
    result.structured_content = Some(bowline::Json::from(&json!({ "sides": sides })));
    result
}

#[derive(schemars::JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct Shape {
    sides: u8,
}

#[tokio::test]
async fn a_tool_has_every_option_of_its_builder() {
    let tool = listed_tool(draw).await;
    let integer = &tool["outputSchema"]["properties"]["sides"]["type"];
    assert_eq!(integer, "integer", "{tool}");
    let expected = json!({
        "name": "draw",
        "description": "Draw a shape.",
        "inputSchema": { "type": "object", "properties": { "sides": { "const": 3 } } },
        "outputSchema": tool["outputSchema"],
        "annotations": { "title": "Draw", "readOnlyHint": true },
        "icons": [
            { "src": "data:,a" },
            { "src": "data:,b" },
            { "src": "https://example.org/c.png", "sizes": ["48x48"] },
        ],
        "_meta": { "color": "red", "com.example/cost": { "cents": 5 }, "type": 2 },
    });
    assert_eq!(tool, expected);
    let client = client_of(draw).await;
    client.call_tool("draw", json!({ "sides": 3 })).await.unwrap();
    let told = client.call_tool("draw", json!({ "sides": 4 })).text().await.unwrap_err();
    assert!(told.to_string().contains("sides"), "{told}");
}

#[tool(ui = "ui://view", app_only)]
async fn shown() {}

#[tool(model_only, app_only = false)]
async fn unseen() {}

#[tokio::test]
async fn a_tool_has_an_app() {
    let view = || bowline::Resource::app("ui://view", "<!doctype html>");
    let tool = listed_tool((shown, view())).await;
    let ui = json!({ "resourceUri": "ui://view", "visibility": ["app"] });
    assert_eq!(tool["_meta"], json!({ "ui": ui, "ui/resourceUri": "ui://view" }));
    let tool = listed_tool(unseen).await;
    assert_eq!(tool["_meta"], json!({ "ui": { "visibility": ["model"] } }));
}

#[tool(timeout = "20ms")]
async fn short() -> u8 {
    std::future::pending().await
}

const BRIEF: Duration = Duration::from_millis(20);

#[tool(timeout = BRIEF / 2)]
async fn shorter() -> u8 {
    std::future::pending().await
}

#[tokio::test]
async fn a_timeout_is_text_or_a_duration() {
    let client = client_of((short, shorter)).await;
    for name in ["short", "shorter"] {
        let error = client.call_tool(name, json!({})).await.unwrap_err().to_string();
        assert!(error.contains("timed out"), "{error}");
    }
}

fn is_modern(caller: &Caller) -> bool {
    caller.era() == Era::Modern
}

#[tool(visible_to = is_modern)]
async fn new() {}

#[prompt(visible_to = |caller| caller.era() == Era::Legacy, meta("a/b" = [1]))]
async fn old() -> &'static str {
    "old"
}

#[resource(
    "test:size",
    size = 3,
    annotations = Annotations { priority: Some(0.5), ..Annotations::default() },
    meta(a = true),
    icon = icon("any"),
    visible_to = is_modern,
)]
async fn sized() -> &'static str {
    "abc"
}

#[tokio::test]
async fn each_caller_sees_what_is_for_it() {
    for revision in Revision::ALL {
        let server = bowline::Server::new("test", "1.0.0").with((new, old, sized));
        let client = testing::connect_in(server, revision).await.unwrap();
        let count = |list: &[Value]| list.len();
        let list = async |method: &str, member: &str| {
            let result = client.call_json(method, json!({})).await.unwrap().to_value();
            count(result[member].as_array().unwrap())
        };
        let modern = usize::from(revision.is_modern());
        assert_eq!(list("tools/list", "tools").await, modern, "{revision}");
        assert_eq!(list("prompts/list", "prompts").await, 1 - modern, "{revision}");
        assert_eq!(list("resources/list", "resources").await, modern, "{revision}");
    }
}

#[tokio::test]
async fn a_resource_has_every_option_of_its_builder() {
    let expected = json!({
        "uri": "test:size",
        "name": "sized",
        "size": 3,
        "annotations": { "priority": 0.5 },
        "icons": [{ "src": "https://example.org/c.png", "sizes": ["any"] }],
        "_meta": { "a": true },
    });
    assert_eq!(listed(&client_of(sized).await, "resources/list", "resources").await, expected);
}

struct Library {
    languages: Vec<String>,
    is_open: bool,
}

#[server]
impl Library {
    /// Choose a book.
    #[prompt(complete(language = self.languages, "page-size" = Self::sizes))]
    async fn choose(&self, language: String, #[arg(rename = "page-size")] size: u8) -> String {
        format!("{language} {size}")
    }

    /// A book.
    #[resource("books://{language}", complete(language = self.languages))]
    async fn book(language: String) -> String {
        language
    }

    /// Borrow a book.
    #[tool(visible_to = self.admits)]
    async fn borrow(&self) {}

    /// Burn a book.
    #[tool(visible_to = Self::is_nobody)]
    async fn burn(&self) {}

    async fn languages(&self, typed: Completing) -> Vec<String> {
        typed.matching(&self.languages)
    }

    async fn sizes(typed: Completing) -> Vec<String> {
        typed.matching(&["A4", "A5"])
    }

    fn admits(&self, caller: &Caller) -> bool {
        self.is_open && caller.principal.is_none()
    }

    fn is_nobody(_: &Caller) -> bool {
        false
    }
}

#[tokio::test]
async fn methods_of_a_server_complete_and_decide() {
    for (is_open, seen) in [(true, 1), (false, 0)] {
        let languages = vec!["Norwegian".to_owned(), "Nepali".to_owned(), "Thai".to_owned()];
        let client = client_of(Library { languages, is_open }).await;
        let found = client.complete_prompt("choose", ("language", "n"), &[]).await.unwrap();
        assert_eq!(found.completion.values, ["Norwegian", "Nepali"]);
        let found = client.complete_prompt("choose", ("page-size", "a5"), &[]).await.unwrap();
        assert_eq!(found.completion.values, ["A5"]);
        let template = "books://{language}";
        let found = client.complete_template(template, ("language", "t"), &[]).await.unwrap();
        assert_eq!(found.completion.values, ["Thai"]);
        assert_eq!(client.list_tools().await.unwrap().len(), seen);
    }
}
