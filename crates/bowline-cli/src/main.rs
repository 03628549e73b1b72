//! The `bowline` program: what the command line asks for, and the exit code.

mod serve;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

/// Bowline ties any MCP client to any MCP server
#[derive(Parser)]
#[command(name = "bowline", version = bowline_serve::long_version())]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
}

/// What can be asked for. A new command is a line here and a line in `main`.
#[derive(Subcommand)]
enum Command {
    Serve(serve::Serve),
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match Arguments::parse().command {
        Some(Command::Serve(serve)) => serve.run().await,
        None => bowline_serve::tell(&Arguments::command().render_help().to_string()),
    }
}
