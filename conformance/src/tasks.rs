//! Tools of the scenarios about tasks.

use std::time::Duration;

use bowline::{AskError, Context, ErrorObject, HandlerError, Part, tool};
use schemars::JsonSchema;
use serde::Deserialize;

pub(crate) fn parts() -> impl Part {
    let plain = (greet, slow_compute, failing_job, protocol_error_job);
    (plain, confirm_delete, multi_input, test_tool_with_task)
}

/// Greets somebody at once.
#[tool]
async fn greet(name: String) -> String {
    format!("Hello, {name}!")
}

/// Computes for a while.
#[tool(task)]
async fn slow_compute(context: &Context, seconds: f64, label: Option<String>) -> String {
    let label = label.unwrap_or_else(|| "the answer".to_owned());
    context.status(format!("computing {label}"));
    tokio::time::sleep(Duration::from_secs_f64(seconds.clamp(0.0, 600.0))).await;
    format!("{label} took {seconds} seconds")
}

/// Fails after a while, in a way that the model reads.
#[tool(task = "required")]
async fn failing_job() -> Result<String, HandlerError> {
    tokio::time::sleep(Duration::from_secs(1)).await;
    Err(HandlerError::failed("the job failed, as it should"))
}

/// Fails with an error of the protocol.
#[tool(task)]
async fn protocol_error_job() -> Result<String, ErrorObject> {
    Err(ErrorObject::internal("the job failed, as it should"))
}

#[derive(Deserialize, JsonSchema)]
struct Confirmation {
    /// Whether to go on
    confirm: bool,
}

/// Deletes a file, if the user agrees.
#[tool(task)]
async fn confirm_delete(context: &Context, filename: String) -> Result<String, AskError> {
    let answer = context.elicit::<Confirmation>(format!("Delete {filename}?")).await?;
    Ok(match answer.accepted() {
        Some(Confirmation { confirm: true }) => format!("{filename} was deleted"),
        _ => format!("{filename} was kept"),
    })
}

/// Asks two questions at once.
#[tool(task)]
async fn multi_input(context: &Context) -> Result<String, AskError> {
    let (first, second) = tokio::join!(
        context.ask("first").elicit::<Confirmation>("The first one?"),
        context.ask("second").elicit::<Confirmation>("The second one?"),
    );
    let agreed = [first?, second?].map(|it| it.accepted().is_some_and(|it| it.confirm));
    Ok(format!("answers: {agreed:?}"))
}

#[derive(Deserialize, JsonSchema)]
struct Name {
    /// Your name
    name: String,
}

/// Asks within the call, and goes on as a task.
#[tool(task = "on_demand")]
async fn test_tool_with_task(context: &Context) -> Result<String, AskError> {
    let answer = context.ask("user_name").elicit::<Name>("What is your name?").await?;
    let name = answer.accepted().map_or_else(|| "nobody".to_owned(), |it| it.name);
    context.background().await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    Ok(format!("Hello, {name}!"))
}
