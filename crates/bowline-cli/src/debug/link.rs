//! The connection of a session: opened, watched, closed, opened again; and what it reports
//! meanwhile.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bowline::client::{
    CallError, ClientBuilder, CloseReason, Notification, Phase, State, StateWatch,
};
use bowline::{Client, Json};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::complete::Catalog;
use super::dialog::{self, Question};
use super::log::Log;
use crate::failure::Failure;
use crate::session::{Session, Settings, Tap, Tapped};
use crate::target::Resolved;

/// Events that wait to be handled: 16,384. More are counted, and not shown; the log has them.
pub(crate) const MOST_WAITING: usize = 16_384;

/// The log, which the connection writes and the session reads.
type SharedLog = Arc<Mutex<Log>>;

fn lock(log: &Mutex<Log>) -> MutexGuard<'_, Log> {
    log.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether a notification is not shown as such: log messages and progress have lines of their own.
fn is_shown_elsewhere(method: &str) -> bool {
    matches!(
        method,
        "notifications/message"
            | "notifications/progress"
            | "notifications/subscriptions/acknowledged"
    )
}

/// Something that happened.
#[derive(Debug)]
pub(crate) enum Event {
    /// Text for people, safe already.
    Say(String),
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

/// The connection of a session.
pub(crate) struct Link {
    pub(crate) resolved: Resolved,
    pub(crate) settings: Settings,
    /// Whether there is a person at the prompt to ask.
    pub(crate) asks: bool,
    session: Option<Session>,
    /// How often it was opened.
    pub(crate) opened: u64,
    log: SharedLog,
    pub(crate) events: mpsc::Sender<Event>,
    /// Events that there was no room for.
    missed: Arc<AtomicU64>,
}

impl Link {
    /// A connection that is not open yet.
    pub(crate) fn new(
        resolved: Resolved,
        mut settings: Settings,
        asks: bool,
        events: mpsc::Sender<Event>,
    ) -> Self {
        let (missed, log) = (Arc::default(), SharedLog::default());
        let (tell, kept, began) = (teller(&events, &missed), Arc::clone(&log), Instant::now());
        // Logged at once, however much comes: with its time, and without a queue in between.
        settings.tap = Some(Tap(Arc::new(move |tapped: Tapped<'_>| match tapped {
            Tapped::Said(channel, text) => lock(&kept).add(began.elapsed(), channel, text),
            Tapped::Notification(it) if is_shown_elsewhere(&it.method) => {}
            Tapped::Notification(notification) => tell(Event::Notified(notification.clone())),
        })));
        Self { resolved, settings, asks, session: None, opened: 0, log, events, missed }
    }

    pub(crate) fn log(&self) -> MutexGuard<'_, Log> {
        lock(&self.log)
    }

    /// Sends what would go to standard error as events instead.
    pub(crate) fn divert(&self) {
        let tell = teller(&self.events, &self.missed);
        self.settings.screen.divert(move |text| tell(Event::Say(text.to_owned())));
    }

    /// Opens it, and closes what was open.
    ///
    /// # Errors
    /// When there is no connection.
    ///
    /// # Cancel safety
    /// What was started is ended.
    pub(crate) async fn open(&mut self) -> Result<(), Failure> {
        self.close().await;
        self.settings.is_again = self.opened > 0;
        self.opened += 1;
        let more = |builder: ClientBuilder| {
            // Even without any: they can be set later.
            let builder = builder.roots(self.settings.answers.roots.iter().cloned());
            if self.asks { dialog::listen(builder, &self.events) } else { builder }
        };
        let session = Session::open(&self.resolved, &self.settings, &more).await?;
        tokio::spawn(watch(session.client.watch(), self.opened, self.events.clone()));
        self.session = Some(session);
        Ok(())
    }

    pub(crate) async fn close(&mut self) {
        if let Some(session) = self.session.take() {
            session.close(None).await;
        }
    }

    pub(crate) fn client(&self) -> Option<&Client> {
        self.session.as_ref().map(|session| &session.client)
    }

    /// How many events there was no room for, in words.
    pub(crate) fn missed(&self) -> Option<String> {
        match self.missed.swap(0, Ordering::Relaxed) {
            0 => None,
            count => {
                Some(format!("{count} notifications came too fast to be shown; `log` has them"))
            }
        }
    }

    /// Why the connection ended, if this state says so and it was not asked to.
    pub(crate) fn ended<'a>(&self, opened: u64, state: &'a State) -> Option<&'a CloseReason> {
        let is_over = opened == self.opened && state.phase == Phase::Closed;
        state.reason.as_ref().filter(|reason| is_over && **reason != CloseReason::Asked)
    }

    /// Shows every message on the wire, or stops.
    pub(crate) fn set_verbose(&mut self, is_verbose: bool) {
        self.settings.is_verbose = is_verbose;
        if let Some(session) = &self.session {
            session.journal.set_verbose(is_verbose);
        }
    }
}

/// Sends events without ever waiting, for callbacks that must not block. Those that there is no
/// room for are counted.
fn teller(events: &mpsc::Sender<Event>, missed: &Arc<AtomicU64>) -> impl Fn(Event) + Send + use<> {
    let (events, missed) = (events.clone(), Arc::clone(missed));
    move |event| {
        if events.try_send(event).is_err() {
            missed.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Reports every state until the last.
async fn watch(mut states: StateWatch, opened: u64, events: mpsc::Sender<Event>) {
    while let Some(state) = states.changed().await {
        let is_last = state.phase == Phase::Closed;
        if events.send(Event::State(opened, state)).await.is_err() || is_last {
            return;
        }
    }
}
