//! Questions to the client: the same handler in both eras.

use bowline::client::{ClientBuilder, FormAnswer};
use bowline::{AskError, Context, Elicited, HandlerError, Revision, Server, Tool, testing};
use serde_json::{Value, json};

use crate::raw::{Raw, call, modern, text};

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

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Order {
    #[schemars(range(min = 1, max = 9))]
    count: i64,
    size: Size,
    #[schemars(length(max = 5))]
    note: Option<String>,
}

async fn order(context: Context) -> String {
    let by_hand = serde_json::from_value(json!({
        "properties": {
            "count": { "type": "integer", "minimum": 1, "maximum": 9 },
            "size": { "type": "string", "enum": ["small", "large"] },
            "note": { "type": "string", "maxLength": 5 }
        },
        "required": ["count", "size"]
    }));
    let typed = match context.elicit::<Order>("Typed?").await {
        Ok(answer) => {
            answer.accepted().map(|it| format!("{} {:?} {:?}", it.count, it.size, it.note))
        }
        Err(error) => return error.to_string(),
    };
    match context.ask("by-hand").elicit_form("By hand?", by_hand.unwrap()).await {
        Ok(answer) => format!("{typed:?} {:?}", answer.accepted().map(|content| content.len())),
        Err(error) => error.to_string(),
    }
}

/// What a client that does not look at the form sends back.
#[tokio::test]
async fn answers_are_checked_against_the_form() {
    async fn check(answers: [Value; 2], expected: &str) {
        let server = || Server::new("asks", "1.0.0").with(Tool::new("order", order));
        let accept = |content: &Value| json!({ "action": "accept", "content": content });

        let mut raw = Raw::session(server(), Revision::V2025_11_25).await;
        raw.send(&call(1, "order", json!({}))).await;
        let mut message = raw.next().await;
        for answer in &answers {
            if message["method"] == "elicitation/create" {
                let result = accept(answer);
                raw.send(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": result })).await;
                message = raw.next().await;
            }
        }
        assert!(text(&message).contains(expected), "{answers:?}: {message}");

        let mut raw = Raw::start(server());
        let mut message = raw.ask(&modern(call(1, "order", json!({})))).await;
        for (answer, key) in answers.iter().zip(["elicit-1", "by-hand"]) {
            if message["result"]["inputRequests"].get(key).is_some() {
                let mut again = call(1, "order", json!({}));
                again["params"]["inputResponses"] = json!({ key: accept(answer) });
                again["params"]["requestState"] = message["result"]["requestState"].clone();
                message = raw.ask(&modern(again)).await;
            }
        }
        assert!(text(&message).contains(expected), "{answers:?}: {message}");
    }
    let good = || json!({ "count": 3, "size": "large", "note": "hi" });
    check([good(), good()], "Large").await;
    check([good(), json!({ "count": 3, "size": "small", "more": true })], "Some(3)").await;
    for (bad, problem) in [
        (json!({ "size": "large" }), "content.count is missing"),
        (json!({ "count": "3", "size": "large" }), "content.count"),
        (json!({ "count": 10, "size": "large" }), "content.count"),
        (json!({ "count": 3, "size": "huge" }), "content.size"),
        (json!({ "count": 3, "size": "large", "note": "too long" }), "content.note"),
        (json!({ "count": 3, "size": "large", "note": null }), "content.note"),
        (json!({}), "invalid answer from the client"),
    ] {
        check([bad.clone(), good()], problem).await;
        check([good(), bad], problem).await;
    }
}

/// It declares what it does not have: the handler can do without.
#[tokio::test]
async fn every_question_that_a_client_does_not_know_is_one_that_it_cannot_answer() {
    async fn ask(context: Context) -> String {
        let model = context.sample(Default::default()).await.unwrap_err();
        let roots = context.roots().await.unwrap_err();
        let form = context.confirm("Sure?").await.unwrap_err();
        let cannot = |error| matches!(error, AskError::Unsupported(_));
        format!("{} {} {}", cannot(model), cannot(roots), cannot(form))
    }
    let server = Server::new("asks", "1.0.0").with(Tool::new("ask", ask));
    let mut raw = Raw::session(server, Revision::V2025_11_25).await;
    raw.send(&call(1, "ask", json!({}))).await;
    for method in ["sampling/createMessage", "roots/list", "elicitation/create"] {
        let asked = raw.next().await;
        assert_eq!(asked["method"], method);
        let error = json!({ "code": -32601, "message": "Method not found" });
        raw.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "error": error })).await;
    }
    assert_eq!(text(&raw.next().await), "true true true");
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
