//! The service: from an HTTP request to its response.

use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bowline_proto::http::{Access, Fields, Refusal, SessionId, check_accept, check_content_type};
use bowline_proto::revision::Era;
use bowline_proto::session::{Claim, Class, Facts, Kind, Rules, Sessions, Transport, classify};
use bowline_proto::wire::Message;
use bytes::Bytes;
use http::header::ORIGIN;
use http::{Method, Request, Response, StatusCode};
use http_body::Body as HttpBody;

use super::admit::Head;
use super::body::Body;
use super::cors;
use super::options::{Http, HttpLimits, Identify, PeerAddr};
use super::paths::Place;
use super::remembered::Remembered;
use super::reply::{self, Reply};
use super::request_body::read_body;
use super::sessions::SessionTable;
use super::sse::SseTable;
use super::stop::Stop;
use super::taken::Taken;
use crate::BuildError;
use crate::server::audit::Why;
use crate::server::{Core, HttpHead};

/// A body that takes long to parse, and whose answer may take as long to write.
const LONG: usize = 64 << 10;

/// An MCP server as an HTTP service. Cheap to clone.
///
/// It is a `tower` service, at home in `axum`, and a `hyper` service; or call
/// [`HttpService::handle`].
///
/// ```no_run
/// # async fn run(server: bowline::Server) -> Result<(), Box<dyn std::error::Error>> {
/// let mcp = server.http().into_service()?;
/// let app = axum::Router::new().nest_service("/mcp", mcp);
/// let listener = tokio::net::TcpListener::bind("127.0.0.1:8080").await?;
/// axum::serve(listener, app).with_graceful_shutdown(bowline::stop_signal()).await?;
/// # Ok(())
/// # }
/// ```
///
/// # Paths
///
/// | path | methods | answers |
/// |---|---|---|
/// | `/mcp`, or [`Http::path`]; `/` | POST; GET and DELETE for legacy sessions | the protocol |
/// | `/sse`, `/messages` | GET, POST | HTTP+SSE of 2024-11-05, unless [`Http::without_sse`] |
/// | `/.well-known/oauth-protected-resource`, alone and with the path of the resource | GET | where to get a token, with `Http::require_auth` |
/// | `/.well-known/bowline-fleet` | POST | letters of other nodes, in a [fleet](crate::fleet) |
/// | `/health` | any | 200, or 503 while it stops |
/// | `/ready` | any | the same; also 503 while it [drains](Http::drain), and while the store of a [fleet](crate::fleet) does not answer |
///
/// The last two are answered whatever the `Host` of the request is.
///
/// Any other path is answered with 404 and this list. Within another framework the first two rows
/// and letters may have any prefix: `nest_service("/api", mcp)` serves `/api/mcp` and `/api/sse`,
/// `nest_service("/tools", mcp)` serves `/tools` itself, and `route_service("/direct/mcp", mcp)`
/// works, too. [`HttpService::paths`] lists them for routing one by one; a token's metadata is
/// found only at its own path, without a prefix.
///
/// # Shutdown
///
/// A graceful shutdown waits for every response, and a client may listen for hours. So listening
/// streams end when the process receives SIGTERM or SIGINT: on Linux whoever catches the signal,
/// elsewhere if that is [`stop_signal`](crate::stop_signal). For a shutdown that begins in another
/// way there is [`HttpService::stop_on`]. Clients see a clean end.
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
    pub(super) remembered: Remembered,
    pub(super) sessions: SessionTable,
    pub(super) sse: Option<SseTable>,
    /// Legacy calls whose client has disconnected.
    pub(super) abandoned: Arc<AtomicUsize>,
    pub(super) tasks: Mutex<tokio::task::JoinSet<()>>,
    has_sessions: bool,
    has_cors: bool,
    pub(super) identify: Option<Identify>,
    #[cfg(feature = "auth")]
    pub(super) guard: Option<bowline_auth::verify::Guard>,
    pub(super) stop: Stop,
    /// Whether another framework serves it.
    pub(super) is_embedded: bool,
    pub(super) peer_addr: Option<PeerAddr>,
    pub(super) mounts: Option<super::mount::Mounts>,
    /// Letters of other nodes.
    pub(super) taken: Taken,
}

impl HttpService {
    pub(super) fn new(http: Http, is_embedded: bool) -> Result<Self, BuildError> {
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
            abandoned: Arc::default(),
            tasks: Mutex::default(),
            has_cors: http.has_cors,
            has_sessions: http.has_sessions && speaks_legacy,
            limits: http.limits,
            identify: http.identify,
            #[cfg(feature = "auth")]
            guard: http.guard,
            stop: Stop::default(),
            is_embedded,
            peer_addr: http.peer_addr,
            mounts: http.mounts,
            taken: Taken::default(),
        };
        let inner = Arc::new(inner);
        super::kept::join(&inner);
        if let Some(joined) = inner.core.fleet.as_ref().filter(|_| is_embedded) {
            joined.fleet.listens_at(None);
        }
        Ok(Self { inner })
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
        let remembered = &self.inner.remembered;
        let shared = remembered.share(self.head(parts, None));
        let reply = match self.probe_by_any_name(&shared.parts) {
            Some(reply) => reply,
            None => self.answer(&shared, body, remembered).await,
        };
        reply.into_response(remembered.take_back(shared), |body| body)
    }

    /// Answers one request; `remembered` belongs to its connection.
    pub(super) async fn answer<B: HttpBody>(
        &self,
        shared: &Arc<HttpHead>,
        body: B,
        remembered: &Remembered,
    ) -> Reply {
        let parts = &shared.parts;
        #[cfg(feature = "auth")]
        if let Some(reply) = self.describe(parts) {
            return reply;
        }
        let fields = Fields::read(&parts.headers);
        let mut head = Head::new(shared, &fields, remembered);
        if fields.length() > self.inner.limits.head_length {
            let reply = reply::status(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
            return head.audited(reply.because(Why::Head));
        }
        if let Err(reply) = self.hold_head(&mut head) {
            return head.audited(reply);
        }
        if let Some(joined) = &self.inner.core.fleet
            && self.place(parts.uri.path()) == Place::Letters
        {
            // Other nodes prove who they are by the seal; they need no name that is allowed.
            return Box::pin(self.handle_letter(&head, joined, body)).await;
        }
        if let Err(denied) = self.let_in(parts, &fields, remembered) {
            Box::pin(self.take_turn_refused(&head)).await;
            return head.audited(reply::refusal(&Refusal::Access(denied)));
        }
        if let Some(mounted) = self.mounted(parts.uri.path()) {
            return mounted.answer(shared, body).await;
        }
        if !self.inner.has_cors {
            return self.route(head, body).await;
        }
        let mut reply = if cors::is_preflight(parts) {
            cors::preflight(parts)
        } else {
            self.route(head, body).await
        };
        cors::allow(&mut reply, parts.headers.get(ORIGIN));
        reply
    }

    /// Answers a request that may reach the server, once it is known who sent it.
    async fn route<B: HttpBody>(&self, mut head: Head<'_>, body: B) -> Reply {
        let parts = head.parts;
        // Of a service that another one has mounted.
        if let Some(reply) = self.probe(parts.uri.path()) {
            return reply;
        }
        let place = self.place(parts.uri.path());
        if self.is_stopping() {
            let reply = reply::busy("the server is shutting down").because(Why::Stopping);
            return head.audited(reply);
        }
        if place == Place::Nowhere {
            let reply = self.nowhere(parts.uri.path()).because(Why::Head);
            return head.audited(reply);
        }
        head.principal = match self.authenticate(&head).await {
            Ok(principal) => principal,
            Err(reply) => {
                Box::pin(self.take_turn_refused(&head)).await;
                return head.audited(reply);
            }
        };
        if let Err(reply) = self.take_turn(&mut head).await {
            return head.audited(reply);
        }
        let head = &head;
        let only = |allow| reply::refusal(&Refusal::Method { allow });
        let reply = match (&parts.method, place) {
            (&Method::GET, Place::Sse) => self.open_sse(head),
            (_, Place::Sse) => reply::refusal_in_words(&Refusal::Method { allow: "GET" }),
            (&Method::POST, Place::Messages) => Box::pin(self.post_sse(head, body)).await,
            (_, Place::Messages) => only("POST"),
            (&Method::POST, _) => self.post(head, body).await,
            (&Method::GET, _) if self.inner.has_sessions => Box::pin(self.get_legacy(head)).await,
            (&Method::DELETE, _) if self.inner.has_sessions => {
                Box::pin(self.delete_legacy(head)).await
            }
            _ if self.inner.has_sessions => only("GET, POST, DELETE"),
            _ => only("POST"),
        };
        head.audited(reply).counted(|| self.account(head))
    }

    async fn post<B: HttpBody>(&self, head: &Head<'_>, body: B) -> Reply {
        let checked = check_content_type(head.fields)
            .and_then(|()| check_accept(&head.parts.method, head.fields));
        if let Err(refusal) = checked {
            return reply::refusal(&refusal);
        }
        match read_body(body, &self.inner.limits, self.account(head)).await {
            Ok((frame, reserved)) => {
                head.shared.hold(reserved);
                if frame.len() >= LONG {
                    let account = self.account(head);
                    return Box::pin(account.work(self.post_frame(head, &frame))).await;
                }
                self.post_frame(head, &frame).await
            }
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
                let reply = reply::error(StatusCode::BAD_REQUEST, error.id.as_ref(), &answer);
                return reply.because(Why::Message);
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
                let status = status.unwrap_or(StatusCode::BAD_REQUEST);
                reply::error(status, id, &refusal.error).because(Why::Message)
            }
            (Class::Modern(revision), Message::Request(request)) => {
                self.serve_modern(head, request, revision).await
            }
            // Over HTTP, modern notifications have no effect.
            (Class::Modern(_), _) => reply::status(StatusCode::ACCEPTED),
            (Class::LegacyInitialize, Message::Request(request)) => {
                Box::pin(self.initialize(head, request)).await
            }
            (Class::LegacyStateless(revision), Message::Request(request)) => {
                self.serve_stateless(head, request, revision).await
            }
            (Class::LegacySession, message) => self.post_legacy(head, id, message, frame).await,
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

    /// Removes idle sessions and closed sinks.
    pub(super) fn sweep(&self) {
        self.inner.sessions.sweep();
        self.inner.core.registry.bus().prune();
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
