//! Settings for serving over HTTP, and their bounds.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

#[cfg(feature = "auth")]
use bowline_auth::verify::Guard;
use bowline_proto::http::{Access, AccessError};
use http::request::Parts;

use super::service::HttpService;
#[cfg(feature = "tls")]
use super::tls::Tls;
use crate::{BuildError, Principal, ServeError, Server};

/// What a server is like over HTTP.
///
/// ```no_run
/// # async fn run(server: bowline::Server) -> Result<(), Box<dyn std::error::Error>> {
/// server.http().allow_host("mcp.example.com")?.serve("0.0.0.0:8080").await?;
/// # Ok(())
/// # }
/// ```
#[must_use = "settings do nothing until they are served"]
pub struct Http {
    pub(super) server: Server,
    pub(super) path: String,
    pub(super) access: Access,
    pub(super) limits: HttpLimits,
    pub(super) has_cors: bool,
    pub(super) has_sse: bool,
    pub(super) has_sessions: bool,
    pub(super) identify: Option<Identify>,
    #[cfg(feature = "auth")]
    pub(super) guard: Option<Guard>,
    #[cfg(feature = "tls")]
    pub(super) tls: Option<Tls>,
}

/// Tells who sends a request.
pub(super) type Identify = Arc<dyn Fn(&Parts) -> Option<Principal> + Send + Sync>;

/// What HTTP clients may send, hold open or make a server remember.
#[derive(Debug, Clone)]
pub struct HttpLimits {
    /// The longest body of a request, in bytes: 4 MiB. A longer one is refused with 413.
    pub body: usize,
    /// How long a body may pause while it is sent: 30 seconds. All of it may take ten times that.
    pub body_idle: Duration,
    /// How long a connection may wait for the head of a request, the first or the next one, and
    /// how long the handshake of `https` may take: 10 seconds. HTTP/2 only waits for the first.
    pub head: Duration,
    /// The longest head of a request, in bytes: 64 KiB.
    pub head_length: usize,
    /// Connections at a time: 10,000. Further ones wait to be accepted.
    pub connections: usize,
    /// Legacy sessions at a time: 20,000. Further ones are refused with 503.
    pub sessions: usize,
    /// How long a legacy session is kept without a request: 30 minutes; but one minute while its
    /// handshake is not complete.
    pub session_idle: Duration,
    /// Listening streams at a time: 10,000. Further ones are refused with 503.
    pub streams: usize,
    /// How often a silent stream says that it is alive: every 15 seconds.
    pub keep_alive: Duration,
    /// How long a connection is kept whose client takes nothing in: 30 seconds. On Linux only.
    pub unread: Duration,
}

impl Default for HttpLimits {
    fn default() -> Self {
        Self {
            body: 4 << 20,
            body_idle: Duration::from_secs(30),
            head: Duration::from_secs(10),
            head_length: 64 << 10,
            connections: 10_000,
            sessions: 20_000,
            session_idle: Duration::from_secs(30 * 60),
            streams: 10_000,
            keep_alive: Duration::from_secs(15),
            unread: Duration::from_secs(30),
        }
    }
}

impl Http {
    pub(super) fn new(server: Server) -> Self {
        Self {
            server,
            path: "/mcp".to_owned(),
            access: Access::new(),
            limits: HttpLimits::default(),
            has_cors: false,
            has_sse: true,
            has_sessions: true,
            identify: None,
            #[cfg(feature = "auth")]
            guard: None,
            #[cfg(feature = "tls")]
            tls: None,
        }
    }

    /// Another path than `/mcp`.
    pub fn path(mut self, path: impl Into<String>) -> Self {
        self.path = path.into();
        self
    }

    /// Lets in requests that are sent to this name, `host` or `host:port`, besides loopback.
    ///
    /// # Errors
    /// When it is no name.
    pub fn allow_host(mut self, host: &str) -> Result<Self, AccessError> {
        self.access = self.access.with_host(host)?;
        Ok(self)
    }

    /// Lets in requests from pages of this origin, such as `https://app.example.com`.
    ///
    /// # Errors
    /// When it is no origin.
    pub fn allow_origin(mut self, origin: &str) -> Result<Self, AccessError> {
        self.access = self.access.with_origin(origin)?;
        Ok(self)
    }

    /// Lets in requests to any name. Only behind a proxy that checks it.
    pub fn allow_any_host(mut self) -> Self {
        self.access = self.access.with_any_host();
        self
    }

    /// Lets pages of the allowed origins read the answers (CORS). For browsers only; without it
    /// they keep what they get from their pages.
    pub fn cors(mut self) -> Self {
        self.has_cors = true;
        self
    }

    /// Leaves out the two paths of HTTP+SSE, which only 2024-11-05 has.
    pub fn without_sse(mut self) -> Self {
        self.has_sse = false;
        self
    }

    /// Serves legacy clients without sessions: each request for itself. Handlers cannot ask them
    /// anything, and they hear of no changes.
    pub fn without_sessions(mut self) -> Self {
        self.has_sessions = false;
        self
    }

    /// Other bounds than the defaults.
    pub fn limits(mut self, limits: HttpLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Tells who sends a request, from its head. Sessions and request states are bound to it.
    pub fn identify(
        mut self,
        identify: impl Fn(&Parts) -> Option<Principal> + Send + Sync + 'static,
    ) -> Self {
        self.identify = Some(Arc::new(identify));
        self
    }

    /// Lets in nobody without a token that the guard finds good, and serves the metadata that lead
    /// clients to one. Requests may be sent to the host of the guard's resource, as if it had been
    /// given to [`Http::allow_host`].
    ///
    /// Handlers find out who calls by [`Caller::principal`](crate::Caller::principal); sessions and
    /// request states are bound to it. [`Http::identify`] is not asked then.
    ///
    /// ```no_run
    /// use bowline::http::auth::{Guard, JwtVerifier};
    ///
    /// # async fn run(server: bowline::Server) -> Result<(), Box<dyn std::error::Error>> {
    /// let tokens = JwtVerifier::new("https://login.example.com")?;
    /// let guard = Guard::new("https://mcp.example.com/mcp", tokens)?;
    /// server.http().require_auth(guard).serve("0.0.0.0:8080").await?;
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(feature = "auth")]
    pub fn require_auth(mut self, guard: Guard) -> Self {
        // A host that no request can name needs no letting in.
        if let Ok(access) = self.access.clone().with_host(guard.authority()) {
            self.access = access;
        }
        self.guard = Some(guard);
        self
    }

    /// Serves `https` with this certificate: a [`Tls`], or a
    /// [`rustls::ServerConfig`](super::rustls::ServerConfig).
    #[cfg(feature = "tls")]
    pub fn tls(mut self, tls: impl Into<Tls>) -> Self {
        self.tls = Some(tls.into());
        self
    }

    /// The service itself, for another framework or for a test.
    ///
    /// # Errors
    /// When something is wrong with a part of the server.
    pub fn into_service(self) -> Result<HttpService, BuildError> {
        HttpService::new(self)
    }

    /// Serves on an address, such as `127.0.0.1:8080`, until the process is told to stop.
    ///
    /// # Errors
    /// When something is wrong with a part of the server, or the address cannot be listened on.
    pub async fn serve(self, address: &str) -> Result<(), ServeError> {
        let listener = tokio::net::TcpListener::bind(address).await?;
        self.serve_on(listener).await
    }
}

impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http").field("path", &self.path).finish_non_exhaustive()
    }
}
