//! `bowline bridge`: puts any client in front of any server.

mod viewed;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bowline::client::{ClientBuilder, Preference, Timeouts};
use bowline::http::Tls;
use bowline::proxy::ProxyError;
use bowline::{Client, Era, Revisions, Server, stdio, stop_signal, with_causes};
use bowline_gateway::bridge::rules::explain;
use bowline_gateway::bridge::{Bridge as Core, BridgeError, Report, ToolRules, faulty, gone};
use bowline_gateway::fault::{FaultPlan, Faults};
use bowline_gateway::observe::Watched;
use bowline_gateway::relay::bound_to_us;
use bowline_gateway::session_file::Way;
use bowline_serve::exposed;
use clap::Args;
use tokio::net::TcpListener;

use crate::answers::Answers;
use crate::failure::{Code, Failure};
use crate::redact::Redactor;
use crate::screen::{OutputArgs, Screen};
use crate::session::with_login;
use crate::target::{Location, Resolved, TargetArgs, preference};

/// Put any client in front of any server, whatever revision and transport each of them speaks
///
/// In a client's configuration, `bowline bridge TARGET` is a server on standard input and output;
/// with --http, clients reach it at an address, over Streamable HTTP and over HTTP+SSE of
/// 2024-11-05. The server may be a URL, a name from a config file, or a command after `--`;
/// `bowline login` stores what a URL needs. If the server dies, the bridge starts it again.
#[derive(Args)]
pub(crate) struct Bridge {
    #[command(flatten)]
    target: TargetArgs,

    /// Serve clients at this address instead of standard input and output; port 0 takes any free
    /// port
    #[arg(long, value_name = "ADDRESS")]
    http: Option<SocketAddr>,

    /// With --http, also accept requests to this host name, besides loopback; may be repeated
    #[arg(long, value_name = "HOST", requires = "http")]
    allow_host: Vec<String>,

    /// With --http, listen on an address that other machines can reach: anyone there can use the
    /// server, with your login
    #[arg(long, requires = "http")]
    allow_unauthenticated: bool,

    /// With --http, serve https with the certificates in this PEM file; needs --key
    #[arg(long, value_name = "FILE", requires_all = ["http", "key"])]
    cert: Option<PathBuf>,

    /// With --http, the private key of --cert
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,

    /// With --http, the most processes of the server to run at a time: a legacy server that asks
    /// users gets one for each caller, so that no question reaches the wrong one
    #[arg(long, value_name = "NUMBER", default_value_t = 16, requires = "http")]
    connections: usize,

    /// The protocol to offer to clients: auto, legacy, modern, or a revision; --revision is for
    /// the server
    #[arg(long, value_name = "REVISION", value_parser = preference, default_value = "auto")]
    offer: Preference,

    /// Offer only tools with these names; `*` stands for any text; may be repeated
    #[arg(long, value_name = "TOOL")]
    allow: Vec<String>,

    /// Leave out tools with these names; `*` stands for any text; may be repeated
    #[arg(long, value_name = "TOOL")]
    deny: Vec<String>,

    /// Offer a tool under another name; may be repeated
    #[arg(long, value_name = "TOOL=NAME", value_parser = renaming)]
    rename: Vec<(String, String)>,

    /// Inject faults, to test clients: delay=200ms,drop=0.01,cut-after=3
    #[arg(long, value_name = "FAULTS", conflicts_with = "http")]
    fault: Option<FaultPlan>,

    /// Seed for --fault: the same seed breaks the same messages
    #[arg(long, value_name = "NUMBER", default_value_t = 0, requires = "fault")]
    seed: u64,

    /// Print what becomes of each part of the protocol between the eras of --offer and --revision,
    /// and what cannot be translated; connects to nothing
    #[arg(long)]
    explain: bool,
}

fn renaming(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').filter(|(old, new)| !old.is_empty() && !new.is_empty());
    let (old, new) = pair.ok_or("expected TOOL=NAME")?;
    Ok((old.to_owned(), new.to_owned()))
}

impl Bridge {
    pub(crate) async fn run(self, root: &OutputArgs) -> Result<(), Failure> {
        let screen = Arc::new(Screen::new(&self.target.options.output.clone().or(root)));
        if self.explain {
            screen.print(&self.explanation());
            return screen.finish();
        }
        self.check_options()?;
        let resolved = self.target.resolve()?;
        if let Some(note) = &resolved.note {
            screen.note(note);
        }
        let core = self.core(&resolved, &screen)?;
        let served = match self.http {
            None => self.on_stdio(&core, &resolved).await,
            Some(address) => self.over_http(&core, address, &screen).await?,
        };
        served.map_err(|error| explained(error, &resolved))
    }

    /// Rejects options of other commands that have no meaning here, instead of ignoring them.
    fn check_options(&self) -> Result<(), Failure> {
        let options = &self.target.options;
        let (answers, output) = (&options.answers, &options.output);
        let tap = "`bowline tap` records and shows what passes";
        let client = "the client and the server agree on it; the bridge passes it on";
        let rejected = [
            ("--record", output.record.is_some(), tap),
            ("--verbose", output.verbose, tap),
            ("--output", output.output.is_some(), "there is no result to print"),
            ("--timeout", options.timeout.is_some(), client),
            ("--log", options.log.is_some(), client),
            ("--answer", answers.answer.is_some(), "the client answers what the server asks"),
            ("--accept", answers.accept, "the client answers what the server asks"),
            ("--decline", answers.decline, "the client answers what the server asks"),
        ];
        if let Some((option, _, why)) = rejected.into_iter().find(|(_, is_given, _)| *is_given) {
            let what = format!("bowline bridge does not take {option}");
            return Err(Failure::usage(what).with_remedy(why));
        }
        if self.fault.as_ref().is_some_and(|plan| plan.status.is_some()) {
            let what = "--fault status=… is for HTTP, and this bridge serves on stdio";
            let help = "`bowline tap URL --http ADDRESS --fault …` breaks HTTP";
            return Err(Failure::usage(what).with_remedy(help));
        }
        Ok(())
    }

    /// The tables of all pairs of eras that the options allow.
    fn explanation(&self) -> String {
        let eras = |preference: Preference| {
            let revisions = preference.narrow(Revisions::ALL);
            let all = [Era::Legacy, Era::Modern].into_iter();
            all.filter(move |era| !revisions.of_era(*era).is_empty())
        };
        let server = self.target.options.revision.unwrap_or(Preference::Auto);
        let pairs = eras(self.offer).flat_map(|client| eras(server).map(move |it| (client, it)));
        let tables: Vec<_> = pairs.map(|(client, server)| explain(client, server)).collect();
        tables.join("\n")
    }

    fn core(&self, resolved: &Resolved, screen: &Arc<Screen>) -> Result<Core, Failure> {
        // Mistakes are found now, not when the server is started for the second time.
        resolved.target()?;
        let options = &self.target.options;
        let limits = options.most.limits();
        let mut timeouts = Timeouts::default();
        timeouts.connect = options.connect_timeout.unwrap_or(timeouts.connect);
        let (said, told) = (Arc::clone(screen), Arc::clone(screen));
        let (longest, target) = (limits.message_length, resolved.clone());
        let (connect_timeout, term_grace) = (timeouts.connect, limits.term_grace);
        let client = move || -> ClientBuilder {
            let said = Arc::clone(&said);
            Client::builder("bowline", env!("CARGO_PKG_VERSION"))
                .title("Bowline")
                .timeouts(timeouts.clone())
                .limits(limits.clone())
                .without_cache()
                .on_stderr(move |line| said.say(&format!("{line}\n")))
        };
        let report: Report = Arc::new(move |text: &str| told.note(text));
        Ok(Core {
            target: Arc::new(move || target.target().expect("it was made before")),
            client: Arc::new(client),
            connections: self.connections,
            command: command(&resolved.location),
            preference: options.revision.unwrap_or(Preference::Auto),
            offer: self.offer.narrow(Revisions::ALL),
            tools: ToolRules {
                allow: self.allow.clone(),
                deny: self.deny.clone(),
                rename: self.rename.clone(),
            },
            roots: Answers::read(&options.answers)?.roots,
            longest,
            connect_timeout,
            term_grace,
            report,
        })
    }

    async fn on_stdio(&self, core: &Core, resolved: &Resolved) -> Result<(), BridgeError> {
        let stop = stop_signal();
        let (input, output) = stdio::stdio()?;
        let viewed = viewed::Viewed::open(resolved);
        let input = Watched::new(input, viewed.watch(Way::Sent));
        let Some(plan) = self.fault.clone() else {
            let output = Watched::new(output, viewed.watch(Way::Received));
            return core.serve_until(input, output, stop).await;
        };
        let faults = Arc::new(Faults::new(plan, self.seed));
        let (output, passing) = faulty(faults, output, viewed.observer());
        let mut passing = std::pin::pin!(passing);
        tokio::select! {
            served = core.serve_until(input, output, stop) => {
                // What is late still arrives, unless nobody wants to wait for it.
                tokio::select! {
                    () = passing => {}
                    () = stop_signal() => {}
                }
                served
            }
            () = &mut passing => Ok(()),
        }
    }

    async fn over_http(
        &self,
        core: &Core,
        address: SocketAddr,
        screen: &Screen,
    ) -> Result<Result<(), BridgeError>, Failure> {
        if let Some(problem) = exposed(address, self.allow_unauthenticated) {
            return Err(Failure::usage(problem));
        }
        let wrong = |error: std::io::Error| Failure::usage(format!("--http {address}: {error}"));
        let listener = TcpListener::bind(address).await.map_err(wrong)?;
        let address = listener.local_addr().map_err(wrong)?;
        let (server, proxy) = match core.server().await {
            Ok(connected) => connected,
            Err(error) => return Ok(Err(error.into())),
        };
        let mut http = Server::http(server);
        let mut scheme = "http";
        if let (Some(cert), Some(key)) = (&self.cert, &self.key) {
            http = http.tls(tls(cert, key)?);
            scheme = "https";
        }
        for host in &self.allow_host {
            let wrong = |error| Failure::usage(format!("--allow-host {host}: {error}"));
            http = http.allow_host(host).map_err(wrong)?;
        }
        let (stop, mut end) = (stop_signal(), None);
        screen.note(&format!("the bridge is at {scheme}://{address}/mcp"));
        let stop = async {
            tokio::select! {
                () = stop => {}
                reason = gone(proxy.client()) => end = Some(reason),
            }
        };
        let served = http.serve_until(listener, stop).await;
        proxy.close().await;
        core.report_losses(&proxy.losses());
        Ok(match end {
            Some(reason) => Err(BridgeError::Gone(reason)),
            None => served.map_err(Into::into),
        })
    }
}

/// The certificates and the key in these files.
fn tls(cert: &Path, key: &Path) -> Result<Tls, Failure> {
    let read = |option: &str, file: &Path| {
        std::fs::read(file).map_err(|error| Failure::file(option, file, error))
    };
    let tls = Tls::from_pem(&read("--cert", cert)?, &read("--key", key)?);
    tls.map_err(|error| {
        Failure::usage(format!("--cert {}: {}", cert.display(), with_causes(&error)))
    })
}

type Start = Box<dyn Fn() -> std::process::Command + Send + Sync>;

/// Starts the server, if it is a command.
fn command(location: &Location) -> Option<Start> {
    let Location::Command { program, args, env, cwd } = location.clone() else { return None };
    let words: Vec<OsString> = std::iter::once(program).chain(args).collect();
    Some(Box::new(move || {
        let mut command = bound_to_us(&words).expect("there is a program");
        command.envs(env.iter().cloned());
        if let Some(dir) = &cwd {
            command.current_dir(dir);
        }
        command
    }))
}

/// Says how to log in where that is what is missing, without the secrets of the command line.
fn explained(error: BridgeError, resolved: &Resolved) -> Failure {
    let mut failure = match error {
        BridgeError::Upstream(ProxyError::Open(error)) => Failure::from(error),
        BridgeError::Upstream(ProxyError::List(error)) => Failure::from(error),
        error => Failure::new(Code::Unreachable, with_causes(&error)),
    };
    failure.what = Redactor::new(resolved.secrets()).text(&failure.what);
    with_login(failure, resolved)
}
