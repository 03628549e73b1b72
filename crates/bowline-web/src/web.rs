//! The client: settings, and sending.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::PROXY_AUTHORIZATION;
use http::{Request, Response, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};

use crate::body::Whole;
use crate::connect::Connector;
use crate::proxy::Route;
use crate::tls::Tls;
use crate::{Body, Origin, Proxy, Reach, WebError};

/// An HTTP client. Cheap to clone; clones share their connections.
#[derive(Clone)]
pub struct Web {
    client: Client<Connector, Whole>,
    connector: Connector,
    header_timeout: Option<Duration>,
    limits: FetchLimits,
}

/// The settings of a [`Web`].
#[derive(Debug, Clone)]
#[must_use]
pub struct WebBuilder {
    ca_pems: Vec<Vec<u8>>,
    with_system_roots: bool,
    proxy: Proxy,
    connect_timeout: Duration,
    header_timeout: Option<Duration>,
    limits: FetchLimits,
    reach: Reach,
}

/// How much [`Web::fetch`] takes, and how long it waits for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FetchLimits {
    /// Most bytes in a body: 1 MiB.
    pub bytes: usize,
    /// Most time for everything, from the name of the host to the last byte: 10 s.
    pub total: Duration,
}

impl Default for FetchLimits {
    fn default() -> Self {
        Self { bytes: 1 << 20, total: Duration::from_secs(10) }
    }
}

impl Web {
    /// The settings, to begin with.
    pub fn builder() -> WebBuilder {
        WebBuilder {
            ca_pems: Vec::new(),
            with_system_roots: true,
            proxy: Proxy::default(),
            connect_timeout: Duration::from_secs(10),
            header_timeout: Some(Duration::from_secs(60)),
            limits: FetchLimits::default(),
            reach: Reach::default(),
        }
    }

    /// Sends a request; the answer's body comes as a stream, for which there is no deadline.
    ///
    /// # Errors
    /// When there is no answer: see [`WebError`]. An answer that says no is an answer.
    ///
    /// # Cancel safety
    /// Dropping the future, or the body, ends the request: the connection is closed, or with HTTP/2
    /// the stream is reset. The host may have seen it.
    pub async fn send(&self, request: Request<Bytes>) -> Result<Response<Body>, WebError> {
        let origin = Origin::of(request.uri()).map_err(WebError::unusable(request.uri()))?;
        let host: Arc<str> = origin.authority().into();
        let mut request = request.map(Whole::new);
        // Only a proxy may see what is meant for proxies.
        request.headers_mut().remove(PROXY_AUTHORIZATION);
        if let Some(credentials) = self.connector.route.credentials(request.uri(), &origin) {
            request.headers_mut().insert(PROXY_AUTHORIZATION, credentials);
        }
        let answer = self.client.request(request);
        let answer = match self.header_timeout {
            None => answer.await,
            Some(after) => tokio::time::timeout(after, answer).await.map_err(|_| {
                WebError::TimedOut { host: host.to_string(), what: "the answer", after }
            })?,
        };
        let answer = answer.map_err(|error| WebError::from_http(&host, error))?;
        Ok(answer.map(|incoming| Body::new(incoming, host)))
    }

    /// Sends a request and collects the answer, within the limits of
    /// [`fetch_limits`](WebBuilder::fetch_limits).
    ///
    /// # Errors
    /// As [`send`](Self::send), and when the answer is too large or takes too long.
    pub async fn fetch(&self, request: Request<Bytes>) -> Result<Response<Bytes>, WebError> {
        let origin = Origin::of(request.uri()).map_err(WebError::unusable(request.uri()))?;
        let FetchLimits { bytes, total } = self.limits;
        let collected = async {
            let (head, body) = self.send(request).await?.into_parts();
            Ok(Response::from_parts(head, body.collect(bytes).await?))
        };
        let late =
            WebError::TimedOut { host: origin.authority(), what: "the whole answer", after: total };
        tokio::time::timeout(total, collected).await.unwrap_or(Err(late))
    }

    /// The proxy that a request to this URL goes through, without its user; `None` when it goes
    /// straight.
    #[must_use]
    pub fn proxy_for(&self, uri: &Uri) -> Option<String> {
        let origin = Origin::of(uri).ok()?;
        let proxy = self.connector.route.proxy_for(uri, &origin)?;
        let authority = proxy.uri().authority()?.as_str();
        Some(authority.rsplit('@').next().unwrap_or(authority).to_owned())
    }

    /// The same TLS, proxy and limits, another reach, and connections of its own.
    #[must_use]
    pub fn with_reach(&self, reach: Reach) -> Self {
        let connector = Connector { reach: Arc::new(reach), ..self.connector.clone() };
        Self { client: client(&connector), connector, ..self.clone() }
    }
}

impl WebBuilder {
    /// Believes these certificates too, as PEM.
    pub fn ca_pem(mut self, pem: &[u8]) -> Self {
        self.ca_pems.push(pem.to_vec());
        self
    }

    /// Does not believe what the system believes.
    pub fn only_given_roots(mut self) -> Self {
        self.with_system_roots = false;
        self
    }

    /// Where the proxy is. As the environment says, unless told.
    pub fn proxy(mut self, proxy: Proxy) -> Self {
        self.proxy = proxy;
        self
    }

    /// Most time to open a connection, from the name to the end of the TLS handshake: 10 s.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// Most time from sending until the head of the answer has come, connecting included: 60 s.
    pub fn header_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.header_timeout = timeout;
        self
    }

    /// What [`Web::fetch`] takes.
    pub fn fetch_limits(mut self, limits: FetchLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Which hosts may be reached. All, unless told.
    pub fn reach(mut self, reach: Reach) -> Self {
        self.reach = reach;
        self
    }

    /// The client. The system's certificates are read when they are first needed.
    ///
    /// # Errors
    /// [`WebError::Settings`] when certificates or the proxy's URL cannot be used.
    pub fn build(self) -> Result<Web, WebError> {
        let connector = Connector {
            reach: Arc::new(self.reach),
            route: Arc::new(Route::new(&self.proxy)?),
            tls: Tls::new(&self.ca_pems, self.with_system_roots)?,
            timeout: self.connect_timeout,
        };
        let client = client(&connector);
        Ok(Web { client, connector, header_timeout: self.header_timeout, limits: self.limits })
    }
}

impl fmt::Debug for Web {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Web").field("reach", &self.connector.reach).finish_non_exhaustive()
    }
}

fn client(connector: &Connector) -> Client<Connector, Whole> {
    Client::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE)
        .pool_max_idle_per_host(IDLE_PER_HOST)
        .http1_max_buf_size(MAX_HEAD)
        .http2_keep_alive_interval(IDLE)
        .build(connector.clone())
}

/// Silence after which a connection that nobody uses is closed, and one in use is asked for a sign.
const IDLE: Duration = Duration::from_secs(30);
const IDLE_PER_HOST: usize = 8;
/// Most bytes in the head of an answer.
const MAX_HEAD: usize = 128 << 10;
