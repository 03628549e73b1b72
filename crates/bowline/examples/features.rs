//! Servers with every feature, on stdio: `features [name]`, for trying by hand or with another
//! program. The transcripts in `testdata` run against the same servers.

#![allow(clippy::print_stderr, reason = "a program says how to use it")]

#[path = "features/servers.rs"]
mod servers;

use bowline::ServeError;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), ServeError> {
    let name = std::env::args().nth(1).unwrap_or_else(|| "features".to_owned());
    match servers::server(&name) {
        Some(server) => server.serve_stdio().await,
        None => {
            eprintln!("usage: features [{}]", servers::NAMES.join("|"));
            std::process::exit(2);
        }
    }
}
