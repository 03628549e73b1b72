//! Another process with the same store: it gets in with the stored tokens, or not at all.

use std::path::Path;
use std::process::Stdio;

use bowline::Client;
use bowline::client::auth::{FileStore, Hook, OAuth};
use bowline::client::http::{Endpoint, Proxy};
use serde_json::json;

use crate::{BoxError, Outcome, World, logs};

/// The process: makes one call, and prints the result.
pub(crate) async fn visit(url: &str, store: &str) -> Outcome {
    logs::to_stderr();
    let nobody = Hook::new("http://127.0.0.1:7/callback", |_| async {
        Err("there is no user to log in".into())
    });
    let oauth = OAuth::login(url, nobody).store(FileStore::open(store)?).build()?;
    let endpoint = Endpoint::new(url).proxy(Proxy::None).authorize(oauth);
    let client = Client::connect(endpoint).await?;
    println!("{}", client.call_tool("who", json!({})).text().await?);
    client.close().await;
    Ok(())
}

/// Starts a process, and returns what the server said to it.
pub(crate) async fn send(world: &World, url: &str, store: &Path) -> Result<String, BoxError> {
    let visit = tokio::process::Command::new(std::env::current_exe()?)
        .args(["visit", url])
        .arg(store)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await?;
    world.logs.add(&visit.stderr);
    let said = String::from_utf8_lossy(&visit.stdout).trim().to_owned();
    if visit.status.success() {
        return Ok(said);
    }
    let errors = String::from_utf8_lossy(&visit.stderr).into_owned();
    Err(errors.lines().last().unwrap_or("no error message").to_owned().into())
}
