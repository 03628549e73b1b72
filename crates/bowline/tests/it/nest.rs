//! Nested servers: names are prefixed for clients, and handlers do not notice.

use bowline::{Context, HandlerError, Prompt, Resource, Revision, Server, Tool, testing};
use serde_json::json;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

/// A server that adds and removes tools, by their names without the prefix.
fn doors() -> Server {
    Server::new("doors", "1.0.0")
        .with(Tool::new("open", |context: Context, _: Nothing| async move {
            context.registry().enable_tool("enter").to_string()
        }))
        .with(Tool::new("enter", || async { "inside" }).disabled())
        .with(Tool::new("doors_count", || async { 1 }))
        .with(Tool::new("build", |context: Context, _: Nothing| async move {
            let late = Tool::new("late", |context: Context, _: Nothing| async move {
                context.registry().remove_tool("late").to_string()
            });
            context.registry().add(late).map_err(|error| HandlerError::failed(error.to_string()))
        }))
        .with(Prompt::new("knock", || async { "Knock." }))
        .with(Resource::new("doors://shut", "shut", |context: Context, _: Nothing| async move {
            context.registry().disable_tool("enter").to_string()
        }))
}

#[tokio::test]
async fn names_are_prefixed_once() {
    let server = Server::new("house", "1.0.0").nest("doors", doors());
    let names = ["doors_open", "doors_count", "doors_build"];
    assert_eq!(server.registry().tool_names(), names);
    let client = testing::connect(server).await.unwrap();
    assert_eq!(client.list_prompts().await.unwrap()[0].name, "doors_knock");
    assert_eq!(client.list_resources().await.unwrap()[0].uri, "doors://shut");
}

#[tokio::test]
async fn handlers_change_what_they_came_with_by_their_own_names() {
    let house = Server::new("house", "1.0.0").nest("doors", doors());
    let street = Server::new("street", "1.0.0").nest("house", house);
    let client = testing::connect_in(street, Revision::V2025_11_25).await.unwrap();
    let call = async |name: &str| client.call_tool(name, json!({})).text().await;
    let mut notifications = client.notifications();
    assert!(call("house_doors_enter").await.is_err());
    assert_eq!(call("house_doors_open").await.unwrap(), "true");
    notifications.next_of("notifications/tools/list_changed").await.unwrap();
    assert_eq!(call("house_doors_enter").await.unwrap(), "inside");
    let shut = client.read_resource("doors://shut").await.unwrap();
    assert_eq!(shut.contents[0].as_text(), Some("true"));
    assert!(call("house_doors_enter").await.is_err());
    // Later additions are prefixed, too.
    call("house_doors_build").await.unwrap();
    assert_eq!(call("house_doors_late").await.unwrap(), "true");
    assert!(call("house_doors_late").await.is_err());
}
