//! Another process with the same store: it is let in with what is there, or not at all.

use std::path::Path;
use std::process::Stdio;

use bowline::Client;
use bowline::client::auth::{FileStore, Hook, OAuth};
use bowline::client::http::{Endpoint, Proxy};
use serde_json::json;

use crate::{Outcome, Trouble, World, logs};

/// What the process does: one call, and what it said on standard output.
pub(crate) async fn visit(url: &str, store: &str) -> Outcome {
    logs::to_stderr();
    let nobody = Hook::new("http://127.0.0.1:7/callback", |_| async {
        Err("nobody is here to log in".into())
    });
    let oauth = OAuth::login(url, nobody).store(FileStore::open(store)?).build()?;
    let endpoint = Endpoint::new(url).proxy(Proxy::None).authorize(oauth);
    let client = Client::connect(endpoint).await?;
    println!("{}", client.call_tool("who", json!({})).text().await?);
    client.close().await;
    Ok(())
}

/// Sends a process there; gives what the server said to it.
pub(crate) async fn send(world: &World, url: &str, store: &Path) -> Result<String, Trouble> {
    let visit = tokio::process::Command::new(std::env::current_exe()?)
        .args(["visit", url])
        .arg(store)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await?;
    world.logs.add(&visit.stderr);
    let said = String::from_utf8_lossy(&visit.stdout).trim().to_owned();
    match visit.status.success() {
        true => Ok(said),
        false => {
            let told = String::from_utf8_lossy(&visit.stderr).into_owned();
            Err(told.lines().last().unwrap_or("no word").to_owned().into())
        }
    }
}
