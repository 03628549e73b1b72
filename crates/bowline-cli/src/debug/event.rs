//! What a session is told while it waits for input.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bowline::Json;
use bowline::client::{CallError, Notification, State};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use super::complete::Catalog;
use super::dialog::Question;
use super::log::Channel;

/// Events that wait to be handled: 16,384. More are counted, and not shown.
pub(crate) const MOST_WAITING: usize = 16_384;

/// Something that happened.
#[derive(Debug)]
pub(crate) enum Event {
    /// Text for people, safe already.
    Say(String),
    /// A message, or a line on standard error.
    Said(Channel, String),
    /// A notification of the server.
    Notified(Notification),
    /// A new state of the connection with this number.
    State(u64, State),
    /// The server asks.
    Asked(Question),
    /// The progress of a job.
    Progress(u64, String),
    /// A job is over.
    Ended { job: u64, outcome: Result<Json, CallError>, took: Duration },
    /// What the server has.
    Catalog(Box<Catalog>),
    /// This task reports the changes of a resource.
    Subscribed(String, AbortHandle),
    /// Candidates for a line, from `start` on.
    Completed { line: String, start: usize, candidates: Result<Vec<String>, String> },
}

/// Sends events without ever waiting, for callbacks that must not block.
#[derive(Debug, Clone)]
pub(crate) struct Teller {
    events: mpsc::Sender<Event>,
    missed: Arc<AtomicU64>,
}

impl Teller {
    pub(crate) fn new(events: mpsc::Sender<Event>) -> Self {
        Self { events, missed: Arc::default() }
    }

    /// Sends an event, or counts it if there is no room.
    pub(crate) fn tell(&self, event: Event) {
        if self.events.try_send(event).is_err() {
            self.missed.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How many events there was no room for since the last call.
    pub(crate) fn missed(&self) -> u64 {
        self.missed.swap(0, Ordering::Relaxed)
    }
}
