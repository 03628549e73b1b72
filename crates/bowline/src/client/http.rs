//! Servers behind URLs: Streamable HTTP of every revision, and HTTP+SSE of 2024-11-05.
//!
//! Each call is its own exchange, driven by the task that waits for it: dropping the call closes
//! the exchange, which in the modern era tells the server to stop. The exchange that reads an
//! answer to its own call returns it. Answers that arrive elsewhere find their call by id, since a
//! legacy server may send them on another stream.

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

/// A URL, and how to connect to it.
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
    /// The first problem; reported on connecting.
    problem: Option<String>,
}

impl Endpoint {
    /// An `http` or `https` URL.
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
                // Such a header is most often a key.
                value.set_sensitive(true);
                self.headers.append(name, value);
            }
            _ => {
                let problem = || format!("header {name:?} has an invalid name or value");
                self.problem.get_or_insert_with(problem);
            }
        }
        self
    }

    /// Sends a bearer token with every request.
    pub fn bearer(self, token: &str) -> Self {
        self.header("authorization", &format!("Bearer {token}"))
    }

    /// Logs in when the server asks for it. With the feature `client-auth`, `client::auth::OAuth`
    /// supports every flow of the protocol.
    pub fn authorize(mut self, authorize: impl Authorize + 'static) -> Self {
        self.authorize = Some(Arc::new(authorize));
        self
    }

    /// Trusts a certificate, in PEM, in addition to the system's: an authority's, or the server's
    /// own, even if it is self-signed.
    pub fn ca_pem(mut self, pem: &[u8]) -> Self {
        self.web = self.web.ca_pem(pem);
        self
    }

    /// **Insecure:** accepts every certificate, whoever it belongs to. Anyone between this client
    /// and the server can read and change everything, tokens included. Prefer
    /// [`ca_pem`](Self::ca_pem).
    pub fn danger_accept_any_certificate(mut self) -> Self {
        self.web = self.web.danger_accept_any_certificate();
        self
    }

    /// Connects to a server in this process instead of the network.
    #[cfg(all(feature = "http", feature = "testing"))]
    pub(crate) fn in_memory(
        mut self,
        open: impl Fn() -> tokio::io::DuplexStream + Send + Sync + 'static,
    ) -> Self {
        self.web = self.web.in_memory(open);
        self
    }

    /// Sets the proxy; by default, the one from the environment.
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

/// A URL without the parts that may be secret.
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
    /// Held while a new session is being opened.
    renewing: tokio::sync::Mutex<()>,
    /// Whether a task keeps trying to open a new session.
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
        let uri: Uri = url.parse().map_err(|error| wrong(format!("not a URL: {error}")))?;
        if !matches!(uri.scheme_str(), Some("http" | "https")) || uri.host().is_none() {
            return Err(wrong("a URL must start with http:// or https:// and a host".to_owned()));
        }
        let agent = format!("{}/{}", shared.profile.info.name, shared.profile.info.version);
        if let Ok(agent) = HeaderValue::from_str(&agent) {
            headers.entry(header::USER_AGENT).or_insert(agent);
        }
        // Every call has its own deadline.
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

    /// Identifies the server.
    fn key(&self) -> String {
        self.url.to_string()
    }

    /// Finds out which revision the server speaks, and makes calls possible.
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
                Err(OpenError::Target("there is no process to restart".to_owned()))
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
            Err(OpenError::Target("the client was closed while connecting".to_owned()))
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
    // A courtesy: the server drops the session sooner than by its timeout.
    let _ = timeout(shared.profile.limits.exit_grace, link.delete_session()).await;
    finish(&shared, CloseReason::Asked).await;
}
