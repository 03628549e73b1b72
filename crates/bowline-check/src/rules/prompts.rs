//! Prompts: the list, getting them, what they reject.

use bowline::model::{GetPromptResult, ListPromptsResult};
use bowline::proto::decode::decode;
use serde_json::{Map, Value, json};

use super::{bad_cursor, name, readable, unique};
use crate::probe::{Outcome, PROMPTS, Probe, all_good, skip};
use crate::rule::{Rule, table};

table! { |probe| Rule::group("server/prompts");
    Must "prompts.list" => readable::<ListPromptsResult>(probe, PROMPTS),
        "prompts/list returns complete prompts, and ends",
        "Give each prompt a name, and each of its arguments too; omit nextCursor on the last page.";
    Should "prompts.bad-cursor" [.page("server/utilities/pagination")] => bad_cursor(probe, PROMPTS),
        "a made-up cursor is rejected with -32602",
        "Reject cursors that the server did not create with error -32602.";
    Should "prompts.names-unique" => unique(probe, PROMPTS, "name"),
        "no two prompts have the same name",
        "Give each prompt a name of its own.";
    Must "prompts.get" => get(probe),
        "prompts return complete messages",
        "Answer with messages: each has a role (user or assistant) and one content block.";
    Should "prompts.missing-argument" => missing_argument(probe),
        "a missing argument is rejected with -32602",
        "Reject prompts/get without a required argument with error -32602.";
    Should "prompts.unknown" => probe.rejects("prompts", ("prompts/get", json!({"name": "bowline-no-such-prompt"})), "a prompt that does not exist"),
        "a prompt that does not exist is rejected with -32602",
        "Reject names that are not in the list with error -32602.";
}

/// The required arguments of a prompt.
fn required(prompt: &Value) -> Vec<&str> {
    let arguments = prompt.get("arguments").and_then(Value::as_array);
    let is_required = |argument: &&Value| argument.get("required") == Some(&Value::Bool(true));
    arguments.into_iter().flatten().filter(is_required).map(name).collect()
}

async fn get(probe: &mut Probe) -> Outcome {
    let prompts = probe.list(PROMPTS).await?;
    let mut problems = Vec::new();
    let mut gotten = 0;
    for prompt in prompts.iter().take(probe.settings.samples) {
        let (prompt, needed) = (name(prompt), required(prompt));
        let arguments: Map<String, Value> =
            needed.iter().map(|name| ((*name).to_owned(), json!("1"))).collect();
        let params = json!({"name": prompt, "arguments": arguments});
        let reply = probe.ask("prompts/get", params).await?;
        match reply.result() {
            Some(result) if result.get("resultType") == Some(&json!("input_required")) => {
                problems.push(format!("{prompt} asks for input, but no capability was declared"));
            }
            Some(result) => {
                gotten += 1;
                let read = decode::<GetPromptResult>(prompt, "result", &result.to_string());
                problems.extend(read.err().map(|error| error.to_string()));
            }
            // Made-up arguments may well be rejected.
            None if !needed.is_empty() => {}
            None => problems.push(format!("{prompt} got {}", reply.describe())),
        }
    }
    all_good(problems)?;
    match gotten {
        0 => skip("no prompt accepts made-up arguments"),
        _ => Ok(Some(format!("{gotten} read"))),
    }
}

async fn missing_argument(probe: &mut Probe) -> Outcome {
    let prompts = probe.list(PROMPTS).await?;
    let Some(prompt) = prompts.iter().find(|prompt| !required(prompt).is_empty()) else {
        return skip("no prompt requires an argument");
    };
    let reply = probe.ask("prompts/get", json!({"name": name(prompt)})).await?;
    reply.expect_code(&format!("{} without its arguments", name(prompt)), &[-32602])
}
