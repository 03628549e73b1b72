//! What a client does in each scenario.

use std::error::Error;

use bowline::client::http::Endpoint;
use bowline::client::{Client, ClientBuilder, FormAnswer, Preference, Verdicts};
use bowline::model::skill::SkillResources;
use bowline::{ErrorObject, Revision};
use serde::Deserialize;
use serde_json::{Value, json};

use super::login::authorization;

/// Any error is reported.
pub(super) type Outcome = Result<(), Box<dyn Error>>;

/// What the suite provides in addition to the name of a scenario.
fn context<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, serde_json::Error> {
    serde_json::from_str(text)
}

/// A client as the suite expects it: for one revision, with a user who accepts every form.
fn builder() -> Result<ClientBuilder, Box<dyn Error>> {
    let revision = std::env::var("MCP_CONFORMANCE_PROTOCOL_VERSION").unwrap_or_default();
    let revision: Revision = revision.parse()?;
    let preference = if revision.is_modern() { Preference::Modern } else { Preference::Legacy };
    let builder = Client::builder("bowline-conformance", env!("CARGO_PKG_VERSION"))
        .preference(preference)
        .verdicts(Verdicts::new())
        .roots(["file:///project"])
        .on_sampling(|_| async { Err(ErrorObject::internal("no model is available")) })
        .on_form(|form| async move {
            let confirm = form.requested_schema.properties.get("confirm").is_some();
            Ok(if confirm {
                FormAnswer::accept(&json!({ "confirm": true }))
            } else {
                FormAnswer::defaults()
            })
        });
    Ok(builder)
}

/// Runs a scenario by its name.
pub(super) async fn run(name: &str, url: &str) -> Outcome {
    let given = std::env::var("MCP_CONFORMANCE_CONTEXT").unwrap_or_default();
    let mut endpoint = Endpoint::new(url);
    if name.starts_with("auth/") {
        endpoint = endpoint.authorize(authorization(name, url, &given)?);
    }
    let client = builder()?.connect(endpoint).await?;
    let outcome = act(name, &client, &given).await;
    client.close().await;
    outcome
}

async fn act(name: &str, client: &Client, given: &str) -> Outcome {
    match name {
        "tools_call" => call(client, &["add_numbers"], json!({ "a": 5, "b": 3 })).await,
        "elicitation-sep1034-client-defaults" => {
            call(client, &["test_client_elicitation_defaults"], json!({})).await
        }
        "sse-retry" => call(client, &["test_reconnection"], json!({})).await,
        "sep-2322-client-request-state" => {
            let tools = [
                "test_mrtr_echo_state",
                "test_mrtr_no_state",
                "test_mrtr_unrelated",
                "test_mrtr_no_result_type",
            ];
            call(client, &tools, json!({})).await
        }
        "http-standard-headers" => use_everything(client).await,
        "http-custom-headers" => make_calls(client, given).await,
        "http-invalid-tool-headers" => call_what_is_listed(client).await,
        "json-schema-2020-12-preservation" => echo_schema(client).await,
        _ if name.starts_with("auth/") => {
            call(client, &["test-tool", "test-tool"], json!({})).await
        }
        "sep-2640-client-no-prefetch" => client.list_skills().await.map(drop).map_err(Into::into),
        _ if name.starts_with("sep-2640-") => use_skills(client).await,
        // These test only how a client connects; there is nothing to list.
        "initialize" => Ok(()),
        "request-metadata" => client.ping().await.map_err(Into::into),
        _ => client.list_tools().await.map(drop).map_err(Into::into),
    }
}

/// Reads every skill with all of its files, until one does not verify.
async fn use_skills(client: &Client) -> Outcome {
    for skill in client.list_skills().await? {
        let loaded = client.load_skill(&skill).await?;
        if let SkillResources::Files(files) = &loaded.entry().resources {
            for file in files {
                loaded.read(&file.uri).await?;
            }
        }
    }
    Ok(())
}

/// Lists, then calls tools one after another.
async fn call(client: &Client, tools: &[&str], arguments: Value) -> Outcome {
    client.list_tools().await?;
    for tool in tools {
        client.call_tool(*tool, &arguments).await?;
    }
    Ok(())
}

async fn use_everything(client: &Client) -> Outcome {
    for tool in client.list_tools().await? {
        client.call_tool(tool.name, json!({})).await?;
    }
    for resource in client.list_resources().await? {
        client.read_resource(resource.uri).await?;
    }
    for prompt in client.list_prompts().await? {
        client.get_prompt(prompt.name, &[]).await?;
    }
    Ok(())
}

async fn make_calls(client: &Client, given: &str) -> Outcome {
    #[derive(Deserialize)]
    struct Given {
        #[serde(rename = "toolCalls")]
        calls: Vec<Call>,
    }
    #[derive(Deserialize)]
    struct Call {
        name: String,
        arguments: Value,
    }
    client.list_tools().await?;
    for Call { name, arguments } in context::<Given>(given)?.calls {
        client.call_tool(name, arguments).await?;
    }
    Ok(())
}

async fn call_what_is_listed(client: &Client) -> Outcome {
    for tool in client.list_tools().await? {
        client.call_tool(tool.name, json!({})).await?;
    }
    Ok(())
}

async fn echo_schema(client: &Client) -> Outcome {
    let tools = client.list_tools().await?;
    let tool = tools.iter().find(|tool| tool.name == "json_schema_2020_12_tool");
    let tool = tool.ok_or("there is no json_schema_2020_12_tool")?;
    client.call_tool("json_schema_echo", json!({ "schema": tool.input_schema })).await?;
    Ok(())
}
