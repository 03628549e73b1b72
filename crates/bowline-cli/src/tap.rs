//! `bowline tap`: stands between a client and its server, changes nothing, and shows everything.

#[cfg(unix)]
mod view;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::Arc;

use bowline::proto::http::Access;
use bowline_gateway::fault::{FaultPlan, Faults};
#[cfg(unix)]
use bowline_gateway::hub;
use bowline_gateway::observe::{Observer, Observing};
use bowline_gateway::proxy::Proxy;
use bowline_gateway::redact::{self, Redactor};
use bowline_gateway::relay::{Relay, become_server};
use bowline_gateway::session_file::{Opening, Recorder, Rotation, TapOpening};
use bowline_web::{Host, Url, Web};
use clap::Args;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::failure::{Code, Failure};
use crate::screen::{OutputArgs, Screen};
use crate::session::told_to_stop;
use crate::target::size;

/// Watch the traffic between a client and its server, without changing it
///
/// In a client's configuration, `bowline tap -- SERVER ARGS…` replaces `SERVER ARGS…`; `bowline
/// config wrap NAME` writes that. For a server at a URL, `bowline tap URL --http ADDRESS` is a
/// reverse proxy. `bowline tap --view`, in another terminal, shows all taps of this machine live.
#[derive(Args)]
pub(crate) struct Tap {
    /// The server's URL, with --http
    #[arg(value_name = "URL", requires = "http", conflicts_with = "command")]
    url: Option<String>,

    /// Show every running tap of this user, live
    #[arg(long, conflicts_with_all = ["url", "command"])]
    view: bool,

    /// The address where clients reach the server at URL
    #[arg(long, value_name = "ADDRESS", requires = "url")]
    http: Option<SocketAddr>,

    /// Accept requests for this host name as well; needed where ADDRESS is not on this machine
    #[arg(long, value_name = "HOST", requires = "http")]
    allow_host: Vec<String>,

    /// Trust the certificates in a PEM file, in addition to the system's
    #[arg(long, value_name = "FILE", requires = "http")]
    ca: Option<PathBuf>,

    /// The server's name in the view [default: its program or host]
    #[arg(long)]
    name: Option<String>,

    /// Record the session to a file, or to a new file in a folder; `bowline show` displays it
    #[arg(long, value_name = "PATH")]
    record: Option<PathBuf>,

    /// Begin another file when this size is reached, and rename the full one to FILE.1
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "64M")]
    record_size: usize,

    /// How many full files to keep
    #[arg(long, value_name = "COUNT", default_value_t = 3)]
    record_files: usize,

    /// Inject faults, to test clients: delay=200ms,drop=0.01,cut-after=3,status=503
    #[arg(long, value_name = "FAULTS")]
    fault: Option<FaultPlan>,

    /// Seed for --fault: the same seed breaks the same messages
    #[arg(long, value_name = "NUMBER", default_value_t = 0, requires = "fault")]
    seed: u64,

    /// Become the server, with a life bound to the parent's: what a tap starts
    #[arg(long, hide = true)]
    bound: bool,

    /// What stood in the client's file before `bowline config wrap`, for `unwrap`; not used here
    #[arg(long, hide = true)]
    #[allow(dead_code, reason = "only the file holds it")]
    entry: Option<String>,

    /// The command that starts the server, and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

impl Tap {
    pub(crate) async fn run(self, root: &OutputArgs) -> Result<(), Failure> {
        if self.bound {
            return Err(cannot_start(&self.command, &become_server(&self.command)));
        }
        match (&self.url, self.http) {
            #[cfg(unix)]
            _ if self.view => view::run(hub::folder(), root),
            #[cfg(not(unix))]
            _ if self.view => Err(Failure::usage("--view: only on Unix so far")),
            (Some(url), Some(address)) => self.proxy(url, address, root).await,
            _ if self.command.is_empty() => Err(Failure::usage("which server?").with_remedy(
                "give a command after --, a URL with --http ADDRESS, or --view to watch",
            )),
            _ => self.relay(root).await,
        }
    }

    /// Between a client and a command. Ends the process with the command's exit code.
    async fn relay(self, root: &OutputArgs) -> Result<(), Failure> {
        let words: Vec<_> = self.command.iter().map(|word| word.to_string_lossy()).collect();
        let (shown, mut secrets) = redact::words(&words);
        secrets.extend(secret_variables());
        let target = json!({ "command": shown[0], "args": shown[1..], "env": [], "cwd": null });
        let name = Path::new(&shown[0]).file_name().unwrap_or_default().to_string_lossy();
        let observer = self.observe(target, &name, secrets, root)?;
        // Without a hub there is a session and a recording, and nothing to view.
        #[cfg(unix)]
        let door = hub::open(&hub::folder(), &observer).ok();
        let (command, faults) = (self.command.clone(), self.faults());
        let relay = Relay { command, observer: observer.clone(), faults };
        let ended = relay.run().await;
        let reason = match &ended {
            Ok(status) if status.success() => None,
            Ok(status) => Some(format!("the server ended: {status}")),
            Err(error) => Some(format!("the server could not be started: {error}")),
        };
        observer.end(reason);
        #[cfg(unix)]
        drop(door);
        let status = ended.map_err(|error| cannot_start(&self.command, &error))?;
        // The threads that wait for the client would keep the process.
        std::process::exit(exit_code(status));
    }

    /// Between clients and a URL.
    async fn proxy(&self, url: &str, at: SocketAddr, root: &OutputArgs) -> Result<(), Failure> {
        let wrong = |problem: &dyn std::fmt::Display| Failure::usage(format!("{url}: {problem}"));
        let parsed: http::Uri = url.parse().map_err(|error| wrong(&error))?;
        Url::parse(url).map_err(|error| wrong(&error))?;
        let (Some(scheme), Some(authority)) = (parsed.scheme(), parsed.authority()) else {
            return Err(wrong(&"expected a URL with a scheme and a host"));
        };
        if !Host::Address(at.ip()).is_loopback() && self.allow_host.is_empty() {
            let what = format!("--http {at} can be reached from other machines");
            return Err(Failure::usage(what).with_remedy(
                "use 127.0.0.1, or name the hosts that clients use with --allow-host",
            ));
        }
        let mut access = Access::new();
        for host in &self.allow_host {
            access = access.with_host(host).map_err(|error| Failure::usage(error.to_string()))?;
        }
        let mut web = Web::builder().header_timeout(None);
        if let Some(file) = &self.ca {
            let pem = std::fs::read(file).map_err(|error| Failure::file("--ca", file, error))?;
            web = web.ca_pem(&pem);
        }
        let web = web.build().map_err(|error| Failure::usage(error.to_string()))?;
        let listener = TcpListener::bind(at).await;
        let listener = listener.map_err(|error| Failure::usage(format!("--http {at}: {error}")))?;
        let target = json!({ "url": redact::url(url), "headers": [] });
        let secrets = redact::secrets_in_url(url);
        let observer = self.observe(target, authority.host(), secrets, root)?;
        #[cfg(unix)]
        let _door = hub::open(&hub::folder(), &observer).ok();
        if let Ok(address) = listener.local_addr() {
            let path = parsed.path_and_query().map_or("/", |path| path.as_str());
            let screen = Screen::new(root);
            screen.note(&format!("{} is at http://{address}{path}", redact::url(url)));
        }
        let (scheme, authority) = (scheme.clone(), authority.clone());
        let faults = self.faults();
        let proxy = Proxy { web, scheme, authority, access, observer: observer.clone(), faults };
        proxy.serve_until(listener, told_to_stop()).await;
        observer.end(None);
        Ok(())
    }

    fn observe(
        &self,
        target: Value,
        name: &str,
        secrets: Vec<String>,
        root: &OutputArgs,
    ) -> Result<Observer, Failure> {
        let name = self.name.clone().unwrap_or_else(|| name.to_owned());
        let recorder = match self.record.as_ref().or(root.record.as_ref()) {
            None => None,
            Some(path) => self.recorder(path, &name, root),
        };
        let mut opening = Opening::now(target);
        opening.tap = Some(TapOpening { name, pid: std::process::id(), client: client() });
        let redactor = Redactor::new(secrets);
        let screen = Screen::new(root);
        let warn = Box::new(move |text: &str| screen.warn(text));
        Observer::start(Observing { opening, redactor, recorder, warn })
            .map_err(|error| Failure::usage(format!("cannot observe the session: {error}")))
    }

    /// The recorder. A file that cannot be opened is reported and does not end the session: the
    /// client wants its server.
    fn recorder(&self, path: &Path, name: &str, root: &OutputArgs) -> Option<Recorder> {
        let bytes = u64::try_from(self.record_size).unwrap_or(u64::MAX);
        let rotation = Rotation { bytes, kept: self.record_files };
        let path = if path.is_dir() { path.join(file_name(name)) } else { path.to_owned() };
        let opened = Recorder::rotating(&path, rotation).inspect_err(|error| {
            let text = format!("--record {}: {error}; nothing is recorded", path.display());
            Screen::new(root).warn(&text);
        });
        opened.ok()
    }

    fn faults(&self) -> Option<Arc<Faults>> {
        Some(Arc::new(Faults::new(self.fault.clone()?, self.seed)))
    }
}

/// The name of a session's own file in a folder.
fn file_name(name: &str) -> String {
    let safe = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '-' };
    let name: String = name.chars().take(40).map(safe).collect();
    let time = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%SZ");
    format!("{name}-{time}-{}.jsonl", std::process::id())
}

/// The values of variables with telling names, which the server inherits.
fn secret_variables() -> Vec<String> {
    let named = std::env::vars_os().filter_map(|(name, value)| {
        let is_secret = redact::is_secret_option(&name.to_string_lossy());
        is_secret.then(|| value.to_string_lossy().into_owned())
    });
    named.collect()
}

/// The program that started this one, where the system says so.
pub(crate) fn client() -> Option<String> {
    #[cfg(target_os = "linux")]
    {
        let parent = rustix::process::getppid()?;
        let name =
            std::fs::read_to_string(format!("/proc/{}/comm", parent.as_raw_nonzero())).ok()?;
        Some(name.trim_end().to_owned())
    }
    #[cfg(not(target_os = "linux"))]
    None
}

/// As a shell reports it: 127 for a program that is not there, 126 for one that cannot be run.
fn cannot_start(command: &[OsString], error: &std::io::Error) -> Failure {
    let program = command.first().map(|word| word.to_string_lossy()).unwrap_or_default();
    let is_missing = error.kind() == std::io::ErrorKind::NotFound;
    let code = if is_missing { Code::NotFound } else { Code::NotStarted };
    let failure = Failure::new(code, format!("cannot start {program}: {error}"));
    failure.with_remedy(if is_missing { "is it installed and on PATH?" } else { "" })
}

/// The exit code as a shell shows it: 128 and the number of the signal, if one ended the server.
fn exit_code(status: ExitStatus) -> i32 {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return 128 + signal;
    }
    status.code().unwrap_or(1)
}
