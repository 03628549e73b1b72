//! What happens while a session waits for somebody to type.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bowline::Json;
use bowline::client::{CallError, Notification, State};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use super::complete::Catalog;
use super::journal::From;
use super::question::Question;

/// Events that wait to be looked at: 16,384. What is beyond that is counted, and not shown.
pub(crate) const MOST_WAITING: usize = 16_384;

/// Something that happened.
#[derive(Debug)]
pub(crate) enum Event {
    /// Text for people, safe already.
    Say(String),
    /// Something was said on the wire, or on standard error.
    Said(From, String),
    /// A notification of the server.
    Notified(Notification),
    /// The connection is in another state; of the connection that was opened as this one.
    State(u64, State),
    /// The server asks.
    Asked(Question),
    /// How far a call is.
    Progress(u64, String),
    /// A call is over.
    Ended { job: u64, outcome: Result<Json, CallError>, took: Duration },
    /// What the server has.
    Catalog(Box<Catalog>),
    /// Changes of a resource are heard of by this task.
    Subscribed(String, AbortHandle),
    /// Candidates for a line; with where they go.
    Completed { line: String, start: usize, candidates: Result<Vec<String>, String> },
}

/// Tells of what happens without ever waiting, for those who must not.
#[derive(Debug, Clone)]
pub(crate) struct Teller {
    events: mpsc::Sender<Event>,
    missed: Arc<AtomicU64>,
}

impl Teller {
    /// Tells whoever reads these events.
    pub(crate) fn new(events: mpsc::Sender<Event>) -> Self {
        Self { events, missed: Arc::default() }
    }

    /// Tells, or counts what there is no room for.
    pub(crate) fn tell(&self, event: Event) {
        if self.events.try_send(event).is_err() {
            self.missed.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How many there was no room for since somebody asked.
    pub(crate) fn missed(&self) -> u64 {
        self.missed.swap(0, Ordering::Relaxed)
    }
}
