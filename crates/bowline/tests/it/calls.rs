//! Tools, prompts, resources and lists, called in every revision.

use bowline::model::ContentBlock;
use bowline::{Prompt, Resource, Revision, Server, Structured, Tool, testing};
use serde_json::json;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Sum {
    /// The first number.
    a: i64,
    /// The second number.
    b: i64,
}

#[derive(serde::Serialize, schemars::JsonSchema)]
struct Point {
    x: i64,
    y: i64,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Topic {
    /// What to write about.
    topic: String,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct User {
    id: u32,
}

fn server() -> Server {
    Server::new("it", "1.0.0")
        .with(Tool::new("sum", |sum: Sum| async move { sum.a + sum.b }).description("Add"))
        .with(Tool::new("point", || async { Structured(Point { x: 1, y: 2 }) }))
        .with(Tool::new("fails", || async { Err::<String, _>("no luck") }))
        .with(Tool::new("panics", || async {
            if true {
                panic!("secret");
            }
        }))
        .with(Prompt::new("write", |topic: Topic| async move { format!("Write: {}", topic.topic) }))
        .with(Resource::text("it://text", "text", "hello"))
        .with(Resource::bytes("it://bytes", "bytes", *b"\x00\xff"))
        .with(Resource::new("it://users/{id}", "user", |user: User| async move {
            format!("user {}", user.id)
        }))
}

#[tokio::test]
async fn everything_works_in_every_revision() {
    for revision in Revision::ALL {
        let client = testing::connect_in(server(), revision).await.unwrap();
        assert_eq!(client.call_text("sum", json!({ "a": 2, "b": 3 })).await.unwrap(), "5");
        let point = client.call_tool("point", json!({})).await.unwrap();
        let has_data = revision >= Revision::V2025_06_18;
        assert_eq!(point.structured_content.is_some(), has_data, "{revision}");
        assert_eq!(point.content, [ContentBlock::text(r#"{"x":1,"y":2}"#)]);
        let failed = client.call_tool("fails", json!({})).await.unwrap();
        assert_eq!((failed.is_error, failed.content[0].as_text()), (Some(true), Some("no luck")));
        let error = client.call_tool("panics", json!({})).await.unwrap_err().to_string();
        assert!(error.contains("-32603") && !error.contains("secret"), "{error}");
        let prompt = client.get_prompt("write", &[("topic", "knots")]).await.unwrap();
        assert_eq!(prompt.messages[0].content.as_text(), Some("Write: knots"));
        let text = client.read_resource("it://text").await.unwrap();
        assert_eq!(text.contents[0].as_text(), Some("hello"));
        let user = client.read_resource("it://users/7").await.unwrap();
        assert_eq!(user.contents[0].as_text(), Some("user 7"));
        let missing = client.read_resource("it://nothing").await.unwrap_err().to_string();
        let code = if revision.is_modern() { "-32602" } else { "-32002" };
        assert!(missing.contains(code), "{revision}: {missing}");
        let names: Vec<_> =
            client.list_tools().await.unwrap().into_iter().map(|tool| tool.name).collect();
        assert_eq!(names, ["sum", "point", "fails", "panics"]);
        assert_eq!(client.list_resource_templates().await.unwrap().len(), 1);
        client.close().await.unwrap();
    }
}

#[tokio::test]
async fn wrong_arguments_are_told_to_the_model_or_the_client() {
    for revision in Revision::ALL {
        let client = testing::connect_in(server(), revision).await.unwrap();
        let told = match client.call_tool("sum", json!({ "a": "two" })).await {
            Ok(result) => {
                assert!(revision >= Revision::V2025_11_25);
                assert_eq!(result.is_error, Some(true));
                result.content[0].as_text().unwrap().to_owned()
            }
            Err(error) => {
                assert!(revision < Revision::V2025_11_25);
                error.to_string()
            }
        };
        assert!(told.contains("arguments.b is missing (an integer: The second number.)"), "{told}");
        assert!(told.contains("arguments.a"), "{told}");
    }
}

#[tokio::test]
async fn what_was_offered_stays_offered() {
    let server = Server::new("empty", "1.0.0").with(Tool::new("only", || async { "here" }));
    let registry = server.registry();
    let client = testing::connect(server).await.unwrap();
    assert!(registry.remove_tool("only"));
    assert_eq!(client.list_tools().await.unwrap(), []);
    let missing = client.list_prompts().await.unwrap_err().to_string();
    assert!(missing.contains("-32601"), "{missing}");
}

#[tokio::test]
async fn a_live_server_offers_what_may_come() {
    let server = Server::new("live", "1.0.0").live();
    let registry = server.registry();
    let client = testing::connect_in(server, Revision::V2025_11_25).await.unwrap();
    assert!(client.initialize_result().unwrap().capabilities.tools.is_some());
    assert_eq!(client.list_tools().await.unwrap(), []);
    registry.add(Tool::new("late", || async { "better than never" })).unwrap();
    client.notified("notifications/tools/list_changed").await.unwrap();
    assert_eq!(client.call_text("late", json!({})).await.unwrap(), "better than never");
}
