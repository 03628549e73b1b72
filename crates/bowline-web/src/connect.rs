//! From a URL to a connection: reach, proxy, TCP and TLS, within one deadline.

use std::convert::Infallible;
use std::fmt;
use std::future::{Future, Ready, ready};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::Name;
use hyper_util::client::legacy::connect::proxy::{SocksV5, Tunnel};
use hyper_util::client::proxy::matcher::Intercept;
use hyper_util::rt::TokioIo;
use tokio::io::DuplexStream;
use tower_service::Service;

use crate::error::{CONNECTING, Cause};
use crate::proxy::Route;
use crate::stream::{Io, Stream};
use crate::tls::Tls;
use crate::{Origin, Reach, WebError};

/// Opens connections.
#[derive(Clone)]
pub(crate) struct Connector {
    pub(crate) reach: Arc<Reach>,
    pub(crate) route: Arc<Route>,
    pub(crate) tls: Tls,
    pub(crate) timeout: Duration,
    pub(crate) in_memory: Option<InMemory>,
}

/// Opens connections to a server in this process.
#[derive(Clone)]
pub(crate) struct InMemory(pub(crate) Arc<dyn Fn() -> DuplexStream + Send + Sync>);

impl fmt::Debug for InMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("InMemory")
    }
}

type Opening<T, E> = Pin<Box<dyn Future<Output = Result<T, E>> + Send>>;

impl Service<Uri> for Connector {
    type Response = Stream;
    type Error = WebError;
    type Future = Opening<Stream, WebError>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), WebError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let connector = self.clone();
        Box::pin(async move {
            let origin = Origin::of(&uri).map_err(WebError::unusable(&uri))?;
            let late = WebError::TimedOut {
                host: origin.authority(),
                what: CONNECTING,
                after: connector.timeout,
            };
            tokio::time::timeout(connector.timeout, connector.open(&uri, &origin))
                .await
                .unwrap_or(Err(late))
        })
    }
}

impl Connector {
    async fn open(&self, uri: &Uri, origin: &Origin) -> Result<Stream, WebError> {
        if let Some(InMemory(open)) = &self.in_memory {
            return self.finish(origin, Box::new(open())).await;
        }
        let Some(proxy) = self.route.proxy_for(uri, origin) else {
            let addresses = self.reach.resolve(origin).await?;
            let io = dial(addresses, self.timeout)
                .await
                .map_err(|source| WebError::Connect { host: origin.authority(), source })?;
            return self.finish(origin, io).await;
        };
        self.reach.check_behind_proxy(origin).await?;
        let failed = |source| WebError::Proxy {
            host: origin.authority(),
            proxy: proxy.uri().authority().map_or_else(String::new, ToString::to_string),
            source,
        };
        let is_socks = proxy.uri().scheme_str().is_some_and(|scheme| scheme.starts_with("socks"));
        if !origin.is_https && !is_socks {
            let io = self.reach_proxy(&proxy).await.map_err(failed)?;
            return Ok(Stream { io: TokioIo::new(io), is_to_proxy: true, is_http2: false });
        }
        let io = self.tunnel(&proxy, origin).await.map_err(failed)?;
        self.finish(origin, io).await
    }

    /// Performs the TLS handshake if the URL is `https`.
    async fn finish(&self, origin: &Origin, io: Box<dyn Io>) -> Result<Stream, WebError> {
        if !origin.is_https {
            return Ok(Stream { io: TokioIo::new(io), is_to_proxy: false, is_http2: false });
        }
        let secret = self
            .tls
            .with_host(&origin.host.bare(), io)
            .await
            .map_err(|source| WebError::Tls { host: origin.authority(), source })?;
        let is_http2 = secret.is_http2;
        Ok(Stream { io: TokioIo::new(secret.io), is_to_proxy: false, is_http2 })
    }

    /// A connection to the host through the proxy.
    async fn tunnel(&self, proxy: &Intercept, origin: &Origin) -> Result<Box<dyn Io>, Cause> {
        // The host as it was checked, however the URL spells it.
        let destination: Uri = format!("https://{}/", origin.authority()).parse().map_err(cause)?;
        let way = ToProxy { connector: self.clone(), proxy: proxy.clone() };
        let io = match proxy.uri().scheme_str() {
            Some(scheme @ ("socks5" | "socks5h")) => {
                let mut socks =
                    SocksV5::new(proxy.uri().clone(), way).local_dns(scheme == "socks5");
                if let Some((user, password)) = proxy.raw_auth() {
                    socks = socks.with_auth(user.to_owned(), password.to_owned());
                }
                socks.call(destination).await.map_err(cause)?
            }
            Some("http" | "https") => {
                let mut tunnel = Tunnel::new(proxy.uri().clone(), way);
                if let Some(credentials) = proxy.basic_auth() {
                    tunnel = tunnel.with_auth(credentials.clone());
                }
                tunnel.call(destination).await.map_err(cause)?
            }
            _ => {
                return Err(cause(std::io::Error::other(
                    "unsupported scheme; expected http, https, socks5 or socks5h",
                )));
            }
        };
        Ok(io.into_inner())
    }

    /// A connection to the proxy itself. The proxy was configured, not named by a peer, so it may
    /// be anywhere.
    async fn reach_proxy(&self, proxy: &Intercept) -> Result<Box<dyn Io>, Cause> {
        let uri = proxy.uri();
        let host = uri.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        let standard_port = match uri.scheme_str() {
            Some("https") => 443,
            Some("http") => 80,
            _ => 1080,
        };
        let port = uri.port_u16().unwrap_or(standard_port);
        let addresses =
            tokio::net::lookup_host((host.as_str(), port)).await.map_err(cause)?.collect();
        let io = dial(addresses, self.timeout).await?;
        match uri.scheme_str() {
            Some("https") => Ok(self.tls.with_proxy(&host, io).await?.io),
            _ => Ok(io),
        }
    }
}

/// Connects to the proxy on behalf of a tunnel.
#[derive(Clone)]
struct ToProxy {
    connector: Connector,
    proxy: Intercept,
}

impl Service<Uri> for ToProxy {
    type Response = TokioIo<Box<dyn Io>>;
    type Error = Cause;
    type Future = Opening<Self::Response, Cause>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Cause>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let Self { connector, proxy } = self.clone();
        Box::pin(async move { connector.reach_proxy(&proxy).await.map(TokioIo::new) })
    }
}

/// Connects to the first address that accepts, trying IPv6 and IPv4 at nearly the same time.
async fn dial(addresses: Vec<SocketAddr>, timeout: Duration) -> Result<Box<dyn Io>, Cause> {
    let mut tcp = HttpConnector::new_with_resolver(Resolved(addresses));
    tcp.set_connect_timeout(Some(timeout));
    tcp.set_keepalive(Some(KEEP_ALIVE));
    tcp.set_nodelay(true);
    // Not the URL: these addresses are the ones that were checked.
    let stream = tcp.call(Uri::from_static("http://checked.invalid/")).await.map_err(cause)?;
    Ok(Box::new(stream.into_inner()))
}

/// Silence after which the system probes whether the peer is still there.
const KEEP_ALIVE: Duration = Duration::from_secs(30);

/// A resolver that returns addresses that are known already.
#[derive(Clone)]
struct Resolved(Vec<SocketAddr>);

impl Service<Name> for Resolved {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Name) -> Self::Future {
        ready(Ok(self.0.clone().into_iter()))
    }
}

fn cause(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Cause {
    Arc::from(error.into())
}
