//! The `bowline` program: runs the command on the command line, and exits with its code.

mod answers;
mod arguments;
mod bridge;
mod check;
mod commands;
mod debug;
mod doctor;
mod failure;
mod gateway;
mod inspect;
mod loose;
mod person;
mod render;
mod schema;
mod screen;
mod serve;
mod session;
mod show;
mod tap;
mod target;
mod text;
mod welcome;

use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use bowline_gateway::{redact, session_file as record};
use bowline_serve::tell;
use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};

use self::commands::{
    apps, call, complete, config, diff, export, info, list, listen, login, mock, new, ping, prompt,
    raw, read, replay, servers, shell, skills, tasks, tools, watch,
};
use self::failure::{Code, Failure};
use self::screen::OutputArgs;
use self::target::TargetArgs;

#[global_allocator]
static ALLOCATOR: bowline_serve::Allocator = bowline_serve::Allocator;

/// Bowline ties any MCP client to any MCP server
#[derive(Parser)]
#[command(name = "bowline", version = bowline_serve::long_version())]
struct Arguments {
    #[command(flatten)]
    output: OutputArgs,

    #[command(subcommand)]
    command: Option<Command>,
}

/// The commands. A new one is a line here and a line in [`Command::run`].
#[derive(Subcommand)]
enum Command {
    /// Show a server's identity, revision (and how it was detected) and capabilities
    ///
    /// With --output json, prints one object: serverInfo, protocolVersion, era, supportedVersions,
    /// capabilities and instructions as the server sent them, and the steps of connecting.
    Info(Box<TargetArgs>),
    Tools(Box<tools::Tools>),
    Call(Box<call::Call>),
    Tasks(tasks::Tasks),
    /// List the resources of a server
    Resources(Box<list::ListArgs>),
    /// List the resource templates of a server: families of resources
    Templates(Box<list::ListArgs>),
    Read(Box<read::Read>),
    /// List the prompts of a server
    Prompts(Box<list::ListArgs>),
    Prompt(Box<prompt::Prompt>),
    Skills(Box<skills::Skills>),
    Apps(Box<apps::Apps>),
    Complete(Box<complete::Complete>),
    Ping(Box<ping::Ping>),
    Watch(Box<watch::Watch>),
    Listen(Box<listen::Listen>),
    Raw(Box<raw::Raw>),
    Inspect(Box<inspect::Inspect>),
    Debug(Box<debug::Debug>),
    Check(Box<check::Check>),
    Doctor(Box<doctor::Doctor>),
    Bridge(Box<bridge::Bridge>),
    Gateway(Box<gateway::GatewayArgs>),
    Tap(Box<tap::Tap>),
    Show(show::Show),
    Replay(Box<replay::Replay>),
    Mock(mock::Mock),
    Diff(Box<diff::Diff>),
    Export(export::Export),
    Servers(servers::Servers),
    Config(config::Config),
    Login(Box<login::Login>),
    Logout(Box<login::Logout>),
    Serve(Box<serve::Serve>),
    New(new::New),
    Completions(shell::Completions),
    Man(shell::Man),
}

impl Command {
    async fn run(self, root: &OutputArgs) -> Result<(), Failure> {
        match self {
            Self::Info(target) => info::run(&target, root).await,
            Self::Tools(tools) => tools.run(root).await,
            Self::Call(call) => call.run(root).await,
            Self::Tasks(tasks) => tasks.run(root).await,
            Self::Resources(args) => list::RESOURCES.run(&args, root).await,
            Self::Templates(args) => list::TEMPLATES.run(&args, root).await,
            Self::Read(read) => read.run(root).await,
            Self::Prompts(args) => list::PROMPTS.run(&args, root).await,
            Self::Prompt(prompt) => prompt.run(root).await,
            Self::Skills(skills) => skills.run(root).await,
            Self::Apps(apps) => apps.run(root).await,
            Self::Complete(complete) => complete.run(root).await,
            Self::Ping(ping) => ping.run(root).await,
            Self::Watch(watch) => watch.run(root).await,
            Self::Listen(listen) => listen.run(root).await,
            Self::Raw(raw) => raw.run(root).await,
            Self::Inspect(inspect) => inspect.run(root).await,
            Self::Debug(debug) => debug.run(root).await,
            Self::Check(check) => check.run(root).await,
            Self::Doctor(doctor) => doctor.run(root).await,
            Self::Bridge(bridge) => bridge.run(root).await,
            Self::Gateway(gateway) => gateway.run(root).await,
            Self::Tap(tap) => tap.run(root).await,
            Self::Show(show) => show.run(root),
            Self::Replay(replay) => replay.run(root).await,
            Self::Mock(mock) => mock.run(root).await,
            Self::Diff(diff) => diff.run(root).await,
            Self::Export(export) => export.run(root),
            Self::Servers(servers) => servers.run(root),
            Self::Config(config) => config.run(root),
            Self::Login(login) => login.run(root).await,
            Self::Logout(logout) => logout.run(root).await,
            Self::Serve(serve) => serve.run().await,
            Self::New(new) => new.run(root),
            Self::Completions(completions) => {
                completions.run(Arguments::command());
                Ok(())
            }
            Self::Man(man) => man.run(Arguments::command()),
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    bowline::http::raise_file_limit();
    let words: Vec<OsString> = std::env::args_os().collect();
    let is_json = wants_json(&words);
    let outcome = match Arguments::try_parse_from(words) {
        Err(error) => refuse(&error, is_json),
        Ok(Arguments { command: None, .. }) => {
            let text = match std::io::stdout().is_terminal() {
                true => welcome::welcome(),
                false => Arguments::command().render_help().to_string(),
            };
            tell(&text);
            Ok(())
        }
        Ok(Arguments { command: Some(command), output }) => command.run(&output).await,
    };
    let Err(failure) = outcome else { return ExitCode::SUCCESS };
    if !failure.what.is_empty() {
        let text = if is_json { failure.for_programs() } else { failure.for_people() };
        // If standard error is closed, there is nobody else to tell.
        let _ = std::io::stderr().write_all(text.as_bytes());
    }
    ExitCode::from(failure.code as u8)
}

/// Prints help and the version, which are answers; everything else that `clap` reports is an error.
fn refuse(error: &clap::Error, is_json: bool) -> Result<(), Failure> {
    let text = error.render().to_string();
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        tell(&text);
        return Ok(());
    }
    if is_json {
        return Err(Failure::usage(text.strip_prefix("error: ").unwrap_or(&text).trim()));
    }
    // In colour, if standard error is a terminal.
    let _ = error.print();
    Err(Failure::silent(Code::Usage))
}

/// Whether programs read the output, even if the rest of the command line is wrong.
fn wants_json(words: &[OsString]) -> bool {
    let ours: Vec<_> = words.iter().take_while(|word| *word != "--").collect();
    ours.iter().enumerate().any(|(at, word)| match word.to_str() {
        Some("--output" | "-o") => ours.get(at + 1).is_some_and(|next| *next == "json"),
        Some("--output=json" | "-ojson" | "-o=json") => true,
        _ => false,
    })
}
