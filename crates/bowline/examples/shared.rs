//! A server for two principals, `ada` and `eve`, whose names are their tokens: `shared PORT`. The
//! benchmark of fairness lets one of them flood it.

use std::time::Duration;

use bowline::http::auth::{Guard, Identity, StaticTokens};
use bowline::{Server, Tool};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct Echo {
    /// What to say back.
    message: String,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let port = std::env::args().nth(1).unwrap_or_else(|| "8080".to_owned());
    let tokens = ["ada", "eve"]
        .into_iter()
        .fold(StaticTokens::new(), |tokens, name| tokens.token(name, Identity::new(name)));
    let guard = Guard::new(&format!("http://127.0.0.1:{port}/mcp"), tokens)?;
    Server::new("shared", "1.0.0")
        .with(Tool::new("echo", |echo: Echo| async move { echo.message }))
        .with(Tool::new("slow", |echo: Echo| async move {
            tokio::time::sleep(Duration::from_secs(1)).await;
            echo.message
        }))
        .http()
        .require_auth(guard)
        .serve(&format!("127.0.0.1:{port}"))
        .await?;
    Ok(())
}
