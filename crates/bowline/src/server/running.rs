//! A running handler: how it is polled, and how its panics are contained.

use std::any::Any;
use std::cell::RefCell;
use std::future::Future;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};

use bowline_proto::error::ErrorObject;

use super::answer::{Answer, Outcome};
use super::call::Call;
use super::handler::BoxFuture;
use super::output::ToolOutcome;
use super::tool;

/// A running handler. Catches its panics, and cuts it off when it waits for an answer that only a
/// repeated request can bring.
pub(crate) struct Running {
    /// `None` once it is over.
    handler: Option<Handling>,
    /// `None` while the handler is polled: the call is in `CURRENT` then.
    call: Option<Arc<Call>>,
    span: tracing::Span,
}

/// The future of a handler.
pub(crate) enum Handling {
    /// A tool, whose result is checked against its output schema.
    Tool(Arc<tool::Entry>, BoxFuture<ToolOutcome>),
    /// Anything else.
    Other(BoxFuture<Outcome>),
}

impl Handling {
    /// Converts it into one future.
    pub(crate) fn into_future(self) -> BoxFuture<Outcome> {
        match self {
            Self::Tool(tool, future) => Box::pin(async move { tool.finish(future.await) }),
            Self::Other(future) => future,
        }
    }

    /// Fills `outcome` once it is ready.
    fn poll(&mut self, cx: &mut TaskContext<'_>, outcome: &mut Option<Outcome>) {
        match self {
            Self::Tool(tool, future) => {
                if let Poll::Ready(ready) = future.as_mut().poll(cx) {
                    *outcome = Some(tool.finish(ready));
                }
            }
            Self::Other(future) => {
                if let Poll::Ready(ready) = future.as_mut().poll(cx) {
                    *outcome = Some(ready);
                }
            }
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
        Self { handler: Some(handler), call: Some(call), span }
    }

    /// The request.
    pub(crate) fn call(&self) -> &Arc<Call> {
        self.call.as_ref().expect("the handler is not being polled")
    }

    /// Polls the handler; fills `outcome` once it is done. For callers that write the answer right
    /// away, so that no large value is moved.
    pub(crate) fn step(&mut self, cx: &mut TaskContext<'_>, outcome: &mut Option<Outcome>) {
        let _entered = self.span.enter();
        let (handler, call) = (&mut self.handler, &mut self.call);
        let polled = catch_unwind(AssertUnwindSafe(|| poll_handler(handler, call, cx, outcome)));
        if let Err(panic) = polled {
            *outcome = Some(Err(panicked(self.call().method, panic.as_ref())));
        }
        if outcome.is_some() {
            self.call().finish();
        }
    }
}

/// Cancels the call for anything that still holds the context.
impl Drop for Running {
    fn drop(&mut self) {
        // Usually nothing does.
        if let Some(call) = self.call.as_ref().filter(|call| Arc::strong_count(call) > 1) {
            call.cancel();
        }
    }
}

impl Future for Running {
    type Output = Outcome;

    fn poll(self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Outcome> {
        let mut outcome = None;
        self.get_mut().step(cx, &mut outcome);
        outcome.map_or(Poll::Pending, Poll::Ready)
    }
}

/// Runs a handler to its end or to its deadline, whichever comes first.
pub(crate) fn until_deadline(running: Running) -> impl Future<Output = Outcome> {
    let call = Arc::clone(running.call());
    let timed = tokio::time::timeout_at(call.deadline(), running);
    async move {
        timed.await.unwrap_or_else(|_| {
            call.finish();
            Err(ErrorObject::internal(format!("{}: timed out", call.method)))
        })
    }
}

/// Polls a handler, and drops it once it is done: dropping may panic, too.
fn poll_handler(
    handler: &mut Option<Handling>,
    call: &mut Option<Arc<Call>>,
    cx: &mut TaskContext<'_>,
    outcome: &mut Option<Outcome>,
) {
    let Some(running) = handler else { return };
    if let Some(rounds) = call.as_ref().and_then(|call| call.rounds.as_ref()) {
        rounds.watch(cx.waker());
    }
    Current::during(call, || running.poll(cx, outcome));
    if outcome.is_none() {
        let cut = call.as_ref().and_then(|call| call.rounds.as_ref()?.cut(call));
        *outcome = cut.map(|cut| cut.map(Answer::InputRequired));
    }
    if outcome.is_some() {
        Current::during(call, || *handler = None);
    }
}

thread_local! {
    /// The request whose handler is being polled on this thread.
    static CURRENT: RefCell<Option<Arc<Call>>> = const { RefCell::new(None) };
}

/// The request whose handler is being polled on this thread.
pub(crate) fn current() -> Option<Arc<Call>> {
    CURRENT.try_with(|current| current.borrow().clone()).ok().flatten()
}

/// Makes a request the current one until it is dropped. Handlers can be polled within others: a
/// server may be a client of another one in the same process.
struct Current<'a>(&'a mut Option<Arc<Call>>);

impl<'a> Current<'a> {
    fn during<T>(call: &'a mut Option<Arc<Call>>, work: impl FnOnce() -> T) -> T {
        CURRENT.with_borrow_mut(|current| mem::swap(current, call));
        let _current = Self(call);
        work()
    }
}

impl Drop for Current<'_> {
    fn drop(&mut self) {
        CURRENT.with_borrow_mut(|current| mem::swap(current, self.0));
    }
}

/// Logs the message of a panic, which may contain what a client must not see, and keeps it there.
pub(crate) fn panicked(method: &str, panic: &(dyn Any + Send)) -> ErrorObject {
    let message = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message");
    tracing::error!(method, message, "a handler panicked");
    ErrorObject::internal(format!("{method}: the handler failed unexpectedly"))
}
