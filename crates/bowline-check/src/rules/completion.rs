//! Completion of arguments.

use bowline::Revision::V2025_03_26;
use bowline::uri_template::UriTemplate;
use serde_json::{Value, json};

use super::{name, text};
use crate::probe::{NotPassed, Outcome, PROMPTS, Probe, TEMPLATES, none_of, skip, when};
use crate::rule::{Rule, table};

table! { |probe| Rule::group("server/utilities/completion").since(V2025_03_26);
    Must "completion.values" => values(probe),
        "completion returns at most 100 strings",
        "Answer with completion.values, at most 100 strings, and hasMore if there are more.";
    Should "completion.unknown" => unknown(probe),
        "completion for a prompt that does not exist is rejected with -32602",
        "Reject references to what does not exist with error -32602.";
}

/// Something with arguments to complete: a reference, and the argument's name.
async fn reference(probe: &mut Probe) -> Result<Option<(Value, String)>, NotPassed> {
    let declared = probe.declared(&[PROMPTS, TEMPLATES]).await?;
    if declared.iter().any(|list| list.method == PROMPTS.method) {
        for prompt in probe.list(PROMPTS).await? {
            if let Some(argument) = prompt.pointer("/arguments/0") {
                let reference = json!({"type": "ref/prompt", "name": name(&prompt)});
                return Ok(Some((reference, name(argument).to_owned())));
            }
        }
    }
    if declared.iter().any(|list| list.method == TEMPLATES.method) {
        for template in probe.list(TEMPLATES).await? {
            let text = text(&template, "uriTemplate");
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
    let completion = &result["completion"];
    let values = completion["values"].as_array();
    let count = values.map_or(0, Vec::len);
    let odd = values.into_iter().flatten().find(|value| !value.is_string());
    let is_odd = |member: &str, is_good: fn(&Value) -> bool| {
        completion.get(member).is_some_and(|value| !is_good(value))
    };
    none_of([
        when(values.is_none(), "completion.values is not an array"),
        (count > 100).then(|| format!("completion.values has {count} entries")),
        odd.map(|odd| format!("completion.values has {odd}, which is not a string")),
        when(is_odd("total", Value::is_u64), "completion.total is not a natural number"),
        when(is_odd("hasMore", Value::is_boolean), "completion.hasMore is not a boolean"),
    ])
}

async fn unknown(probe: &mut Probe) -> Outcome {
    let reference = json!({"type": "ref/prompt", "name": "bowline-no-such-prompt"});
    let params = json!({"ref": reference, "argument": {"name": "x", "value": ""}});
    let what = "completion for a prompt that does not exist";
    probe.rejects("completions", ("completion/complete", params), what).await
}
