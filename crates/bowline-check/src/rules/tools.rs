//! Tools: their list, unknown ones, bad arguments, and the results of calls.

use bowline::Revision::{V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25};
use bowline::model::{CallToolResult, ListToolsResult};
use bowline::proto::decode::decode;
use bowline::proto::http::ParamHeaders;
use bowline_schema::Schema;
use serde_json::{Value, json};

use super::{bad_cursor, each, name, text, unique, unreadable};
use crate::calls::{ToolCall, is_read_only, needs_arguments};
use crate::probe::{Outcome, Probe, TOOLS, broken, ensure, skip};
use crate::rule::{Rule, table};

table! { |probe| Rule::group("server/tools");
    Must "tools.list" => each(probe, TOOLS, incomplete),
        "tools/list returns complete tools",
        "Give each tool a name and an inputSchema, and hints that are booleans.";
    Must "tools.pages" [.page("server/utilities/pagination")] => pages(probe),
        "the pages of tools/list end",
        "Omit nextCursor on the last page, and never return the same cursor twice.";
    Should "tools.bad-cursor" [.page("server/utilities/pagination")] => bad_cursor(probe, TOOLS),
        "a made-up cursor is rejected with -32602",
        "Reject cursors that the server did not create with error -32602.";
    Should "tools.names-unique" => unique(probe, TOOLS, "name"),
        "no two tools have the same name",
        "Give each tool a name of its own.";
    Should "tools.names-valid" [.since(V2025_11_25)] => each(probe, TOOLS, |tool| bad_name(tool, "_-.", 128)),
        "names have 1 to 128 letters, digits, _, -, .",
        "Use only A-Z, a-z, 0-9, _, - and . in tool names, at most 128 characters.";
    Portability "tools.names-portable" => each(probe, TOOLS, |tool| bad_name(tool, "_-", 64)),
        "names suit every model provider: up to 64 letters, digits, _, -",
        "Use at most 64 of A-Z, a-z, 0-9, _ and -: providers reject dots, and clients add prefixes of their own.";
    Portability "tools.descriptions" => each(probe, TOOLS, bad_description),
        "each tool has a description of at most 1024 characters",
        "Describe each tool in a few sentences: models choose by the description, and providers cut long ones.";
    Info "tools.annotation-title" [.since(V2025_06_18)] => each(probe, TOOLS, untitled),
        "a tool with a title has it in annotations.title, too",
        "Repeat title in annotations.title: some clients (LangChain) read only that.";
    Must "tools.header-annotations" [.modern()] => each(probe, TOOLS, bad_annotations),
        "x-mcp-header is only where it is allowed, with names that can be headers",
        "Put x-mcp-header only on properties of type string, integer or boolean, each with a name of its own: otherwise clients drop the tool.";
    Info "tools.context-cost" => context_cost(probe),
        "the tool list leaves room in a context window",
        "Shorten descriptions and schemas, or offer fewer tools: all of it goes to the model with each request.";
    Must "tools.unknown" => probe.fails("tools", unknown(), "a call of an unknown tool"),
        "calling a tool that does not exist does not succeed",
        "Answer a call of an unknown tool with error -32602.";
    Should "tools.unknown-code" => probe.rejects("tools", unknown(), "a call of an unknown tool"),
        "a tool that does not exist is rejected with error -32602",
        "Answer with a JSON-RPC error -32602, not with a result: the model cannot correct a tool's name.";
    Must "tools.invalid-arguments" => invalid_arguments(probe),
        "missing arguments are rejected",
        "Check arguments against inputSchema; answer with isError (2025-11-25 on) or error -32602.";
    Must "tools.call" => call(probe),
        "results of calls are complete",
        "Return content: an array of blocks, each with its type and the members of that type.";
    Should "tools.no-arguments" => no_arguments(probe),
        "arguments may be omitted where none are required",
        "Treat missing arguments as an empty object.";
    Should "tools.content-types" => content_types(probe),
        "content has only types that the revision knows",
        "Send audio only from 2025-03-26 on and resource_link only from 2025-06-18 on; older clients reject them.";
    Must "tools.structured" [.since(V2025_06_18)] => structured(probe),
        "structuredContent conforms to outputSchema",
        "Return structuredContent that conforms to outputSchema, or isError.";
    Should "tools.structured-text" [.since(V2025_06_18)] => structured_text(probe),
        "structured results come as text too",
        "Put the JSON of structuredContent into a text block as well: many clients show only text.";
}

pub(super) fn incomplete(tool: &Value) -> Option<String> {
    let missing = || format!("{}: inputSchema is not an object", name(tool));
    let unreadable = unreadable::<ListToolsResult>(TOOLS, tool);
    unreadable
        .map(|problem| format!("{}: {problem}", name(tool)))
        .or_else(|| (!tool["inputSchema"].is_object()).then(missing))
}

async fn pages(probe: &mut Probe) -> Outcome {
    probe.needs("tools").await?;
    let (tools, pages) = probe.pages(TOOLS).await?;
    Ok(Some(format!("{} tools on {pages} pages", tools.len())))
}

fn bad_name(tool: &Value, also: &str, most: usize) -> Option<String> {
    let name = name(tool);
    let is_allowed = |letter: char| letter.is_ascii_alphanumeric() || also.contains(letter);
    let is_bad = name.is_empty() || name.len() > most || !name.chars().all(is_allowed);
    is_bad.then(|| format!("{name:?}"))
}

fn bad_description(tool: &Value) -> Option<String> {
    match text(tool, "description").trim().chars().count() {
        0 => Some(format!("{} has no description", name(tool))),
        count @ 1025.. => Some(format!("{}: {count} characters", name(tool))),
        _ => None,
    }
}

fn untitled(tool: &Value) -> Option<String> {
    let has_title = !text(tool, "title").is_empty();
    let lacks = has_title && tool.pointer("/annotations/title").is_none();
    lacks.then(|| format!("{} has a title, but no annotations.title", name(tool)))
}

fn bad_annotations(tool: &Value) -> Option<String> {
    let error = ParamHeaders::parse(tool.get("inputSchema")?).err()?;
    Some(format!("{}: {error}", name(tool)))
}

async fn context_cost(probe: &mut Probe) -> Outcome {
    const MANY: usize = 40_000;
    let tools = probe.list(TOOLS).await?;
    let sizes = tools.iter().map(|tool| (tool.to_string().len(), name(tool)));
    let total: usize = sizes.clone().map(|(size, _)| size).sum();
    let largest = sizes.max().map(|(size, name)| format!("; the largest is {name} with {size}"));
    let told = format!("{} tools take {total} bytes{}", tools.len(), largest.unwrap_or_default());
    if total > MANY { broken(told) } else { Ok(Some(told)) }
}

/// A call of a tool that does not exist.
fn unknown() -> (&'static str, Value) {
    ("tools/call", json!({"name": "bowline-no-such-tool", "arguments": {}}))
}

async fn invalid_arguments(probe: &mut Probe) -> Outcome {
    let tools = probe.list(TOOLS).await?;
    let Some(tool) = tools.iter().find(|tool| is_read_only(tool) && needs_arguments(tool)) else {
        return skip("no tool is marked read-only and requires arguments");
    };
    let reply = probe.ask("tools/call", json!({"name": name(tool), "arguments": {}})).await?;
    ensure(reply.error().is_some() || reply.is_tool_error(), || {
        format!("a call of {} without its required arguments got {}", name(tool), reply.describe())
    })
}

async fn call(probe: &mut Probe) -> Outcome {
    let none = "no tool is marked read-only and needs no arguments; --call names one";
    probe.judge_calls(Some(none), |call| Some(lacking(call))).await?;
    let calls = probe.calls().await?;
    let mut notes = vec![format!("{} called", calls.len())];
    notes.extend(calls.iter().filter_map(|call| match &call.answer {
        Err(lost) => Some(format!("{}: {lost}", call.name)),
        Ok(answer) if answer.get("result").is_none() => {
            Some(format!("{} got {}", call.name, answer["error"]))
        }
        Ok(_) => None,
    }));
    Ok(Some(notes.join("; ")))
}

/// What a result lacks.
fn lacking(call: &ToolCall) -> Vec<String> {
    let Some(result) = call.result() else { return Vec::new() };
    if result.get("resultType") == Some(&json!("input_required")) {
        return vec!["asks for input, but no capability was declared".to_owned()];
    }
    let read = decode::<CallToolResult>("tools/call", "result", &result.to_string());
    let missing = (!result["content"].is_array()).then(|| "content is not an array".to_owned());
    read.err().map(|error| error.to_string()).or(missing).into_iter().collect()
}

async fn no_arguments(probe: &mut Probe) -> Outcome {
    let calls = probe.calls().await?;
    let is_fit = |call: &&ToolCall| {
        call.success().is_some() && !needs_arguments(&call.tool) && is_read_only(&call.tool)
    };
    let Some(call) = calls.iter().find(is_fit) else {
        return skip("no tool could be called without arguments");
    };
    let reply = probe.ask("tools/call", json!({"name": call.name})).await?;
    let is_served = reply.result().is_some_and(|it| it.get("content").is_some());
    ensure(is_served && !reply.is_tool_error(), || {
        format!("{} without the member arguments got {}", call.name, reply.describe())
    })
}

async fn content_types(probe: &mut Probe) -> Outcome {
    let revision = probe.revision;
    let newer = |block: &Value| {
        let kind = text(block, "type");
        let since = match kind {
            "audio" => V2025_03_26,
            "resource_link" => V2025_06_18,
            _ => V2024_11_05,
        };
        (revision < since).then(|| format!("returned {kind}, which is new in {since}"))
    };
    let judge = |call: &ToolCall| {
        let blocks = call.result().and_then(|result| result.get("content")?.as_array());
        let mut problems: Vec<String> = blocks.into_iter().flatten().filter_map(newer).collect();
        problems.dedup();
        Some(problems)
    };
    probe.judge_calls(None, judge).await
}

async fn structured(probe: &mut Probe) -> Outcome {
    let may_be_any = probe.revision.is_modern();
    let judge = |call: &ToolCall| {
        let content = call.success()?.get("structuredContent");
        let problem = match (call.tool.get("outputSchema"), content) {
            (None, None) => return None,
            (Some(_), None) => Some("has an outputSchema, but no structuredContent".to_owned()),
            (_, Some(content)) if !content.is_object() && !may_be_any => {
                Some(format!("structuredContent is not an object: {content}"))
            }
            (None, Some(_)) => None,
            (Some(schema), Some(content)) => Schema::compile(schema)
                .ok()
                .and_then(|schema| schema.validate("structuredContent", content).err())
                .map(|error| error.to_string()),
        };
        Some(problem.into_iter().collect())
    };
    probe.judge_calls(Some("no call returned a structured result"), judge).await
}

async fn structured_text(probe: &mut Probe) -> Outcome {
    let judge = |call: &ToolCall| {
        let result = call.success()?;
        result.get("structuredContent")?;
        let blocks = result.get("content").and_then(Value::as_array);
        let has_text = blocks.into_iter().flatten().any(|block| text(block, "type") == "text");
        Some(if has_text { vec![] } else { vec!["structuredContent without text".to_owned()] })
    };
    probe.judge_calls(None, judge).await
}
