//! Questions to the client: the same handler in both eras.

use bowline::client::{ClientBuilder, FormAnswer};
use bowline::{AskError, Context, Elicited, HandlerError, Revision, Server, Tool, testing};
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

#[derive(Debug, PartialEq, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Size {
    Small,
    Large,
}

async fn values(context: Context) -> Result<String, AskError> {
    let flag = context.elicit::<bool>("Flag?").await?.accepted();
    let size = context.elicit::<Size>("Size?").await?.accepted();
    let missing = context.elicit::<Option<u8>>("Missing?").await?.accepted();
    let sure = context.confirm("Sure?").await?;
    let chosen = context.choose("Which?", ["a", "b"]).await?.accepted();
    Ok(format!("{flag:?} {size:?} {missing:?} {sure} {chosen:?}"))
}

fn asks_values() -> Server {
    Server::new("asks", "1.0.0").with(Tool::new("ask", values))
}

#[tokio::test]
async fn single_values_confirmations_and_choices_are_forms_with_at_most_one_field() {
    for revision in [Revision::V2025_06_18, Revision::V2025_11_25, Revision::V2026_07_28] {
        let accepting = testing::builder(revision).on_form(|form| async move {
            Ok(FormAnswer::accept(&match form.message.as_str() {
                "Flag?" => json!({ "answer": true }),
                "Size?" => json!({ "answer": "large" }),
                "Which?" => json!({ "answer": "b" }),
                _ => json!({}),
            }))
        });
        let client = accepting.connect(asks_values()).await.unwrap();
        let answer = client.call_tool("ask", json!({})).text().await.unwrap();
        assert_eq!(answer, r#"Some(true) Some(Large) Some(None) true Some("b")"#, "{revision}");
        let client = declining(revision).connect(asks_values()).await.unwrap();
        let answer = client.call_tool("ask", json!({})).text().await.unwrap();
        assert_eq!(answer, "None None None false None", "{revision}");
    }
}

#[tokio::test]
async fn a_client_that_does_not_know_the_question_cannot_be_asked() {
    // It declares the capability, and then has no such method: only possible in the legacy era.
    for revision in [Revision::V2025_06_18, Revision::V2025_11_25] {
        let refusing = testing::builder(revision).on_form(|_| async {
            Err(bowline::ErrorObject::method_not_found("elicitation/create"))
        });
        let client = refusing.connect(asks_values()).await.unwrap();
        let error = client.call_tool("ask", json!({})).await.unwrap_err().to_string();
        assert!(error.contains("this needs a client that offers forms"), "{revision}: {error}");
    }
}
