//! Results as people read them.

use std::time::Duration;

use bowline::Json;
use bowline::client::CallError;
use bowline::model::{
    CallToolResult, GetPromptResult, ListPromptsResult, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, ReadResourceResult,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::complete::Catalog;
use super::talk::Show;
use crate::commands::{call, prompts, resources, tools};
use crate::failure::{Code, Failure};
use crate::render::content::Shower;
use crate::render::json::pretty;
use crate::screen::Screen;
use crate::text::line;

/// A result for people, and whether the tool said that it failed.
pub(crate) fn render(show: &Show, result: &Json, took: Duration, screen: &Screen) -> String {
    let read = match show {
        Show::Tool(_) => tool(result, screen),
        Show::Tools(text) => read(result).map(|list| some_tools(list, text, screen)),
        Show::Described(name) => {
            let list: Option<ListToolsResult> = read(result);
            list.map(|list| match list.tools.iter().find(|tool| tool.name == *name) {
                Some(tool) => tools::in_full(tool, screen),
                None => {
                    let names = list.tools.iter().map(|tool| tool.name.as_str());
                    format!("{}\n", line(&tools::unknown(name, names).what))
                }
            })
        }
        Show::Prompts => {
            read(result).map(|list: ListPromptsResult| prompts::table(&list.prompts, screen))
        }
        Show::Resources => read(result).map(|list: ListResourcesResult| {
            resources::table_of_resources(&list.resources, screen)
        }),
        Show::Templates => read(result).map(|list: ListResourceTemplatesResult| {
            resources::table_of_templates(&list.resource_templates, screen)
        }),
        Show::Prompt => read(result).and_then(|prompt: GetPromptResult| {
            prompts::messages(&prompt, &mut Shower::new(screen, None), screen).ok()
        }),
        Show::Contents => read(result).and_then(|read: ReadResourceResult| {
            resources::all_parts(&read.contents, &mut Shower::new(screen, None), screen).ok()
        }),
        Show::Pong => Some(format!("answered in {:.1} ms\n", took.as_secs_f64() * 1000.0)),
        Show::Text(text) => Some(format!("{text}\n")),
        Show::Message(id) => Some(pretty(&message(id, Ok(result)), screen.out)),
        Show::Json => None,
    };
    read.unwrap_or_else(|| pretty(result, screen.out))
}

/// The answer to a message, under the id that its author gave it.
pub(crate) fn message(id: &Json, answer: Result<&Json, &CallError>) -> Json {
    let (member, body) = match answer {
        Ok(result) => ("result", result.as_str().to_owned()),
        Err(error) => ("error", error_object(error).to_string()),
    };
    let text = format!(r#"{{"jsonrpc":"2.0","id":{},"{member}":{body}}}"#, id.as_str());
    // Both parts are JSON already.
    Json::from_text(text).unwrap_or_else(|_| Json::null())
}

/// The server's error to the letter; or, in its place, why there is none.
fn error_object(error: &CallError) -> Value {
    match error.as_refusal() {
        Some(refusal) => serde_json::to_value(refusal).unwrap_or_default(),
        None => {
            // The range that the specification leaves to implementations.
            let failure = Failure::from(error.clone());
            json!({
                "code": -32000 - i64::from(failure.code as u8),
                "message": failure.what,
                "data": { "by": "bowline" },
            })
        }
    }
}

/// The exit code that a result earns, if it is not a good one.
pub(crate) fn code(show: &Show, outcome: &Result<Json, CallError>) -> Option<Code> {
    let result = match outcome {
        Ok(result) => result,
        Err(error) => return Some(Failure::from(error.clone()).code),
    };
    let may_fail = matches!(show, Show::Tool(_) | Show::Message(_) | Show::Json);
    let is_error = may_fail && result.to_value().get("isError") == Some(&Value::Bool(true));
    is_error.then_some(Code::ToolFailed)
}

/// What is wrong with the result of a tool, by the tool's own word.
pub(crate) fn broken_promise(show: &Show, result: &Json, catalog: &Catalog) -> Option<String> {
    let Show::Tool(name) = show else { return None };
    let promise = catalog.promises.get(name)?;
    let problem = call::promised(&read(result)?, promise)?;
    Some(format!("the result is not what the tool promises: {problem}"))
}

fn read<T: DeserializeOwned>(result: &Json) -> Option<T> {
    result.parse().ok()
}

fn tool(result: &Json, screen: &Screen) -> Option<String> {
    let result: CallToolResult = read(result)?;
    let mut text = Shower::new(screen, None).result(&result).ok()?;
    if result.is_error == Some(true) {
        text.push_str("(the tool says that it failed)\n");
    }
    Some(text)
}

fn some_tools(list: ListToolsResult, text: &str, screen: &Screen) -> String {
    let wanted = text.to_lowercase();
    let has = |text: &Option<String>| {
        text.as_ref().is_some_and(|text| text.to_lowercase().contains(&wanted))
    };
    let mut tools = list.tools;
    tools.retain(|tool| tool.name.to_lowercase().contains(&wanted) || has(&tool.description));
    tools::table(&tools, screen)
}
