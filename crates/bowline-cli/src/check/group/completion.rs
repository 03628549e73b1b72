//! Completion of arguments.

use bowline::Revision;
use bowline::uri_template::UriTemplate;
use serde_json::{Value, json};

use super::tools::name;
use crate::check::probe::{Outcome, PROMPTS, Probe, TEMPLATES, Trouble, all_good, skip};
use crate::check::table::Check;

const PAGE: &str = "server/utilities/completion";

pub(super) const CHECKS: &[Check] = &[
    Check::must("completion.values", "completion gives at most 100 strings", |probe| {
        Box::pin(values(probe))
    })
    .since(Revision::V2025_03_26)
    .page(PAGE)
    .fix("Answer with completion.values, at most 100 strings, and hasMore if there are more."),
    Check::should(
        "completion.unknown",
        "completion for a prompt that does not exist is refused with -32602",
        |probe| Box::pin(unknown(probe)),
    )
    .since(Revision::V2025_03_26)
    .page(PAGE)
    .fix("Refuse references to what is not there with error -32602."),
];

/// Something whose arguments can be completed.
async fn reference(probe: &mut Probe) -> Result<Option<(Value, String)>, Trouble> {
    let capabilities = probe.capabilities().await?;
    if capabilities.get("prompts").is_some() {
        for prompt in probe.list(&PROMPTS).await? {
            if let Some(argument) = prompt.pointer("/arguments/0") {
                let reference = json!({"type": "ref/prompt", "name": name(&prompt)});
                return Ok(Some((reference, name(argument).to_owned())));
            }
        }
    }
    if capabilities.get("resources").is_some() {
        for template in probe.list(&TEMPLATES).await? {
            let text = template.get("uriTemplate").and_then(Value::as_str).unwrap_or_default();
            let Ok(parsed) = UriTemplate::parse(text) else { continue };
            if let Some(variable) = parsed.variables().next() {
                let reference = json!({"type": "ref/resource", "uri": text});
                return Ok(Some((reference, variable.to_owned())));
            }
        }
    }
    Ok(None)
}

async fn values(probe: &mut Probe) -> Outcome {
    probe.needs("completions").await?;
    let Some((reference, argument)) = reference(probe).await? else {
        return skip("there is no prompt or template with arguments");
    };
    let params = json!({"ref": reference, "argument": {"name": argument, "value": ""}});
    let result = probe.result("completion/complete", params).await?;
    let mut problems = Vec::new();
    match result.pointer("/completion/values").and_then(Value::as_array) {
        None => problems.push("completion.values is not an array".to_owned()),
        Some(values) => {
            if values.len() > 100 {
                problems.push(format!("completion.values has {} entries", values.len()));
            }
            if let Some(odd) = values.iter().find(|value| !value.is_string()) {
                problems.push(format!("completion.values has {odd}, which is not a string"));
            }
        }
    }
    if result.pointer("/completion/total").is_some_and(|total| !total.is_u64()) {
        problems.push("completion.total is not a whole number".to_owned());
    }
    if result.pointer("/completion/hasMore").is_some_and(|more| !more.is_boolean()) {
        problems.push("completion.hasMore is not a boolean".to_owned());
    }
    all_good(problems)
}

async fn unknown(probe: &mut Probe) -> Outcome {
    probe.needs("completions").await?;
    let reference = json!({"type": "ref/prompt", "name": "bowline-no-such-prompt"});
    let params = json!({"ref": reference, "argument": {"name": "x", "value": ""}});
    let reply = probe.ask("completion/complete", params).await?;
    reply.expect_code("completion for a prompt that does not exist", &[-32602])
}
