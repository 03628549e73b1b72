//! The `bowline` program: what the command line asks for, and the exit code.

mod serve;

use std::process::ExitCode;

const HELP: &str = "\
Bowline ties any MCP client to any MCP server.

Usage: bowline serve [SERVER]
       bowline --help | --version

Commands:
  serve [SERVER]   serve a ready-made server on standard input and output
                   (default: counter; in a terminal it tells how to connect instead)

Servers:
  counter          a counter: tools, resources, prompts, subscriptions, progress
";

/// Wrong use, as in most programs.
const USAGE: u8 = 2;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["serve"] => serve::serve("counter").await,
        ["serve", server] => serve::serve(server).await,
        [] | ["help" | "--help" | "-h"] => tell(HELP),
        ["--version" | "-V"] => tell(&version()),
        [other, ..] => {
            complain(&format!("{other:?} is no command, or has too many arguments"));
            complain("try: bowline --help");
            ExitCode::from(USAGE)
        }
    }
}

fn version() -> String {
    let revisions = bowline::Revision::ALL.map(bowline::Revision::as_str).join(", ");
    format!("bowline {} (MCP {revisions})\n", env!("CARGO_PKG_VERSION"))
}

#[expect(clippy::print_stdout, reason = "what was asked for; no protocol runs beside it")]
fn tell(text: &str) -> ExitCode {
    print!("{text}");
    ExitCode::SUCCESS
}

#[expect(clippy::print_stderr, reason = "a program tells people what is wrong")]
fn complain(text: &str) {
    eprintln!("bowline: {text}");
}
