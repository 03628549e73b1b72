//! Streams of legacy sessions: the tasks that write them, and the bodies that clients read.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

use bowline_proto::session::{StreamId, Ticket};
use bytes::Bytes;

use super::body::Source;
use super::service::{HttpService, Slot};
use super::sessions::HttpSession;
use super::stop::Stopped;
use super::stream::{self, Execution, Ticker};
use crate::server::account::places::Place;
use crate::server::{Call, Core, Outbox, listen};

/// Runs a handler that outlives its connection, and publishes its messages on a stream.
pub(super) struct Pump {
    pub(super) session: Arc<HttpSession>,
    pub(super) call: Arc<Call>,
    pub(super) stream: StreamId,
    pub(super) ticket: Ticket,
    pub(super) _place: Place,
}

impl Pump {
    pub(super) async fn run(self, core: Arc<Core>, mut execution: Execution) {
        let mut outcome = loop {
            let mut lines = Vec::new();
            let said = poll_fn(|cx| match execution.poll(cx) {
                Poll::Ready(outcome) => Poll::Ready(Some(outcome)),
                Poll::Pending => self.call.outbox.poll_take(cx, &mut lines).map(|_| None),
            });
            let done = tokio::select! {
                biased;
                done = said => done,
                () = self.call.released.notified() => {
                    self.release();
                    None
                }
            };
            self.publish(&lines);
            if let Some(outcome) = done {
                break outcome;
            }
        };
        let mut rest = Vec::new();
        self.call.outbox.take(&mut rest);
        self.publish(&rest);
        let id = self.ticket.id().clone();
        if self.session.lock().inbound.finish(self.ticket) {
            let mut answer = Vec::new();
            core.signature.encode(&mut answer, &id, self.session.profile().revision, &mut outcome);
            self.session.publish(self.stream, &answer);
        }
        self.session.end_stream(self.stream);
    }

    /// Closes the client's connection, if the client knows how to resume.
    fn release(&self) {
        if self.session.profile().revision.has_stream_priming() {
            self.session.lock().detach(self.stream);
        }
    }

    fn publish(&self, lines: &[u8]) {
        for frame in stream::frames(lines) {
            self.session.publish(self.stream, frame);
        }
    }
}

/// A stream as a client reads it. When it disconnects, later messages are kept until it resumes.
pub(super) struct Live {
    pub(super) service: HttpService,
    pub(super) session: Arc<HttpSession>,
    pub(super) stream: StreamId,
    pub(super) live: Arc<Outbox>,
    pub(super) keep_alive: Ticker,
}

impl Source for Live {
    fn poll_bytes(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let mut bytes = Vec::new();
        match self.live.poll_take(cx, &mut bytes) {
            Poll::Ready(true) => {
                self.session.lock().recount();
                self.keep_alive.reset();
                Poll::Ready(Some(bytes.into()))
            }
            Poll::Ready(false) => Poll::Ready(None),
            Poll::Pending => self.keep_alive.poll(cx).map(Some),
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        // Unless another connection has taken over the stream.
        let mut state = self.session.lock();
        let is_ours = |(stream, live): &(StreamId, Arc<Outbox>)| {
            *stream == self.stream && Arc::ptr_eq(live, &self.live)
        };
        if !state.live.iter().any(is_ours) {
            return;
        }
        state.detach(self.stream);
        let inner = &self.service.inner;
        match Slot::take(&inner.abandoned, inner.limits.abandoned) {
            Some(slot) => state.abandon(self.stream, slot),
            None => {
                drop(state);
                self.session.cancel_stream(self.stream);
            }
        }
    }
}

/// The stream of a session that belongs to no request: it reports changes until the service stops.
pub(super) struct Standalone {
    pub(super) live: Live,
    pub(super) stopped: Stopped,
    pub(super) _place: Option<Place>,
}

impl Source for Standalone {
    fn poll_bytes(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        while let Poll::Ready(change) = self.live.session.sink.poll_next(cx) {
            let mut frame = Vec::new();
            let tasks = self.live.service.inner.core.tasks.as_ref();
            let session = tasks.map(|tasks| (tasks, &*self.live.session.sink));
            listen::change(&change, session).encode(&mut frame);
            if !frame.is_empty() {
                self.live.session.publish(self.live.stream, &frame);
            }
        }
        match self.live.poll_bytes(cx) {
            Poll::Pending => self.stopped.as_mut().poll(cx).map(|()| None),
            Poll::Ready(bytes) => Poll::Ready(bytes),
        }
    }
}

/// A stream that has ended.
pub(super) struct Ended;

impl Source for Ended {
    fn poll_bytes(&mut self, _: &mut Context<'_>) -> Poll<Option<Bytes>> {
        Poll::Ready(None)
    }
}
