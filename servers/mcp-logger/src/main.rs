//! `mcp-logger`: the server, and the command that sends without one.

use std::error::Error;
use std::process::ExitCode;

use bowline::with_causes;
use bowline_serve::ServeArgs;
use clap::{Parser, Subcommand};
use mcp_logger::send::{self, CommandError, SendArgs};
use mcp_logger::{Callers, ConfigError, Logger, Settings};

#[global_allocator]
static ALLOCATOR: bowline_serve::Allocator = bowline_serve::Allocator;

/// Sends syslog messages for MCP clients: RFC 3164 and 5424, over UDP, TCP, TLS and Unix sockets.
///
/// Without a command, it serves MCP on standard input and output, or over HTTP with --http. In a
/// terminal, it prints how to connect a client.
#[derive(Debug, Parser)]
#[command(name = "mcp-logger", version = bowline_serve::long_version())]
struct Arguments {
    #[command(flatten)]
    settings: Settings,
    #[command(flatten)]
    serve: ServeArgs,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Send a message, or every line of standard input, and exit
    Send(Box<SendArgs>),
    /// Serve MCP, as without a command
    #[command(hide = true)]
    RunMcp,
}

/// The exit code for usage errors, as in most programs.
const USAGE: u8 = 2;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let Arguments { settings, serve, command } = Arguments::parse();
    match command {
        Some(Command::Send(send)) => run_send(&settings, *send).await,
        Some(Command::RunMcp) | None => run_server(&settings, serve).await,
    }
}

async fn run_server(settings: &Settings, serve: ServeArgs) -> ExitCode {
    let callers = if serve.http.is_some() { Callers::Strangers } else { Callers::Owner };
    match settings.config().and_then(|config| mcp_logger::server(config, callers)) {
        Ok(server) => bowline_serve::run("mcp-logger", server, serve).await,
        Err(error) => fail(USAGE, &error),
    }
}

async fn run_send(settings: &Settings, send: SendArgs) -> ExitCode {
    if settings.spool.is_some() {
        let problem = "--spool is for the server; `send` reports what it cannot send".to_owned();
        return fail(USAGE, &CommandError::Usage(problem));
    }
    let logger = match command_logger(settings) {
        Ok(logger) => logger,
        Err(error) => return fail(USAGE, &error),
    };
    match send::run(&logger, send).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error @ CommandError::Usage(_)) => fail(USAGE, &error),
        Err(error) => fail(1, &error),
    }
}

/// The command is not rate limited unless the user asks for it.
fn command_logger(settings: &Settings) -> Result<Logger, ConfigError> {
    let mut config = settings.config()?;
    config.messages_per_second = settings.rate.unwrap_or(0);
    // It reports what it could not send, and ends.
    config.spool = None;
    Logger::new(config, Callers::Owner)
}

#[expect(clippy::print_stderr, reason = "a program reports its errors")]
fn fail(code: u8, error: &dyn Error) -> ExitCode {
    eprintln!("mcp-logger: {}", with_causes(error));
    ExitCode::from(code)
}
