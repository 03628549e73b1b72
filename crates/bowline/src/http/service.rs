//! The service: from an HTTP request to its response.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bowline_proto::http::{Access, Fields, Refusal, SessionId, check_accept, check_content_type};
use bowline_proto::revision::Era;
use bowline_proto::session::{Claim, Class, Facts, Kind, Rules, Sessions, Transport, classify};
use bowline_proto::wire::Message;
use bytes::Bytes;
use http::header::ORIGIN;
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use http_body::Body as HttpBody;

use super::admit::{Head, Remembered};
use super::body::Body;
use super::cors;
use super::options::{Http, HttpLimits, Identify};
use super::reply::{self, Reply};
use super::request_body::read_body;
use super::sessions::SessionTable;
use super::sse::SseTable;
use crate::BuildError;
use crate::server::Core;

/// An MCP server as an HTTP service. Cheap to clone.
///
/// It is a `tower` service and a `hyper` service; or call [`HttpService::handle`].
#[derive(Clone)]
pub struct HttpService {
    pub(super) inner: Arc<Inner>,
}

/// What all requests share.
pub(super) struct Inner {
    pub(super) core: Arc<Core>,
    pub(super) path: String,
    pub(super) access: Access,
    pub(super) limits: HttpLimits,
    /// For requests that come through another framework, without a connection of ours.
    remembered: Remembered,
    pub(super) sessions: SessionTable,
    pub(super) sse: Option<SseTable>,
    pub(super) streams: Arc<AtomicUsize>,
    pub(super) tasks: Mutex<tokio::task::JoinSet<()>>,
    has_sessions: bool,
    has_cors: bool,
    pub(super) identify: Option<Identify>,
    #[cfg(feature = "auth")]
    pub(super) guard: Option<bowline_auth::verify::Guard>,
    /// Read by every request, and so separate from the channel that others wait on.
    is_stopping: AtomicBool,
    stopping: tokio::sync::watch::Sender<bool>,
}

impl HttpService {
    pub(super) fn new(http: Http) -> Result<Self, BuildError> {
        let core = http.server.build()?;
        #[cfg(feature = "auth")]
        let is_guarded = http.identify.is_some() || http.guard.is_some();
        #[cfg(not(feature = "auth"))]
        let is_guarded = http.identify.is_some();
        if let (false, Some((kind, name))) =
            (is_guarded, core.registry.tables().first_with_scopes())
        {
            return Err(BuildError::Unguarded { kind, name });
        }
        let speaks_legacy = core.offer.enabled().newest(Era::Legacy).is_some();
        let inner = Inner {
            core,
            path: http.path,
            access: http.access,
            remembered: Remembered::default(),
            sessions: SessionTable::new(http.limits.sessions, http.limits.session_idle),
            sse: (http.has_sse && speaks_legacy).then(SseTable::default),
            streams: Arc::default(),
            tasks: Mutex::default(),
            has_cors: http.has_cors,
            has_sessions: http.has_sessions && speaks_legacy,
            limits: http.limits,
            identify: http.identify,
            #[cfg(feature = "auth")]
            guard: http.guard,
            is_stopping: AtomicBool::new(false),
            stopping: tokio::sync::watch::Sender::new(false),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Answers one request.
    ///
    /// # Cancel safety
    /// Dropping the future, or the body of the response, cancels a modern request. A legacy request
    /// continues, and its answer is kept until the client reconnects.
    pub async fn handle<B>(&self, request: Request<B>) -> Response<Body>
    where
        B: HttpBody,
    {
        let (parts, body) = request.into_parts();
        let reply = self.answer(&parts, body, &self.inner.remembered).await;
        reply.into_response(parts.headers, |body| body)
    }

    /// Answers one request; `remembered` belongs to its connection.
    pub(super) async fn answer<B: HttpBody>(
        &self,
        parts: &Parts,
        body: B,
        remembered: &Remembered,
    ) -> Reply {
        #[cfg(feature = "auth")]
        if let Some(reply) = self.describe(parts) {
            return reply;
        }
        let fields = Fields::read(&parts.headers);
        if fields.length() > self.inner.limits.head_length {
            return reply::status(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
        }
        if let Err(denied) = self.let_in(parts, &fields, remembered) {
            return reply::refusal(&Refusal::Access(denied));
        }
        if !self.inner.has_cors {
            return self.route(parts, &fields, remembered, body).await;
        }
        let mut reply = if cors::is_preflight(parts) {
            cors::preflight(parts)
        } else {
            self.route(parts, &fields, remembered, body).await
        };
        cors::allow(&mut reply, parts.headers.get(ORIGIN));
        reply
    }

    /// Answers a request that may reach the server.
    async fn route<B: HttpBody>(
        &self,
        parts: &Parts,
        fields: &Fields<'_>,
        remembered: &Remembered,
        body: B,
    ) -> Reply {
        let path = parts.uri.path();
        if path == "/health" {
            return if self.is_stopping() {
                reply::busy("the server is shutting down")
            } else {
                reply::status(StatusCode::OK)
            };
        }
        if self.is_stopping() {
            return reply::busy("the server is shutting down");
        }
        // Frameworks that nest a service strip the prefix from the path.
        let is_endpoint = path == self.inner.path || path == "/" || path.is_empty();
        let is_sse = self.inner.sse.is_some() && matches!(path, "/sse" | "/messages");
        if !is_endpoint && !is_sse {
            return reply::status(StatusCode::NOT_FOUND);
        }
        let head = match self.authenticate(parts).await {
            Ok(principal) => &Head { parts, fields, remembered, principal },
            Err(reply) => return reply,
        };
        match (&parts.method, path) {
            (&Method::GET, "/sse") if is_sse => self.open_sse(head),
            (&Method::POST, "/messages") if is_sse => Box::pin(self.post_sse(head, body)).await,
            _ if !is_endpoint => reply::status(StatusCode::NOT_FOUND),
            (&Method::POST, _) => self.post(head, body).await,
            (&Method::GET, _) if self.inner.has_sessions => self.get_legacy(head),
            (&Method::DELETE, _) if self.inner.has_sessions => self.delete_legacy(head),
            _ if self.inner.has_sessions => {
                reply::refusal(&Refusal::Method { allow: "GET, POST, DELETE" })
            }
            _ => reply::refusal(&Refusal::Method { allow: "POST" }),
        }
    }

    async fn post<B: HttpBody>(&self, head: &Head<'_>, body: B) -> Reply {
        let checked = check_content_type(head.fields)
            .and_then(|()| check_accept(&head.parts.method, head.fields));
        if let Err(refusal) = checked {
            return reply::refusal(&refusal);
        }
        match read_body(body, self.inner.limits.body, self.inner.limits.body_idle).await {
            Ok(frame) => self.post_frame(head, &frame).await,
            Err(reply) => reply,
        }
    }

    async fn post_frame(&self, head: &Head<'_>, frame: &Bytes) -> Reply {
        if frame.trim_ascii_start().first() == Some(&b'[') {
            // Boxed, like HTTP+SSE, so that rare requests do not enlarge the future of all others.
            return Box::pin(self.post_batch(head, frame)).await;
        }
        let parsed = Message::parse(frame);
        let message = match &parsed {
            Ok(message) => message,
            Err(error) => {
                let answer = error.to_error_object();
                return reply::error(StatusCode::BAD_REQUEST, error.id.as_ref(), &answer);
            }
        };
        let (class, id) = match self.classify(head.fields, message) {
            Ok(classified) => classified,
            Err(refusal) => return reply::refusal(&refusal),
        };
        match (class, message) {
            (Class::Refused(refusal), _) => {
                let status = StatusCode::from_u16(refusal.status.as_u16());
                let id = match message {
                    Message::Request(request) => Some(&request.id),
                    _ => None,
                };
                reply::error(status.unwrap_or(StatusCode::BAD_REQUEST), id, &refusal.error)
            }
            (Class::Modern(revision), Message::Request(request)) => {
                self.serve_modern(head, request, revision).await
            }
            // Over HTTP, modern notifications have no effect.
            (Class::Modern(_), _) => reply::status(StatusCode::ACCEPTED),
            (Class::LegacyInitialize, Message::Request(request)) => self.initialize(head, request),
            (Class::LegacyStateless(revision), Message::Request(request)) => {
                self.serve_stateless(head, request, revision).await
            }
            (Class::LegacySession, message) => self.post_legacy(head, id, message).await,
            (Class::LegacyInitialize | Class::LegacyStateless(_), _) => {
                reply::status(StatusCode::ACCEPTED)
            }
        }
    }

    /// The class of a message, and the session it names.
    fn classify(
        &self,
        fields: &Fields<'_>,
        message: &Message<'_>,
    ) -> Result<(Class, Option<SessionId>), Refusal> {
        let id = fields.session_id()?;
        let facts = facts(fields, Kind::of(message), Claim::of_message(message));
        Ok((classify(&self.rules(), &facts), id))
    }

    pub(super) fn rules(&self) -> Rules {
        let sessions = if self.inner.has_sessions { Sessions::Required } else { Sessions::None };
        Rules { offer: self.inner.core.offer, sessions }
    }

    /// Rejects new requests and ends listening streams.
    pub fn stop(&self) {
        self.inner.is_stopping.store(true, Ordering::Release);
        self.inner.stopping.send_replace(true);
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.inner.is_stopping.load(Ordering::Acquire)
    }

    /// Removes idle sessions and closed sinks.
    pub(super) fn sweep(&self) {
        self.inner.sessions.sweep();
        self.inner.core.registry.bus().prune();
    }

    /// Ready when the service is told to stop.
    pub(super) fn stopped(&self) -> Stopped {
        let mut stopping = self.inner.stopping.subscribe();
        Box::pin(async move {
            // An error means that the service was dropped.
            let _ = stopping.wait_for(|stopping| *stopping).await;
        })
    }

    /// Spawns a task that outlives its request, owned by the service.
    pub(super) fn spawn(
        &self,
        work: impl Future<Output = ()> + Send + 'static,
    ) -> tokio::task::AbortHandle {
        let mut tasks = self.inner.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(work)
    }
}

/// The facts of a message that came alone.
pub(super) fn facts<'a>(fields: &Fields<'a>, kind: Kind<'a>, claim: Claim<'a>) -> Facts<'a> {
    // A header that is not text does not name a revision, and neither does `?`.
    let header = fields.revision().map(|value| value.to_str().unwrap_or("?"));
    let has_session_id = fields.has_session_id();
    Facts { transport: Transport::Http, kind, claim, in_batch: false, header, has_session_id }
}

impl std::fmt::Debug for HttpService {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpService").field("path", &self.inner.path).finish_non_exhaustive()
    }
}

/// Ready when a stream must end.
pub(super) type Stopped = Pin<Box<dyn Future<Output = ()> + Send>>;

/// One of a limited number of slots, released when it is dropped.
pub(super) struct Slot(Arc<AtomicUsize>);

impl Slot {
    pub(super) fn take(taken: &Arc<AtomicUsize>, limit: usize) -> Option<Self> {
        let next = |count| (count < limit).then_some(count + 1);
        let slot = taken.fetch_update(Ordering::AcqRel, Ordering::Acquire, next);
        slot.ok().map(|_| Self(Arc::clone(taken)))
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

type Answering = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

impl<B> tower_service::Service<Request<B>> for HttpService
where
    B: HttpBody + Send + 'static,
    B::Data: Send,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Answering;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Answering {
        let service = self.clone();
        Box::pin(async move { Ok(service.handle(request).await) })
    }
}

impl<B> hyper::service::Service<Request<B>> for HttpService
where
    B: HttpBody + Send + 'static,
    B::Data: Send,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Answering;

    fn call(&self, request: Request<B>) -> Answering {
        let service = self.clone();
        Box::pin(async move { Ok(service.handle(request).await) })
    }
}
