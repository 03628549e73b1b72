//! The HTTP half of a tap: a reverse proxy that passes requests, responses and streams as they are.
//!
//! Bodies are passed on as they come and never collected. Headers pass, except those between two
//! hops; `Host` names the server, and the server is asked not to compress, so that what it says can
//! be observed. Requests of foreign web pages are rejected here, because the server can no longer
//! recognise them by `Host`.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bowline_proto::http::{Access, Fields};
use bowline_web::{Web, WebError};
use bytes::Bytes;
use http::header::{ACCEPT_ENCODING, CONNECTION, CONTENT_TYPE, HOST};
use http::uri::{Authority, Scheme};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, Uri};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};

use crate::fault::{Fate, Faults};
use crate::observe::{Channel, Framing, Observer, Watch};
use crate::redact::{HIDDEN, is_secret_header, url as redacted};
use crate::session_file::{HttpHead, Line, LineKind, Way};

/// Headers that are meant for the next hop only.
const HOP_BY_HOP: [&str; 8] = [
    "connection",
    "keep-alive",
    "proxy-connection",
    "proxy-authenticate",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// The most connections; further ones wait to be accepted.
const CONNECTIONS: usize = 1_024;
/// How long to wait after a connection that could not be accepted.
const PAUSE: Duration = Duration::from_millis(100);
/// The longest body that is read of a request that is rejected on purpose.
const LONGEST_REJECTED: usize = 64 << 20;

/// A reverse proxy in front of one server.
pub struct Proxy {
    /// Connects to the server.
    pub web: Web,
    /// The server's scheme, host and port; paths are those of the requests.
    pub scheme: Scheme,
    /// See `scheme`.
    pub authority: Authority,
    /// Which hosts and pages may use the proxy.
    pub access: Access,
    /// Sees what passes.
    pub observer: Observer,
    /// Breaks things.
    pub faults: Option<Arc<Faults>>,
}

/// A proxy at work.
struct Serving {
    proxy: Proxy,
    exchanges: AtomicU64,
}

impl Proxy {
    /// Serves until `stop` is ready; then everything that is under way is dropped.
    pub async fn serve_until(self, listener: TcpListener, stop: impl Future<Output = ()>) {
        let serving = Arc::new(Serving { proxy: self, exchanges: AtomicU64::new(0) });
        let mut connections = tokio::task::JoinSet::new();
        let mut stop = std::pin::pin!(stop);
        loop {
            tokio::select! {
                () = &mut stop => return,
                stream = accept(&listener), if connections.len() < CONNECTIONS => {
                    connections.spawn(connection(stream, Arc::clone(&serving)));
                }
                Some(_) = connections.join_next() => {}
            }
        }
    }
}

/// The next connection. Errors pass: of one connection that is gone already, or of files that run
/// out for a while.
async fn accept(listener: &TcpListener) -> TcpStream {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                // A reader that waits for an event must not wait for the next one. A connection
                // that does not take this is gone, as the first read will tell.
                let _ = stream.set_nodelay(true);
                return stream;
            }
            Err(error) => {
                tracing::debug!(%error, "a connection was not accepted");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

async fn connection(stream: TcpStream, serving: Arc<Serving>) {
    let service = service_fn(move |request| {
        let serving = Arc::clone(&serving);
        async move { serving.answer(request).await }
    });
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder.timer(TokioTimer::new());
    // A connection that ends in an error is over, which is all there is to know.
    let _ = builder.serve_connection(TokioIo::new(stream), service).await;
}

/// Why a connection is broken off.
#[derive(Debug, thiserror::Error)]
#[error("broken off on purpose")]
struct BrokenOff;

impl Serving {
    /// # Errors
    /// When the connection must break instead of answering.
    async fn answer(&self, request: Request<Incoming>) -> Result<Response<Passed>, BrokenOff> {
        let authority = request.uri().authority().map(Authority::as_str);
        let fields = Fields::read(request.headers());
        let checked = self.proxy.access.check(authority, &fields);
        let target = match checked {
            Ok(_) => self.target(request.uri()).map_err(|it| (StatusCode::BAD_REQUEST, it)),
            Err(denied) => Err((StatusCode::FORBIDDEN, denied.to_string())),
        };
        let exchange = self.exchanges.fetch_add(1, Ordering::Relaxed) + 1;
        let about = About {
            exchange,
            method: request.method().to_string(),
            url: target.as_ref().unwrap_or_else(|_| request.uri()).to_string(),
        };
        self.note(Way::Sent, &about, None, request.headers());
        let request = match target {
            Ok(target) => self.outward(request, target, exchange),
            Err((status, problem)) => {
                let response = plain(status, &problem);
                self.proxy.observer.fault(format!("rejected request #{exchange}: {problem}"));
                self.note(Way::Received, &about, Some(status), response.headers());
                return Ok(response);
            }
        };
        if let Some(status) = self.proxy.faults.as_ref().and_then(|faults| faults.status()) {
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::SERVICE_UNAVAILABLE);
            return Ok(self.reject(request, &about, status).await);
        }
        match self.proxy.web.forward(request).await {
            Ok(response) => self.inward(response, &about).await,
            Err(error) => {
                let text = format!(
                    "cannot reach the server: {}",
                    bowline_proto::causes::with_causes(&error)
                );
                self.proxy.observer.fault(text.clone());
                let is_late = matches!(error, WebError::TimedOut { .. });
                let late = StatusCode::GATEWAY_TIMEOUT;
                Ok(plain(if is_late { late } else { StatusCode::BAD_GATEWAY }, &text))
            }
        }
    }

    /// Rejects a request on purpose. Its body is read first: a client that is still sending would
    /// see a broken connection instead of the status.
    async fn reject(
        &self,
        request: Request<Passed>,
        about: &About,
        status: StatusCode,
    ) -> Response<Passed> {
        let (mut body, mut length) = (request.into_body(), 0);
        while let Some(Ok(frame)) =
            std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await
        {
            length += frame.data_ref().map_or(0, Bytes::len);
            if length > LONGEST_REJECTED {
                break;
            }
        }
        drop(body);
        self.proxy.observer.fault(format!(
            "rejected request #{} with {} on purpose",
            about.exchange,
            status.as_str()
        ));
        let response = plain(status, "injected by bowline tap --fault");
        self.note(Way::Received, about, Some(status), response.headers());
        response
    }

    /// The URL at the server.
    fn target(&self, uri: &Uri) -> Result<Uri, String> {
        let mut parts = uri.clone().into_parts();
        parts.scheme = Some(self.proxy.scheme.clone());
        parts.authority = Some(self.proxy.authority.clone());
        Uri::from_parts(parts).map_err(|error| error.to_string())
    }

    /// The request as the server gets it.
    fn outward(&self, request: Request<Incoming>, target: Uri, exchange: u64) -> Request<Passed> {
        let (mut head, body) = request.into_parts();
        head.uri = target;
        head.version = http::Version::HTTP_11;
        strip(&mut head.headers);
        head.headers.remove(HOST);
        head.headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        let body = Passed {
            body: Source::Client(body),
            watch: Some(self.watch(Way::Sent, exchange, Framing::Whole)),
            is_broken: false,
        };
        Request::from_parts(head, body)
    }

    /// The response as the client gets it.
    async fn inward(
        &self,
        response: Response<bowline_web::Body>,
        about: &About,
    ) -> Result<Response<Passed>, BrokenOff> {
        let (mut head, body) = response.into_parts();
        self.note(Way::Received, about, Some(head.status), &head.headers);
        strip(&mut head.headers);
        let is_stream = head.headers.get(CONTENT_TYPE).is_some_and(|value| {
            value.as_bytes().to_ascii_lowercase().starts_with(b"text/event-stream")
        });
        let mut is_broken = false;
        match self.proxy.faults.as_ref().map(|faults| faults.next()) {
            None => {}
            Some(Fate::Passes(delay)) => {
                tokio::time::sleep(delay.unwrap_or_default()).await;
            }
            Some(Fate::IsDropped) => {
                self.proxy
                    .observer
                    .fault(format!("dropped response #{} on purpose", about.exchange));
                return Err(BrokenOff);
            }
            Some(Fate::IsCut) => {
                self.proxy
                    .observer
                    .fault(format!("broke response #{} off on purpose", about.exchange));
                is_broken = true;
            }
        }
        let framing = if is_stream { Framing::Events } else { Framing::Whole };
        let watch = Some(self.watch(Way::Received, about.exchange, framing));
        Ok(Response::from_parts(head, Passed { body: Source::Server(body), watch, is_broken }))
    }

    fn watch(&self, way: Way, exchange: u64, framing: Framing) -> Watch {
        self.proxy.observer.watch(Channel { way: Some(way), exchange, framing })
    }

    fn note(&self, way: Way, about: &About, status: Option<StatusCode>, headers: &HeaderMap) {
        let shown = headers.iter().map(|(name, value)| {
            let is_secret = value.is_sensitive() || is_secret_header(name.as_str());
            let value =
                if is_secret { HIDDEN.into() } else { String::from_utf8_lossy(value.as_bytes()) };
            (name.as_str().to_owned(), value.into_owned())
        });
        let head = HttpHead {
            exchange: about.exchange,
            method: about.method.clone(),
            url: redacted(&about.url),
            status: status.map(|status| status.as_u16()),
            headers: shown.collect(),
        };
        let (kind, direction, http) = (LineKind::Http, Some(way), Some(head));
        self.proxy.observer.note(Line { kind, direction, http, ..Line::default() });
    }
}

/// One exchange.
struct About {
    exchange: u64,
    method: String,
    url: String,
}

/// Removes what is meant for one hop, and what `Connection` names.
fn strip(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in named {
        headers.remove(name);
    }
    for name in HOP_BY_HOP {
        headers.remove(name);
    }
}

fn plain(status: StatusCode, text: &str) -> Response<Passed> {
    let body = Source::Own(Some(Bytes::from(format!("{text}\n"))));
    let mut response = Response::new(Passed { body, watch: None, is_broken: false });
    *response.status_mut() = status;
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

/// A body that passes, watched.
struct Passed {
    body: Source,
    watch: Option<Watch>,
    /// Whether it breaks off after its first bytes.
    is_broken: bool,
}

enum Source {
    Client(Incoming),
    Server(bowline_web::Body),
    Own(Option<Bytes>),
}

/// Why a body broke off.
type Problem = Box<dyn std::error::Error + Send + Sync>;

impl Body for Passed {
    type Data = Bytes;
    type Error = Problem;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Problem>>> {
        let frame = match &mut self.body {
            Source::Client(body) => Pin::new(body).poll_frame(cx).map_err(Problem::from),
            Source::Server(body) => Pin::new(body).poll_frame(cx).map_err(Problem::from),
            Source::Own(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
        };
        if let Poll::Ready(Some(Ok(frame))) = &frame
            && let (Some(bytes), Some(watch)) = (frame.data_ref(), &self.watch)
        {
            watch.bytes(bytes);
            if self.is_broken {
                return Poll::Ready(Some(Err(BrokenOff.into())));
            }
        }
        if matches!(frame, Poll::Ready(None | Some(Err(_)))) {
            self.watch = None;
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        match &self.body {
            Source::Client(body) => body.is_end_stream(),
            Source::Server(body) => body.is_end_stream(),
            Source::Own(bytes) => bytes.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.body {
            Source::Client(body) => body.size_hint(),
            Source::Server(body) => body.size_hint(),
            Source::Own(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
        }
    }
}
