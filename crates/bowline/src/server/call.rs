//! One request while it is worked on: what its handler and whoever drives it share.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use bowline_proto::method::{LoggingMessage, Notice, Progress};
use bowline_proto::model::{LoggingLevel, LoggingMessageParams, ProgressParams, ProgressToken};
use bowline_proto::revision::Adapt;
use bowline_proto::wire::{Id, encode_notification};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::nest::Nest;
use super::peer::Peer;
use super::rounds::Rounds;
use crate::clock;
use crate::outbox::Outbox;

/// One request while it is worked on.
pub(crate) struct Call {
    pub(crate) peer: Arc<Peer>,
    pub(crate) id: Id,
    pub(crate) method: &'static str,
    /// Where messages that belong to the request go.
    pub(crate) outbox: Arc<Outbox>,
    /// Questions and answers of the modern era. `None` in the legacy one.
    pub(crate) rounds: Option<Box<Rounds>>,
    /// From which level on a modern request wants log messages.
    pub(crate) log_level: Option<LoggingLevel>,
    /// Within which servers the handler is.
    pub(crate) nest: Nest,
    /// When the time began to run: when the handler first waited, or asked.
    started: OnceLock<Instant>,
    /// How long it may take.
    timeout: Duration,
    /// Which trace the request belongs to, as W3C trace context writes it.
    pub(crate) traceparent: Option<String>,
    /// The client wants progress reported under this token.
    progress_token: Option<ProgressToken>,
    progress: Mutex<Reported>,
    is_cancelled: AtomicBool,
    /// Whether the answer is on its way.
    is_finished: AtomicBool,
    cancelled: Notify,
    /// The handler lets the client go for now.
    pub(crate) released: Notify,
}

/// What a request is made of besides its parameters.
pub(crate) struct CallParts {
    pub(crate) peer: Arc<Peer>,
    pub(crate) id: Id,
    pub(crate) method: &'static str,
    pub(crate) outbox: Arc<Outbox>,
    pub(crate) rounds: Option<Box<Rounds>>,
    pub(crate) log_level: Option<LoggingLevel>,
    pub(crate) progress_token: Option<ProgressToken>,
    pub(crate) traceparent: Option<String>,
    pub(crate) timeout: Duration,
    pub(crate) nest: Nest,
}

/// Progress so far.
#[derive(Default)]
struct Reported {
    is_over: bool,
    last: Option<f64>,
    /// How many were sent beyond what time has made up for.
    sent: f64,
    refilled: Option<Instant>,
    /// The newest report that was left out to keep to the rate.
    left_out: Option<Box<ProgressParams>>,
}

impl Call {
    pub(crate) fn new(parts: CallParts) -> Self {
        Self {
            peer: parts.peer,
            id: parts.id,
            method: parts.method,
            outbox: parts.outbox,
            rounds: parts.rounds,
            log_level: parts.log_level,
            nest: parts.nest,
            started: OnceLock::new(),
            timeout: parts.timeout,
            traceparent: parts.traceparent,
            progress_token: parts.progress_token,
            progress: Mutex::default(),
            is_cancelled: AtomicBool::new(false),
            is_finished: AtomicBool::new(false),
            cancelled: Notify::new(),
            released: Notify::new(),
        }
    }

    /// When it must be over.
    pub(crate) fn deadline(&self) -> Instant {
        *self.started.get_or_init(clock::now) + self.timeout
    }

    /// Tells the handler that nobody waits for it any more.
    pub(crate) fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::Release);
        self.cancelled.notify_waiters();
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Ordering::Acquire)
    }

    pub(crate) async fn cancelled(&self) {
        let notified = self.cancelled.notified();
        if !self.is_cancelled() {
            notified.await;
        }
    }

    /// Reports progress, if the client asked for it. Never waits: what exceeds the rate, or finds
    /// the outbox full, is caught up with before the answer.
    pub(crate) fn report(&self, progress: f64, total: Option<f64>, message: Option<String>) {
        let Some(token) = &self.progress_token else { return };
        // JSON has no words for other numbers.
        if !progress.is_finite() {
            return;
        }
        let total = total.filter(|total| total.is_finite());
        let rate = f64::from(self.peer.core.limits.progress_per_second);
        let mut reported = self.lock_progress();
        // All revisions: each report is greater than the last.
        let is_news = reported.last.is_none_or(|last| progress > last);
        if reported.is_over || self.is_cancelled() || !is_news {
            return;
        }
        reported.last = Some(progress);
        let progress_token = token.clone();
        let params = ProgressParams { progress_token, progress, total, message, meta: None };
        let now = clock::now();
        if let Some(refilled) = reported.refilled.replace(now) {
            let earned = now.duration_since(refilled).as_secs_f64() * rate;
            reported.sent = (reported.sent - earned).max(0.0);
        }
        reported.left_out = if reported.sent + 1.0 <= rate && self.send_progress(&params) {
            reported.sent += 1.0;
            None
        } else {
            Some(Box::new(params))
        };
    }

    /// The answer is next: sends the newest report that was left out, and refuses all that come
    /// later. That may be many: a handler can have started tasks that outlive it.
    pub(crate) fn finish(&self) {
        self.is_finished.store(true, Ordering::Release);
        if self.progress_token.is_none() {
            return;
        }
        let mut reported = self.lock_progress();
        reported.is_over = true;
        if let Some(params) = reported.left_out.take() {
            // One for each answer, so bounded as they are.
            let _ = self.outbox.push(self.encoding_progress(&params));
        }
    }

    fn send_progress(&self, params: &ProgressParams) -> bool {
        self.outbox.try_push(self.encoding_progress(params))
    }

    fn encoding_progress(&self, params: &ProgressParams) -> impl FnOnce(&mut Vec<u8>) {
        let mut params = params.clone();
        // Nothing in it can be unsupported.
        let _ = params.adapt(self.peer.caller.revision);
        move |out| {
            let _ = encode_notification(out, Progress::NAME, Some(&params));
        }
    }

    fn lock_progress(&self) -> MutexGuard<'_, Reported> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the client wants log messages of this level for this request.
    pub(crate) fn wants_log(&self, level: LoggingLevel) -> bool {
        match &self.peer.session {
            Some(session) => session.wants(level),
            // 2026-07-28, utilities/logging: only for requests that say so.
            None => self.log_level.is_some_and(|wanted| level >= wanted),
        }
    }

    /// Sends a log message if it is wanted, waiting for room.
    pub(crate) async fn log(&self, params: LoggingMessageParams) {
        if self.wants_log(params.level) && !self.is_cancelled() {
            // A client that is gone needs no log.
            let _ = self.outbox.send(|out| self.encode_log(out, &params)).await;
        }
    }

    /// The same without waiting: for callers that cannot. Says whether it was sent.
    pub(crate) fn try_log(&self, params: &LoggingMessageParams) -> bool {
        self.wants_log(params.level)
            && !self.is_cancelled()
            && self.outbox.try_push(|out| self.encode_log(out, params))
    }

    /// Looks at the last moment: a modern log message belongs to its request, and must not come
    /// after the answer (2026-07-28, utilities/logging).
    fn encode_log(&self, out: &mut Vec<u8>, params: &LoggingMessageParams) {
        if self.peer.session.is_some() || !self.is_finished.load(Ordering::Acquire) {
            let _ = encode_notification(out, LoggingMessage::NAME, Some(params));
        }
    }
}
