//! The answer to a modern request as a stream, for handlers that send messages before they are
//! done. The stream owns the handler, so dropping it cancels the request.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bowline_proto::revision::Revision;
use bowline_proto::sse::{Event, KEEP_ALIVE};
use bowline_proto::wire::Id;
use bytes::Bytes;
use tokio::time::{Instant, Interval};

use super::body::Source;
use crate::server::account::places::Place;
use crate::server::{Core, Outbox, Running, until_deadline};
use crate::{Outcome, clock};

/// How long a method that only another server knows may take before a stream begins.
const QUIET: Duration = Duration::from_secs(1);

/// A handler whose messages and answer are events.
pub(super) struct Streaming {
    pub(super) core: Arc<Core>,
    pub(super) id: Id,
    pub(super) revision: Revision,
    pub(super) outbox: Arc<Outbox>,
    /// `None` once the answer is written.
    pub(super) execution: Option<Execution>,
    pub(super) keep_alive: Ticker,
    pub(super) _place: Place,
}

/// A handler that runs until its deadline, or its outcome.
pub(super) enum Execution {
    Running(Pin<Box<dyn Future<Output = Outcome> + Send>>),
    Done(Option<Outcome>),
}

/// Polls a handler for the first time. Most are done then, and need neither a timer nor a task.
pub(super) async fn poll_once(running: &mut Running) -> Poll<Outcome> {
    poll_fn(|cx| Poll::Ready(Pin::new(&mut *running).poll(cx))).await
}

/// Polls the handler of a method that only another server knows, until it is done or sends a
/// message, for a while: if that server does not know it either, the status must say so.
pub(super) async fn poll_quietly(running: &mut Running, outbox: &Outbox) -> Poll<Outcome> {
    let polled = poll_fn(|cx| match Pin::new(&mut *running).poll(cx) {
        Poll::Pending if outbox.is_empty() => Poll::Pending,
        polled => Poll::Ready(polled),
    });
    tokio::time::timeout(QUIET, polled).await.unwrap_or(Poll::Pending)
}

impl Execution {
    pub(super) fn new(running: Running) -> Self {
        Self::Running(Box::pin(until_deadline(running)))
    }

    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Outcome> {
        match self {
            Self::Running(running) => running.as_mut().poll(cx),
            Self::Done(outcome) => outcome.take().map_or(Poll::Pending, Poll::Ready),
        }
    }
}

impl Source for Streaming {
    fn poll_bytes(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let Some(execution) = &mut self.execution else { return Poll::Ready(None) };
        let polled = execution.poll(cx);
        let mut lines = Vec::new();
        let mut out = Vec::new();
        if self.outbox.poll_take(cx, &mut lines) == Poll::Ready(true) {
            encode_lines(&mut out, &lines);
        }
        if let Poll::Ready(mut outcome) = polled {
            self.execution = None;
            let mut answer = Vec::new();
            self.core.signature.encode(&mut answer, &self.id, self.revision, &mut outcome);
            encode_event(&mut out, None, &answer);
        }
        if out.is_empty() {
            return self.keep_alive.poll(cx).map(Some);
        }
        self.keep_alive.reset();
        Poll::Ready(Some(out.into()))
    }
}

/// Writes the frames of an outbox as events. An outbox never holds half a frame.
pub(super) fn encode_lines(out: &mut Vec<u8>, lines: &[u8]) {
    for frame in frames(lines) {
        encode_event(out, None, frame);
    }
}

/// The frames in bytes that were taken from an outbox.
pub(super) fn frames(lines: &[u8]) -> impl Iterator<Item = &[u8]> {
    lines.split(|byte| *byte == b'\n').filter(|frame| !frame.is_empty())
}

/// Writes a message as an event.
pub(super) fn encode_event(out: &mut Vec<u8>, id: Option<&str>, data: &[u8]) {
    let event = Event { id, event: Some("message"), retry: None, data: Some(data) };
    // Our ids are short, so it fits.
    let _ = event.encode(out);
}

/// Sends keep-alives on an idle stream.
pub(super) struct Ticker(Interval);

impl Ticker {
    pub(super) fn new(period: Duration) -> Self {
        let period = period.max(Duration::from_millis(10));
        let start: Instant = clock::now() + period;
        let mut interval = tokio::time::interval_at(start, period);
        interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        Self(interval)
    }

    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Bytes> {
        self.0.poll_tick(cx).map(|_| Bytes::from_static(KEEP_ALIVE))
    }

    pub(super) fn reset(&mut self) {
        self.0.reset();
    }
}
