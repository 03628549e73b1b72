//! The audit trail: who asked for what, from where, and how it ended, as `tracing` events of one
//! target.
//!
//! The ends of requests come from middleware, the outermost of all, which is there only while
//! somebody listens: it sees each end exactly once. What never becomes a request is reported where
//! it is refused. Nothing here holds arguments, results, tokens or session ids.

use std::borrow::Cow;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bowline_proto::method::{CallTool, Complete, GetPrompt, Method};
use tokio::time::Instant;
use tracing::Level;

use super::answer::{Answer, Outcome};
use super::call::Call;
use super::failure::{Failure, FailureKind};
use super::handler::BoxFuture;
use super::middleware::{Incoming, Middleware, Next};
use super::peer::Transport;
use super::principal::Principal;
use crate::clock;

/// The target of all events.
const TARGET: &str = "bowline::audit";

/// Below what most programs log by default: the audit is for those that ask for it.
const LEVEL: Level = Level::DEBUG;

/// The most bytes of a text that a peer chose.
const LONGEST: usize = 256;

/// Whether somebody listens. A load and a compare while nobody logs at this level.
pub(crate) fn is_on() -> bool {
    tracing::event_enabled!(target: TARGET, LEVEL)
}

/// Middleware with the audit around it.
pub(crate) fn around(middleware: &[Arc<dyn Middleware>]) -> Arc<[Arc<dyn Middleware>]> {
    let audit: Arc<dyn Middleware> = Arc::new(Audit);
    std::iter::once(&audit).chain(middleware).cloned().collect()
}

/// Reports the end of every request.
struct Audit;

impl Middleware for Audit {
    fn handle(&self, incoming: Incoming, next: Next) -> BoxFuture<Outcome> {
        let mut entry = Entry {
            call: Arc::clone(&incoming.context.call),
            method: incoming.method.clone(),
            name: incoming.name.clone(),
            started: clock::now(),
            is_written: false,
        };
        Box::pin(async move {
            let outcome = next.run(incoming).await;
            entry.write(&End::of(&outcome));
            outcome
        })
    }
}

/// A request until it has ended.
struct Entry {
    call: Arc<Call>,
    method: Cow<'static, str>,
    name: Option<String>,
    started: Instant,
    is_written: bool,
}

/// How a request ended.
struct End<'a> {
    word: &'static str,
    /// What OpenTelemetry calls the type of the error.
    error: Option<Cow<'static, str>>,
    failure: Option<&'a Failure>,
}

impl<'a> End<'a> {
    fn of(outcome: &'a Outcome) -> Self {
        let (word, error) = match outcome {
            Ok(Answer::InputRequired(_)) => ("asked", None),
            Ok(answer) if answer.is_tool_error() => ("tool_error", Some("tool_error".into())),
            Ok(_) => ("answered", None),
            Err(failure) => (failure.kind.as_str(), Some(error_type(failure))),
        };
        Self { word, error, failure: outcome.as_ref().err() }
    }
}

/// The tool, the prompt and the URI that a request is about: one of them at most.
pub(super) fn subject<'a>(method: &str, name: Option<&'a str>) -> [Option<&'a str>; 3] {
    let is_uri = name.is_some_and(|name| name.contains("://"));
    let about_prompt = method == GetPrompt::NAME || method == Complete::NAME;
    match method {
        CallTool::NAME => [name, None, None],
        _ if about_prompt && !is_uri => [None, name, None],
        _ => [None, None, name],
    }
}

/// What OpenTelemetry calls the type of the error.
pub(super) fn error_type(failure: &Failure) -> Cow<'static, str> {
    match failure.kind {
        FailureKind::TimedOut => "timeout".into(),
        FailureKind::Cancelled | FailureKind::Disconnected => failure.kind.as_str().into(),
        _ => failure.error.code.0.to_string().into(),
    }
}

impl Entry {
    fn write(&mut self, end: &End<'_>) {
        self.is_written = true;
        let (caller, peer) = (&self.call.caller, self.call.peer());
        #[cfg(feature = "http")]
        let address = caller.peer_addr();
        #[cfg(not(feature = "http"))]
        let address = None;
        let origin =
            Origin { principal: caller.principal.as_ref(), address, transport: peer.via.transport };
        let name = self.name.as_deref().map(clip);
        let [tool, prompt, uri] = subject(&self.method, name);
        let scopes: Vec<_> = end.failure.iter().flat_map(|failure| failure.scopes()).collect();
        let [protocol, network] = origin.transport.network();
        tracing::event!(
            target: TARGET,
            LEVEL,
            enduser.id = origin.user(),
            client.address = origin.address.map(|it| display(it.ip())),
            client.port = origin.address.map(|it| it.port()),
            network.transport = network,
            network.protocol.name = protocol,
            mcp.protocol.version = caller.revision.as_str(),
            mcp.method.name = clip(&self.method),
            gen_ai.tool.name = tool,
            gen_ai.prompt.name = prompt,
            mcp.resource.uri = uri,
            jsonrpc.request.id = clip(&self.call.id.to_string()),
            session = peer.member_of.as_ref().and_then(|session| session.number()),
            outcome = end.word,
            "error.type" = end.error.as_deref(),
            rpc.response.status_code = end.failure.map(|failure| failure.error.code.0),
            scopes = (!scopes.is_empty()).then(|| scopes.join(" ")),
            duration = self.started.elapsed().as_secs_f64(),
            "a request ended"
        );
    }
}

/// A panic of middleware, or the end of its time, ends the request as well.
impl Drop for Entry {
    fn drop(&mut self) {
        if self.is_written {
            return;
        }
        let word = match (std::thread::panicking(), self.call.is_cancelled()) {
            (true, _) => FailureKind::Panicked.as_str(),
            (false, true) => self.call.abandonment().kind.as_str(),
            (false, false) => FailureKind::TimedOut.as_str(),
        };
        self.write(&End { word, error: Some(word.into()), failure: None });
    }
}

/// Where something comes from.
#[derive(Clone, Copy)]
pub(crate) struct Origin<'a> {
    pub(crate) principal: Option<&'a Principal>,
    pub(crate) address: Option<SocketAddr>,
    pub(crate) transport: Transport,
}

impl<'a> Origin<'a> {
    fn user(self) -> Option<&'a str> {
        self.principal.map(|principal| clip(principal.as_str()))
    }
}

/// Why something was refused before it became a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Why {
    /// It is addressed to a name that is not allowed.
    #[cfg(feature = "http")]
    Host,
    /// It comes from a page that is not allowed.
    #[cfg(feature = "http")]
    Origin,
    /// The token is missing or not valid.
    #[cfg(feature = "auth")]
    Token,
    /// The caller lacks scopes.
    #[cfg(feature = "auth")]
    Scopes,
    /// There is no such session.
    #[cfg(feature = "http")]
    Session,
    /// Its method, path or headers are wrong.
    #[cfg(feature = "http")]
    Head,
    /// Its body is too long, late or broken.
    #[cfg(feature = "http")]
    Body,
    /// It is not a message of the protocol, or not one that can come now.
    Message,
    /// A limit is reached.
    Limit,
    /// The server is shutting down.
    Stopping,
    /// It was cancelled while it waited for its turn.
    Cancelled,
}

impl Why {
    const fn as_str(self) -> &'static str {
        match self {
            #[cfg(feature = "http")]
            Self::Host => "host",
            #[cfg(feature = "http")]
            Self::Origin => "origin",
            #[cfg(feature = "auth")]
            Self::Token => "token",
            #[cfg(feature = "auth")]
            Self::Scopes => "scopes",
            #[cfg(feature = "http")]
            Self::Session => "session",
            #[cfg(feature = "http")]
            Self::Head => "head",
            #[cfg(feature = "http")]
            Self::Body => "body",
            Self::Message => "message",
            Self::Limit => "limit",
            Self::Stopping => "stopping",
            Self::Cancelled => "cancelled",
        }
    }
}

/// Reports an HTTP request that was refused; `reason` is what its sender is told.
#[cfg(feature = "http")]
pub(crate) fn refused_http(
    origin: Origin<'_>,
    parts: &http::request::Parts,
    status: http::StatusCode,
    why: Why,
    reason: Option<&str>,
) {
    let [protocol, network] = origin.transport.network();
    tracing::event!(
        target: TARGET,
        LEVEL,
        enduser.id = origin.user(),
        client.address = origin.address.map(|it| display(it.ip())),
        client.port = origin.address.map(|it| it.port()),
        network.transport = network,
        network.protocol.name = protocol,
        http.request.method = clip(parts.method.as_str()),
        url.path = clip(parts.uri.path()),
        http.response.status_code = status.as_u16(),
        outcome = "refused",
        why = why.as_str(),
        reason = reason.map(clip),
        "a request was refused"
    );
}

/// Reports a message on a byte stream that was refused.
pub(crate) fn refused(origin: Origin<'_>, why: Why, method: Option<&str>, reason: Option<&str>) {
    let [protocol, network] = origin.transport.network();
    tracing::event!(
        target: TARGET,
        LEVEL,
        enduser.id = origin.user(),
        client.address = origin.address.map(|it| display(it.ip())),
        client.port = origin.address.map(|it| it.port()),
        network.transport = network,
        network.protocol.name = protocol,
        mcp.method.name = method.map(clip),
        outcome = "refused",
        why = why.as_str(),
        reason = reason.map(clip),
        "a message was refused"
    );
}

/// Reports a connection that was refused or given up.
#[cfg(feature = "http")]
pub(crate) fn refused_connection(address: SocketAddr, why: &'static str) {
    tracing::event!(
        target: TARGET,
        LEVEL,
        client.address = %address.ip(),
        client.port = address.port(),
        network.transport = "tcp",
        outcome = "refused",
        why,
        "a connection was refused"
    );
}

/// A legacy session that was reported when it began, until it ends.
pub(crate) struct Opened {
    /// Tells sessions apart. Their ids are secret.
    pub(crate) number: u64,
    user: Option<Principal>,
    address: Option<SocketAddr>,
    transport: Transport,
    at: Instant,
    is_over: AtomicBool,
}

impl Opened {
    /// Reports the beginning of a session.
    pub(crate) fn new(origin: Origin<'_>, revision: &'static str) -> Self {
        static NUMBERS: AtomicU64 = AtomicU64::new(1);
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        let [protocol, network] = origin.transport.network();
        tracing::event!(
            target: TARGET,
            LEVEL,
            enduser.id = origin.user(),
            client.address = origin.address.map(|it| display(it.ip())),
            client.port = origin.address.map(|it| it.port()),
            network.transport = network,
            network.protocol.name = protocol,
            mcp.protocol.version = revision,
            session = number,
            "a session began"
        );
        let Origin { principal, address, transport } = origin;
        let (at, is_over) = (clock::now(), AtomicBool::new(false));
        Self { number, user: principal.cloned(), address, transport, at, is_over }
    }

    /// Reports its end, once.
    pub(crate) fn end(&self, why: &'static str) {
        if self.is_over.swap(true, Ordering::AcqRel) {
            return;
        }
        let (address, transport) = (self.address, self.transport);
        let origin = Origin { principal: self.user.as_ref(), address, transport };
        let [protocol, network] = origin.transport.network();
        tracing::event!(
            target: TARGET,
            LEVEL,
            enduser.id = origin.user(),
            client.address = origin.address.map(|it| display(it.ip())),
            client.port = origin.address.map(|it| it.port()),
            network.transport = network,
            network.protocol.name = protocol,
            session = self.number,
            why,
            duration = self.at.elapsed().as_secs_f64(),
            "a session ended"
        );
    }
}

/// A session that nobody ended ends with its server.
impl Drop for Opened {
    fn drop(&mut self) {
        self.end("stopped");
    }
}

/// The beginning of a text that a peer chose.
pub(super) fn clip(text: &str) -> &str {
    let mut end = text.len().min(LONGEST);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
