//! Other servers behind one: `notes-proxy NAME=TARGET…`, where a target is a URL or a program.
//! Their tools and prompts get the name as a prefix. Serves on stdio.

use anyhow::Context as _;
use bowline::client::{Command, Target};
use bowline::{Proxy, Server};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut front = Server::new("front", env!("CARGO_PKG_VERSION"));
    for word in std::env::args().skip(1) {
        let (name, target) = word.split_once('=').context("usage: notes-proxy NAME=TARGET…")?;
        let target: Target = match target.starts_with("http") {
            true => target.into(),
            false => Command::new(target).into(),
        };
        let proxy = Proxy::connect(target).await.with_context(|| name.to_owned())?;
        front = front.nest(name, proxy);
    }
    front.serve_stdio().await?;
    Ok(())
}
