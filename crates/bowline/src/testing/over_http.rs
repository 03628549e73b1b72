//! A server in memory, reached over HTTP: what a handler sees of a request, and what a client sees
//! of a refusal, is what it would be on a network.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Mutex, PoisonError};

use http::{Extensions, Request};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::DuplexStream;
use tokio::task::JoinSet;

use crate::client::http::Endpoint;
use crate::http::{Http, HttpService};
use crate::{BuildError, Principal};

/// A server whose test client connects over HTTP. See [`over_http`].
#[must_use = "a server does nothing until a client connects to it"]
#[derive(Debug)]
pub struct OverHttp {
    http: Http,
    headers: Vec<(String, String)>,
    extensions: Extensions,
}

/// Has the client connect over HTTP: with headers, with a principal, and with the scopes of that
/// principal only. There is no socket, so it works while the clock is paused. Needs the features
/// `http` and `client-http`.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use bowline::{Principal, Server, Tool, testing};
/// use serde_json::json;
///
/// let server = || {
///     let delete = Tool::new("delete", || async { "deleted" }).scopes(["write"]);
///     Server::new("files", "1.0.0").with(delete)
/// };
/// let ada = Principal::new("ada").with_scopes(["write"]);
/// let client = testing::connect(testing::over_http(server()).principal(ada)).await?;
/// assert_eq!(client.call_tool("delete", json!({})).text().await?, "deleted");
///
/// let bob = Principal::new("bob");
/// let client = testing::connect(testing::over_http(server()).principal(bob)).await?;
/// let refused = client.call_tool("delete", json!({})).await.unwrap_err();
/// assert!(refused.to_string().contains("write"));
/// # Ok(())
/// # }
/// ```
pub fn over_http(server: impl Into<Http>) -> OverHttp {
    OverHttp { http: server.into(), headers: Vec::new(), extensions: Extensions::new() }
}

impl OverHttp {
    /// Sets who the client is, whatever would authenticate it otherwise.
    pub fn principal(mut self, principal: Principal) -> Self {
        self.http = self.http.known_as(principal);
        self
    }

    /// Sends a header with every request.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Adds a value to the extensions of every request, as a layer of another framework would.
    pub fn extension<T: Clone + Send + Sync + 'static>(mut self, value: T) -> Self {
        self.extensions.insert(value);
        self
    }

    /// Sets the address that requests seem to come from.
    pub fn peer_addr(mut self, address: SocketAddr) -> Self {
        self.http = self.http.peer_addr(move |_| Some(address));
        self
    }

    /// Where a client connects to.
    pub(crate) fn into_endpoint(self) -> Result<Endpoint, BuildError> {
        // Clients remember what a URL speaks, so each server has one of its own.
        static LAST: AtomicU16 = AtomicU16::new(0);
        let port = LAST.fetch_add(1, Ordering::Relaxed).max(1);
        let http = self.http.or_anonymous();
        let url = format!("http://localhost:{port}{}", http.endpoint_path());
        let connections = Connections {
            service: http.into_service()?,
            extensions: self.extensions,
            tasks: Mutex::default(),
        };
        let endpoint = Endpoint::new(url).in_memory(move || connections.open());
        let headers = self.headers.iter();
        Ok(headers.fold(endpoint, |endpoint, (name, value)| endpoint.header(name, value)))
    }
}

/// The connections of one client. They end with it.
struct Connections {
    service: HttpService,
    extensions: Extensions,
    tasks: Mutex<JoinSet<()>>,
}

impl Connections {
    /// Opens a connection; returns the client's end.
    fn open(&self) -> DuplexStream {
        let (ours, theirs) = tokio::io::duplex(64 << 10);
        let (service, extensions) = (self.service.clone(), self.extensions.clone());
        let answer = service_fn(move |mut request: Request<Incoming>| {
            request.extensions_mut().extend(extensions.clone());
            let service = service.clone();
            async move { Ok::<_, Infallible>(service.handle(request).await) }
        });
        let connection = http1::Builder::new().serve_connection(TokioIo::new(theirs), answer);
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection in memory failed");
            }
        });
        ours
    }
}
