//! Results as people read them.

use std::time::Duration;

use bowline::client::CallError;
use bowline::model::{CallToolResult, ListToolsResult};
use bowline::{ErrorCode, ErrorObject, Json};
use serde_json::json;

use super::complete::Catalog;
use super::talk::Show;
use crate::commands::list::{List, TOOLS};
use crate::commands::{call, complete, tasks, tools};
use crate::failure::{Code, Failure};
use crate::render::content::ContentRenderer;
use crate::render::json::{object, pretty};
use crate::render::wire::time;
use crate::screen::Screen;
use crate::text::line;

/// A result for people. One that does not have its type is shown as JSON.
pub(crate) fn render(show: &Show, result: &Json, took: Duration, screen: &Screen) -> String {
    let mut renderer = ContentRenderer::new(screen, None);
    let text = match show {
        Show::Tool(_) => tool(result, screen),
        Show::List(list, text) => table(list, result, text, screen),
        Show::Described(name) => {
            result.parse().ok().map(|list: ListToolsResult| described(&list, name, screen))
        }
        Show::Prompt => renderer.prompt_result(result).ok(),
        Show::Contents => renderer.resource_result(result).ok(),
        Show::Values => complete::render(result, screen.out).ok(),
        Show::Pong => Some(format!("answered in {}\n", time(took.as_secs_f64()))),
        Show::Text(text) => Some(format!("{text}\n")),
        Show::Message(id) => Some(pretty(&response(id, Ok(result)), screen.out)),
        Show::Task => Some(tasks::describe(&result.to_value(), screen)),
        Show::Json => None,
    };
    text.unwrap_or_else(|| pretty(result, screen.out))
}

/// A response under the id of the request that the user wrote.
pub(crate) fn response(id: &Json, answer: Result<&Json, &ErrorObject>) -> Json {
    let (member, body) = match answer {
        Ok(result) => ("result", result.as_str().to_owned()),
        Err(error) => ("error", json!(error).to_string()),
    };
    object([("jsonrpc", "\"2.0\""), ("id", id.as_str()), (member, &body)])
}

/// The server's error to the letter; or, in its place, why there is none.
pub(crate) fn error_object(error: &CallError) -> ErrorObject {
    error.as_refusal().cloned().unwrap_or_else(|| {
        let failure = Failure::from(error.clone());
        ErrorObject::new(own_code(failure.code), failure.what)
            .with_data(json!({ "by": "bowline" }).into())
    })
}

/// A code from the range that the specification leaves to implementations.
pub(crate) fn own_code(code: Code) -> ErrorCode {
    ErrorCode(-32000 - code as i64)
}

/// The exit code for a result, unless it is a success.
pub(crate) fn code(outcome: &Result<Json, CallError>) -> Option<Code> {
    match outcome {
        Ok(result) => Code::of_result(result),
        Err(error) => Some(Failure::from(error.clone()).code),
    }
}

/// How the result of a tool violates the tool's output schema.
pub(crate) fn broken_promise(show: &Show, result: &Json, catalog: &Catalog) -> Option<String> {
    let Show::Tool(name) = show else { return None };
    let schema = catalog.tool(name)?.output_schema.as_ref()?.to_value();
    let problem = call::mismatch(&result.parse().ok()?, &schema)?;
    Some(format!("the result does not match the tool's output schema: {problem}"))
}

fn tool(result: &Json, screen: &Screen) -> Option<String> {
    let result: CallToolResult = result.parse().ok()?;
    let mut text = ContentRenderer::new(screen, None).tool_result(&result).ok()?;
    if result.is_error == Some(true) {
        text.push_str("(the tool says that it failed)\n");
    }
    Some(text)
}

fn described(list: &ListToolsResult, name: &str, screen: &Screen) -> String {
    if let Some(tool) = list.tools.iter().find(|tool| tool.name == name) {
        return tools::in_full(tool, screen);
    }
    let names = list.tools.iter().map(|tool| tool.name.as_str());
    format!("{}\n", line(&TOOLS.unknown(name, names).what))
}

/// The items of a list whose name or description contains a text.
fn table(list: &List, result: &Json, text: &str, screen: &Screen) -> Option<String> {
    let wanted = text.to_lowercase();
    let mut items = list.items(result, screen).ok()?;
    items.retain(|item| {
        let item = item.to_value();
        let has = |member: &str| {
            item[member].as_str().is_some_and(|text| text.to_lowercase().contains(&wanted))
        };
        wanted.is_empty() || has("name") || has("description")
    });
    Some(list.table(&items, screen))
}
