//! The operator as a program.

use std::process::ExitCode;

use bowline_serve::ServeArgs;
use clap::Parser;

#[global_allocator]
static ALLOCATOR: bowline_serve::Allocator = bowline_serve::Allocator;

/// An MCP server that speaks: operators with voices, styles and a queue
///
/// It serves on standard input and output, or over HTTP with --http. In a terminal, it prints how
/// to connect a client instead. Voices come from COEIROINK or espeak-ng.
#[derive(Parser)]
#[command(name = "operator-server", version = bowline_serve::long_version())]
struct Arguments {
    #[command(flatten)]
    settings: operator::Settings,
    #[command(flatten)]
    serve: ServeArgs,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    bowline_serve::run("operator", operator::server(arguments.settings), arguments.serve).await
}
