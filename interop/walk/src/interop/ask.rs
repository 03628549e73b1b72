//! Plain requests and their responses.

use bowline::ErrorCode;
use bowline::client::CallError;
use serde::Deserialize;
use serde_json::json;
use tokio::task::JoinSet;

use crate::check::{Outcome, is_so, same};
use crate::guest::Guest;

pub(super) async fn call_text(guest: &Guest) -> Outcome {
    let said = "knots: ⚓ \n \"quoted\"";
    same("echo", guest.text("echo", json!({ "message": said })).await?.as_str(), said)
}

pub(super) async fn call_structured(guest: &Guest) -> Outcome {
    #[derive(Debug, Deserialize, PartialEq)]
    struct Sum {
        total: i64,
    }
    let sum = guest.client.call_tool("sum", json!({ "a": 2, "b": 3 })).structured::<Sum>().await?;
    same("sum", &sum, &Sum { total: 5 })
}

pub(super) async fn call_failing(guest: &Guest) -> Outcome {
    match guest.client.call_tool("fail", json!({})).text().await {
        Err(CallError::ToolFailed { message, .. }) => {
            is_so(&message, message.contains("there is no luck today"))
        }
        other => Err(format!("{other:?}").into()),
    }
}

/// Servers differ in whether the call or the tool fails.
pub(crate) async fn call_unknown(guest: &Guest) -> Outcome {
    match guest.client.call_tool("nothing", json!({})).await {
        Ok(result) => same("is_error", &result.is_error, &Some(true)),
        Err(error) => rejected(&error, &[ErrorCode::INVALID_PARAMS]),
    }
}

pub(super) async fn call_many(guest: &Guest) -> Outcome {
    let mut calls = JoinSet::new();
    for number in 0..50 {
        let message = number.to_string();
        let call = guest.client.call_tool("echo", json!({ "message": message }));
        calls.spawn(async move { (message, call.text().await) });
    }
    while let Some(answer) = calls.join_next().await {
        let (message, answer) = answer?;
        same("echo", &answer?, &message)?;
    }
    Ok(())
}

pub(super) async fn call_large(guest: &Guest) -> Outcome {
    let message = "x".repeat(1_000_000);
    let echoed = guest.text("echo", json!({ "message": message })).await?;
    is_so("echoed something else", echoed == message)
}

pub(super) async fn read(guest: &Guest, uri: &str, text: &str) -> Outcome {
    let read = guest.client.read_resource(uri).await?;
    let first = read.contents.first().ok_or("nothing was read")?;
    same("text", &first.as_text(), &Some(text))
}

pub(crate) async fn read_missing(guest: &Guest) -> Outcome {
    match guest.client.read_resource("test://nothing").await {
        Ok(read) => Err(format!("read {read:?}").into()),
        Err(error) => rejected(&error, &[ErrorCode::RESOURCE_NOT_FOUND, ErrorCode::INVALID_PARAMS]),
    }
}

pub(super) async fn prompt_arguments(guest: &Guest) -> Outcome {
    let prompt = guest.client.get_prompt("greet", &[("name", "Ada")]).await?;
    let first = prompt.messages.first().ok_or("no message")?;
    same("text", &first.content.as_text(), &Some("Greet Ada."))
}

pub(super) async fn prompt_unknown(guest: &Guest) -> Outcome {
    match guest.client.get_prompt("nothing", &[("name", "Ada")]).await {
        Ok(prompt) => Err(format!("got {prompt:?}").into()),
        Err(error) => rejected(&error, &[ErrorCode::INVALID_PARAMS]),
    }
}

pub(super) async fn complete_prompt(guest: &Guest) -> Outcome {
    let found = guest.client.complete_prompt("greet", ("name", "a"), &[]).await?;
    same("values", &found.completion.values[..], &["ada".to_owned(), "alan".to_owned()])
}

pub(super) async fn complete_template(guest: &Guest) -> Outcome {
    let template = "test://users/{name}";
    let found = guest.client.complete_template(template, ("name", "g"), &[]).await?;
    same("values", &found.completion.values[..], &["grace".to_owned()])
}

pub(crate) async fn method_unknown(guest: &Guest) -> Outcome {
    match guest.client.call_json("walk/nothing", json!({})).await {
        Ok(answer) => Err(format!("got {answer:?}").into()),
        Err(error) => rejected(&error, &[ErrorCode::METHOD_NOT_FOUND]),
    }
}

fn rejected(error: &CallError, codes: &[ErrorCode]) -> Outcome {
    match error.as_refusal() {
        Some(refusal) if codes.contains(&refusal.code) => Ok(()),
        _ => Err(error.to_string().into()),
    }
}
