//! The checks for `@modelcontextprotocol/server-everything`.

use std::time::Duration;

use bowline::Revision;
use bowline::client::{CallError, Change, FormAnswer, Wanted};
use bowline::model::{LoggingLevel, Root};
use serde::Deserialize;
use serde_json::json;

use crate::check::{Named, Outcome, is_so, same, until};
use crate::guest::{Guest, ROOTS};
use crate::interop::ask;

/// In the order in which they run.
pub(crate) const CHECKS: &[Named] = &[
    ("identity", None),
    ("ping", None),
    ("list-tools", None),
    ("list-resources", None),
    ("list-templates", None),
    ("list-prompts", None),
    ("call-text", None),
    ("call-structured", Some(Revision::V2025_06_18)),
    ("call-content", None),
    ("call-unknown", None),
    ("read-template", None),
    ("read-missing", None),
    ("prompt-arguments", None),
    ("complete-prompt", None),
    ("method-unknown", None),
    ("progress", None),
    ("elicit", Some(Revision::V2025_06_18)),
    ("sample", None),
    ("roots", None),
    ("logs", None),
    ("resource-updated", None),
    ("cancel", None),
    ("timeout", None),
];

const LONG: &str = "trigger-long-running-operation";

/// A tool that reports progress and takes long.
pub(crate) const ENDLESS: (&str, &str) = (LONG, r#"{ "duration": 20, "steps": 200 }"#);

/// Runs a check.
pub(crate) async fn run(name: &str, guest: &Guest) -> Outcome {
    match name {
        "identity" => identity(guest),
        "ping" => Ok(guest.client.ping().await?),
        "list-tools" => list_tools(guest).await,
        "list-resources" => is_so("no resources", !guest.client.list_resources().await?.is_empty()),
        "list-templates" => {
            same("templates", &guest.client.list_resource_templates().await?.len(), &2)
        }
        "list-prompts" => list_prompts(guest).await,
        "call-text" => call_text(guest).await,
        "call-structured" => call_structured(guest).await,
        "call-content" => call_content(guest).await,
        "call-unknown" => ask::call_unknown(guest).await,
        "read-template" => read_template(guest).await,
        "read-missing" => ask::read_missing(guest).await,
        "prompt-arguments" => prompt_arguments(guest).await,
        "complete-prompt" => complete_prompt(guest).await,
        "method-unknown" => ask::method_unknown(guest).await,
        "progress" => progress(guest).await,
        "elicit" => elicit(guest).await,
        "sample" => sample(guest).await,
        "roots" => roots(guest).await,
        "logs" => logs(guest).await,
        "resource-updated" => resource_updated(guest).await,
        "cancel" => cancel(guest).await,
        "timeout" => timeout(guest).await,
        _ => Err("no such check".into()),
    }
}

fn identity(guest: &Guest) -> Outcome {
    let peer = guest.client.peer().ok_or("no peer")?;
    let info = peer.info.as_ref().ok_or("the server does not identify itself")?;
    same("name", info.name.as_str(), "mcp-servers/everything")?;
    is_so("no instructions", peer.instructions.is_some())?;
    let resources = peer.capabilities.resources.as_ref().ok_or("no resources")?;
    same("subscribe", &resources.subscribe, &Some(true))
}

/// Some tools exist only for clients that declare the capabilities they need.
async fn list_tools(guest: &Guest) -> Outcome {
    let tools = guest.client.list_tools().await?;
    for name in ["echo", "get-sum", LONG, "trigger-sampling-request", "get-roots-list"] {
        is_so(name, tools.iter().any(|tool| tool.name == name))?;
    }
    Ok(())
}

async fn list_prompts(guest: &Guest) -> Outcome {
    let prompts = guest.client.list_prompts().await?;
    is_so("no prompt", prompts.iter().any(|it| it.name == "completable-prompt"))
}

async fn call_text(guest: &Guest) -> Outcome {
    let said = guest.text("echo", json!({ "message": "⚓" })).await?;
    same("echo", said.as_str(), "Echo: ⚓")?;
    let sum = guest.text("get-sum", json!({ "a": 2, "b": 3 })).await?;
    same("sum", sum.as_str(), "The sum of 2 and 3 is 5.")
}

async fn call_structured(guest: &Guest) -> Outcome {
    #[derive(Debug, Deserialize, PartialEq)]
    struct Weather {
        temperature: f64,
        conditions: String,
    }
    let arguments = json!({ "location": "New York" });
    let call = guest.client.call_tool("get-structured-content", arguments);
    let weather: Weather = call.structured().await?;
    same("weather", &weather, &Weather { temperature: 33.0, conditions: "Cloudy".to_owned() })
}

async fn call_content(guest: &Guest) -> Outcome {
    let result = guest.client.call_tool("get-tiny-image", json!({})).await?;
    let content = serde_json::to_value(&result.content)?;
    is_so("no image", content.as_array().into_iter().flatten().any(|it| it["type"] == "image"))
}

async fn read_template(guest: &Guest) -> Outcome {
    let read = guest.client.read_resource("demo://resource/dynamic/text/1").await?;
    let first = read.contents.first().ok_or("nothing was read")?;
    is_so("no text", first.as_text().is_some_and(|text| text.contains("Resource 1")))
}

async fn prompt_arguments(guest: &Guest) -> Outcome {
    let arguments = [("department", "Sales"), ("name", "Eve")];
    let prompt = guest.client.get_prompt("completable-prompt", &arguments).await?;
    let first = prompt.messages.first().ok_or("no message")?;
    let wanted = "Please promote Eve to the head of the Sales team.";
    same("text", &first.content.as_text(), &Some(wanted))
}

async fn complete_prompt(guest: &Guest) -> Outcome {
    let prompt = "completable-prompt";
    let client = &guest.client;
    let found = client.complete_prompt(prompt, ("department", "S"), &[]).await?;
    same("values", &found.completion.values[..], &["Sales".to_owned(), "Support".to_owned()])?;
    // Since 2025-06-18, the arguments filled in already narrow the rest.
    let others = [("department", "Sales")];
    let found = client.complete_prompt(prompt, ("name", "E"), &others).await;
    if guest.revision < Revision::V2025_06_18 {
        return Ok(());
    }
    same("values", &found?.completion.values[..], &["Eve".to_owned()])
}

async fn progress(guest: &Guest) -> Outcome {
    let arguments = json!({ "duration": 0.3, "steps": 3 });
    let (call, mut progress) = guest.client.call_tool(LONG, arguments).with_progress();
    let call = tokio::spawn(call.into_future());
    let mut reports = Vec::new();
    while let Some(report) = progress.next().await {
        reports.push((report.progress, report.total));
    }
    call.await??;
    same("reports", &reports[..], &[(1.0, Some(3.0)), (2.0, Some(3.0)), (3.0, Some(3.0))])
}

async fn elicit(guest: &Guest) -> Outcome {
    let tool = "trigger-elicitation-request";
    guest.answer(FormAnswer::accept(&json!({ "name": "Ada" })));
    let said = guest.text(tool, json!({})).await?;
    is_so(&said, said.contains("- Name: Ada") && said.contains("- Favorite Integer: 42"))?;
    let schema = serde_json::to_value(&guest.asked()?.requested_schema)?;
    same("required", &schema["required"], &json!(["name"]))?;
    guest.answer(FormAnswer::Decline);
    let said = guest.text(tool, json!({})).await?;
    is_so(&said, said.contains("declined"))?;
    guest.answer(FormAnswer::Cancel);
    let said = guest.text(tool, json!({})).await?;
    is_so(&said, said.contains("cancelled"))
}

async fn sample(guest: &Guest) -> Outcome {
    let said = guest.text("trigger-sampling-request", json!({ "prompt": "ahoy" })).await?;
    is_so(&said, said.contains("parrot") && said.contains("context: ahoy, "))
}

/// The server asks at a time of its choosing, and shows the result.
async fn roots(guest: &Guest) -> Outcome {
    let shows = async |uri: &str| {
        Ok(guest.text("get-roots-list", json!({})).await?.contains(&format!("URI: {uri}")))
    };
    until(|| shows(ROOTS[1])).await?;
    let uri = "file:///srv/three";
    guest.client.set_roots(vec![Root::new(uri)]).await?;
    until(|| shows(uri)).await
}

/// The server logs changes of the roots.
async fn logs(guest: &Guest) -> Outcome {
    guest.client.set_log_level(Some(LoggingLevel::Info)).await?;
    let mut heard = guest.client.notifications();
    guest.client.set_roots(Vec::new()).await?;
    let message = heard.next_of("notifications/message").await.ok_or("the end")?;
    let params = message.params.to_value();
    same("level", &params["level"], &"info".into())?;
    let data = params["data"].as_str().unwrap_or_default();
    is_so(data, data.starts_with("Roots updated: 0"))
}

async fn resource_updated(guest: &Guest) -> Outcome {
    let uri = "demo://resource/dynamic/text/1";
    let tool = "toggle-subscriber-updates";
    let mut changes = guest.client.changes(Wanted::new().resource(uri)).await?;
    guest.text(tool, json!({})).await?;
    let change = changes.next().await.ok_or("the end")??;
    // Otherwise the server would continue.
    guest.text(tool, json!({})).await?;
    same("change", &change, &Change::Resource(uri.to_owned()))
}

/// The server does not stop, but its answer is ignored.
async fn cancel(guest: &Guest) -> Outcome {
    let arguments = json!({ "duration": 0.4, "steps": 4 });
    let (call, mut progress) = guest.client.call_tool(LONG, arguments).with_progress();
    let call = tokio::spawn(call.into_future());
    progress.next().await.ok_or("no progress")?;
    call.abort();
    until(async || Ok(guest.client.pending().is_empty())).await?;
    tokio::time::sleep(Duration::from_millis(500)).await;
    call_text(guest).await
}

async fn timeout(guest: &Guest) -> Outcome {
    let long = guest.client.call_tool(LONG, json!({ "duration": 2, "steps": 1 }));
    match long.timeout(Duration::from_millis(300)).await {
        Err(CallError::TimedOut { .. }) => call_text(guest).await,
        other => Err(format!("{other:?}").into()),
    }
}
