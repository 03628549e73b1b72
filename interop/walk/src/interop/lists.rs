//! The server's identity and lists.

use bowline::Revision;
use bowline::model::PaginatedParams;
use bowline::proto::method::ListTools;

use crate::check::{Outcome, is_so, same};
use crate::guest::Guest;

const TOOLS: [&str; 13] = [
    "echo",
    "sum",
    "fail",
    "slow",
    "wait",
    "abandoned",
    "ended",
    "log",
    "touch",
    "change_tools",
    "ask",
    "sample",
    "roots",
];

pub(super) fn identity(guest: &Guest) -> Outcome {
    let peer = guest.client.peer().ok_or("no peer")?;
    let info = peer.info.as_ref().ok_or("the server does not identify itself")?;
    same("name", info.name.as_str(), "interop")?;
    same("instructions", &peer.instructions.as_deref(), &Some("Try every tool once."))?;
    let has = &peer.capabilities;
    is_so("no tools", has.tools.is_some())?;
    is_so("no resources", has.resources.is_some())?;
    is_so("no prompts", has.prompts.is_some())?;
    is_so("no logging", has.logging.is_some())
}

pub(super) async fn tools(guest: &Guest) -> Outcome {
    let tools = guest.client.list_tools().await?;
    for name in TOOLS {
        is_so(name, tools.iter().any(|tool| tool.name == name))?;
    }
    is_so("extra", !tools.iter().any(|tool| tool.name == "extra"))?;
    let sum = tools.iter().find(|tool| tool.name == "sum").ok_or("no sum")?;
    let input = sum.input_schema.to_value();
    same("type of a", &input["properties"]["a"]["type"], &"integer".into())?;
    let has_output = sum.output_schema.is_some();
    is_so("no output schema", has_output || guest.revision < Revision::V2025_06_18)
}

pub(super) async fn pages(guest: &Guest) -> Outcome {
    let first = guest.client.call::<ListTools>(PaginatedParams::default()).await?;
    is_so("there is only one page", first.next_cursor.is_some())?;
    let mut items = guest.client.list_tools().stream();
    let mut names = Vec::new();
    while let Some(tool) = items.next().await {
        names.push(tool?.name);
    }
    same("all of them", &names.len(), &guest.client.list_tools().await?.len())?;
    same("the first page", &first.tools[0].name, &names[0])
}

/// Only some servers have skills, which are resources, too.
fn is_skill(uri: &str) -> bool {
    uri.starts_with("skill://")
}

pub(super) async fn resources(guest: &Guest) -> Outcome {
    let resources = guest.client.list_resources().await?;
    let uris = resources.iter().map(|it| it.uri.as_str());
    let uris: Vec<_> = uris.filter(|it| !is_skill(it)).collect();
    same("resources", &uris[..], &["test://static", "test://counter"])
}

pub(super) async fn templates(guest: &Guest) -> Outcome {
    let templates = guest.client.list_resource_templates().await?;
    let uris = templates.iter().map(|it| it.uri_template.as_str());
    let uris: Vec<_> = uris.filter(|it| !is_skill(it)).collect();
    same("templates", &uris[..], &["test://users/{name}"])
}

pub(super) async fn prompts(guest: &Guest) -> Outcome {
    let prompts = guest.client.list_prompts().await?;
    let names: Vec<_> = prompts.iter().map(|it| it.name.as_str()).collect();
    same("prompts", &names[..], &["greet"])?;
    let arguments = prompts[0].arguments.as_deref().unwrap_or_default();
    same("arguments", &arguments.len(), &1)?;
    same("required", &arguments[0].required, &Some(true))
}
