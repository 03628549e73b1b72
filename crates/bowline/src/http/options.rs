//! Settings and limits for serving over HTTP.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

#[cfg(feature = "auth")]
use bowline_auth::verify::Guard;
use bowline_proto::http::{Access, AccessError};
use http::request::Parts;

use super::service::HttpService;
#[cfg(feature = "tls")]
use super::tls::Tls;
use crate::server::account::places::{Kind, Most};
use crate::{BuildError, Principal, ServeError, Server};

/// Settings for serving over HTTP.
///
/// ```no_run
/// # async fn run(server: bowline::Server) -> Result<(), Box<dyn std::error::Error>> {
/// server.http().allow_host("mcp.example.com")?.serve("0.0.0.0:8080").await?;
/// # Ok(())
/// # }
/// ```
///
/// Guides: inside [axum](crate::guide::axum), and [who may call](crate::guide::verifiers).
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
    pub(super) peer_addr: Option<PeerAddr>,
    pub(super) mounts: Option<super::mount::Mounts>,
    pub(super) drain: Option<Duration>,
    #[cfg(feature = "auth")]
    pub(super) guard: Option<Guard>,
    #[cfg(feature = "tls")]
    pub(super) tls: Option<Tls>,
}

/// Identifies the sender of a request.
pub(super) type Identify = Arc<dyn Fn(&Parts) -> Option<Principal> + Send + Sync>;

/// Finds the address that a request came from.
pub(super) type PeerAddr = Arc<dyn Fn(&Parts) -> Option<SocketAddr> + Send + Sync>;

/// How much HTTP clients may send, hold open or make a server remember.
#[derive(Debug, Clone)]
pub struct HttpLimits {
    /// The longest body of a request, in bytes: 4 MiB. A longer one is rejected with 413. It must
    /// fit into three quarters of [`Limits::memory_per_party`](crate::Limits::memory_per_party).
    pub body: usize,
    /// How long a body may pause: 30 seconds. The whole body may take ten times as long.
    pub body_idle: Duration,
    /// How long a connection may wait for the head of a request, and how long a TLS handshake may
    /// take: 10 seconds. With HTTP/2 this applies to the first request only.
    pub head: Duration,
    /// How long an HTTP/2 connection may stay without a request after the first one: 2 minutes.
    /// Then it is closed; a request that is on its way at that moment is still served.
    pub idle: Duration,
    /// The longest head of a request, in bytes: 64 KiB.
    pub head_length: usize,
    /// Connections at a time: 10,000, or as many as the limit on open files has room for (see
    /// [`raise_file_limit`](super::raise_file_limit)). A few more are accepted for one request
    /// each: `/health` is answered, and anything else is rejected with 503.
    pub connections: usize,
    /// Connections of one address at a time: 2,500, or a quarter of what there is room for.
    /// Further ones are closed with 503. A proxy in front of the server is one address, whatever
    /// [`Http::peer_addr`] says.
    pub connections_per_party: usize,
    /// Legacy sessions at a time: 20,000. A further one replaces the oldest whose handshake is not
    /// complete. If there is none, it is rejected with 503. In a [fleet](crate::fleet), where any
    /// node can make a session again, one that nobody uses at the moment makes room as well.
    pub sessions: usize,
    /// Legacy sessions of one party at a time: 5,000. Further ones are rejected with 503, unless
    /// one makes room as above in a fleet.
    ///
    /// A party is an authenticated principal or, where nobody is known, an address. Behind a proxy
    /// all callers have one address, unless [`Http::peer_addr`] finds that of the caller.
    pub sessions_per_party: usize,
    /// Running legacy calls whose clients have disconnected: 1,000. Clients may reconnect for the
    /// answers; further calls are cancelled when their clients disconnect.
    pub abandoned: usize,
    /// How long a legacy session may be idle: 30 minutes, or one minute before its handshake is
    /// complete.
    pub session_idle: Duration,
    /// Listening streams at a time: 10,000. Further ones are rejected with 503.
    pub streams: usize,
    /// Listening streams of one party at a time: 2,500. Further ones are rejected with 503.
    pub streams_per_party: usize,
    /// Calls that wait for something at a time: 10,000. Further ones are rejected with 503;
    /// requests that are answered at once, such as lists, are not.
    pub calls: usize,
    /// The same for those of one party: 2,500.
    pub calls_per_party: usize,
    /// How often an idle stream sends a keep-alive: every 15 seconds.
    pub keep_alive: Duration,
    /// How long a client may stop reading before its connection is closed: 30 seconds. Linux only.
    pub unread: Duration,
}

impl Default for HttpLimits {
    fn default() -> Self {
        Self {
            body: 4 << 20,
            body_idle: Duration::from_secs(30),
            head: Duration::from_secs(10),
            idle: Duration::from_secs(120),
            head_length: 64 << 10,
            connections: 10_000,
            connections_per_party: 2_500,
            sessions: 20_000,
            sessions_per_party: 5_000,
            abandoned: 1_000,
            session_idle: Duration::from_secs(30 * 60),
            streams: 10_000,
            streams_per_party: 2_500,
            calls: 10_000,
            calls_per_party: 2_500,
            keep_alive: Duration::from_secs(15),
            unread: Duration::from_secs(30),
        }
    }
}

/// How long a connection of the reserve may wait for the head of its only request.
const EXTRA: Duration = Duration::from_secs(1);

impl HttpLimits {
    /// How long a connection may wait for the head of its first request.
    pub(super) fn first(&self, is_extra: bool) -> Duration {
        if is_extra { EXTRA.min(self.head) } else { self.head }
    }

    /// How many of a kind there may be.
    pub(super) fn most(&self, kind: Kind) -> Most {
        let (all, each) = match kind {
            Kind::Connections => (self.connections, self.connections_per_party),
            Kind::Sessions => (self.sessions, self.sessions_per_party),
            Kind::Streams => (self.streams, self.streams_per_party),
            Kind::Calls => (self.calls, self.calls_per_party),
        };
        Most { kind, all, each }
    }
}

impl From<Server> for Http {
    fn from(server: Server) -> Self {
        Self::new(server)
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
            peer_addr: None,
            mounts: None,
            drain: None,
            #[cfg(feature = "auth")]
            guard: None,
            #[cfg(feature = "tls")]
            tls: None,
        }
    }

    /// Replaces the path `/mcp`. [`HttpService`] has the table of all paths.
    pub fn path(mut self, path: impl Into<String>) -> Self {
        self.path = path.into();
        if !self.path.starts_with('/') {
            self.path.insert(0, '/');
        }
        self
    }

    /// Admits requests to this name, `host` or `host:port`, besides loopback.
    ///
    /// # Errors
    /// When it is not a valid name.
    pub fn allow_host(mut self, host: &str) -> Result<Self, AccessError> {
        self.access = self.access.with_host(host)?;
        Ok(self)
    }

    /// Admits requests from pages of this origin, such as `https://app.example.com`.
    ///
    /// # Errors
    /// When it is not a valid origin.
    pub fn allow_origin(mut self, origin: &str) -> Result<Self, AccessError> {
        self.access = self.access.with_origin(origin)?;
        Ok(self)
    }

    /// Admits requests to any name. Only for use behind a proxy that checks it.
    pub fn allow_any_host(mut self) -> Self {
        self.access = self.access.with_any_host();
        self
    }

    /// Sends CORS headers, so that browsers let pages of the allowed origins read the responses.
    pub fn cors(mut self) -> Self {
        self.has_cors = true;
        self
    }

    /// Disables the two paths of HTTP+SSE, which only 2024-11-05 uses.
    pub fn without_sse(mut self) -> Self {
        self.has_sse = false;
        self
    }

    /// Serves legacy clients without sessions: each request stands alone. Handlers cannot ask these
    /// clients anything, and changes are not reported to them.
    pub fn without_sessions(mut self) -> Self {
        self.has_sessions = false;
        self
    }

    /// Sets how long the server goes on after a stop signal while `/ready` is answered with 503
    /// already, so that load balancers send their requests elsewhere: 5 seconds in a
    /// [fleet](crate::fleet), otherwise none. It has to be longer than a balancer takes to notice.
    pub fn drain(mut self, time: Duration) -> Self {
        self.drain = Some(time);
        self
    }

    /// Replaces the default limits.
    pub fn limits(mut self, limits: HttpLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Identifies the sender of a request by its head. Sessions and request states are bound to the
    /// sender, and tools with scopes need those of its principal.
    ///
    /// ```
    /// use bowline::Principal;
    ///
    /// # let server = bowline::Server::new("known", "1.0.0");
    /// // A proxy in front of the server has authenticated the user.
    /// let http = server.http().identify(|parts| {
    ///     let user = parts.headers.get("x-forwarded-user")?.to_str().ok()?;
    ///     Some(Principal::new(user).with_scopes(["notes:read"]))
    /// });
    /// ```
    pub fn identify(
        mut self,
        identify: impl Fn(&Parts) -> Option<Principal> + Send + Sync + 'static,
    ) -> Self {
        self.identify = Some(Arc::new(identify));
        self
    }

    /// Finds the address that a request came from, for
    /// [`Context::peer_addr`](crate::Context::peer_addr), for the audit, and for what counts
    /// against callers without a principal. Behind a proxy, all of them are one party without it,
    /// so that one of them can use up what is for all. By default it is that of the connection,
    /// which another framework or a proxy in front of the server does not tell:
    ///
    /// ```
    /// use std::net::SocketAddr;
    /// use axum::extract::ConnectInfo;
    ///
    /// # let server = bowline::Server::new("addresses", "1.0.0");
    /// // In axum, with `app.into_make_service_with_connect_info::<SocketAddr>()`.
    /// let http = server.http().peer_addr(|parts| {
    ///     parts.extensions.get::<ConnectInfo<SocketAddr>>().map(|info| info.0)
    /// });
    /// ```
    pub fn peer_addr(
        mut self,
        find: impl Fn(&Parts) -> Option<SocketAddr> + Send + Sync + 'static,
    ) -> Self {
        self.peer_addr = Some(Arc::new(find));
        self
    }

    /// Rejects requests without a valid token, and serves the metadata that tells clients where to
    /// get one. Requests to the host of the guard's resource are admitted, as with
    /// [`Http::allow_host`].
    ///
    /// Handlers see the sender as [`principal`](crate::Profile::principal) of the caller; sessions
    /// and request states are bound to it. [`Http::identify`] is then ignored.
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
        // A host that is not valid cannot be in a request.
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

    /// Replaces whatever authenticates callers.
    #[cfg(all(feature = "client-http", feature = "testing"))]
    pub(crate) fn known_as(self, principal: Principal) -> Self {
        #[cfg(feature = "auth")]
        let unguarded = Self { guard: None, ..self };
        #[cfg(not(feature = "auth"))]
        let unguarded = self;
        unguarded.identify(move |_| Some(principal.clone()))
    }

    /// Lets callers in without a principal, if nothing authenticates them.
    #[cfg(all(feature = "client-http", feature = "testing"))]
    pub(crate) fn or_anonymous(self) -> Self {
        #[cfg(feature = "auth")]
        let is_guarded = self.guard.is_some();
        #[cfg(not(feature = "auth"))]
        let is_guarded = false;
        if is_guarded || self.identify.is_some() { self } else { self.identify(|_| None) }
    }

    /// Where clients find it.
    #[cfg(all(feature = "client-http", feature = "testing"))]
    pub(crate) fn endpoint_path(&self) -> &str {
        &self.path
    }

    /// The service itself, for another framework or for a test.
    ///
    /// # Errors
    /// When a part of the server is invalid.
    pub fn into_service(self) -> Result<HttpService, BuildError> {
        HttpService::new(self, true)
    }

    /// Serves on an address, such as `127.0.0.1:8080`, until the process receives a stop signal.
    ///
    /// # Errors
    /// When a part of the server is invalid, or the address cannot be bound.
    pub async fn serve(self, address: &str) -> Result<(), ServeError> {
        let listener = tokio::net::TcpListener::bind(address)
            .await
            .map_err(|source| ServeError::Listen { address: address.to_owned(), source })?;
        self.serve_on(listener).await
    }
}

impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http").field("path", &self.path).finish_non_exhaustive()
    }
}
