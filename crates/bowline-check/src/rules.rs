//! The rules, by what they are about. The order is that of the report: what keeps everything else
//! from working comes first, what only watches comes last.

mod apps;
pub(crate) mod auth;
mod completion;
mod http;
mod http_modern;
mod jsonrpc;
mod lifecycle;
mod lint;
mod modern;
mod prompts;
mod resources;
mod schema;
pub(crate) mod scopes;
mod skills;
mod sse;
mod stdio;
mod task_runs;
mod tasks;
mod tools;
mod utilities;
pub(crate) mod watch;

use bowline::model::{ListPromptsResult, ListResourcesResult};
use bowline::proto::decode::decode;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::probe::{List, Outcome, PROMPTS, Probe, RESOURCES, all_good};
use crate::rule::{self, Rule};

pub use self::resources::is_uri;

/// Rules whose checks send something.
pub(crate) const ACTING: &[&[Rule]] = &[
    auth::RULES,
    scopes::RULES,
    sse::RULES,
    lifecycle::RULES,
    jsonrpc::RULES,
    modern::RULES,
    tools::RULES,
    schema::RULES,
    resources::RULES,
    prompts::RULES,
    completion::RULES,
    tasks::RULES,
    task_runs::RULES,
    skills::RULES,
    apps::RULES,
    utilities::RULES,
    http::RULES,
    http_modern::RULES,
    stdio::RULES,
];

/// The name of a thing, for messages.
fn name(thing: &Value) -> &str {
    thing.get("name").and_then(Value::as_str).unwrap_or("(no name)")
}

/// A member that is a string.
fn text<'a>(thing: &'a Value, member: &str) -> &'a str {
    thing.get(member).and_then(Value::as_str).unwrap_or_default()
}

/// A made-up cursor is rejected.
async fn bad_cursor(probe: &mut Probe, list: &List) -> Outcome {
    let request = (list.method, json!({"cursor": "bowline-no-such-cursor"}));
    probe.rejects(list.capability, request, &format!("{} with a made-up cursor", list.method)).await
}

/// No two entries of a list have the same value in a member.
async fn unique(probe: &mut Probe, list: &'static List, member: &str) -> Outcome {
    let entries = probe.list(list).await?;
    let mut seen = std::collections::BTreeSet::new();
    let twice = entries.iter().map(|it| text(it, member)).filter(|it| !seen.insert(*it));
    all_good(twice.map(|value| format!("{value:?} is listed twice")))
}

/// What is wrong with an entry of a list that cannot be read.
fn unreadable<T: DeserializeOwned>(list: &List, entry: &Value) -> Option<String> {
    let one = json!({list.member: [entry]}).to_string();
    decode::<T>(list.method, "result", &one).err().map(|error| error.to_string())
}

/// Passes if no entry of a list has a problem.
async fn each(
    probe: &mut Probe,
    list: &'static List,
    problem: impl Fn(&Value) -> Option<String>,
) -> Outcome {
    all_good(probe.list(list).await?.iter().filter_map(problem))
}

/// Passes if all entries of a list can be read.
async fn readable<T: DeserializeOwned>(probe: &mut Probe, list: &'static List) -> Outcome {
    each(probe, list, |entry| unreadable::<T>(list, entry)).await
}

/// The first problem of an entry of `tools/list`, `resources/list` or `prompts/list` that keeps
/// clients from using the list, and what to do about it.
pub fn problem_of_entry(method: &str, entry: &Value) -> Option<(String, &'static str)> {
    let found = match method {
        "prompts/list" => vec![("prompts.list", unreadable::<ListPromptsResult>(PROMPTS, entry))],
        "resources/list" => {
            vec![("resources.list", unreadable::<ListResourcesResult>(RESOURCES, entry))]
        }
        _ => vec![
            ("tools.list", tools::incomplete(entry)),
            ("schema.input-object", schema::not_object(entry, "inputSchema")),
            ("schema.valid", schema::uncompiled(entry, schema::is_invalid)),
        ],
    };
    let (rule, problem) = found.into_iter().find_map(|(rule, problem)| Some((rule, problem?)))?;
    Some((problem, rule::remedy(rule)))
}
