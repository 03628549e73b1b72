//! The server that the official conformance suite tests: `conformance-server [--legacy | --modern]
//! [--http ADDRESS]`, on standard input and output without an address, in every revision without
//! an era. `cargo xtask fleet` starts three of them as one.
//!
//! It has the tools, prompts and resources that the suite's scenarios use by name, written with the
//! public API only. `cargo xtask conformance` starts it and runs the suite against it; `cargo xtask
//! interop` lets the official client of tasks call its tools, and `cargo xtask bridge` puts it
//! behind a bridge, speaking one era only.

mod content;
mod prompts;
mod questions;
mod reports;
mod resources;
mod schemas;
mod tasks;

use std::error::Error;

use bowline::{Era, Revisions, Server};
use bowline_fleet::Fleet;

const USAGE: &str =
    "usage: conformance-server [--legacy | --modern] [--http ADDRESS [--fleet URL REDIS]]";

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut arguments = arguments.iter().map(String::as_str).collect::<Vec<_>>();
    let revisions = match arguments.first() {
        Some(&"--legacy") => Revisions::ALL.of_era(Era::Legacy),
        Some(&"--modern") => Revisions::ALL.of_era(Era::Modern),
        _ => Revisions::ALL,
    };
    if revisions != Revisions::ALL {
        arguments.remove(0);
    }
    let server = server().revisions(revisions);
    match arguments[..] {
        [] => server.serve_stdio().await?,
        ["--http", address] => server.serve_http(address).await?,
        ["--http", address, "--fleet", url, redis] => {
            let fleet = Fleet::builder(url).redis(redis).connect().await?;
            server.fleet(fleet).serve_http(address).await?;
        }
        _ => return Err(USAGE.into()),
    }
    Ok(())
}

/// The suite calls the first tool without arguments, and expects an immediate answer.
fn server() -> Server {
    Server::new("bowline-conformance", env!("CARGO_PKG_VERSION"))
        .with(content::parts())
        .with(reports::parts())
        .with(questions::parts())
        .with(schemas::parts())
        .with(tasks::parts())
        .with(prompts::parts())
        .with(resources::parts())
        .skills(concat!(env!("CARGO_MANIFEST_DIR"), "/skills"))
}
