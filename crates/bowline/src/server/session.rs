//! A legacy session as handlers use it: questions to the client, and the log level.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use bowline_proto::error::ErrorObject;
use bowline_proto::json::Json;
use bowline_proto::method::{Cancelled, Method, Notice};
use bowline_proto::model::{CancelledParams, LoggingLevel};
use bowline_proto::revision::Revision;
use bowline_proto::session::{Calls, Recipient, Timeout};
use bowline_proto::wire::{Id, Response, encode_notification, encode_request};
use serde::Serialize;
use tokio::sync::oneshot;

use super::ask::AskError;
use super::audit::{self, Opened, Origin};
use super::session_state::SessionStates;
use crate::clock;
use crate::outbox::Outbox;

type Waiter = oneshot::Sender<Result<Json, ErrorObject>>;

/// The part of a legacy session that its handlers use.
pub(crate) struct Session {
    /// `None` once the client has disconnected.
    calls: Mutex<Option<Calls<Waiter>>>,
    /// The lowest level of messages to send, as an index into `LoggingLevel::ALL`.
    log_level: AtomicU8,
    /// Its id, if it has one.
    id: OnceLock<String>,
    /// What the audit knows of it, once it has begun.
    opened: OnceLock<Box<Opened>>,
    /// The values that handlers keep in it.
    pub(crate) states: SessionStates,
}

impl Session {
    pub(crate) fn new() -> Self {
        Self::numbered_after(0)
    }

    /// A session whose questions have ids after a number.
    pub(crate) fn numbered_after(number: i64) -> Self {
        // All legacy revisions: without `logging/setLevel` the server chooses the level.
        let log_level = AtomicU8::new(index(LoggingLevel::Info));
        let calls = Mutex::new(Some(Calls::after(number)));
        Self {
            calls,
            log_level,
            id: OnceLock::new(),
            opened: OnceLock::new(),
            states: SessionStates::default(),
        }
    }

    #[cfg(feature = "http")]
    pub(crate) fn set_id(&self, id: String) {
        // Only the first one counts; there is only one.
        let _ = self.id.set(id);
    }

    pub(crate) fn id(&self) -> Option<&str> {
        self.id.get().map(String::as_str)
    }

    /// Reports to the audit that it has begun.
    pub(crate) fn begin(&self, origin: Origin<'_>, revision: Revision) {
        if audit::is_on() {
            self.opened.get_or_init(|| Box::new(Opened::new(origin, revision.as_str())));
        }
    }

    /// Its number in the audit.
    pub(crate) fn number(&self) -> Option<u64> {
        self.opened.get().map(|opened| opened.number)
    }

    pub(crate) fn set_log_level(&self, level: LoggingLevel) {
        self.log_level.store(index(level), Ordering::Relaxed);
    }

    /// The lowest level of messages to send.
    #[cfg(feature = "client")]
    pub(crate) fn log_level(&self) -> Option<LoggingLevel> {
        LoggingLevel::ALL.get(usize::from(self.log_level.load(Ordering::Relaxed))).copied()
    }

    pub(crate) fn wants(&self, level: LoggingLevel) -> bool {
        index(level) >= self.log_level.load(Ordering::Relaxed)
    }

    /// Asks the client and waits for its answer. Dropping the future cancels the question.
    ///
    /// The question goes into the outbox of the request that asks it.
    pub(crate) async fn call<M: Method>(
        &self,
        outbox: &Outbox,
        params: &impl Serialize,
    ) -> Result<Json, AskError> {
        let (waiter, answer) = oneshot::channel();
        let now = clock::now().into_std();
        let open = |calls: &mut Calls<Waiter>| calls.open(now, M::NAME, Timeout::NEVER, waiter);
        let id = self.lock().as_mut().map(open).ok_or(AskError::Closed)?;
        let mut pending =
            PendingCall { session: self, outbox, id: Some(id.clone()), is_sent: false };
        let mut written = Ok(());
        let sent =
            outbox.send(|out| written = encode_request(out, &id, M::NAME, Some(params))).await;
        sent.map_err(|_| AskError::Closed)?;
        written.map_err(|error| AskError::Malformed(error.to_string()))?;
        pending.is_sent = true;
        let outcome = answer.await.map_err(|_| AskError::Closed)?;
        pending.id = None;
        outcome.map_err(AskError::Refused)
    }

    /// Handles the client's answer.
    pub(crate) fn handle_response(&self, response: &Response<'_>) {
        let Some(answer) = self.lock().as_mut().map(|calls| calls.close(&response.id)) else {
            return;
        };
        match answer {
            Recipient::Awaited(waiter) => {
                // A handler that no longer waits has been cancelled.
                let _ = waiter.send(response.outcome.clone().map(Json::copy_of));
            }
            Recipient::Late => tracing::debug!(id = %response.id, "late answer"),
            Recipient::Unknown => {
                tracing::warn!(id = %response.id, "answer to an unknown question");
            }
        }
    }

    /// Closes the session: pending and later questions fail. `why` is for the audit.
    pub(crate) fn close(&self, why: &'static str) {
        *self.lock() = None;
        if let Some(opened) = self.opened.get() {
            opened.end(why);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Calls<Waiter>>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn index(level: LoggingLevel) -> u8 {
    let place = LoggingLevel::ALL.iter().position(|it| *it == level);
    place.and_then(|place| u8::try_from(place).ok()).unwrap_or(0)
}

/// Cancels a question when its future is dropped.
struct PendingCall<'a> {
    session: &'a Session,
    outbox: &'a Outbox,
    id: Option<Id>,
    /// Whether the question was sent.
    is_sent: bool,
}

impl Drop for PendingCall<'_> {
    fn drop(&mut self) {
        let Some(id) = self.id.take() else { return };
        let waiter = self.session.lock().as_mut().and_then(|calls| calls.abandon(&id));
        if waiter.is_none() || !self.is_sent || self.outbox.is_quiet() {
            return;
        }
        let params = CancelledParams {
            request_id: Some(id),
            reason: Some("the answer is no longer needed".to_owned()),
            meta: None,
        };
        let _ = self.outbox.push(|out| {
            let _ = encode_notification(out, Cancelled::NAME, Some(&params));
        });
    }
}
