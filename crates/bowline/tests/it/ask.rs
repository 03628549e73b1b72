//! Questions to the client: the same handler in both eras.

use bowline::client::{ClientBuilder, FormAnswer};
use bowline::{Context, Elicited, HandlerError, Revision, Server, Tool, testing};
use serde_json::json;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Name {
    name: String,
}

async fn greet(context: Context) -> Result<String, HandlerError> {
    let Elicited::Accepted(first) = context.elicit::<Name>("First name?").await? else {
        return Ok("as you like".to_owned());
    };
    let drawn = context.once("drawn", async { 7 }).await;
    let Elicited::Accepted(last) = context.elicit::<Name>("Last name?").await? else {
        return Ok("as you like".to_owned());
    };
    Ok(format!("{} {} {drawn}", first.name, last.name))
}

fn server() -> Server {
    Server::new("asks", "1.0.0").with(Tool::new("greet", greet))
}

fn answering(revision: Revision) -> ClientBuilder {
    testing::builder(revision).on_form(|form| async move {
        let name = if form.message.starts_with("First") { "Ada" } else { "Lovelace" };
        Ok(FormAnswer::accept(&json!({ "name": name })))
    })
}

fn declining(revision: Revision) -> ClientBuilder {
    testing::builder(revision).on_form(|_| async { Ok(FormAnswer::Decline) })
}

#[tokio::test]
async fn a_handler_asks_twice_and_cannot_tell_the_era() {
    for revision in [Revision::V2025_06_18, Revision::V2025_11_25, Revision::V2026_07_28] {
        let client = answering(revision).connect(server()).await.unwrap();
        let answer = client.call_tool("greet", json!({})).text().await.unwrap();
        assert_eq!(answer, "Ada Lovelace 7", "{revision}");
        let client = declining(revision).connect(server()).await.unwrap();
        assert_eq!(client.call_tool("greet", json!({})).text().await.unwrap(), "as you like");
    }
}

#[tokio::test]
async fn a_client_that_cannot_be_asked_is_told_what_it_lacks() {
    for revision in Revision::ALL {
        let client = testing::connect_in(server(), revision).await.unwrap();
        let error = client.call_tool("greet", json!({})).await.unwrap_err().to_string();
        let code = if revision.is_modern() { "-32021" } else { "-32600" };
        assert!(error.contains(code), "{revision}: {error}");
    }
}
