//! A task that asks before it does what cannot be undone: `publish`, on stdio.
//!
//! Clients that know tasks get an id at once, and answer when the task asks. For all others it is
//! an ordinary call that asks.

use bowline::{Context, HandlerError, ServeError, Server, tool};

/// Build a version, and publish it if the user agrees.
#[tool(task)]
async fn publish(
    context: Context,
    /// Its number.
    version: String,
) -> Result<String, HandlerError> {
    // A task that waited for an answer starts at the top again; what is done stays done.
    let package = context.once("build", build(&context, &version)).await;
    match context.confirm(format!("Publish {package}?")).await? {
        true => Ok(format!("{package} was published")),
        false => Ok(format!("{package} was not published")),
    }
}

async fn build(context: &Context, version: &str) -> String {
    for step in ["compiling", "testing", "packing"] {
        context.status(step);
        // Here it would work.
        tokio::task::yield_now().await;
    }
    format!("package-{version}")
}

#[tokio::main]
async fn main() -> Result<(), ServeError> {
    Server::new("publish", "1.0.0").with(publish).serve_stdio().await
}
