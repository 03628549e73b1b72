//! Tools: their list, unknown ones, bad arguments, and what calls give.

use bowline::Revision;
use bowline::model::{CallToolResult, ListToolsResult};
use bowline::proto::decode::decode;
use bowline::proto::http::ParamHeaders;
use bowline_schema::Schema;
use serde_json::{Value, json};

use crate::check::calls::{needs_arguments, reads_only};
use crate::check::probe::{Outcome, PASS, Probe, TOOLS, all_good, broken, skip};
use crate::check::table::Check;

const PAGE: &str = "server/tools";

pub(super) const CHECKS: &[Check] = &[
    Check::must("tools.list", "tools/list gives tools that are whole", |probe| Box::pin(list(probe)))
        .page(PAGE)
        .fix("Give each tool a name and an inputSchema, and hints that are booleans."),
    Check::must("tools.pages", "the pages of tools/list end", |probe| Box::pin(pages(probe)))
        .page("server/utilities/pagination")
        .fix("Leave nextCursor out on the last page, and never give the same cursor twice."),
    Check::should("tools.bad-cursor", "a cursor that nobody gave out is refused with -32602", |probe| {
        Box::pin(bad_cursor(probe))
    })
    .page("server/utilities/pagination")
    .fix("Refuse cursors that the server did not make with error -32602."),
    Check::should("tools.names-unique", "no two tools have the same name", |probe| {
        Box::pin(names_unique(probe))
    })
    .page(PAGE)
    .fix("Give each tool a name of its own."),
    Check::should("tools.names-valid", "names have 1 to 128 letters, digits, _, -, .", |probe| {
        Box::pin(names_valid(probe))
    })
    .since(Revision::V2025_11_25)
    .page(PAGE)
    .fix("Use only A-Z, a-z, 0-9, _, - and . in names of tools, at most 128 of them."),
    Check::portability("tools.names-portable", "names fit every model provider: up to 64 letters, digits, _, -", |probe| {
        Box::pin(names_portable(probe))
    })
    .page(PAGE)
    .fix("Use at most 64 of A-Z, a-z, 0-9, _ and -: providers refuse dots, and clients add prefixes of their own."),
    Check::portability("tools.descriptions", "each tool says what it does, in at most 1024 characters", |probe| {
        Box::pin(descriptions(probe))
    })
    .page(PAGE)
    .fix("Describe each tool in a few sentences: models choose by the description, and providers cut long ones."),
    Check::must("tools.header-annotations", "x-mcp-header stands where it may, with names that can be headers", |probe| {
        Box::pin(header_annotations(probe))
    })
    .modern()
    .page(PAGE)
    .fix("Put x-mcp-header only on properties of type string, integer or boolean, each with a name of its own: clients drop the tool otherwise."),
    Check::info("tools.context-cost", "the list of tools leaves room in a context window", |probe| {
        Box::pin(context_cost(probe))
    })
    .page(PAGE)
    .fix("Shorten descriptions and schemas, or offer fewer tools: all of it goes to the model with each request."),
    Check::must("tools.unknown", "a tool that does not exist is not said to have worked", |probe| {
        Box::pin(unknown(probe))
    })
    .page(PAGE)
    .fix("Answer a call of an unknown tool with error -32602."),
    Check::should("tools.unknown-code", "a tool that does not exist is refused with error -32602", |probe| {
        Box::pin(unknown_code(probe))
    })
    .page(PAGE)
    .fix("Answer with a JSON-RPC error -32602, not with a result: the model cannot mend the name of a tool."),
    Check::must("tools.invalid-arguments", "missing arguments are noticed", |probe| {
        Box::pin(invalid_arguments(probe))
    })
    .page(PAGE)
    .fix("Check arguments against inputSchema; answer with isError (2025-11-25 on) or error -32602."),
    Check::must("tools.call", "results of calls are whole", |probe| Box::pin(call(probe)))
        .page(PAGE)
        .fix("A result has content, an array of blocks, each with its type and the members of that type."),
    Check::should("tools.no-arguments", "arguments may be left out where none are required", |probe| {
        Box::pin(no_arguments(probe))
    })
    .page(PAGE)
    .fix("Treat missing arguments as an empty object."),
    Check::should("tools.content-types", "content is of types that the revision has", |probe| {
        Box::pin(content_types(probe))
    })
    .page(PAGE)
    .fix("Send audio from 2025-03-26 on and resource_link from 2025-06-18 on only; older clients refuse them."),
    Check::must("tools.structured", "structuredContent is what outputSchema says", |probe| {
        Box::pin(structured(probe))
    })
    .since(Revision::V2025_06_18)
    .page(PAGE)
    .fix("A tool with an outputSchema must give structuredContent that conforms to it (or isError)."),
    Check::should("tools.structured-text", "structured results come as text too", |probe| {
        Box::pin(structured_text(probe))
    })
    .since(Revision::V2025_06_18)
    .page(PAGE)
    .fix("Put the JSON of structuredContent into a text block as well: many clients show that only."),
];

/// The name of a tool, for messages.
pub(super) fn name(tool: &Value) -> &str {
    tool.get("name").and_then(Value::as_str).unwrap_or("(no name)")
}

async fn list(probe: &mut Probe) -> Outcome {
    let tools = probe.list(&TOOLS).await?;
    let mut problems = Vec::new();
    for tool in &tools {
        let one = json!({"tools": [tool]}).to_string();
        if let Err(error) = decode::<ListToolsResult>(name(tool), "result", &one) {
            problems.push(error.to_string());
        } else if !tool.get("inputSchema").is_some_and(Value::is_object) {
            problems.push(format!("{}: inputSchema is not an object", name(tool)));
        }
    }
    all_good(problems)
}

async fn pages(probe: &mut Probe) -> Outcome {
    probe.needs("tools").await?;
    let (tools, pages) = probe.pages(&TOOLS).await?;
    Ok(Some(format!("{} tools on {pages} pages", tools.len())))
}

async fn bad_cursor(probe: &mut Probe) -> Outcome {
    probe.needs("tools").await?;
    bad_cursor_of(probe, TOOLS.method).await
}

/// The same for every list.
pub(super) async fn bad_cursor_of(probe: &mut Probe, method: &str) -> Outcome {
    let reply = probe.ask(method, json!({"cursor": "bowline-no-such-cursor"})).await?;
    reply.expect_code(&format!("{method} with a made-up cursor"), &[-32602])
}

/// Values that occur more than once.
pub(super) fn twice<'a>(values: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut seen = std::collections::BTreeSet::new();
    values
        .filter(|value| !seen.insert(*value))
        .map(|value| format!("{value:?} is there twice"))
        .collect()
}

async fn names_unique(probe: &mut Probe) -> Outcome {
    let tools = probe.list(&TOOLS).await?;
    all_good(twice(tools.iter().map(name)))
}

async fn names_valid(probe: &mut Probe) -> Outcome {
    let tools = probe.list(&TOOLS).await?;
    all_good(badly_named(&tools, "_-.", 128))
}

async fn names_portable(probe: &mut Probe) -> Outcome {
    let tools = probe.list(&TOOLS).await?;
    all_good(badly_named(&tools, "_-", 64))
}

fn badly_named(tools: &[Value], also: &str, most: usize) -> Vec<String> {
    let is_bad = |name: &&str| {
        let is_allowed = |letter: char| letter.is_ascii_alphanumeric() || also.contains(letter);
        name.is_empty() || name.len() > most || !name.chars().all(is_allowed)
    };
    tools.iter().map(name).filter(is_bad).map(|name| format!("{name:?}")).collect()
}

async fn descriptions(probe: &mut Probe) -> Outcome {
    const MOST: usize = 1024;
    let tools = probe.list(&TOOLS).await?;
    let problem = |tool: &Value| {
        let text = tool.get("description").and_then(Value::as_str).unwrap_or_default().trim();
        match text.chars().count() {
            0 => Some(format!("{} has no description", name(tool))),
            count if count > MOST => Some(format!("{}: {count} characters", name(tool))),
            _ => None,
        }
    };
    all_good(tools.iter().filter_map(problem).collect())
}

async fn header_annotations(probe: &mut Probe) -> Outcome {
    let tools = probe.list(&TOOLS).await?;
    let problem = |tool: &Value| {
        let error = ParamHeaders::parse(tool.get("inputSchema")?).err()?;
        Some(format!("{}: {error}", name(tool)))
    };
    all_good(tools.iter().filter_map(problem).collect())
}

async fn context_cost(probe: &mut Probe) -> Outcome {
    const MANY: usize = 40_000;
    let tools = probe.list(&TOOLS).await?;
    let mut sizes: Vec<(usize, &str)> =
        tools.iter().map(|it| (it.to_string().len(), name(it))).collect();
    sizes.sort_unstable_by(|one, other| other.cmp(one));
    let total: usize = sizes.iter().map(|(size, _)| size).sum();
    let largest = sizes
        .first()
        .map_or_else(String::new, |(size, name)| format!("; the largest is {name} with {size}"));
    let told = format!("{} tools take {total} bytes{largest}", tools.len());
    if total > MANY { broken(told) } else { Ok(Some(told)) }
}

const NOBODY: &str = "bowline-no-such-tool";

async fn unknown(probe: &mut Probe) -> Outcome {
    probe.needs("tools").await?;
    let reply = probe.ask("tools/call", json!({"name": NOBODY, "arguments": {}})).await?;
    let is_failure = reply.message().is_none_or(|message| {
        message.get("error").is_some() || message.pointer("/result/isError") == Some(&json!(true))
    });
    match is_failure {
        true => PASS,
        false => broken(format!("a call of {NOBODY} was answered with {}", reply.describe())),
    }
}

async fn unknown_code(probe: &mut Probe) -> Outcome {
    probe.needs("tools").await?;
    let reply = probe.ask("tools/call", json!({"name": NOBODY, "arguments": {}})).await?;
    reply.expect_code(&format!("a call of {NOBODY}"), &[-32602])
}

async fn invalid_arguments(probe: &mut Probe) -> Outcome {
    let tools = probe.list(&TOOLS).await?;
    let is_fit = |tool: &&Value| reads_only(tool) && needs_arguments(tool);
    let Some(tool) = tools.iter().find(is_fit) else {
        return skip("no tool says that it only reads and requires arguments");
    };
    let reply = probe.ask("tools/call", json!({"name": name(tool), "arguments": {}})).await?;
    let is_refused = reply.error().is_some()
        || reply.message().is_some_and(|it| it.pointer("/result/isError") == Some(&json!(true)));
    match is_refused {
        true => PASS,
        false => broken(format!(
            "{} was called without its required arguments and answered with {}",
            name(tool),
            reply.describe()
        )),
    }
}

async fn call(probe: &mut Probe) -> Outcome {
    let calls = probe.calls().await?;
    if calls.is_empty() {
        return skip("no tool says that it only reads and needs no arguments; --call names one");
    }
    let (mut problems, mut notes) = (Vec::new(), Vec::new());
    for called in &calls {
        let problem = match (&called.answer, called.result()) {
            (Err(lost), _) => {
                notes.push(format!("{}: {lost}", called.name));
                None
            }
            (_, Some(result)) if result.get("resultType") == Some(&json!("input_required")) => {
                Some(format!("{} asks for input, and no capability was declared", called.name))
            }
            (_, Some(result)) => {
                let read = decode::<CallToolResult>(&called.name, "result", &result.to_string());
                let is_whole = result.get("content").is_some_and(Value::is_array);
                let missing =
                    (!is_whole).then(|| format!("{}: content is not an array", called.name));
                read.err().map(|error| error.to_string()).or(missing)
            }
            (Ok(answer), None) => {
                notes.push(format!("{} was answered with {}", called.name, answer["error"]));
                None
            }
        };
        if let Some(problem) = problem {
            problems.push(problem);
            probe.show(called);
        }
    }
    all_good(problems)?;
    notes.insert(0, format!("{} called", calls.len()));
    Ok(Some(notes.join("; ")))
}

async fn no_arguments(probe: &mut Probe) -> Outcome {
    let calls = probe.calls().await?;
    let Some(called) = calls
        .iter()
        .find(|it| it.success().is_some() && !needs_arguments(&it.tool) && reads_only(&it.tool))
    else {
        return skip("no tool could be called without arguments");
    };
    let reply = probe.ask("tools/call", json!({"name": called.name})).await?;
    match reply.message().is_some_and(|it| it.pointer("/result/content").is_some())
        && reply.describe() == "a result"
    {
        true => PASS,
        false => broken(format!(
            "{} without the member arguments was answered with {}",
            called.name,
            reply.describe()
        )),
    }
}

async fn content_types(probe: &mut Probe) -> Outcome {
    let calls = probe.calls().await?;
    let revision = probe.revision;
    let mut problems = Vec::new();
    for called in &calls {
        let blocks = called.result().and_then(|result| result.get("content")?.as_array());
        for block in blocks.into_iter().flatten() {
            let kind = block.get("type").and_then(Value::as_str).unwrap_or_default();
            let since = match kind {
                "text" | "image" | "resource" => Revision::V2024_11_05,
                "audio" => Revision::V2025_03_26,
                "resource_link" => Revision::V2025_06_18,
                _ => continue,
            };
            let problem = format!("{} gave {kind}, which is new in {since}", called.name);
            if revision < since && !problems.contains(&problem) {
                problems.push(problem);
                probe.show(called);
            }
        }
    }
    all_good(problems)
}

async fn structured(probe: &mut Probe) -> Outcome {
    let calls = probe.calls().await?;
    let mut problems = Vec::new();
    let mut checked = 0;
    for called in &calls {
        let Some(result) = called.success() else { continue };
        let content = result.get("structuredContent");
        let problem = match (called.tool.get("outputSchema"), content) {
            (None, None) => continue,
            (Some(_), None) => {
                Some("has an outputSchema, but gave no structuredContent".to_owned())
            }
            (_, Some(content)) if !content.is_object() && !probe.revision.is_modern() => {
                Some(format!("structuredContent is not an object: {content}"))
            }
            (None, Some(_)) => None,
            (Some(schema), Some(content)) => Schema::compile(schema)
                .ok()
                .and_then(|schema| schema.validate("structuredContent", content).err())
                .map(|error| error.to_string()),
        };
        checked += 1;
        if let Some(problem) = problem {
            problems.push(format!("{}: {problem}", called.name));
            probe.show(called);
        }
    }
    match checked {
        0 => skip("no call gave a structured result"),
        _ => all_good(problems),
    }
}

async fn structured_text(probe: &mut Probe) -> Outcome {
    let calls = probe.calls().await?;
    let mut problems = Vec::new();
    for called in &calls {
        let Some(result) = called.success().filter(|it| it.get("structuredContent").is_some())
        else {
            continue;
        };
        let blocks = result.get("content").and_then(Value::as_array);
        let has_text =
            blocks.into_iter().flatten().any(|it| it.get("type") == Some(&json!("text")));
        if !has_text {
            problems.push(format!("{} gave structuredContent and no text", called.name));
            probe.show(called);
        }
    }
    all_good(problems)
}
