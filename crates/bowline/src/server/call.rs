//! One request while it is worked on: what its handler and whoever drives it share.

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context as TaskContext, Poll};
use std::time::Duration;

use bowline_proto::error::ErrorObject;
use bowline_proto::method::{LoggingMessage, Notice, Progress};
use bowline_proto::model::{LoggingLevel, LoggingMessageParams, ProgressParams, ProgressToken};
use bowline_proto::revision::Adapt;
use bowline_proto::wire::{Id, encode_notification};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::answer::{Answer, Outcome};
use super::caller::Caller;
use super::core::Core;
use super::handler::BoxFuture;
use super::nest::Nest;
use super::output::ToolOutcome;
use super::registry::Registry;
use super::rounds::Rounds;
use super::session::Session;
use super::tool;
use crate::clock;
use crate::outbox::Outbox;

/// One request while it is worked on.
pub(crate) struct Call {
    pub(crate) core: Arc<Core>,
    /// As the handler sees it.
    pub(crate) registry: Registry,
    pub(crate) caller: Arc<Caller>,
    pub(crate) id: Id,
    pub(crate) method: &'static str,
    /// Where messages that belong to the request go.
    pub(crate) outbox: Arc<Outbox>,
    /// The legacy session, which can ask the client. `None` in the modern era.
    pub(crate) session: Option<Arc<Session>>,
    /// Questions and answers of the modern era. `None` in the legacy one.
    pub(crate) rounds: Option<Box<Rounds>>,
    /// From which level on a modern request wants log messages.
    pub(crate) log_level: Option<LoggingLevel>,
    started: Instant,
    /// How long it may take.
    timeout: Duration,
    /// Which trace the request belongs to, as W3C trace context writes it.
    pub(crate) traceparent: Option<String>,
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
    pub(crate) caller: Arc<Caller>,
    pub(crate) id: Id,
    pub(crate) method: &'static str,
    pub(crate) outbox: Arc<Outbox>,
    pub(crate) session: Option<Arc<Session>>,
    pub(crate) rounds: Option<Box<Rounds>>,
    pub(crate) log_level: Option<LoggingLevel>,
    pub(crate) progress_token: Option<ProgressToken>,
    pub(crate) traceparent: Option<String>,
    pub(crate) timeout: Duration,
    pub(crate) nest: Nest,
}

/// Progress so far.
struct Reported {
    token: Option<ProgressToken>,
    last: Option<f64>,
    /// How many more may be sent now; refilled over time.
    credit: f64,
    refilled: Option<Instant>,
    /// The newest report that was left out to keep to the rate.
    left_out: Option<ProgressParams>,
}

impl Call {
    pub(crate) fn new(core: Arc<Core>, parts: CallParts) -> Self {
        let credit = f64::from(core.limits.progress_per_second);
        let progress = Reported {
            token: parts.progress_token,
            last: None,
            credit,
            refilled: None,
            left_out: None,
        };
        Self {
            registry: core.registry.within(parts.nest),
            core,
            caller: parts.caller,
            id: parts.id,
            method: parts.method,
            outbox: parts.outbox,
            session: parts.session,
            rounds: parts.rounds,
            log_level: parts.log_level,
            started: clock::now(),
            timeout: parts.timeout,
            traceparent: parts.traceparent,
            progress: Mutex::new(progress),
            is_cancelled: AtomicBool::new(false),
            is_finished: AtomicBool::new(false),
            cancelled: Notify::new(),
            released: Notify::new(),
        }
    }

    /// When it must be over.
    pub(crate) fn deadline(&self) -> Instant {
        self.started + self.timeout
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
        // JSON has no words for other numbers.
        if !progress.is_finite() {
            return;
        }
        let total = total.filter(|total| total.is_finite());
        let rate = f64::from(self.core.limits.progress_per_second);
        let mut reported = self.lock_progress();
        let Some(token) = reported.token.clone() else { return };
        // All revisions: each report is greater than the last.
        if self.is_cancelled() || reported.last.is_some_and(|last| progress <= last) {
            return;
        }
        reported.last = Some(progress);
        let params = ProgressParams { progress_token: token, progress, total, message, meta: None };
        let now = clock::now();
        if let Some(refilled) = reported.refilled.replace(now) {
            let earned = now.duration_since(refilled).as_secs_f64() * rate;
            reported.credit = (reported.credit + earned).min(rate);
        }
        reported.left_out = if reported.credit >= 1.0 && self.send_progress(&params) {
            reported.credit -= 1.0;
            None
        } else {
            Some(params)
        };
    }

    /// The answer is next: sends the newest report that was left out, and refuses all that come
    /// later. That may be many: a handler can have started tasks that outlive it.
    pub(crate) fn finish(&self) {
        self.is_finished.store(true, Ordering::Release);
        let mut reported = self.lock_progress();
        if reported.token.take().is_some()
            && let Some(params) = reported.left_out.take()
        {
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
        let _ = params.adapt(self.caller.revision);
        move |out| {
            let _ = encode_notification(out, Progress::NAME, Some(&params));
        }
    }

    fn lock_progress(&self) -> MutexGuard<'_, Reported> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the client wants log messages of this level for this request.
    pub(crate) fn wants_log(&self, level: LoggingLevel) -> bool {
        match &self.session {
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
        if self.session.is_some() || !self.is_finished.load(Ordering::Acquire) {
            let _ = encode_notification(out, LoggingMessage::NAME, Some(params));
        }
    }
}

tokio::task_local! {
    /// The request whose handler is being polled.
    pub(crate) static CURRENT: Arc<Call>;
}

/// A handler that runs. Guards against its panics, and cuts it off when it waits for an answer that
/// only a repetition of the request can bring.
pub(crate) struct Running {
    /// `None` once it is over.
    handler: Option<Handling>,
    call: Arc<Call>,
    span: tracing::Span,
}

/// What a request is handled by.
pub(crate) enum Handling {
    /// A tool, whose answer is checked against its output schema.
    Tool(Arc<tool::Entry>, BoxFuture<ToolOutcome>),
    /// Anything else.
    Other(BoxFuture<Outcome>),
}

impl Handling {
    /// As one future.
    pub(crate) fn into_future(self) -> BoxFuture<Outcome> {
        match self {
            Self::Tool(tool, future) => Box::pin(async move { tool.finish(future.await) }),
            Self::Other(future) => future,
        }
    }

    fn poll(&mut self, cx: &mut TaskContext<'_>) -> Poll<Outcome> {
        match self {
            Self::Tool(tool, future) => {
                future.as_mut().poll(cx).map(|outcome| tool.finish(outcome))
            }
            Self::Other(future) => future.as_mut().poll(cx),
        }
    }
}

impl Running {
    pub(crate) fn new(call: Arc<Call>, handler: Handling) -> Self {
        let span = tracing::debug_span!(
            "request",
            method = call.method,
            id = %call.id,
            revision = %call.caller.revision,
            traceparent = tracing::field::Empty,
        );
        if let Some(trace) = &call.traceparent {
            span.record("traceparent", trace.as_str());
        }
        Self { handler: Some(handler), call, span }
    }

    pub(crate) fn call(&self) -> &Arc<Call> {
        &self.call
    }
}

/// Whoever still holds the context learns that nobody waits any more.
impl Drop for Running {
    fn drop(&mut self) {
        self.call.cancel();
    }
}

impl Future for Running {
    type Output = Outcome;

    fn poll(self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Outcome> {
        let this = self.get_mut();
        let _entered = this.span.enter();
        let call = &this.call;
        let handler = &mut this.handler;
        let polled = catch_unwind(AssertUnwindSafe(|| {
            CURRENT.sync_scope(Arc::clone(call), || poll_handler(handler, call, cx))
        }));
        let outcome = match polled {
            Ok(Poll::Ready(outcome)) => outcome,
            Ok(Poll::Pending) => return Poll::Pending,
            Err(panic) => Err(panicked(call.method, panic.as_ref())),
        };
        call.finish();
        Poll::Ready(outcome)
    }
}

/// Polls a handler, and drops it once it is over: what it drops may panic, too.
fn poll_handler(
    handler: &mut Option<Handling>,
    call: &Call,
    cx: &mut TaskContext<'_>,
) -> Poll<Outcome> {
    let Some(running) = handler else { return Poll::Pending };
    if let Some(rounds) = &call.rounds {
        rounds.watch(cx.waker());
    }
    let outcome = match running.poll(cx) {
        Poll::Ready(outcome) => outcome,
        Poll::Pending => match call.rounds.as_ref().and_then(|rounds| rounds.cut(call)) {
            Some(cut) => cut.map(Answer::InputRequired),
            None => return Poll::Pending,
        },
    };
    *handler = None;
    Poll::Ready(outcome)
}

/// What a handler panicked with stays in our log: it may hold what a client must not see.
pub(crate) fn panicked(method: &str, panic: &(dyn Any + Send)) -> ErrorObject {
    let message = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message");
    tracing::error!(method, message, "a handler panicked");
    ErrorObject::internal(format!("{method}: the handler failed unexpectedly"))
}
