//! The example server as a program.

use std::process::ExitCode;

use bowline_serve::ServeArgs;
use clap::Parser;

#[global_allocator]
static ALLOCATOR: bowline_serve::Allocator = bowline_serve::Allocator;

/// An MCP server with a calculator and the weather
///
/// Serves on standard input and output, or over HTTP with --http. In a terminal it explains how to
/// connect a client instead.
#[derive(Parser)]
#[command(name = "example-server", version = bowline_serve::long_version())]
struct Arguments {
    #[command(flatten)]
    settings: example::Settings,
    #[command(flatten)]
    serve: ServeArgs,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    bowline_serve::run("example", example::server(arguments.settings), arguments.serve).await
}
