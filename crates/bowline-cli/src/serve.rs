//! `bowline serve`: the ready-made servers, each by itself or all under one roof.

mod welcome;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;

use bowline::Server;
use bowline_serve::{LogLevel, ServeArgs, complain, serve_on, start_log, tell};
use clap::{Args, Subcommand};
use mcp_logger::Callers;
use tokio::net::TcpListener;

use self::welcome::{Guest, Welcome};

/// Where all of them are served, unless told otherwise.
const ADDRESS: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 8765);

/// Serve the ready-made servers: all of them over HTTP, or one by name
///
/// Without a name, all of them are served at one address, port 8765 on loopback unless --http says
/// otherwise; their tools' names begin with the server's. With a name, that one is served on
/// standard input and output, or over HTTP with --http; in a terminal it tells how to connect a
/// client instead.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct Serve {
    #[command(subcommand)]
    server: Option<Ready>,

    /// Serve all of them on standard input and output instead
    #[arg(long, conflicts_with = "http")]
    stdio: bool,

    /// Serve all of them on this address; port 0 takes any that is free
    #[arg(long, value_name = "ADDR")]
    http: Option<SocketAddr>,

    /// With --http, also let in requests to this name, besides loopback; may be repeated
    #[arg(long, value_name = "HOST", requires = "http")]
    allow_host: Vec<String>,

    /// How much to log, on standard error; `RUST_LOG`, if set, says it instead
    #[arg(long, value_name = "LEVEL", value_enum, default_value_t)]
    log_level: LogLevel,
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
}

/// All of them, with the settings they have by themselves, and the word before their tools' names.
fn guests(callers: Callers) -> Result<Vec<(&'static str, Server)>, Failure> {
    Ok(vec![
        ("logger", logger(&mcp_logger::Settings::default(), callers)?),
        ("counter", counter::server()),
        ("example", example::server(example::Settings::default())),
        ("operator", operator::server(operator::Settings::default())),
    ])
}

/// The one server whose settings may mean nothing.
fn logger(settings: &mcp_logger::Settings, callers: Callers) -> Result<Server, Failure> {
    let server = settings.config().and_then(|config| mcp_logger::server(config, callers));
    server.map_err(|error| (bowline::with_causes(&error), ExitCode::from(2)))
}

/// Who may reach a server: whoever started it, or whoever finds it on the network.
fn callers(http: Option<SocketAddr>) -> Callers {
    if http.is_some() { Callers::Strangers } else { Callers::Owner }
}

impl Ready {
    async fn run(self) -> ExitCode {
        match self {
            Self::McpLogger(one) => {
                let callers = callers(one.serve.http);
                one.run("mcp-logger", |settings| logger(&settings, callers)).await
            }
            Self::Counter(one) => one.run("counter", |_| Ok(counter::server())).await,
            Self::Example(one) => one.run("example", |it| Ok(example::server(it))).await,
            Self::Operator(one) => one.run("operator", |it| Ok(operator::server(it))).await,
        }
    }
}

/// One server: its own settings, and how it is served.
#[derive(Args)]
struct One<S: Args> {
    #[command(flatten)]
    settings: S,
    #[command(flatten)]
    serve: ServeArgs,
}

impl<S: Args> One<S> {
    async fn run(self, name: &str, server: impl FnOnce(S) -> Result<Server, Failure>) -> ExitCode {
        match server(self.settings) {
            Ok(server) => bowline_serve::run(name, server, self.serve).await,
            Err(failure) => fail(failure),
        }
    }
}

/// For servers without settings.
#[derive(Args)]
struct Plain {}

impl Serve {
    /// Serves until the process is told to stop, or its client closes.
    pub(super) async fn run(self) -> ExitCode {
        if let Some(ready) = self.server {
            return ready.run().await;
        }
        if self.stdio {
            let args = ServeArgs { log_level: self.log_level, ..ServeArgs::default() };
            return match guests(Callers::Owner) {
                Ok(guests) => bowline_serve::run("bowline", together(guests).0, args).await,
                Err(failure) => fail(failure),
            };
        }
        match serve_together(self).await {
            Ok(()) => ExitCode::SUCCESS,
            Err(failure) => fail(failure),
        }
    }
}

/// What went wrong, and the exit code for it.
type Failure = (String, ExitCode);

fn fail((problem, code): Failure) -> ExitCode {
    complain("bowline", &problem);
    code
}

async fn serve_together(serve: Serve) -> Result<(), Failure> {
    let failed = |problem: String| (problem, ExitCode::FAILURE);
    start_log(serve.log_level).map_err(|problem| (problem, ExitCode::from(2)))?;
    let listener = match serve.http {
        Some(address) => bind(address).await.map_err(failed)?,
        None => bind_or_any(ADDRESS).await.map_err(failed)?,
    };
    let (server, guests) = together(guests(Callers::Strangers)?);
    let program = std::env::current_exe();
    let program = program.map_or_else(|_| "bowline".to_owned(), |path| path.display().to_string());
    let welcome = |url: &str| {
        tell(&Welcome { url: url.to_owned(), guests, program }.text());
    };
    serve_on(listener, server, &serve.allow_host, welcome).await.map_err(failed)
}

async fn bind(address: SocketAddr) -> Result<TcpListener, String> {
    let bound = TcpListener::bind(address).await;
    bound.map_err(|error| format!("cannot listen on {address}: {error}"))
}

/// Listens there, or anywhere else on the same host when somebody else does already.
async fn bind_or_any(address: SocketAddr) -> Result<TcpListener, String> {
    match TcpListener::bind(address).await {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            let listener = bind(SocketAddr::new(address.ip(), 0)).await?;
            complain("bowline", &format!("{address} is taken, so another port is used"));
            Ok(listener)
        }
        Err(error) => Err(format!("cannot listen on {address}: {error}")),
        Ok(listener) => Ok(listener),
    }
}

/// One server of many, and what there is to tell of each.
fn together(servers: Vec<(&'static str, Server)>) -> (Server, Vec<Guest>) {
    let mut all = Server::new("bowline", env!("CARGO_PKG_VERSION"))
        .title("Bowline")
        .description("Bowline's ready-made servers, all in one");
    let mut guests: Vec<Guest> = Vec::new();
    for (name, server) in servers {
        let about = server.info().description.clone().unwrap_or_default();
        let before = all.registry().tool_names().len();
        all = all.nest(name, server);
        let tools = all.registry().tool_names().split_off(before);
        guests.push(Guest { name, about, tools });
    }
    let described: Vec<_> =
        guests.iter().map(|Guest { name, about, .. }| format!("{name}_: {about}.")).collect();
    let instructions = format!(
        "Several servers in one, told apart by how their tools' names begin. {}",
        described.join(" ")
    );
    (all.instructions(instructions), guests)
}

#[cfg(test)]
mod tests {
    use bowline::{Revision, testing};
    use serde_json::json;

    use super::*;

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
        let taken = bind(SocketAddr::new(ADDRESS.ip(), 0)).await.unwrap();
        let address = taken.local_addr().unwrap();
        let other = bind_or_any(address).await.unwrap().local_addr().unwrap();
        assert_eq!(other.ip(), address.ip());
        assert_ne!(other.port(), address.port());
        assert!(bind(address).await.unwrap_err().starts_with("cannot listen on 127.0.0.1:"));
    }
}
