//! Prompts: the list, getting them, what they refuse.

use bowline::model::{GetPromptResult, ListPromptsResult};
use bowline::proto::decode::decode;
use serde_json::{Map, Value, json};

use super::tools::{bad_cursor_of, name, twice};
use crate::check::probe::{Outcome, PROMPTS, Probe, all_good, skip};
use crate::check::table::Check;

const PAGE: &str = "server/prompts";

pub(super) const CHECKS: &[Check] = &[
    Check::must("prompts.list", "prompts/list gives prompts that are whole, and ends", |probe| {
        Box::pin(list(probe))
    })
    .page(PAGE)
    .fix("Give each prompt a name, and each of its arguments too; leave nextCursor out on the last page."),
    Check::should("prompts.bad-cursor", "a cursor that nobody gave out is refused with -32602", |probe| {
        Box::pin(bad_cursor(probe))
    })
    .page("server/utilities/pagination")
    .fix("Refuse cursors that the server did not make with error -32602."),
    Check::should("prompts.names-unique", "no two prompts have the same name", |probe| {
        Box::pin(names_unique(probe))
    })
    .page(PAGE)
    .fix("Give each prompt a name of its own."),
    Check::must("prompts.get", "prompts give messages that are whole", |probe| Box::pin(get(probe)))
        .page(PAGE)
        .fix("Answer with messages: each has a role (user or assistant) and one content block."),
    Check::should("prompts.missing-argument", "a missing argument is refused with -32602", |probe| {
        Box::pin(missing_argument(probe))
    })
    .page(PAGE)
    .fix("Refuse prompts/get without a required argument with error -32602."),
    Check::should("prompts.unknown", "a prompt that does not exist is refused with -32602", |probe| {
        Box::pin(unknown(probe))
    })
    .page(PAGE)
    .fix("Refuse names that are not in the list with error -32602."),
];

async fn list(probe: &mut Probe) -> Outcome {
    let prompts = probe.list(&PROMPTS).await?;
    let problem = |prompt: &Value| {
        let one = json!({"prompts": [prompt]}).to_string();
        decode::<ListPromptsResult>("prompts/list", "result", &one).err()
    };
    all_good(prompts.iter().filter_map(problem).map(|error| error.to_string()).collect())
}

async fn bad_cursor(probe: &mut Probe) -> Outcome {
    probe.needs("prompts").await?;
    bad_cursor_of(probe, PROMPTS.method).await
}

async fn names_unique(probe: &mut Probe) -> Outcome {
    let prompts = probe.list(&PROMPTS).await?;
    all_good(twice(prompts.iter().map(name)))
}

/// The arguments that a prompt cannot do without.
fn required(prompt: &Value) -> Vec<&str> {
    let arguments = prompt.get("arguments").and_then(Value::as_array);
    let is_required = |argument: &&Value| argument.get("required") == Some(&Value::Bool(true));
    arguments.into_iter().flatten().filter(is_required).map(name).collect()
}

async fn get(probe: &mut Probe) -> Outcome {
    let prompts = probe.list(&PROMPTS).await?;
    let mut problems = Vec::new();
    let mut gotten = 0;
    for prompt in prompts.iter().take(probe.settings.samples) {
        let needed = required(prompt);
        let arguments: Map<String, Value> =
            needed.iter().map(|name| ((*name).to_owned(), json!("1"))).collect();
        let reply =
            probe.ask("prompts/get", json!({"name": name(prompt), "arguments": arguments})).await?;
        match reply.message().and_then(|message| message.get("result")) {
            Some(result) if result.get("resultType") == Some(&json!("input_required")) => {
                problems.push(format!(
                    "{} asks for input, and no capability was declared",
                    name(prompt)
                ));
            }
            Some(result) => {
                gotten += 1;
                let read = decode::<GetPromptResult>(name(prompt), "result", &result.to_string());
                problems.extend(read.err().map(|error| error.to_string()));
            }
            // Made-up arguments may well be refused.
            None if !needed.is_empty() => {}
            None => {
                problems.push(format!("{} was answered with {}", name(prompt), reply.describe()));
            }
        }
    }
    all_good(problems)?;
    match gotten {
        0 => skip("no prompt could be had with made-up arguments"),
        _ => Ok(Some(format!("{gotten} gotten"))),
    }
}

async fn missing_argument(probe: &mut Probe) -> Outcome {
    let prompts = probe.list(&PROMPTS).await?;
    let Some(prompt) = prompts.iter().find(|prompt| !required(prompt).is_empty()) else {
        return skip("no prompt requires an argument");
    };
    let reply = probe.ask("prompts/get", json!({"name": name(prompt)})).await?;
    reply.expect_code(&format!("{} without its arguments", name(prompt)), &[-32602])
}

async fn unknown(probe: &mut Probe) -> Outcome {
    probe.needs("prompts").await?;
    let reply = probe.ask("prompts/get", json!({"name": "bowline-no-such-prompt"})).await?;
    reply.expect_code("a prompt that does not exist", &[-32602])
}
