//! Legacy sessions: plain data without tasks, limited in number.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use bowline_proto::http::SessionId;
use bowline_proto::session::{Inbound, Lifecycle, Phase, Replay, ReplayLimits, SameId, StreamId};
use bowline_proto::sse::Event;
use bytes::Bytes;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::stream::encode_event;
use crate::server::{Call, Core, Outbox, Peer, Session, Sink, Via};
use crate::{Principal, Profile, clock, random};

/// How long a client may take between the two messages of a handshake, so that abandoned sessions
/// do not keep others out for long.
const HANDSHAKE: Duration = Duration::from_secs(60);

/// All sessions, by id.
pub(super) struct SessionTable {
    limit: usize,
    idle: Duration,
    sessions: Mutex<Sessions>,
}

#[derive(Default)]
struct Sessions {
    by_id: HashMap<SessionId, Arc<HttpSession>>,
    /// When idle sessions were last removed.
    swept: Option<Instant>,
}

/// One session.
pub(super) struct HttpSession {
    pub(super) peer: Arc<Peer>,
    pub(super) session: Arc<Session>,
    pub(super) sink: Arc<Sink>,
    state: Mutex<SessionState>,
}

/// The mutable part of a session.
pub(super) struct SessionState {
    pub(super) lifecycle: Lifecycle,
    pub(super) inbound: Inbound<InFlight>,
    pub(super) replay: Replay<Bytes>,
    /// The streams that a client is reading now.
    pub(super) live: Vec<(StreamId, Arc<Outbox>)>,
    /// The stream that belongs to no request, once it has been opened.
    pub(super) standalone: Option<StreamId>,
    used: Instant,
}

/// What it takes to stop a request in flight.
pub(super) struct InFlight {
    /// Set once the task runs.
    pub(super) abort: Arc<OnceLock<AbortHandle>>,
    pub(super) call: Arc<Call>,
    pub(super) stream: StreamId,
}

impl InFlight {
    pub(super) fn stop(&self) {
        self.call.cancel();
        if let Some(task) = self.abort.get() {
            task.abort();
        }
    }
}

impl SessionTable {
    pub(super) fn new(limit: usize, idle: Duration) -> Self {
        Self { limit, idle, sessions: Mutex::default() }
    }

    /// Opens a session; `None` if there are too many.
    pub(super) fn open(&self, session: HttpSession) -> Option<SessionId> {
        let mut sessions = self.lock();
        // Not on every attempt: scanning all sessions each time would make floods expensive.
        let soon = self.idle.min(Duration::from_secs(1));
        let is_due = sessions.swept.is_none_or(|swept| swept.elapsed() >= soon);
        if sessions.by_id.len() >= self.limit && is_due {
            sessions.sweep(self.idle);
        }
        if sessions.by_id.len() >= self.limit {
            return None;
        }
        let token = random::token();
        let id = SessionId::parse(&token).expect("hexadecimal digits are visible ASCII");
        session.session.set_id(token);
        sessions.by_id.insert(id.clone(), Arc::new(session));
        Some(id)
    }

    /// The session with this id. For other principals it does not exist.
    pub(super) fn find(
        &self,
        id: &SessionId,
        principal: Option<&Principal>,
    ) -> Option<Arc<HttpSession>> {
        let mut sessions = self.lock();
        let session =
            sessions.by_id.get(id).filter(|it| it.profile().principal.as_ref() == principal)?;
        let session = Arc::clone(session);
        if !session.lock().touch(self.idle) {
            sessions.by_id.remove(id);
            session.close("idle");
            return None;
        }
        Some(session)
    }

    /// Closes a session. Returns whether it existed for this principal.
    pub(super) fn close(&self, id: &SessionId, principal: Option<&Principal>) -> bool {
        let Some(session) = self.find(id, principal) else { return false };
        self.lock().by_id.remove(id);
        session.close("deleted");
        true
    }

    /// Removes idle sessions.
    pub(super) fn sweep(&self) {
        self.lock().sweep(self.idle);
    }

    fn lock(&self) -> MutexGuard<'_, Sessions> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sessions {
    fn sweep(&mut self, idle: Duration) {
        let now = clock::now();
        self.swept = Some(now);
        self.by_id.retain(|_, session| {
            let mut state = session.lock();
            let is_idle = state.is_idle_for(idle, now);
            if is_idle {
                drop(state);
                session.close("idle");
            } else {
                state.replay.expire(now.into_std());
            }
            !is_idle
        });
        self.by_id.shrink_to_fit();
    }
}

impl HttpSession {
    pub(super) fn new(
        core: &Arc<Core>,
        profile: Profile,
        lifecycle: Lifecycle,
        sink: Arc<Sink>,
    ) -> Self {
        let requests = core.limits.requests_in_flight;
        let session = Arc::new(Session::new());
        Self {
            peer: Peer::in_session(core, profile, Via::HTTP, &session),
            session,
            sink,
            state: Mutex::new(SessionState {
                lifecycle,
                inbound: Inbound::new(SameId::Serve, requests),
                replay: Replay::new(ReplayLimits::default()),
                live: Vec::new(),
                standalone: None,
                used: clock::now(),
            }),
        }
    }

    /// The client that opened it.
    pub(super) fn profile(&self) -> &Profile {
        &self.peer.profile
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, SessionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Publishes a frame on a stream: to the client that reads it now, and for one that resumes.
    pub(super) fn publish(&self, stream: StreamId, frame: &[u8]) {
        let mut state = self.lock();
        let event = state.replay.push(stream, Bytes::copy_from_slice(frame));
        let id = event.map(|event| event.to_string());
        let mut bytes = Vec::new();
        encode_event(&mut bytes, id.as_deref(), frame);
        state.send(stream, &bytes);
    }

    /// Opens a stream and attaches a client to it.
    pub(super) fn open_stream(&self, limit: usize) -> (StreamId, Arc<Outbox>) {
        let mut state = self.lock();
        let stream = state.replay.open();
        (stream, self.begin(&mut state, stream, limit))
    }

    /// Opens the stream that belongs to no request; `None` if a client already reads it.
    pub(super) fn open_standalone(&self, limit: usize) -> Option<(StreamId, Arc<Outbox>)> {
        let mut state = self.lock();
        let stream = match state.standalone {
            Some(stream) => stream,
            None => state.replay.open(),
        };
        if state.live.iter().any(|(live, _)| *live == stream) {
            return None;
        }
        state.standalone = Some(stream);
        Some((stream, self.begin(&mut state, stream, limit)))
    }

    /// Attaches a client to a stream that it has not read before. If its revision primes streams,
    /// the first event tells the client how to resume.
    fn begin(&self, state: &mut SessionState, stream: StreamId, limit: usize) -> Arc<Outbox> {
        let live = state.attach(stream, limit);
        if self.profile().revision.has_stream_priming() {
            let id = state.replay.last(stream).to_string();
            let event = Event { id: Some(&id), event: None, retry: Some(1_000), data: Some(b"") };
            let mut bytes = Vec::new();
            // Our ids are short, so it fits.
            let _ = event.encode(&mut bytes);
            live.try_push_bytes(&bytes);
        }
        live
    }

    /// Ends a stream.
    pub(super) fn end_stream(&self, stream: StreamId) {
        let mut state = self.lock();
        state.replay.close(clock::now().into_std(), stream);
        state.detach(stream);
    }

    /// Stops all requests and ends all streams; `why` is for the audit.
    fn close(&self, why: &'static str) {
        self.session.close(why);
        let mut state = self.lock();
        state.lifecycle.close();
        for request in state.inbound.drain() {
            request.call.disconnect();
            request.stop();
        }
        for (_, live) in state.live.drain(..) {
            live.close();
        }
    }
}

impl SessionState {
    /// Marks the session as used. Returns `false` if it had already expired.
    fn touch(&mut self, idle: Duration) -> bool {
        let now = clock::now();
        let is_idle = self.is_idle_for(idle, now);
        self.used = now;
        !is_idle
    }

    /// Whether it has been unused for too long, with no running request and no open stream.
    fn is_idle_for(&self, idle: Duration, now: Instant) -> bool {
        let idle = match self.lifecycle.phase() {
            Phase::ExpectInitialized(_) => idle.min(HANDSHAKE),
            _ => idle,
        };
        let unused = now.duration_since(self.used);
        unused > idle && self.inbound.is_empty() && self.live.is_empty()
    }

    /// Attaches a client to a stream, and detaches the previous one.
    pub(super) fn attach(&mut self, stream: StreamId, limit: usize) -> Arc<Outbox> {
        self.detach(stream);
        let live = Arc::new(Outbox::new(limit));
        self.live.push((stream, Arc::clone(&live)));
        live
    }

    pub(super) fn detach(&mut self, stream: StreamId) {
        self.live.retain(|(other, live)| {
            if *other == stream {
                live.close();
            }
            *other != stream
        });
        if self.live.is_empty() {
            self.live.shrink_to_fit();
        }
    }

    /// Sends bytes to the client of a stream. A client that does not keep up is detached; it can
    /// resume for the rest.
    fn send(&mut self, stream: StreamId, bytes: &[u8]) {
        let live = self.live.iter().find(|(other, _)| *other == stream);
        if live.is_some_and(|(_, live)| !live.try_push_bytes(bytes)) {
            self.detach(stream);
        }
    }
}
