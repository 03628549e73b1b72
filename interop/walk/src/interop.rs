//! The checks for the servers of `interop/servers`, which all offer the same things under the same
//! names.

pub(crate) mod ask;
mod lists;
mod live;
mod skills;
mod tasks;

use bowline::Revision;
use serde_json::json;

use crate::check::{Named, Outcome};
use crate::guest::Guest;

/// In the order in which they run.
pub(crate) const CHECKS: &[Named] = &[
    ("identity", None),
    ("ping", None),
    ("list-tools", None),
    ("list-pages", None),
    ("list-resources", None),
    ("list-templates", None),
    ("list-prompts", None),
    ("call-text", None),
    ("call-structured", Some(Revision::V2025_06_18)),
    ("call-failing", None),
    ("call-unknown", None),
    ("call-many", None),
    ("call-large", None),
    ("read-text", None),
    ("read-template", None),
    ("read-missing", None),
    ("prompt-arguments", None),
    ("prompt-unknown", None),
    ("complete-prompt", None),
    ("complete-template", None),
    ("method-unknown", None),
    ("progress", None),
    ("logs", None),
    ("elicit", Some(Revision::V2025_06_18)),
    ("sample", None),
    ("roots", None),
    ("resource-updated", None),
    ("tools-changed", None),
    ("cancel", None),
    ("timeout", None),
    ("task", Some(Revision::REQUESTED_TASKS)),
    ("task-handle", Some(Revision::REQUESTED_TASKS)),
    ("task-cancel", Some(Revision::REQUESTED_TASKS)),
    ("task-question", Some(Revision::REQUESTED_TASKS)),
    ("skills", Some(Revision::EXTENSIONS)),
];

/// A tool that reports progress once and never returns.
pub(crate) const ENDLESS: (&str, &str) = ("wait", "{}");

/// Runs a check.
pub(crate) async fn run(name: &str, guest: &Guest) -> Outcome {
    match name {
        "identity" => lists::identity(guest),
        "ping" => Ok(guest.client.ping().await?),
        "list-tools" => lists::tools(guest).await,
        "list-pages" => lists::pages(guest).await,
        "list-resources" => lists::resources(guest).await,
        "list-templates" => lists::templates(guest).await,
        "list-prompts" => lists::prompts(guest).await,
        "call-text" => ask::call_text(guest).await,
        "call-structured" => ask::call_structured(guest).await,
        "call-failing" => ask::call_failing(guest).await,
        "call-unknown" => ask::call_unknown(guest).await,
        "call-many" => ask::call_many(guest).await,
        "call-large" => ask::call_large(guest).await,
        "read-text" => ask::read(guest, "test://static", "always the same").await,
        "read-template" => ask::read(guest, "test://users/ada", "user ada").await,
        "read-missing" => ask::read_missing(guest).await,
        "prompt-arguments" => ask::prompt_arguments(guest).await,
        "prompt-unknown" => ask::prompt_unknown(guest).await,
        "complete-prompt" => ask::complete_prompt(guest).await,
        "complete-template" => ask::complete_template(guest).await,
        "method-unknown" => ask::method_unknown(guest).await,
        "skills" => skills::walk(guest).await,
        "progress" => live::progress(guest).await,
        "logs" => live::logs(guest).await,
        "elicit" => live::elicit(guest).await,
        "sample" => live::sample(guest).await,
        "roots" => live::roots(guest).await,
        "resource-updated" => live::resource_updated(guest).await,
        "tools-changed" => live::tools_changed(guest).await,
        "cancel" => live::cancel(guest).await,
        "timeout" => live::timeout(guest).await,
        "task" => tasks::call(guest).await,
        "task-handle" => tasks::handle(guest).await,
        "task-cancel" => tasks::cancel(guest).await,
        "task-question" => tasks::question(guest).await,
        _ => Err("no such check".into()),
    }
}

/// How many sessions clients have ended.
pub(crate) async fn sessions_ended(guest: &Guest) -> Outcome<u64> {
    Ok(guest.text("ended", json!({})).await?.parse()?)
}
