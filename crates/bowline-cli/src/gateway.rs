//! `bowline gateway`: many servers behind one door.

mod beside;
mod file;
mod read;
mod secret;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use bowline::http::auth::{Guard, JwtVerifier};
use bowline::http::{Http, HttpService};
use bowline::{BuildError, Server, stdio, stop_signal, with_causes};
#[cfg(unix)]
use bowline_gateway::gateway::admin;
use bowline_gateway::gateway::admin::Question;
use bowline_gateway::gateway::{Audit, Gateway, Who, verify};
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::Notify;

use self::beside::beside;
use self::read::{Read, read};
use crate::failure::{Code, Failure};
use crate::screen::{OutputArgs, Screen};

/// Serve many servers at one address, for clients of every revision
///
/// FILE is a client's own config file, as it is (mcpServers and its relatives), or TOML of the
/// gateway's own; there can be several, and later ones override earlier ones. docs/gateway.md has
/// the reference. Without an address, the gateway serves one client on standard input and output.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct GatewayArgs {
    /// Config files
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Serve HTTP at this address, whatever the files say; port 0 takes any free port
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,

    /// The admin socket, whatever the files say
    #[arg(long, value_name = "SOCKET")]
    socket: Option<PathBuf>,

    #[command(subcommand)]
    command: Option<Subcommands>,
}

#[derive(Subcommand)]
enum Subcommands {
    /// Read config files and show what they come to, without secrets; start nothing
    Check {
        /// Config files
        #[arg(value_name = "FILE", required = true)]
        files: Vec<PathBuf>,
    },
    /// Print the JSON schema of the gateway's own files, for editors
    Schema,
    /// Show how a running gateway is
    Status(Socket),
    /// Make a running gateway read its files again
    Reload(Socket),
    /// Make a running gateway finish what runs, and end
    Drain(Socket),
    /// Say what the rules of a running gateway decide about a caller and a tool
    Explain {
        /// The user, as tokens name them; `-` is anyone without a token
        caller: String,
        /// The tool, by its full name or as server/name
        tool: String,
        /// A group that the user is in; may be repeated
        #[arg(long)]
        group: Vec<String>,
        #[command(flatten)]
        socket: Socket,
    },
    /// Check that no line of an audit log was removed or changed
    Verify {
        /// The audit log
        file: PathBuf,
    },
}

#[derive(Args)]
struct Socket {
    /// The admin socket of the gateway
    #[arg(long, value_name = "SOCKET")]
    socket: PathBuf,
}

/// Writes a line for people.
pub(super) fn say(line: &str) {
    use std::io::Write;
    // There is nobody to tell when standard error is closed.
    let _ = writeln!(std::io::stderr().lock(), "{}", crate::text::line(line));
}

impl GatewayArgs {
    pub(crate) async fn run(self, root: &OutputArgs) -> Result<(), Failure> {
        let screen = Screen::new(root);
        match self.command {
            None if self.files.is_empty() => {
                let remedy = "bowline gateway FILE…, such as the config file of a client";
                Err(Failure::usage("which servers?").with_remedy(remedy))
            }
            None => serve(self.files, self.listen, self.socket).await,
            Some(Subcommands::Check { files }) => {
                let read = read(&files).map_err(Failure::usage)?;
                read.plan(None).map_err(Failure::usage)?;
                screen.print(&read.redacted(&shown(&read)));
                screen.finish()
            }
            Some(Subcommands::Schema) => {
                let schema = bowline::schemars::schema_for!(file::File);
                screen.print(&format!("{:#}\n", schema.to_value()));
                screen.finish()
            }
            Some(Subcommands::Status(at)) => ask(&screen, &at, Question::Status).await,
            Some(Subcommands::Reload(at)) => ask(&screen, &at, Question::Reload).await,
            Some(Subcommands::Drain(at)) => ask(&screen, &at, Question::Drain).await,
            Some(Subcommands::Explain { caller, tool, group, socket }) => {
                let subject = Some(caller).filter(|it| it != "-");
                let question = Question::Explain { subject, groups: group, tool };
                ask(&screen, &socket, question).await
            }
            Some(Subcommands::Verify { file }) => {
                let (lines, last) = verify(&file).map_err(|error| {
                    let what = format!("{}: {}", file.display(), with_causes(&error));
                    Failure::new(Code::Unreachable, what)
                })?;
                screen.print(&format!("{lines} records, the last with the digest {last}\n"));
                screen.finish()
            }
        }
    }
}

#[cfg(unix)]
async fn ask(screen: &Screen, at: &Socket, question: Question) -> Result<(), Failure> {
    let path = at.socket.display();
    let answered = admin::ask(&at.socket, &question).await.map_err(|error| {
        Failure::new(Code::Unreachable, format!("no gateway answers at {path}: {error}"))
    })?;
    let answer = answered.map_err(|why| Failure::new(Code::Unreachable, why))?;
    screen.print(&format!("{answer:#}\n"));
    screen.finish()
}

#[cfg(not(unix))]
async fn ask(_: &Screen, _: &Socket, _: Question) -> Result<(), Failure> {
    Err(Failure::usage("the admin socket exists on Unix only"))
}

/// The merged configuration, with origins.
fn shown(read: &Read) -> String {
    let mut text = String::new();
    let mut line = |it: String| {
        text += &it;
        text.push('\n');
    };
    for note in &read.notes {
        line(format!("note: {note}"));
    }
    match read.settings.listen {
        Some(address) => line(format!("listens on {address}")),
        None => line("serves standard input and output".to_owned()),
    }
    for it in &read.servers {
        let prefix = it.alias().unwrap_or(&it.key);
        line(format!("{} ({}): {}", it.key, it.file.display(), it.about));
        line(format!("  names: {prefix}__*"));
        let tools = it.tools();
        for (what, patterns) in [("allow", &tools.allow), ("deny", &tools.deny)] {
            if !patterns.is_empty() {
                line(format!("  {what}: {}", patterns.join(", ")));
            }
        }
    }
    for it in &read.commands {
        line(format!("tools__{}: {}", it.name, it.run.join(" ")));
    }
    for it in &read.rules {
        line(format!(
            "rule {}: allow {:?}, deny {:?}, confirm {:?}",
            it.name, it.allow, it.deny, it.confirm
        ));
    }
    text
}

/// A gateway that runs, and what a reload needs.
struct Running {
    files: Vec<PathBuf>,
    listen: Option<SocketAddr>,
    gateway: Gateway,
    audit: Mutex<(Option<PathBuf>, Option<Arc<Audit>>)>,
}

impl Running {
    /// Reads all files again. A mistake changes nothing.
    async fn reload(&self) -> Result<Value, String> {
        let mut read = read(&self.files)?;
        read.settings.listen = self.listen;
        let audit = {
            let mut known = self.audit.lock().unwrap_or_else(PoisonError::into_inner);
            if known.0 != read.telemetry.audit {
                *known = (read.telemetry.audit.clone(), open_audit(&read)?);
            }
            known.1.clone()
        };
        let plan = read.plan(audit)?;
        self.gateway.reload(plan).await.map_err(|error| error.to_string())?;
        Ok(json!(self.gateway.status()))
    }

    async fn answer(&self, question: Question, drain: &Notify) -> Result<Value, String> {
        match question {
            Question::Status => Ok(json!(self.gateway.status())),
            Question::Reload => self.reload().await,
            Question::Drain => {
                drain.notify_one();
                Ok(json!("finishing what runs"))
            }
            Question::Explain { subject, groups, tool } => {
                let who = Who { subject, groups, client: None };
                let (what, decision) = self.gateway.explain(&who, &tool);
                Ok(json!({
                    "what": what,
                    "allowed": decision.is_allowed,
                    "confirms": decision.confirms,
                    "rule": decision.rule,
                }))
            }
        }
    }
}

fn open_audit(read: &Read) -> Result<Option<Arc<Audit>>, String> {
    let Some(path) = &read.telemetry.audit else { return Ok(None) };
    let opened = Audit::open(path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(Some(Arc::new(opened)))
}

/// The URL of a server's own endpoint, beside that of all.
fn own_resource(resource: &str, key: &str) -> String {
    let base = resource.strip_suffix("/mcp").unwrap_or(resource);
    format!("{base}/servers/{key}/mcp")
}

/// Puts hosts and tokens in front of a server.
fn guarded(server: Server, settings: &Guarded, resource: Option<&str>) -> Result<Http, String> {
    let mut http = server.http();
    for host in &settings.hosts {
        http = http.allow_host(host).map_err(|error| format!("hosts: {host}: {error}"))?;
    }
    if let (Some(issuer), Some(resource)) = (&settings.issuer, resource) {
        let wrong = |error: &dyn std::fmt::Display| format!("auth: {error}");
        let tokens = JwtVerifier::new(issuer).map_err(|error| wrong(&error))?;
        http = http.require_auth(Guard::new(resource, tokens).map_err(|error| wrong(&error))?);
    }
    Ok(http)
}

#[derive(Clone, Default)]
struct Guarded {
    hosts: Vec<String>,
    issuer: Option<String>,
    resource: Option<String>,
}

impl Guarded {
    fn of(settings: &file::Section) -> Self {
        let auth = settings.auth.as_ref();
        Self {
            hosts: settings.hosts.clone(),
            issuer: auth.map(|it| it.issuer.clone()),
            resource: auth.map(|it| it.resource.clone()),
        }
    }
}

async fn bind(address: SocketAddr) -> Result<TcpListener, Failure> {
    let bound = TcpListener::bind(address).await;
    bound.map_err(|error| Failure::usage(format!("cannot listen on {address}: {error}")))
}

async fn serve(
    files: Vec<PathBuf>,
    listen: Option<SocketAddr>,
    socket: Option<PathBuf>,
) -> Result<(), Failure> {
    let stop = stop_signal();
    let mut read = read(&files).map_err(Failure::usage)?;
    read.settings.listen = listen.or(read.settings.listen);
    let listen = read.settings.listen;
    for note in &read.notes {
        say(note);
    }
    let guard = Guarded::of(&read.settings);
    let audit = open_audit(&read).map_err(Failure::usage)?;
    let plan = read.plan(audit.clone()).map_err(Failure::usage)?;
    // Bound first, so that a port that is taken is known before anything starts.
    let listener = match listen {
        None => None,
        Some(address) => Some(bind(address).await?),
    };
    let own = guard.clone();
    let serve_one = move |server: Server, key: &str| -> Result<HttpService, BuildError> {
        let resource = own.resource.as_deref().map(|it| own_resource(it, key));
        let http = guarded(server, &own, resource.as_deref());
        // The same settings were accepted for the endpoint for all.
        http.unwrap_or_else(|_| Server::new("unusable", "0").http()).into_service()
    };
    let started = Gateway::start(plan, Box::new(serve_one)).await;
    let (gateway, server) = started.map_err(|error| Failure::usage(error.to_string()))?;
    let metrics = read.telemetry.metrics;
    let known = Mutex::new((read.telemetry.audit.clone(), audit));
    let running = Arc::new(Running { files, listen, gateway: gateway.clone(), audit: known });
    for status in gateway.status().servers {
        say(&read
            .redacted(&format!("{}: {:?}, {} tools", status.server, status.health, status.tools)));
    }
    let drain = Arc::new(Notify::new());
    let socket = socket.or(read.settings.socket);
    let beside = beside(&running, &drain, socket.as_deref(), metrics);
    let stopping = async {
        tokio::select! {
            () = stop => {}
            () = drain.notified() => {}
        }
    };
    let serving = async {
        let Some(listener) = listener else {
            let (input, output) = stdio::stdio().map_err(|error| error.to_string())?;
            let served = server.serve(tokio::io::join(input, output));
            return tokio::select! {
                served = served => served.map_err(|error| with_causes(&error)),
                () = stopping => Ok(()),
            };
        };
        let address = listener.local_addr().map_err(|error| error.to_string())?;
        say(&format!("the gateway is at http://{address}/mcp"));
        let http = guarded(server, &guard, guard.resource.as_deref())?;
        let http = http.mount(move |path| gateway.mounted(path));
        http.serve_until(listener, stopping).await.map_err(|error| with_causes(&error))
    };
    let served = tokio::select! {
        served = serving => served,
        failed = beside => Err(failed),
    };
    served.map_err(|why| Failure::new(Code::Unreachable, why))
}
