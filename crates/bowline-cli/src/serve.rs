//! `bowline serve`: the ready-made servers, one at a time or all at one address.

mod fleet;
mod workbench;

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use bowline::Server;
use bowline::skills::Skills;
use bowline_serve::{
    LogLevel, ServeArgs, complain, exposed, serve_on, snippets, start_log, tell, tool_names,
};
use clap::{Args, Subcommand};
use mcp_logger::Callers;
use serde_json::json;
use tokio::net::TcpListener;

use self::fleet::FleetArgs;
use self::workbench::Workbench;
use crate::failure::{Code, Failure};

/// The default address of all servers together.
const ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8765);

/// Serve the ready-made servers: all of them over HTTP, or one by name
///
/// Without a name, serves all of them at one address, port 8765 on loopback unless --http says
/// otherwise; the names of their tools begin with the server's name. With a name, serves that one
/// on standard input and output, or over HTTP with --http; in a terminal it shows how to connect a
/// client instead.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct Serve {
    #[command(subcommand)]
    server: Option<Ready>,

    /// Serve all of them on standard input and output instead
    #[arg(long, conflicts_with = "http")]
    stdio: bool,

    /// Serve all of them on this address; port 0 takes any free port
    #[arg(long, value_name = "ADDR")]
    http: Option<SocketAddr>,

    /// With --http, also accept requests to this host name, besides loopback; may be repeated
    #[arg(long, value_name = "HOST", requires = "http")]
    allow_host: Vec<String>,

    /// With --http, listen on an address that other machines can reach: anyone there can use the
    /// servers, because they ask for no token
    #[arg(long, requires = "http")]
    allow_unauthenticated: bool,

    /// Serve the skills in this folder instead, on standard input and output or with --http
    ///
    /// Every folder in it that has a SKILL.md is a skill.
    #[arg(long, value_name = "DIR", conflicts_with = "stdio")]
    skills: Option<PathBuf>,

    /// How much to log, on standard error; `RUST_LOG` overrides it
    #[arg(long, value_name = "LEVEL", value_enum, default_value_t)]
    log_level: LogLevel,

    #[command(flatten)]
    fleet: FleetArgs,
}

/// The ready-made servers. A new one is a line here, one in [`Ready::run`] and one in [`guests`].
#[derive(Subcommand)]
enum Ready {
    /// Sends syslog: RFC 3164 and 5424, over UDP, TCP, TLS and Unix sockets
    McpLogger(One<mcp_logger::Settings>),
    /// A counter: tools, resources, prompts, subscriptions, progress
    Counter(One<Plain>),
    /// A calculator, and the weather of any place
    Example(One<example::Settings>),
    /// Speaks aloud: operators with voices, styles and a queue
    Operator(One<operator::Settings>),
    Workbench(Box<Workbench>),
}

/// One server: its own settings, and how it is served.
#[derive(Args)]
struct One<S: Args> {
    #[command(flatten)]
    settings: S,
    #[command(flatten)]
    serve: ServeArgs,
    #[command(flatten)]
    fleet: FleetArgs,
}

/// For servers without settings.
#[derive(Args)]
struct Plain {}

impl Ready {
    async fn run(self) -> Result<(), Failure> {
        let (name, server, args, fleet) = match self {
            Self::McpLogger(One { settings, serve, fleet }) => {
                let callers =
                    if serve.http.is_some() { Callers::Strangers } else { Callers::Owner };
                ("mcp-logger", logger(&settings, callers)?, serve, fleet)
            }
            Self::Counter(one) => ("counter", counter::server(), one.serve, one.fleet),
            Self::Example(one) => ("example", example::server(one.settings), one.serve, one.fleet),
            Self::Operator(one) => {
                ("operator", operator::server(one.settings), one.serve, one.fleet)
            }
            Self::Workbench(workbench) => return workbench.run().await,
        };
        let server = fleet.join(server, args.http).await?;
        run(name, server, args).await
    }
}

/// All servers with their default settings, each with the prefix of its tools' names.
fn guests(callers: Callers) -> Result<Vec<(&'static str, Server)>, Failure> {
    Ok(vec![
        ("logger", logger(&mcp_logger::Settings::default(), callers)?),
        ("counter", counter::server()),
        ("example", example::server(example::Settings::default())),
        ("operator", operator::server(operator::Settings::default())),
    ])
}

/// The one server whose settings can be invalid.
fn logger(settings: &mcp_logger::Settings, callers: Callers) -> Result<Server, Failure> {
    let server = settings.config().and_then(|config| mcp_logger::server(config, callers));
    server.map_err(|error| Failure::usage(bowline::with_causes(&error)))
}

/// A server of nothing but skills.
fn skills(folder: &Path) -> Result<Server, Failure> {
    let skills = Skills::open(folder).map_err(|error| Failure::usage(error.to_string()))?;
    if skills.list().is_empty() {
        let failure = Failure::usage(format!("{}: there are no skills in it", folder.display()));
        return Err(failure.with_remedy("a skill is a folder with a SKILL.md"));
    }
    Ok(Server::new("skills", env!("CARGO_PKG_VERSION"))
        .description("Skills from a folder")
        .with(skills))
}

/// Serves one server. It reports its own failures.
async fn run(name: &str, server: Server, args: ServeArgs) -> Result<(), Failure> {
    match bowline_serve::run(name, server, args).await {
        ExitCode::SUCCESS => Ok(()),
        _ => Err(Failure::silent(Code::Usage)),
    }
}

impl Serve {
    /// Serves until the process is told to stop, or the client closes.
    pub(super) async fn run(self) -> Result<(), Failure> {
        if let Some(ready) = self.server {
            return ready.run().await;
        }
        if let Some(folder) = &self.skills {
            let server = self.fleet.join(skills(folder)?, self.http).await?;
            let Self { http, allow_host, allow_unauthenticated, log_level, .. } = self;
            let args = ServeArgs { http, allow_host, allow_unauthenticated, log_level };
            return run("skills", server, args).await;
        }
        if self.stdio {
            let args = ServeArgs { log_level: self.log_level, ..ServeArgs::default() };
            return run("bowline", together(guests(Callers::Owner)?).0, args).await;
        }
        start_log(self.log_level).map_err(Failure::usage)?;
        if let Some(problem) = self.http.and_then(|it| exposed(it, self.allow_unauthenticated)) {
            return Err(Failure::usage(problem));
        }
        let listener = bind(self.http.unwrap_or(ADDRESS), self.http.is_none()).await?;
        let (server, guests) = together(guests(Callers::Strangers)?);
        let server = self.fleet.join(server, self.http).await?;
        let program = std::env::current_exe();
        let program =
            program.map_or_else(|_| "bowline".to_owned(), |path| path.display().to_string());
        let welcome = |url: &str| {
            tell(&welcome(url, &guests, &program));
        };
        serve_on(listener, server, &self.allow_host, welcome).await.map_err(Failure::usage)
    }
}

/// Listens there; with `or_any`, on any free port of the same host if that one is taken.
async fn bind(address: SocketAddr, or_any: bool) -> Result<TcpListener, Failure> {
    let bound = match TcpListener::bind(address).await {
        Err(error) if or_any && error.kind() == io::ErrorKind::AddrInUse => {
            complain("bowline", &format!("{address} is in use; listening on another port"));
            TcpListener::bind((address.ip(), 0)).await
        }
        bound => bound,
    };
    bound.map_err(|error| Failure::usage(format!("cannot listen on {address}: {error}")))
}

/// One of several servers at one address.
struct Guest {
    name: &'static str,
    about: String,
    /// Its tools, as clients see them.
    tools: Vec<String>,
}

/// What a newcomer sees first: where the servers are, what they have, and what to do next.
/// `program` is the program's own absolute path.
fn welcome(url: &str, guests: &[Guest], program: &str) -> String {
    let mut text = format!("Bowline serves MCP at\n\n  {url}\n\n");
    for Guest { name, about, tools } in guests {
        text += &format!("{name}: {about}\n{}\n", tool_names("  ", tools));
    }
    text += "Next, let a client connect.\n\n";
    let local = json!({ "command": program, "args": ["serve", "--stdio"] });
    text += &snippets("bowline", &local, &json!({ "url": url }));
    text += &format!("Claude Code:\n\n  claude mcp add --transport http bowline {url}\n\n");
    text += "One server alone: bowline serve NAME. Help: bowline serve --help. Ctrl-C ends this.\n";
    text
}

/// All servers as one, and what to say about each.
fn together(servers: Vec<(&'static str, Server)>) -> (Server, Vec<Guest>) {
    let mut all = Server::new("bowline", env!("CARGO_PKG_VERSION"))
        .title("Bowline")
        .description("Bowline's ready-made servers, all in one");
    let mut guests: Vec<Guest> = Vec::new();
    let mut instructions =
        "Several servers in one; the names of their tools begin with the server's name.".to_owned();
    for (name, server) in servers {
        let about = server.info().description.clone().unwrap_or_default();
        let before = all.registry().tool_names().len();
        all = all.nest(name, server);
        let tools = all.registry().tool_names().split_off(before);
        instructions += &format!(" {name}_: {about}.");
        guests.push(Guest { name, about, tools });
    }
    (all.instructions(instructions), guests)
}

#[cfg(test)]
mod tests {
    use bowline::{Revision, testing};
    use serde_json::json;

    use super::*;

    #[test]
    fn a_newcomer_is_told_what_to_do() {
        let guest = |name, tools: &[&str]| Guest {
            name,
            about: format!("A {name}"),
            tools: tools.iter().map(|tool| format!("{name}_{tool}")).collect(),
        };
        let guests = [guest("counter", &["increment", "decrement"]), guest("clock", &["now"])];
        let text = welcome("http://127.0.0.1:8765/mcp", &guests, "/usr/bin/bowline");
        assert_eq!(text, include_str!("../testdata/welcome.txt"));
    }

    #[tokio::test]
    async fn all_servers_get_along_under_one_roof() {
        let (server, guests) = together(guests(Callers::Strangers).unwrap());
        let first: Vec<_> = guests.iter().map(|guest| guest.tools[0].as_str()).collect();
        assert_eq!(
            first,
            [
                "logger_send-syslog",
                "counter_increment",
                "example_calculator_arithmetic",
                "operator_status"
            ]
        );
        let client = testing::connect_in(server, Revision::V2025_11_25).await.unwrap();
        assert_eq!(client.call_tool("counter_increment", json!({})).text().await.unwrap(), "1");
        // What one of them changes while it runs has its prefix, too.
        let twice = json!({ "name": "twice", "expression": "2 * x", "variables": ["x"] });
        client.call_tool("example_calculator_define", twice).text().await.unwrap();
        let x = json!({ "x": 21 });
        assert_eq!(client.call_tool("example_calculator_twice", x).text().await.unwrap(), "42");
        let forget = json!({ "name": "twice" });
        client.call_tool("example_calculator_forget", forget).text().await.unwrap();
        let prompts = client.list_prompts().await.unwrap();
        let prompts: Vec<_> = prompts.iter().map(|prompt| prompt.name.as_str()).collect();
        let expected = ["logger_log-event", "counter_example_prompt", "counter_analysis"];
        assert_eq!(prompts, expected);
        let said = client.peer().unwrap().instructions.clone().unwrap();
        assert!(said.contains("operator_: Speaks aloud"), "{said}");
    }

    #[tokio::test]
    async fn a_taken_port_is_no_reason_to_give_up() {
        let taken = bind(SocketAddr::new(ADDRESS.ip(), 0), false).await.unwrap();
        let address = taken.local_addr().unwrap();
        let other = bind(address, true).await.unwrap().local_addr().unwrap();
        assert_eq!(other.ip(), address.ip());
        assert_ne!(other.port(), address.port());
        let failure = bind(address, false).await.unwrap_err();
        assert!(failure.what.starts_with("cannot listen on 127.0.0.1:"));
    }
}
