//! A request in progress: the state shared by its handler and the transport.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use bowline_proto::error::ErrorObject;
use bowline_proto::json::Json;
use bowline_proto::method::{self, LoggingMessage, Notice};
use bowline_proto::model::{LoggingLevel, LoggingMessageParams, ProgressParams, ProgressToken};
use bowline_proto::revision::Adapt;
use bowline_proto::wire::{Id, encode_notification};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::caller::Caller;
use super::failure::{Failure, FailureKind};
use super::nest::Nest;
use super::peer::Peer;
use super::rounds::Rounds;
use super::tasks::Link;
use crate::clock;
use crate::outbox::Outbox;

/// A request in progress.
pub(crate) struct Call {
    pub(crate) caller: Caller,
    pub(crate) id: Id,
    pub(crate) method: &'static str,
    /// Where messages that belong to the request go.
    pub(crate) outbox: Arc<Outbox>,
    /// Questions and answers of the modern era. `None` in the legacy one.
    pub(crate) rounds: Option<Box<Rounds>>,
    /// The lowest level of log messages that a modern request asks for.
    pub(crate) log_level: Option<LoggingLevel>,
    /// The nested servers that the handler belongs to.
    pub(crate) nest: Nest,
    /// When the clock started: when the handler first waited, or asked for its deadline.
    started: OnceLock<Instant>,
    /// How long it may take.
    timeout: Duration,
    /// The same since it became a task.
    task_time: OnceLock<Duration>,
    /// The `traceparent` in the `_meta` of the request (W3C Trace Context).
    traceparent: Option<String>,
    /// What takes its place for whatever the handler calls.
    pub(crate) onward: OnceLock<Box<str>>,
    /// The parameters as they came, for handlers that pass them on.
    #[cfg_attr(not(feature = "client"), expect(dead_code, reason = "only a proxy reads them"))]
    pub(crate) params: Option<Json>,
    /// The client wants progress reported. Most do not, so it is elsewhere.
    pub(crate) progress: Option<Arc<Progress>>,
    /// Why nobody waits for it any more: 0, or an [`Abandoned`].
    abandoned: AtomicU8,
    /// Whether the answer is about to be sent.
    is_finished: AtomicBool,
    cancelled: Notify,
    /// The handler lets the client disconnect for now.
    pub(crate) released: Notify,
}

/// The parts of a request besides its parameters.
pub(crate) struct CallParts {
    pub(crate) caller: Caller,
    pub(crate) id: Id,
    pub(crate) method: &'static str,
    pub(crate) outbox: Arc<Outbox>,
    pub(crate) rounds: Option<Box<Rounds>>,
    pub(crate) log_level: Option<LoggingLevel>,
    pub(crate) progress: Option<Arc<Progress>>,
    pub(crate) traceparent: Option<String>,
    pub(crate) params: Option<Json>,
    pub(crate) timeout: Duration,
    pub(crate) nest: Nest,
}

/// Why nobody waits for a request any more.
#[derive(Clone, Copy)]
enum Abandoned {
    Cancelled = 1,
    Disconnected = 2,
}

/// What is reported of a request's progress. All runs of a task share it: progress never goes back.
pub(crate) struct Progress {
    /// The client wants it under this token.
    token: ProgressToken,
    reported: Mutex<Reported>,
}

/// Progress so far.
#[derive(Default)]
struct Reported {
    is_over: bool,
    last: Option<f64>,
    /// Reports sent, minus those that the elapsed time has allowed for.
    sent: f64,
    refilled: Option<Instant>,
    /// The newest report that was skipped because of the rate limit.
    left_out: Option<Box<ProgressParams>>,
}

impl Call {
    pub(crate) fn new(parts: CallParts) -> Self {
        Self {
            caller: parts.caller,
            id: parts.id,
            method: parts.method,
            outbox: parts.outbox,
            rounds: parts.rounds,
            log_level: parts.log_level,
            nest: parts.nest,
            started: OnceLock::new(),
            timeout: parts.timeout,
            task_time: OnceLock::new(),
            traceparent: parts.traceparent,
            onward: OnceLock::new(),
            progress: parts.progress,
            params: parts.params,
            abandoned: AtomicU8::new(0),
            is_finished: AtomicBool::new(false),
            cancelled: Notify::new(),
            released: Notify::new(),
        }
    }

    /// The trace context of the request. HTTP headers are looked at only when it is asked for.
    pub(crate) fn traceparent(&self) -> Option<&str> {
        let onward = self.onward.get().map(|it| &**it);
        let own = onward.or(self.traceparent.as_deref());
        #[cfg(feature = "http")]
        let own = own.or_else(|| self.caller.headers().get("traceparent")?.to_str().ok());
        own
    }

    /// What all requests of its sender share.
    pub(crate) fn peer(&self) -> &Peer {
        &self.caller.peer
    }

    /// When the handler times out.
    pub(crate) fn deadline(&self) -> Instant {
        let timeout = self.task_time.get().copied().unwrap_or(self.timeout);
        *self.started.get_or_init(clock::now) + timeout
    }

    /// The task that it has become.
    pub(crate) fn task(&self) -> Option<&Arc<Link>> {
        self.rounds.as_ref()?.task()
    }

    /// From now on, it is a task that may take this long.
    pub(crate) fn become_task(&self, link: Arc<Link>, time: Duration) {
        let _ = self.task_time.set(time);
        if let Some(rounds) = &self.rounds {
            rounds.become_task(link);
        }
    }

    /// Tells the handler that nobody is waiting for it any more.
    pub(crate) fn cancel(&self) {
        self.abandon(Abandoned::Cancelled);
    }

    /// The same, because the connection has ended. The first reason counts.
    pub(crate) fn disconnect(&self) {
        self.abandon(Abandoned::Disconnected);
    }

    fn abandon(&self, why: Abandoned) {
        let (from, to) = (0, why as u8);
        // If it fails, there is a reason already.
        let _ = self.abandoned.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire);
        self.cancelled.notify_waiters();
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.abandoned.load(Ordering::Acquire) != 0
    }

    /// What middleware is told once nobody waits for the request any more.
    pub(crate) fn abandonment(&self) -> Failure {
        let is_gone = self.abandoned.load(Ordering::Acquire) == Abandoned::Disconnected as u8;
        let (kind, what) = match is_gone {
            true => (FailureKind::Disconnected, "the client has disconnected"),
            false => (FailureKind::Cancelled, "the request was cancelled"),
        };
        Failure::new(kind, ErrorObject::internal(format!("{}: {what}", self.method)))
    }

    pub(crate) async fn cancelled(&self) {
        let notified = self.cancelled.notified();
        if !self.is_cancelled() {
            notified.await;
        }
    }

    /// Reports progress if the client asked for it. Never waits: if a report exceeds the rate limit
    /// or finds the outbox full, the newest one is sent before the answer.
    pub(crate) fn report(&self, progress: f64, total: Option<f64>, message: Option<String>) {
        if let (Some(task), Some(message)) = (self.task(), &message) {
            task.set_status(message.clone());
        }
        let Some(wanted) = &self.progress else { return };
        // JSON cannot represent other numbers.
        if !progress.is_finite() {
            return;
        }
        let total = total.filter(|total| total.is_finite());
        let rate = f64::from(self.peer().core.limits.progress_per_second);
        let mut reported = wanted.lock();
        // All revisions: progress must increase with each report.
        let is_news = reported.last.is_none_or(|last| progress > last);
        if reported.is_over || self.is_cancelled() || !is_news || self.outbox.is_quiet() {
            return;
        }
        reported.last = Some(progress);
        let progress_token = wanted.token.clone();
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

    /// Prepares for the answer: sends the newest report that was skipped and ignores any later one,
    /// since a handler can have started tasks that outlive it.
    pub(crate) fn finish(&self) {
        self.is_finished.store(true, Ordering::Release);
        // 2025-11-25, basic/utilities/tasks: the token of a request is that of its task, too.
        if self.task().is_none() || !self.caller.revision.has_requested_tasks() {
            self.end_progress();
        }
    }

    /// Sends the newest report of progress that was skipped, and ignores any later one.
    pub(crate) fn end_progress(&self) {
        let Some(wanted) = &self.progress else { return };
        let mut reported = wanted.lock();
        reported.is_over = true;
        if let Some(params) = reported.left_out.take().filter(|_| !self.outbox.is_quiet()) {
            // At most one for each answer, so the number is bounded.
            let _ = self.outbox.push(self.encoding_progress(&params));
        }
    }

    fn send_progress(&self, params: &ProgressParams) -> bool {
        self.outbox.try_push(self.encoding_progress(params))
    }

    fn encoding_progress(&self, params: &ProgressParams) -> impl FnOnce(&mut Vec<u8>) {
        let mut params = params.clone();
        // Every revision supports it.
        let _ = params.adapt(self.caller.revision);
        move |out| {
            let _ = encode_notification(out, method::Progress::NAME, Some(&params));
        }
    }

    /// Whether the client wants progress reported.
    #[cfg(feature = "client")]
    pub(crate) fn wants_progress(&self) -> bool {
        self.progress.is_some()
    }

    /// The lowest level of log messages that the client wants.
    #[cfg(feature = "client")]
    pub(crate) fn wanted_level(&self) -> Option<LoggingLevel> {
        match &self.peer().session {
            Some(session) => session.log_level(),
            None => self.log_level,
        }
    }

    /// Whether the client wants log messages of this level for this request.
    pub(crate) fn wants_log(&self, level: LoggingLevel) -> bool {
        match &self.peer().session {
            Some(session) => session.wants(level),
            // 2026-07-28, utilities/logging: only for requests that ask for it.
            None => self.log_level.is_some_and(|wanted| level >= wanted),
        }
    }

    /// Sends a log message if it is wanted, waiting for room.
    pub(crate) async fn log(&self, params: LoggingMessageParams) {
        if self.wants_log(params.level) && !self.is_cancelled() && !self.outbox.is_quiet() {
            // It fails only if the client has disconnected.
            let _ = self.outbox.send(|out| self.encode_log(out, &params)).await;
        }
    }

    /// The same without waiting. Returns whether it was sent.
    pub(crate) fn try_log(&self, params: &LoggingMessageParams) -> bool {
        self.wants_log(params.level)
            && !self.is_cancelled()
            && !self.outbox.is_quiet()
            && self.outbox.try_push(|out| self.encode_log(out, params))
    }

    /// Sends a notification of an extension, waiting for room. Returns whether it was sent.
    pub(crate) async fn notify(&self, method: &str, params: &Json) -> bool {
        let encode = |out: &mut Vec<u8>| {
            if !self.is_finished.load(Ordering::Acquire) {
                let _ = encode_notification(out, method, Some(params));
            }
        };
        let is_over = self.is_cancelled() || self.is_finished.load(Ordering::Acquire);
        !is_over && !self.outbox.is_quiet() && self.outbox.send(encode).await.is_ok()
    }

    /// Checks at the last moment: a modern log message belongs to its request and must not follow
    /// the answer (2026-07-28, utilities/logging).
    fn encode_log(&self, out: &mut Vec<u8>, params: &LoggingMessageParams) {
        if self.peer().session.is_some() || !self.is_finished.load(Ordering::Acquire) {
            let _ = encode_notification(out, LoggingMessage::NAME, Some(params));
        }
    }
}

impl Progress {
    pub(crate) fn under(token: ProgressToken) -> Arc<Self> {
        Arc::new(Self { token, reported: Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, Reported> {
        self.reported.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
