//! Tools that log, report progress, wait or change the server.

use bowline::model::LoggingLevel;
use bowline::{BuildError, Context, Prompt, Resource, Server, Tool};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

#[derive(Deserialize, JsonSchema)]
struct Update {
    /// Which resource changes.
    uri: String,
}

pub(super) fn server() -> Server {
    Server::new("works", "1.0.0")
        .with(Tool::new("logs", logs))
        .with(Tool::new("reports", |context: Context| async move {
            context.progress(1.0, 3.0, "one");
            context.progress(2.0, 3.0, "");
            // Skipped, because it is not greater than before.
            context.progress(2.0, 3.0, "again");
            context.progress(2.5, None, "nearly");
            "done"
        }))
        .with(Tool::new("waits", |context: Context| async move {
            context.progress(1.0, None, "waiting");
            std::future::pending::<String>().await
        }))
        .with(Tool::new("quick", || async { "at once" }))
}

async fn logs(context: Context) -> &'static str {
    context.log(LoggingLevel::Debug, "fine detail").await;
    context.log(LoggingLevel::Info, "for the record").await;
    context.log(LoggingLevel::Warning, json!({ "disk": "nearly full" })).await;
    context.logger("disk").try_log(LoggingLevel::Error, "full");
    "logged"
}

/// A server that its own tools change.
pub(super) fn changing() -> Server {
    Server::new("changes", "1.0.0")
        .with(Resource::text("test://note", "note", "first"))
        .with(Prompt::new("plain", || async { "Say something." }))
        .with(Tool::new("add", |context: Context| async move { add(&context) }))
        .with(Tool::new("remove", |context: Context| async move {
            let registry = context.registry();
            let was_there = registry.remove_tool("added");
            registry.remove_prompt("added");
            registry.remove_resource("test://added");
            was_there.to_string()
        }))
        .with(Tool::new("update", |context: Context, update: Update| async move {
            context.registry().resource_updated(&update.uri);
            "told"
        }))
}

/// One of each, so that all three lists change.
fn add(context: &Context) -> Result<&'static str, BuildError> {
    context.registry().add((
        Tool::new("added", || async { "new" }),
        Prompt::new("added", || async { "Say something new." }),
        Resource::text("test://added", "added", "new"),
    ))?;
    Ok("added")
}
