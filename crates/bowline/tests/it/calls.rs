//! Tools, prompts, resources and lists, called in every revision.

use bowline::model::ContentBlock;
use bowline::{Prompt, Resource, Revision, Server, Structured, Tool, testing};
use serde_json::json;

use crate::raw::{Raw, code, modern, request};

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
        assert_eq!(client.call_tool("sum", json!({ "a": 2, "b": 3 })).text().await.unwrap(), "5");
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
        let names: Vec<_> =
            client.list_tools().await.unwrap().into_iter().map(|tool| tool.name).collect();
        assert_eq!(names, ["sum", "point", "fails", "panics"]);
        assert_eq!(client.list_resource_templates().await.unwrap().len(), 1);
        client.close().await;
    }
}

#[tokio::test]
async fn a_missing_resource_has_the_error_code_of_the_revision() {
    let read = request(1, "resources/read", json!({ "uri": "it://nothing" }));
    for revision in Revision::ALL {
        let (answer, expected) = if revision.is_modern() {
            (Raw::start(server()).ask(&modern(read.clone())).await, -32602)
        } else {
            (Raw::session(server(), revision).await.ask(&read).await, -32002)
        };
        assert_eq!(code(&answer), expected, "{revision}: {answer}");
        // The client reports it as it came, and knows what it means.
        let client = testing::connect_in(server(), revision).await.unwrap();
        let error = client.read_resource("it://nothing").await.unwrap_err();
        assert_eq!(error.as_refusal().unwrap().code.0, expected, "{revision}: {error}");
        assert!(error.is_resource_not_found(), "{revision}: {error}");
        let error = client.call_json("resources/read", json!({ "uri": 7 })).await.unwrap_err();
        assert!(!error.is_resource_not_found(), "{revision}: {error}");
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
    let missing = client.call_json("prompts/list", json!({})).await.unwrap_err().to_string();
    assert!(missing.contains("-32601"), "{missing}");
}

#[tokio::test]
async fn a_live_server_offers_what_may_come() {
    let server = Server::new("live", "1.0.0").declare_all();
    let registry = server.registry();
    let client = testing::connect_in(server, Revision::V2025_11_25).await.unwrap();
    assert!(client.peer().unwrap().capabilities.tools.is_some());
    assert_eq!(client.list_tools().await.unwrap(), []);
    let mut notifications = client.notifications();
    registry.add(Tool::new("late", || async { "better than never" })).unwrap();
    notifications.next_of("notifications/tools/list_changed").await.unwrap();
    assert_eq!(client.call_tool("late", json!({})).text().await.unwrap(), "better than never");
}
