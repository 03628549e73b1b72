//! A running handler: how it is polled, and how its panics are contained.

mod span;

use std::any::Any;
use std::cell::RefCell;
use std::future::Future;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll, Waker};
use std::time::Duration;

use bowline_proto::error::ErrorObject;

use super::answer::{Answer, Outcome};
use super::call::Call;
use super::failure::{Failure, FailureKind};
use super::handler::BoxFuture;
use super::middleware::{Incoming, Next};
use super::output::ToolOutcome;
use super::rounds::Rounds;
use super::{step, tool};

/// A running handler, or the middleware around one. Catches panics, and cuts it off when it waits
/// for an answer that only a repeated request can bring.
///
/// When it is dropped, a handler is dropped with it. Middleware goes on to its end: it is told that
/// nobody waits for its request any more, and gets a short time for what it does about that.
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
    /// Middleware, with a handler in its innermost part.
    Chain(BoxFuture<Outcome>),
}

impl Handling {
    fn is_chain(&self) -> bool {
        matches!(self, Self::Chain(_))
    }

    /// An outcome that is already known.
    pub(crate) fn ready(outcome: Outcome) -> Self {
        Self::Other(Box::pin(std::future::ready(outcome)))
    }

    /// Converts it into one future.
    pub(crate) fn into_future(self) -> BoxFuture<Outcome> {
        match self {
            Self::Tool(tool, future) => Box::pin(async move { tool.finish(future.await) }),
            Self::Other(future) | Self::Chain(future) => future,
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
            Self::Other(future) | Self::Chain(future) => {
                if let Poll::Ready(ready) = future.as_mut().poll(cx) {
                    *outcome = Some(ready);
                }
            }
        }
    }
}

impl Running {
    /// `target` names the tool, prompt or resource for the span of the request, if anyone wants
    /// one.
    pub(crate) fn new(
        call: Arc<Call>,
        handler: Handling,
        target: impl FnOnce() -> Option<String>,
    ) -> Self {
        let span = span::open(&call, target);
        Self { handler: Some(handler), call: Some(call), span }
    }

    /// Middleware and the handler within it.
    pub(crate) fn middleware(next: Next, incoming: Incoming) -> Self {
        let call = Arc::clone(&incoming.context.call);
        let span = span::open(&call, || incoming.name.clone());
        let handler = Handling::Chain(Box::pin(next.run(incoming)));
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
        let polling = || poll_handler(handler, call, cx, outcome, Place::Outermost);
        if let Err(panic) = catch_unwind(AssertUnwindSafe(polling)) {
            discard(handler, call);
            *outcome = Some(Err(panicked(self.call().method, panic.as_ref())));
        }
        if let Some(outcome) = outcome {
            self.call().finish();
            span::end(&self.span, outcome);
        }
    }

    /// Lets middleware go on although nobody waits for its request any more.
    fn abandon(&mut self, chain: BoxFuture<Outcome>) {
        let Some(call) = self.call.take() else { return };
        // Unless it was cancelled.
        call.disconnect();
        let core = Arc::clone(&call.peer().core);
        let span = mem::replace(&mut self.span, tracing::Span::none());
        let mut rest = Self { handler: Some(Handling::Other(chain)), call: Some(call), span };
        let mut outcome = None;
        // Most is done at once, without a task.
        rest.step(&mut TaskContext::from_waker(Waker::noop()), &mut outcome);
        if outcome.is_none() {
            core.leftovers.spawn(core.limits.grace, rest);
        }
    }
}

/// Cancels the call for anything that still holds the context.
impl Drop for Running {
    fn drop(&mut self) {
        if let Some(Handling::Chain(chain)) = self.handler.take_if(|it| it.is_chain()) {
            return self.abandon(chain);
        }
        // Usually nothing does, and a task goes on.
        let held = self.call.as_ref().filter(|call| Arc::strong_count(call) > 1);
        if let Some(call) = held.filter(|call| call.task().is_none()) {
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

/// Runs a handler to its end or to its deadline, whichever comes first. Middleware gets a little
/// longer, because the handler within it is the one that has the deadline.
pub(crate) fn until_deadline(running: Running) -> impl Future<Output = Outcome> {
    let call = Arc::clone(running.call());
    let is_chain = running.handler.as_ref().is_some_and(Handling::is_chain);
    let more = if is_chain { call.peer().core.limits.grace } else { Duration::ZERO };
    let timed = tokio::time::timeout_at(call.deadline() + more, running);
    async move {
        timed.await.unwrap_or_else(|_| {
            call.finish();
            Err(timed_out(call.method))
        })
    }
}

fn timed_out(method: &str) -> Failure {
    Failure::new(FailureKind::TimedOut, ErrorObject::internal(format!("{method}: timed out")))
}

/// Runs a handler within middleware. Whatever ends it (a panic, its deadline, a question, a
/// cancellation, a disconnect) is an outcome for the middleware, which itself goes on.
///
/// A call that may become a task looks after its handler itself.
pub(crate) async fn guarded(call: Arc<Call>, handler: Handling) -> Outcome {
    if let Handling::Chain(chain) = handler {
        return chain.await;
    }
    let _held = call.rounds.as_deref().map(Rounds::hold);
    let mut running = Guarded { handler: Some(handler), call: Some(Arc::clone(&call)) };
    // The clock starts when the handler first waits. A call that becomes a task gets more time.
    let deadline = async {
        loop {
            let deadline = call.deadline();
            tokio::time::sleep_until(deadline).await;
            if call.deadline() <= deadline {
                return;
            }
        }
    };
    tokio::select! {
        biased;
        () = call.cancelled() => Err(call.abandonment()),
        outcome = &mut running => outcome,
        () = deadline => Err(timed_out(call.method)),
    }
}

/// A handler within middleware.
struct Guarded {
    handler: Option<Handling>,
    call: Option<Arc<Call>>,
}

impl Future for Guarded {
    type Output = Outcome;

    fn poll(self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Outcome> {
        let mut outcome = None;
        let Self { handler, call } = self.get_mut();
        let polling = || poll_handler(handler, call, cx, &mut outcome, Place::Innermost);
        if let Err(panic) = catch_unwind(AssertUnwindSafe(polling)) {
            discard(handler, call);
            let method = call.as_ref().map_or("request", |call| call.method);
            outcome = Some(Err(panicked(method, panic.as_ref())));
        }
        outcome.map_or(Poll::Pending, Poll::Ready)
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        discard(&mut self.handler, &mut self.call);
    }
}

/// Drops a handler, which may panic.
fn discard(handler: &mut Option<Handling>, call: &mut Option<Arc<Call>>) {
    if handler.is_none() {
        return;
    }
    let dropping = || Current::during(call, || drop(handler.take()));
    if let Err(panic) = catch_unwind(AssertUnwindSafe(dropping)) {
        // It is logged; its request has an outcome already.
        let _ = panicked("a dropped handler", panic.as_ref());
    }
}

/// Where a handler runs, as seen from its middleware.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Around all middleware, or without any.
    Outermost,
    /// Within all middleware.
    Innermost,
}

/// Polls a handler, and drops it once it is done: dropping may panic, too.
fn poll_handler(
    handler: &mut Option<Handling>,
    call: &mut Option<Arc<Call>>,
    cx: &mut TaskContext<'_>,
    outcome: &mut Option<Outcome>,
    place: Place,
) {
    let Some(is_chain) = handler.as_ref().map(Handling::is_chain) else { return };
    if let Some(rounds) = rounds(call.as_ref(), place) {
        rounds.watch(cx.waker());
    }
    Current::during(call, || {
        if let Some(running) = handler {
            running.poll(cx, outcome);
        }
        if outcome.is_some() {
            *handler = None;
        }
    });
    match outcome {
        // What middleware returns was sealed further in.
        Some(Ok(Answer::InputRequired(asked))) if !is_chain => {
            if let Some(call) = call {
                *outcome = Some(step::seal(call, mem::take(asked)));
            }
        }
        Some(_) => {}
        None => {
            let cut = rounds(call.as_ref(), place).and_then(|rounds| rounds.cut(call.as_ref()?));
            if let Some(cut) = cut {
                *outcome = Some(cut.map(Answer::InputRequired).map_err(Failure::from));
                Current::during(call, || *handler = None);
            }
        }
    }
}

/// The questions of a request, if it may be cut off here: middleware may ask, too, but while its
/// handler runs, only that is cut off.
fn rounds(call: Option<&Arc<Call>>, place: Place) -> Option<&Rounds> {
    let rounds = call?.rounds.as_deref()?;
    (place == Place::Innermost || !rounds.is_held()).then_some(rounds)
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
pub(crate) fn panicked(method: &str, panic: &(dyn Any + Send)) -> Failure {
    let message = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message");
    tracing::error!(method, message, "a handler panicked");
    let error = ErrorObject::internal(format!("{method}: the handler failed unexpectedly"));
    Failure::new(FailureKind::Panicked, error)
}
