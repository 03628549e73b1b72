//! The client that the official conformance suite runs: `conformance-client URL`.
//!
//! Written as a user would write it. The name of the scenario, which the suite passes in the
//! environment, decides what to do; how to do it is up to the library.

#![expect(clippy::print_stderr, reason = "the suite shows the client's output")]

mod login;
mod scenario;

use std::process::ExitCode;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let Some(url) = std::env::args().nth(1) else {
        eprintln!("usage: conformance-client URL");
        return ExitCode::from(2);
    };
    let name = std::env::var("MCP_CONFORMANCE_SCENARIO").unwrap_or_default();
    match scenario::run(&name, &url).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{name}: {error}");
            ExitCode::FAILURE
        }
    }
}
