//! Legacy sessions: plain data without tasks.

mod table;

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use bowline_proto::session::{Inbound, Lifecycle, Phase, Replay, ReplayLimits, SameId, StreamId};
use bowline_proto::sse::Event;
use bytes::Bytes;
use tokio::task::AbortHandle;
use tokio::time::Instant;

pub(super) use self::table::SessionTable;
use super::service::Slot;
use super::stream::encode_event;
use crate::fleet::Node;
use crate::server::account::places::Place;
use crate::server::account::{Reservation, Spent};
use crate::server::{Call, Core, Outbox, Peer, Session, Sink, Via};
use crate::{Profile, clock};

/// How long a client may take between the two messages of a handshake, so that abandoned sessions
/// do not keep others out for long.
const HANDSHAKE: Duration = Duration::from_secs(60);

/// One session.
pub(super) struct HttpSession {
    pub(super) peer: Arc<Peer>,
    pub(super) session: Arc<Session>,
    pub(super) sink: Arc<Sink>,
    state: Mutex<SessionState>,
    /// Given back with it.
    place: OnceLock<Place>,
    /// In a fleet: its key in the store, and the version after the latest one of what is kept
    /// there. Locked while that is taken in.
    shared: Option<(String, Mutex<u64>)>,
}

/// The mutable part of a session.
pub(super) struct SessionState {
    pub(super) lifecycle: Lifecycle,
    pub(super) inbound: Inbound<InFlight>,
    /// The events of its streams, once it has had one: most sessions never do.
    replay: Option<Box<Replay<Bytes>>>,
    /// The streams that a client is reading now.
    pub(super) live: Vec<(StreamId, Arc<Outbox>)>,
    /// The stream that belongs to no request, once it has been opened.
    pub(super) standalone: Option<StreamId>,
    /// The number that those of its streams come after.
    base: u64,
    /// The bytes of the session itself.
    fixed: usize,
    reserved: Reservation,
    used: Instant,
}

/// What it takes to stop a request in flight.
pub(super) struct InFlight {
    /// Set once the task runs.
    pub(super) abort: Arc<OnceLock<AbortHandle>>,
    pub(super) call: Arc<Call>,
    pub(super) stream: StreamId,
    /// One of the places for requests whose client has disconnected, if it has.
    pub(super) abandoned: Option<Slot>,
}

impl InFlight {
    pub(super) fn stop(&self) {
        self.call.cancel();
        if let Some(task) = self.abort.get() {
            task.abort();
        }
    }
}

impl HttpSession {
    pub(super) fn new(
        core: &Arc<Core>,
        profile: Profile,
        (lifecycle, sink): (Lifecycle, Arc<Sink>),
        reserved: Reservation,
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
                replay: None,
                live: Vec::new(),
                standalone: None,
                fixed: 0,
                reserved,
                base: 0,
                used: clock::now(),
            }),
            place: OnceLock::new(),
            shared: None,
        }
    }

    /// The same on a node of a fleet: no other node gives the same numbers to questions and
    /// streams.
    pub(super) fn of_node(mut self, node: Node, key: String) -> Self {
        let core = Arc::clone(&self.peer.core);
        let questions = i64::try_from(node.base()).unwrap_or(0);
        self.session = Arc::new(Session::numbered_after(questions));
        self.peer = Peer::in_session(&core, self.peer.profile.clone(), Via::HTTP, &self.session);
        self.lock().base = node.base();
        // Versions begin with 0.
        self.shared = Some((key, Mutex::new(0)));
        self
    }

    /// In a fleet: its key in the store.
    pub(super) fn key(&self) -> Option<&str> {
        self.shared.as_ref().map(|(key, _)| key.as_str())
    }

    /// Takes in a version of what is kept, unless that one or a later one was taken in before.
    pub(super) fn take_in(&self, version: u64, apply: impl FnOnce()) {
        let Some((_, next)) = &self.shared else { return };
        let mut next = next.lock().unwrap_or_else(PoisonError::into_inner);
        if *next <= version {
            *next = version + 1;
            apply();
        }
    }

    /// Takes in what is kept once more, whatever its version: something has changed here only.
    pub(super) fn doubt(&self) {
        if let Some((_, next)) = &self.shared {
            *next.lock().unwrap_or_else(PoisonError::into_inner) = 0;
        }
    }

    /// Closes the stream that belongs to no request, unless it is the latest one.
    pub(super) fn yield_standalone(&self, latest: u64) {
        let mut state = self.lock();
        if let Some(stream) = state.standalone.filter(|stream| stream.number() != latest) {
            state.detach(stream);
            state.standalone = None;
        }
    }

    /// Holds on to its place. There is only one.
    pub(super) fn hold(&self, place: Place) {
        let _ = self.place.set(place);
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
        let event = state.replay().push(stream, Bytes::copy_from_slice(frame));
        let id = event.map(|event| event.to_string());
        let mut bytes = Vec::new();
        encode_event(&mut bytes, id.as_deref(), frame);
        state.send(stream, &bytes);
        state.recount();
    }

    /// Opens a stream and attaches a client to it.
    pub(super) fn open_stream(&self, limit: usize) -> (StreamId, Arc<Outbox>) {
        let mut state = self.lock();
        let stream = state.replay().open();
        (stream, self.begin(&mut state, stream, limit))
    }

    /// Opens the stream that belongs to no request; `None` if a client already reads it.
    pub(super) fn open_standalone(&self, limit: usize) -> Option<(StreamId, Arc<Outbox>)> {
        let mut state = self.lock();
        let stream = match state.standalone {
            Some(stream) => stream,
            None => state.replay().open(),
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
            let id = state.replay().last(stream).to_string();
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
        state.replay().close(clock::now().into_std(), stream);
        state.detach(stream);
        state.recount();
    }

    /// Stops the request of a stream whose client has disconnected.
    pub(super) fn cancel_stream(&self, stream: StreamId) {
        let request = self.lock().inbound.cancel_where(|request| request.stream == stream);
        if let Some(request) = request {
            request.call.disconnect();
            request.stop();
            self.end_stream(stream);
        }
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

    fn is_half_open(&self) -> bool {
        matches!(self.lifecycle.phase(), Phase::ExpectInitialized(_))
    }

    /// Whether a client may come back for events.
    fn keeps_events(&self) -> bool {
        self.replay.as_ref().is_some_and(|replay| replay.bytes() > 0)
    }

    /// The events of its streams.
    pub(super) fn replay(&mut self) -> &mut Replay<Bytes> {
        let base = self.base;
        self.replay.get_or_insert_with(|| Box::new(Replay::after(base, ReplayLimits::default())))
    }

    /// Forgets the events of streams that ended long ago.
    fn expire(&mut self, now: Instant) {
        if let Some(replay) = &mut self.replay {
            replay.expire(now.into_std());
            self.recount();
        }
    }

    /// Reserves memory for the session itself.
    fn reserve(&mut self, bytes: usize) -> Result<(), Spent> {
        self.reserved.resize(bytes)?;
        self.fixed = bytes;
        Ok(())
    }

    /// Reserves memory for what is kept and what waits to be read. If half of it is taken, the
    /// oldest events are forgotten; if none is left, clients that do not keep up are detached.
    pub(super) fn recount(&mut self) {
        loop {
            let waiting: usize = self.live.iter().map(|(_, live)| live.length()).sum();
            let kept = self.replay.as_ref().map_or(0, |replay| replay.bytes());
            let bytes = self.fixed + kept + waiting;
            let held = match kept {
                0 => self.reserved.resize(bytes),
                _ => self.reserved.resize_spare(bytes),
            };
            if held.is_ok() {
                return;
            }
            if kept > 0 && self.replay().forget_oldest() {
                continue;
            }
            let longest = self.live.iter().max_by_key(|(_, live)| live.length());
            let Some((stream, _)) = longest else { return };
            let stream = *stream;
            self.detach(stream);
        }
    }

    /// Keeps the request of a stream running, although its client has disconnected.
    pub(super) fn abandon(&mut self, stream: StreamId, slot: Slot) {
        if let Some(request) = self.inbound.find_mut(|request| request.stream == stream) {
            request.abandoned = Some(slot);
        }
    }

    /// Attaches a client to a stream, and detaches the previous one.
    pub(super) fn attach(&mut self, stream: StreamId, limit: usize) -> Arc<Outbox> {
        self.detach(stream);
        if let Some(request) = self.inbound.find_mut(|request| request.stream == stream) {
            request.abandoned = None;
        }
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
