//! The client: its settings, and sending.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::PROXY_AUTHORIZATION;
use http::{Request, Response, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::io::DuplexStream;
use tokio_rustls::rustls::client::danger::ServerCertVerifier;

use crate::body::{BoxError, Upload};
use crate::connect::{Connector, InMemory};
use crate::proxy::Route;
use crate::tls::{Basis, Tls};
use crate::{Body, Origin, Proxy, Reach, WebError};

/// An HTTP client. Cheap to clone; clones share their connections.
#[derive(Clone)]
pub struct Web {
    client: Client<Connector, Upload>,
    connector: Connector,
    header_timeout: Option<Duration>,
    limits: FetchLimits,
}

/// The settings of a [`Web`].
#[derive(Debug, Clone)]
#[must_use]
pub struct WebBuilder {
    ca_pems: Vec<Vec<u8>>,
    basis: Basis,
    proxy: Proxy,
    connect_timeout: Duration,
    header_timeout: Option<Duration>,
    limits: FetchLimits,
    reach: Reach,
    in_memory: Option<InMemory>,
}

/// The limits of [`Web::fetch`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FetchLimits {
    /// The most bytes in a body: 1 MiB.
    pub bytes: usize,
    /// The deadline for everything, from resolving the name to the last byte: 10 s.
    pub total: Duration,
}

impl Default for FetchLimits {
    fn default() -> Self {
        Self { bytes: 1 << 20, total: Duration::from_secs(10) }
    }
}

impl Web {
    /// The default settings.
    pub fn builder() -> WebBuilder {
        WebBuilder {
            ca_pems: Vec::new(),
            basis: Basis::System,
            proxy: Proxy::default(),
            connect_timeout: Duration::from_secs(10),
            header_timeout: Some(Duration::from_secs(60)),
            limits: FetchLimits::default(),
            reach: Reach::default(),
            in_memory: None,
        }
    }

    /// Sends a request. The response's body is a stream, which has no deadline.
    ///
    /// # Errors
    /// When there is no response: see [`WebError`]. An error status is a response.
    ///
    /// # Cancel safety
    /// Dropping the future or the body ends the request: the connection is closed, or with HTTP/2
    /// the stream is reset. The host may have seen the request.
    pub async fn send(&self, request: Request<Bytes>) -> Result<Response<Body>, WebError> {
        self.sending(request.map(Upload::whole)).await
    }

    /// Sends a request whose body is passed on as it comes: for proxies.
    ///
    /// # Errors
    /// As [`send`](Self::send), and when the body breaks off.
    ///
    /// # Cancel safety
    /// As [`send`](Self::send).
    pub async fn forward<B>(&self, request: Request<B>) -> Result<Response<Body>, WebError>
    where
        B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
    {
        self.sending(request.map(Upload::stream)).await
    }

    /// Boxed, because a crate that polls a future compiles everything in it: here that is a whole
    /// HTTP client, which is thus compiled once.
    fn sending(
        &self,
        request: Request<Upload>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Body>, WebError>> + Send + '_>> {
        Box::pin(self.send_once(request))
    }

    async fn send_once(&self, mut request: Request<Upload>) -> Result<Response<Body>, WebError> {
        let origin = Origin::of(request.uri()).map_err(WebError::unusable(request.uri()))?;
        let host: Arc<str> = origin.authority().into();
        // Only a proxy may see a proxy's credentials.
        request.headers_mut().remove(PROXY_AUTHORIZATION);
        if let Some(credentials) = self.connector.route.credentials(request.uri(), &origin) {
            request.headers_mut().insert(PROXY_AUTHORIZATION, credentials);
        }
        let response = self.client.request(request);
        let response = match self.header_timeout {
            None => response.await,
            Some(after) => tokio::time::timeout(after, response).await.map_err(|_| {
                WebError::TimedOut { host: host.to_string(), what: "the response", after }
            })?,
        };
        let response = response.map_err(|error| WebError::from_http(&host, error))?;
        Ok(response.map(|incoming| Body::new(incoming, host)))
    }

    /// Sends a request and collects the response, within the limits of
    /// [`fetch_limits`](WebBuilder::fetch_limits).
    ///
    /// # Errors
    /// As [`send`](Self::send), and when the response is too large or takes too long.
    pub async fn fetch(&self, request: Request<Bytes>) -> Result<Response<Bytes>, WebError> {
        let origin = Origin::of(request.uri()).map_err(WebError::unusable(request.uri()))?;
        let FetchLimits { bytes, total } = self.limits;
        let collected = async {
            let (head, body) = self.send(request).await?.into_parts();
            Ok(Response::from_parts(head, body.collect(bytes).await?))
        };
        let late = WebError::TimedOut {
            host: origin.authority(),
            what: "the whole response",
            after: total,
        };
        tokio::time::timeout(total, collected).await.unwrap_or(Err(late))
    }

    /// The proxy for requests to this URL, without its user; `None` if they go directly.
    #[must_use]
    pub fn proxy_for(&self, uri: &Uri) -> Option<String> {
        let origin = Origin::of(uri).ok()?;
        let proxy = self.connector.route.proxy_for(uri, &origin)?;
        let authority = proxy.uri().authority()?.as_str();
        Some(authority.rsplit('@').next().unwrap_or(authority).to_owned())
    }

    /// What checks the certificates of hosts, for programs that look closer at a handshake.
    ///
    /// # Errors
    /// [`WebError::Settings`] when there is no certificate to trust.
    pub fn certificate_verifier(&self) -> Result<Arc<dyn ServerCertVerifier>, WebError> {
        self.connector.tls.verifier().map_err(|source| WebError::Settings {
            what: "certificates cannot be checked",
            source: Some(source),
        })
    }

    /// A client with the same TLS, proxy and limits, another reach, and its own connections.
    #[must_use]
    pub fn with_reach(&self, reach: Reach) -> Self {
        let connector = Connector { reach: Arc::new(reach), ..self.connector.clone() };
        Self { client: client(&connector), connector, ..self.clone() }
    }
}

impl WebBuilder {
    /// Also trusts these certificates, as PEM: authorities, and certificates of hosts. A host that
    /// presents one of them is trusted even if the certificate is self-signed or says that it
    /// belongs to an authority, as those of `openssl req -x509` do. Names and dates are checked as
    /// usual; the common name counts where a certificate has no other names.
    pub fn ca_pem(mut self, pem: &[u8]) -> Self {
        self.ca_pems.push(pem.to_vec());
        self
    }

    /// Does not trust the system's certificates.
    pub fn only_given_roots(mut self) -> Self {
        self.basis = Basis::Nothing;
        self
    }

    /// **Insecure:** accepts every certificate, whoever it belongs to. Anyone between this client
    /// and the host can read and change everything, tokens included. For tests and for first looks
    /// at servers on a trusted network; [`ca_pem`](Self::ca_pem) is the safe way to trust a
    /// self-signed certificate.
    pub fn danger_accept_any_certificate(mut self) -> Self {
        self.basis = Basis::Anything;
        self
    }

    /// The proxy. By default the environment decides.
    pub fn proxy(mut self, proxy: Proxy) -> Self {
        self.proxy = proxy;
        self
    }

    /// The deadline for opening a connection, from resolving the name to the end of the TLS
    /// handshake: 10 s.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// The deadline for the head of the response, connecting included: 60 s.
    pub fn header_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.header_timeout = timeout;
        self
    }

    /// The limits of [`Web::fetch`].
    pub fn fetch_limits(mut self, limits: FetchLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Which hosts may be reached: all by default.
    pub fn reach(mut self, reach: Reach) -> Self {
        self.reach = reach;
        self
    }

    /// Connects to a server in this process instead of the network: `open` opens a connection and
    /// returns the client's end of it. There is no proxy then.
    pub fn in_memory(mut self, open: impl Fn() -> DuplexStream + Send + Sync + 'static) -> Self {
        self.in_memory = Some(InMemory(Arc::new(open)));
        self.proxy = Proxy::None;
        self
    }

    /// Builds the client. The system's certificates are read when they are first needed.
    ///
    /// # Errors
    /// [`WebError::Settings`] when the certificates or the proxy's URL are not valid.
    pub fn build(self) -> Result<Web, WebError> {
        let connector = Connector {
            reach: Arc::new(self.reach),
            route: Arc::new(Route::new(&self.proxy)?),
            tls: Tls::new(&self.ca_pems, self.basis)?,
            timeout: self.connect_timeout,
            in_memory: self.in_memory,
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

fn client(connector: &Connector) -> Client<Connector, Upload> {
    Client::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE)
        .pool_max_idle_per_host(IDLE_PER_HOST)
        .http1_max_buf_size(MAX_HEAD)
        .http2_keep_alive_interval(IDLE)
        .build(connector.clone())
}

/// How long an unused connection stays open, and how often an idle HTTP/2 connection is pinged.
const IDLE: Duration = Duration::from_secs(30);
const IDLE_PER_HOST: usize = 8;
/// The most bytes in the head of a response.
const MAX_HEAD: usize = 128 << 10;
