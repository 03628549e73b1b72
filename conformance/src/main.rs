//! The server that the official conformance suite tests: `conformance-server --port N`.
//!
//! It has the tools, prompts and resources that the suite's scenarios use by name, written with the
//! public API only. `cargo xtask conformance` starts it and runs the suite against it.

mod content;
mod prompts;
mod questions;
mod reports;
mod resources;
mod schemas;

use std::error::Error;

use bowline::Server;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let port: u16 = match (arguments.next().as_deref(), arguments.next(), arguments.next()) {
        (Some("--port"), Some(port), None) => port.parse()?,
        _ => return Err("usage: conformance-server --port N".into()),
    };
    server().serve_http(&format!("127.0.0.1:{port}")).await?;
    Ok(())
}

/// The suite calls the first tool without arguments, and expects an immediate answer.
fn server() -> Server {
    Server::new("bowline-conformance", env!("CARGO_PKG_VERSION"))
        .with(content::parts())
        .with(reports::parts())
        .with(questions::parts())
        .with(schemas::parts())
        .with(prompts::parts())
        .with(resources::parts())
        .skills(concat!(env!("CARGO_MANIFEST_DIR"), "/skills"))
}
