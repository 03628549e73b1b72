//! The `bowline` program: what the command line asks for, and the exit code.

mod answers;
mod arguments;
mod check;
mod commands;
mod debug;
mod doctor;
mod failure;
mod record;
mod redact;
mod render;
mod schema;
mod screen;
mod serve;
mod session;
mod show;
mod target;
mod text;

use std::ffi::OsString;
use std::process::ExitCode;

use bowline_serve::tell;
use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};

use self::commands::{
    call, complete, info, listen, login, ping, prompts, raw, resources, servers, shell, tools,
    watch,
};
use self::failure::{Code, Failure};
use self::screen::OutputArgs;

/// Bowline ties any MCP client to any MCP server
#[derive(Parser)]
#[command(name = "bowline", version = bowline_serve::long_version())]
struct Arguments {
    #[command(flatten)]
    output: OutputArgs,

    #[command(subcommand)]
    command: Option<Command>,
}

/// What can be asked for. A new command is a line here and a line in [`Command::run`].
#[derive(Subcommand)]
enum Command {
    Info(Box<info::Info>),
    Tools(Box<tools::Tools>),
    Call(Box<call::Call>),
    Resources(Box<resources::Resources>),
    Templates(Box<resources::Templates>),
    Read(Box<resources::Read>),
    Prompts(Box<prompts::Prompts>),
    Prompt(Box<prompts::Prompt>),
    Complete(Box<complete::Complete>),
    Ping(Box<ping::Ping>),
    Watch(Box<watch::Watch>),
    Listen(Box<listen::Listen>),
    Raw(Box<raw::Raw>),
    Debug(Box<debug::Debug>),
    Check(Box<check::Check>),
    Doctor(Box<doctor::Doctor>),
    Show(show::Show),
    Servers(servers::Servers),
    Login(Box<login::Login>),
    Logout(Box<login::Logout>),
    Serve(serve::Serve),
    Completions(shell::Completions),
    Man(shell::Man),
}

impl Command {
    async fn run(self, root: &OutputArgs) -> Result<(), Failure> {
        match self {
            Self::Info(info) => info.run(root).await,
            Self::Tools(tools) => tools.run(root).await,
            Self::Call(call) => call.run(root).await,
            Self::Resources(resources) => resources.run(root).await,
            Self::Templates(templates) => templates.run(root).await,
            Self::Read(read) => read.run(root).await,
            Self::Prompts(prompts) => prompts.run(root).await,
            Self::Prompt(prompt) => prompt.run(root).await,
            Self::Complete(complete) => complete.run(root).await,
            Self::Ping(ping) => ping.run(root).await,
            Self::Watch(watch) => watch.run(root).await,
            Self::Listen(listen) => listen.run(root).await,
            Self::Raw(raw) => raw.run(root).await,
            Self::Debug(debug) => debug.run(root).await,
            Self::Check(check) => check.run(root).await,
            Self::Doctor(doctor) => doctor.run(root).await,
            Self::Show(show) => show.run(root),
            Self::Servers(servers) => servers.run(root),
            Self::Login(login) => login.run(root).await,
            Self::Logout(logout) => logout.run(root).await,
            Self::Completions(completions) => {
                completions.run(Arguments::command());
                Ok(())
            }
            Self::Man(man) => man.run(Arguments::command()),
            // It has exit codes of its own; see `main`.
            Self::Serve(_) => Ok(()),
        }
    }
}

/// What servers that are programs of their own say to wrong use.
const MISUSED: u8 = 2;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().collect();
    let is_json = wants_json(&words);
    let arguments = match Arguments::try_parse_from(words) {
        Ok(arguments) => arguments,
        Err(error) => return refuse(&error, is_json),
    };
    match arguments.command {
        None => tell(&Arguments::command().render_help().to_string()),
        Some(Command::Serve(serve)) => match serve.run().await {
            code if code == ExitCode::from(MISUSED) => ExitCode::from(Code::Usage as u8),
            code => code,
        },
        Some(command) => match command.run(&arguments.output).await {
            Ok(()) => ExitCode::SUCCESS,
            Err(failure) => fail(&failure, is_json),
        },
    }
}

/// Says why a command failed.
fn fail(failure: &Failure, is_json: bool) -> ExitCode {
    use std::io::Write;
    let text = if is_json { failure.for_programs() } else { failure.for_people() };
    if !failure.what.is_empty() {
        // If nobody watches, there is nobody else to tell.
        let _ = std::io::stderr().write_all(text.as_bytes());
    }
    ExitCode::from(failure.code as u8)
}

/// Help and the version are answers; everything else that `clap` says is a complaint.
fn refuse(error: &clap::Error, is_json: bool) -> ExitCode {
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        return tell(&error.render().to_string());
    }
    if is_json {
        let text = error.render().to_string();
        let text = text.strip_prefix("error: ").unwrap_or(&text).trim().to_owned();
        return fail(&Failure::usage(text), true);
    }
    // It speaks for itself, in colour where there is a terminal.
    let _ = error.print();
    ExitCode::from(Code::Usage as u8)
}

/// Whether programs read the output: also when the rest of the command line makes no sense.
fn wants_json(words: &[OsString]) -> bool {
    let ours: Vec<_> = words.iter().take_while(|word| *word != "--").collect();
    ours.iter().enumerate().any(|(at, word)| {
        let next = || ours.get(at + 1).is_some_and(|next| *next == "json");
        match word.to_str() {
            Some("--output" | "-o") => next(),
            Some("--output=json" | "-ojson" | "-o=json") => true,
            _ => false,
        }
    })
}
