//! `#[resource]`.

use bowline::{Completing, HandlerError, resource};
use serde_json::json;

use crate::{client_of, listed};

/// What this is.
#[resource("about:test", title = "About", mime_type = "text/markdown")]
fn about() -> &'static str {
    "# Test"
}

#[derive(serde::Serialize)]
struct User {
    id: u64,
    fields: Option<String>,
}

/// One user.
#[resource("users://{id}{?fields}", name = "user", complete(id = ids))]
async fn by_id(id: u64, fields: Option<String>) -> Result<User, HandlerError> {
    match id {
        0 => Err(HandlerError::resource_not_found("users://0")),
        id => Ok(User { id, fields }),
    }
}

async fn ids(typed: Completing) -> Vec<String> {
    typed.matching(&["1", "12", "2"])
}

#[resource("bytes:all")]
async fn bytes() -> Vec<u8> {
    vec![1, 2]
}

#[tokio::test]
async fn a_function_is_a_resource() {
    let client = client_of(about).await;
    let expected = json!({
        "uri": "about:test",
        "name": "about",
        "title": "About",
        "description": "What this is.",
        "mimeType": "text/markdown",
    });
    assert_eq!(listed(&client, "resources/list", "resources").await, expected);
    let read = client.read_resource("about:test").await.unwrap();
    let expected = json!([{ "uri": "about:test", "mimeType": "text/markdown", "text": "# Test" }]);
    assert_eq!(json!(read.contents), expected);
}

#[tokio::test]
async fn a_function_with_parameters_is_a_family() {
    let client = client_of(by_id).await;
    let expected = json!({
        "uriTemplate": "users://{id}{?fields}",
        "name": "user",
        "description": "One user.",
    });
    let family = listed(&client, "resources/templates/list", "resourceTemplates").await;
    assert_eq!(family, expected);
    let read = client.read_resource("users://7?fields=all").await.unwrap();
    let expected = json!([{
        "uri": "users://7?fields=all",
        "mimeType": "application/json",
        "text": "{\n  \"id\": 7,\n  \"fields\": \"all\"\n}",
    }]);
    assert_eq!(json!(read.contents), expected);
    client.read_resource("users://0").await.unwrap_err();
    let template = "users://{id}{?fields}";
    let found = client.complete_template(template, ("id", "1"), &[]).await.unwrap();
    assert_eq!(found.completion.values, ["1", "12"]);
}

#[tokio::test]
async fn bytes_stay_bytes() {
    let read = client_of(bytes).await.read_resource("bytes:all").await.unwrap();
    assert_eq!(json!(read.contents)[0]["blob"], "AQI=");
}
