//! Servers behind URLs: Streamable HTTP of every revision, and HTTP+SSE of 2024-11-05.
//!
//! Each call is an exchange of its own, driven by the task that waits for it: dropping the call
//! closes the exchange, which in the modern era is how a server is told to stop. Answers find
//! their call by id wherever they arrive, since a legacy server may deliver them on another stream
//! than it was asked on.

mod events;
mod exchange;
mod request;
mod session;

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use bowline_proto::revision::Revisions;
use bowline_proto::session::{Connect, ConnectError, Transport};
pub use bowline_web::{Authorize, AuthorizeError, Next, Proxy};
use bowline_web::{Web, WebBuilder};
use http::{HeaderMap, HeaderName, HeaderValue, Uri, header};
use tokio::sync::{oneshot, watch};
use tokio::time::timeout;

use self::session::Session;
use super::error::{CloseReason, OpenError};
use super::handshake::{Search, Stop};
use super::shared::{Link, Shared};
use super::state::Phase;
use super::supervise::{asked_to_close, finish};
use super::wire::HttpWire;
use crate::with_causes;

/// A URL, and how to talk to it.
///
/// ```
/// use bowline::client::http::Endpoint;
///
/// let endpoint = Endpoint::new("https://example.com/mcp").bearer("token").header("X-Team", "a");
/// ```
#[must_use]
pub struct Endpoint {
    url: String,
    headers: HeaderMap,
    authorize: Option<Arc<dyn Authorize>>,
    web: WebBuilder,
    /// The first thing that was wrong; told when it is connected to.
    problem: Option<String>,
}

impl Endpoint {
    /// A URL, `http` or `https`.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            headers: HeaderMap::new(),
            authorize: None,
            web: Web::builder(),
            problem: None,
        }
    }

    /// Sends a header with every request.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        match (name.parse::<HeaderName>(), HeaderValue::from_str(value)) {
            (Ok(name), Ok(mut value)) => {
                // What a user adds is most often a key.
                value.set_sensitive(true);
                self.headers.append(name, value);
            }
            _ => {
                let problem = || format!("header {name:?} cannot be sent");
                self.problem.get_or_insert_with(problem);
            }
        }
        self
    }

    /// Sends a token with every request.
    pub fn bearer(self, token: &str) -> Self {
        self.header("authorization", &format!("Bearer {token}"))
    }

    /// Logs in when the server asks for it. With the feature `client-auth`, `client::auth::OAuth`
    /// does that in every way the protocol has.
    pub fn authorize(mut self, authorize: impl Authorize + 'static) -> Self {
        self.authorize = Some(Arc::new(authorize));
        self
    }

    /// Trusts a certificate authority, in PEM, beside those of the system.
    pub fn ca_pem(mut self, pem: &[u8]) -> Self {
        self.web = self.web.ca_pem(pem);
        self
    }

    /// Which proxy to use. By default the one that the environment names.
    pub fn proxy(mut self, proxy: Proxy) -> Self {
        self.web = self.web.proxy(proxy);
        self
    }
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint")
            .field("url", &shown(&self.url))
            .field("headers", &self.headers.keys().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

/// A URL without what may be secret in it.
fn shown(url: &str) -> &str {
    url.split(['?', '#']).next().unwrap_or_default()
}

/// A server behind a URL.
pub(super) struct HttpLink {
    web: Web,
    url: Uri,
    headers: HeaderMap,
    authorize: Option<Arc<dyn Authorize>>,
    session: Mutex<Session>,
    /// Held by whoever opens a new session.
    renewing: tokio::sync::Mutex<()>,
    /// Whether a task tries to open a new session until it succeeds.
    is_retrying: AtomicBool,
    wire: HttpWire,
}

impl HttpLink {
    pub(super) fn new(shared: &Shared, endpoint: Endpoint) -> Result<Arc<Self>, OpenError> {
        let Endpoint { url, mut headers, authorize, web, problem } = endpoint;
        let wrong = |why: String| OpenError::Target(format!("{:?}: {why}", shown(&url)));
        if let Some(problem) = problem {
            return Err(wrong(problem));
        }
        let uri: Uri = url.parse().map_err(|error| wrong(format!("no URL: {error}")))?;
        if !matches!(uri.scheme_str(), Some("http" | "https")) || uri.host().is_none() {
            return Err(wrong("a URL must start with http:// or https:// and a host".to_owned()));
        }
        let agent = format!("{}/{}", shared.profile.info.name, shared.profile.info.version);
        if let Ok(agent) = HeaderValue::from_str(&agent) {
            headers.entry(header::USER_AGENT).or_insert(agent);
        }
        // Every call keeps its own time.
        let web = web.header_timeout(None).build();
        let web = web.map_err(|error| wrong(with_causes(&error)))?;
        Ok(Arc::new(Self {
            web,
            url: uri,
            headers,
            authorize,
            session: Mutex::default(),
            renewing: tokio::sync::Mutex::default(),
            is_retrying: AtomicBool::new(false),
            wire: HttpWire::new(shared.profile.on_wire.clone()),
        }))
    }

    /// What to know the server by.
    fn key(&self) -> String {
        self.url.to_string()
    }

    /// Finds out what the server speaks, and makes calls possible.
    async fn open(self: &Arc<Self>, shared: &Arc<Shared>) -> Result<(), OpenError> {
        let profile = &shared.profile;
        let ours = profile.preference.narrow(Revisions::ALL);
        let mut connect = Connect::new(Transport::Http, ours);
        let known = profile.verdicts.find(&self.key());
        let action = connect.open(known);
        shared.enter(Phase::Initializing, None);
        let link = Link::Http(Arc::clone(self));
        match Search::new(shared, &link, &mut connect).run(action).await {
            Ok(live) => {
                profile.verdicts.remember(&self.key(), live.peer.revision);
                self.session_opened();
                shared.go_live(live);
                self.listen(shared);
                Ok(())
            }
            Err(Stop::Failed { unauthorized: Some((status, problem)), .. }) => {
                Err(OpenError::Unauthorized { status, problem })
            }
            Err(Stop::Failed { error, .. }) => {
                let is_in_the_way =
                    matches!(error, ConnectError::Unreachable(_) | ConnectError::Blocked(_));
                if known.is_some() && !is_in_the_way {
                    profile.verdicts.forget(&self.key());
                }
                Err(OpenError::Connect { error, exit: None })
            }
            Err(Stop::Respawn(_)) => {
                Err(OpenError::Target("there is no process to start again".to_owned()))
            }
        }
    }
}

/// Owns a connection over HTTP until it is closed.
pub(super) async fn run(
    shared: Arc<Shared>,
    link: Arc<HttpLink>,
    mut closing: watch::Receiver<bool>,
    opened: oneshot::Sender<Result<(), OpenError>>,
) {
    let patience = shared.profile.timeouts.connect;
    let outcome = tokio::select! {
        outcome = timeout(patience, link.open(&shared)) => {
            outcome.unwrap_or(Err(OpenError::TimedOut(patience)))
        }
        () = asked_to_close(&mut closing) => {
            Err(OpenError::Target("closed before it was open".to_owned()))
        }
    };
    if let Err(error) = outcome {
        finish(&shared, CloseReason::NotReopened(error.to_string())).await;
        let _ = opened.send(Err(error));
        return;
    }
    if opened.send(Ok(())).is_ok() {
        asked_to_close(&mut closing).await;
    }
    shared.enter(Phase::Closing, None);
    shared.go_down(&CloseReason::Asked);
    // The server forgets a session sooner if it is told; if it does not listen, it will anyway.
    let _ = timeout(shared.profile.limits.exit_grace, link.delete_session()).await;
    finish(&shared, CloseReason::Asked).await;
}
