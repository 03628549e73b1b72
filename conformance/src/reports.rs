//! Tools that report while they work, let the client reconnect, or change the server.

use std::time::Duration;

use bowline::model::LoggingLevel;
use bowline::{Context, Part, Prompt, Tool, tool};

pub(crate) fn parts() -> impl Part {
    (
        test_tool_with_progress,
        test_tool_with_logging,
        test_logging_tool,
        test_reconnection,
        test_trigger_tool_change,
        test_trigger_prompt_change,
    )
}

/// Reports progress three times.
#[tool]
async fn test_tool_with_progress(context: &Context) -> &'static str {
    for done in [0.0, 50.0, 100.0] {
        context.progress(done, 100.0, &format!("Completed step {done} of 100"));
        pause().await;
    }
    "Done"
}

/// Logs three times.
#[tool]
async fn test_tool_with_logging(context: &Context) -> &'static str {
    for text in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
        context.log(LoggingLevel::Info, text).await;
        pause().await;
    }
    "Logged"
}

/// Logs once at every level.
#[tool]
async fn test_logging_tool(context: &Context) -> &'static str {
    for level in LoggingLevel::ALL {
        context.log(level, format!("a message of level {level}")).await;
    }
    "Logged"
}

/// Closes the stream, and answers when the client reconnects.
#[tool]
async fn test_reconnection(context: &Context) -> &'static str {
    context.release_stream();
    pause().await;
    "Reconnection test completed successfully."
}

const EXTRA: &str = "test_extra";

/// Adds a tool, or removes it again.
#[tool]
async fn test_trigger_tool_change(context: &Context) -> Result<&'static str, String> {
    if !context.registry().remove_tool(EXTRA) {
        let extra = Tool::new(EXTRA, || async { "not always here" }).description("Comes and goes");
        context.registry().add(extra).map_err(|error| error.to_string())?;
    }
    Ok("Changed")
}

/// Adds a prompt, or removes it again.
#[tool]
async fn test_trigger_prompt_change(context: &Context) -> Result<&'static str, String> {
    if !context.registry().remove_prompt(EXTRA) {
        let extra = Prompt::new(EXTRA, || async { "Hello" }).description("Comes and goes");
        context.registry().add(extra).map_err(|error| error.to_string())?;
    }
    Ok("Changed")
}

async fn pause() {
    tokio::time::sleep(Duration::from_millis(50)).await;
}
