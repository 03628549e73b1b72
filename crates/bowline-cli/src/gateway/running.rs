//! A gateway that runs, from its start to its end.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bowline::http::HttpService;
use bowline::{BuildError, Server, stdio, stop_signal, with_causes};
use bowline_gateway::gateway::admin::Question;
use bowline_gateway::gateway::{Audit, Gateway, Who};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::TcpListener;
use tokio::sync::Notify;

use super::beside::beside;
use super::front::Front;
use super::otlp::{self, Sending};
use super::read::Read;
use super::{load, say};
use crate::failure::{Code, Failure};

/// How long the end of the gateway waits for its servers: longer than a process may take that is
/// asked to stop, and then killed.
const ENDING: Duration = Duration::from_secs(10);

/// A gateway that runs, and what a reload needs.
pub(super) struct Running {
    files: Vec<PathBuf>,
    fixed: Fixed,
    pub(super) gateway: Gateway,
    audit: Mutex<Option<Arc<Audit>>>,
    telemetry: Mutex<Option<Sending>>,
    /// One reload at a time: two could open one audit log twice.
    reloading: tokio::sync::Mutex<()>,
}

/// What stays as it was at the start.
struct Fixed {
    listen: Option<SocketAddr>,
    socket: Option<PathBuf>,
    metrics: Option<SocketAddr>,
    front: Front,
}

impl Fixed {
    /// What the files say about it now, if that is something else.
    fn differences(&self, read: &Read, was_given: &Given) -> Vec<&'static str> {
        let front = Front::of(&read.settings);
        let differs = [
            ("listen", was_given.listen.is_none() && self.listen != read.settings.listen),
            ("socket", was_given.socket.is_none() && self.socket != read.settings.socket),
            ("metrics", self.metrics != read.telemetry.metrics),
            ("hosts or auth", !self.front.is_same(&front)),
        ];
        differs.into_iter().filter(|(_, differs)| *differs).map(|(what, _)| what).collect()
    }
}

/// What the command line says, whatever the files say.
#[derive(Clone, Default)]
pub(super) struct Given {
    pub(super) listen: Option<SocketAddr>,
    pub(super) socket: Option<PathBuf>,
}

impl Running {
    /// Where the metrics are served.
    pub(super) fn metrics(&self) -> Option<SocketAddr> {
        self.fixed.metrics
    }

    /// Reads all files again. A mistake changes nothing.
    pub(super) async fn reload(&self, given: &Given) -> Result<Value, String> {
        let _one = self.reloading.lock().await;
        let mut read = load(self.files.clone()).await?;
        read.missing().map_or(Ok(()), Err)?;
        let differences = self.fixed.differences(&read, given);
        read.settings.listen = self.fixed.listen;
        // Whoever got in at the start still does: the rules must know.
        read.settings.hosts.clone_from(&self.fixed.front.hosts);
        let groups = read.settings.auth.take().map(|it| it.groups);
        read.settings.auth.clone_from(&self.fixed.front.auth);
        if let (Some(auth), Some(groups)) = (&mut read.settings.auth, groups) {
            auth.groups = groups;
        }
        let mut plan = read.plan(None)?;
        let known = lock(&self.audit).clone();
        let audit = match (&read.telemetry.audit, known) {
            (Some(path), Some(audit)) if audit.is_at(path) => Some(audit),
            _ => open_audit(&read)?,
        };
        plan.audit.clone_from(&audit);
        let known = lock(&self.telemetry).clone();
        let telemetry = otlp::follow(&read, known)?;
        plan.telemetry = telemetry.as_ref().map(Sending::telemetry);
        self.gateway.reload(plan).await.map_err(|error| error.to_string())?;
        *lock(&self.audit) = audit;
        *lock(&self.telemetry) = telemetry;
        let mut status = json!(self.gateway.status());
        if !differences.is_empty() {
            let what = differences.join(", ");
            status["note"] = json!(format!("{what}: changed in the files; help: start it again"));
        }
        Ok(status)
    }

    pub(super) async fn answer(
        &self,
        question: Question,
        given: &Given,
        drain: &Notify,
    ) -> Result<Value, String> {
        match question {
            Question::Status => Ok(json!(self.gateway.status())),
            Question::Reload => self.reload(given).await,
            Question::Drain => {
                drain.notify_one();
                Ok(json!("finishing what runs"))
            }
            Question::Explain { subject, groups, client, tool } => {
                let who = Who { subject, groups, client };
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
    let opened = Audit::open(path);
    let audit = opened.map_err(|error| format!("telemetry.audit: {}: {error}", path.display()))?;
    Ok(Some(Arc::new(audit)))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn bind(address: SocketAddr) -> Result<TcpListener, Failure> {
    let bound = TcpListener::bind(address).await;
    bound.map_err(|error| Failure::usage(format!("cannot listen on {address}: {error}")))
}

/// Tells people how the servers are.
fn tell(gateway: &Gateway, read: &Read) {
    let redactor = read.redactor();
    for status in gateway.status().servers {
        let line = format!("{}: {:?}, {} tools", status.server, status.health, status.tools);
        say(&redactor.text(&line));
    }
}

/// Serves the files until the gateway is told to end.
pub(super) async fn serve(files: Vec<PathBuf>, given: Given) -> Result<(), Failure> {
    let stop = stop_signal();
    let mut read = load(files.clone()).await.map_err(Failure::usage)?;
    read.settings.listen = given.listen.or(read.settings.listen);
    let socket = given.socket.clone().or_else(|| read.settings.socket.clone());
    read.notes.iter().for_each(|note| say(note));
    let front = Front::of(&read.settings);
    let mut plan = read.plan(None).map_err(Failure::usage)?;
    // Tried now, so that a mistake is known before anything starts.
    drop(front.guard(Server::new("trial", "1"), None).map_err(Failure::usage)?);
    if plan.policy.rules.is_empty() && !plan.policy.is_open {
        say("there is no rule, so callers may use nothing; help: add [[access]]");
    }
    let audit = open_audit(&read).map_err(Failure::usage)?;
    plan.audit.clone_from(&audit);
    let telemetry = otlp::follow(&read, None).map_err(Failure::usage)?;
    plan.telemetry = telemetry.as_ref().map(Sending::telemetry);
    let listener = match read.settings.listen {
        None => None,
        Some(address) => Some(bind(address).await?),
    };
    let own = front.clone();
    let serve_one = move |server: Server, key: &str| -> Result<HttpService, BuildError> {
        // The same settings were accepted for the endpoint for all.
        let http = own.guard(server, Some(key));
        http.unwrap_or_else(|_| Server::new("unusable", "0").http()).into_service()
    };
    let started = Gateway::start(plan, Box::new(serve_one)).await;
    let (gateway, server) = started.map_err(|error| Failure::usage(error.to_string()))?;
    tell(&gateway, &read);
    let fixed = Fixed {
        listen: read.settings.listen,
        socket: socket.clone(),
        metrics: read.telemetry.metrics,
        front: front.clone(),
    };
    let (audit, telemetry) = (Mutex::new(audit), Mutex::new(telemetry));
    let reloading = tokio::sync::Mutex::default();
    let own = gateway.clone();
    let running = Running { files, fixed, gateway: own, audit, telemetry, reloading };
    let running = Arc::new(running);
    let drain = Arc::new(Notify::new());
    let ending = running.gateway.clone();
    let stopping = async {
        tokio::select! {
            () = stop => {}
            () = drain.notified() => {}
        }
        ending.drain();
    };
    let served = tokio::select! {
        served = open(listener, server, (front, gateway), stopping) => served,
        never = beside(&running, &given, &drain, socket.as_deref()) => match never {},
    };
    running.gateway.close(ENDING).await;
    let telemetry = lock(&running.telemetry).as_ref().map(Sending::telemetry);
    if let Some(telemetry) = telemetry {
        telemetry.flush(otlp::FLUSH).await;
    }
    served.map_err(|why| Failure::new(Code::Unreachable, why))
}

/// Serves clients until `stopping` is ready: at a socket, or on standard input and output.
async fn open(
    listener: Option<TcpListener>,
    server: Server,
    (front, gateway): (Front, Gateway),
    stopping: impl Future<Output = ()>,
) -> Result<(), String> {
    let Some(listener) = listener else {
        let (input, output) = stdio::stdio().map_err(|error| error.to_string())?;
        let input = Until { input, stop: Some(Box::pin(stopping)) };
        let served = server.serve(tokio::io::join(input, output)).await;
        return served.map_err(|error| with_causes(&error));
    };
    let address = listener.local_addr().map_err(|error| error.to_string())?;
    say(&format!("the gateway is at http://{address}/mcp"));
    let http = front.guard(server, None)?.mount(move |path| gateway.mounted(path));
    http.serve_until(listener, stopping).await.map_err(|error| with_causes(&error))
}

/// Input that ends when its client closes it, or when the gateway does: what runs is finished then.
struct Until<I, S> {
    input: I,
    /// `None` once it is ready.
    stop: Option<Pin<Box<S>>>,
}

impl<I: AsyncRead + Unpin, S: Future<Output = ()>> AsyncRead for Until<I, S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let is_over = self.stop.as_mut().is_none_or(|stop| stop.as_mut().poll(cx).is_ready());
        if is_over {
            self.stop = None;
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.input).poll_read(cx, buffer)
    }
}
