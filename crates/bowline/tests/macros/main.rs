//! The attributes: what they declare, and what happens when clients call.

#![expect(clippy::unwrap_used, reason = "helpers of tests panic as tests do")]

mod groups;
mod names;
mod options;
mod prompts;
mod resources;
mod signatures;
mod state;
mod tools;

use bowline::{Client, Part, Server, testing};
use serde_json::{Value, json};

/// A client of a server with only this part.
async fn client_of(part: impl Part) -> Client {
    testing::connect(Server::new("test", "1.0.0").with(part)).await.unwrap()
}

/// The only item of a list, as it is sent.
async fn listed(client: &Client, method: &str, member: &str) -> Value {
    let mut result = client.call_json(method, json!({})).await.unwrap().to_value();
    let list = result[member].as_array_mut().unwrap();
    assert_eq!(list.len(), 1, "{list:?}");
    list.remove(0)
}

async fn listed_tool(part: impl Part) -> Value {
    listed(&client_of(part).await, "tools/list", "tools").await
}

/// A result without the members that every result has.
async fn called(client: &Client, name: &str, arguments: Value) -> Value {
    let params = json!({ "name": name, "arguments": arguments });
    let mut result = client.call_json("tools/call", params).await.unwrap().to_value();
    let members = result.as_object_mut().unwrap();
    members.retain(|name, _| ["content", "structuredContent", "isError"].contains(&name.as_str()));
    result
}

/// The text of a tool's result, on a server with only that tool.
async fn answer(part: impl Part, name: &str, arguments: Value) -> String {
    let client = client_of(part).await;
    client.call_tool(name, arguments).text().await.unwrap_or_else(|error| error.to_string())
}
