//! Code that runs around every request: logging, metrics, auditing, authorization, rate limits.

use std::borrow::Cow;
use std::sync::Arc;

use bowline_proto::json::Json;
use bowline_proto::members::RawMembers;
use bowline_proto::raw::Raw;

use super::answer::Outcome;
use super::context::Context;
use super::handler::BoxFuture;
use super::running::{Handling, Running, guarded};

/// Something that runs around every request.
///
/// An async closure will do. It may reject the request, or inspect and change its outcome:
///
/// ```
/// use bowline::{Incoming, Next, Server};
///
/// let watch = |incoming: Incoming, next: Next| async move {
///     let what = format!("{} {}", incoming.method, incoming.name.as_deref().unwrap_or(""));
///     let outcome = next.run(incoming).await;
///     eprintln!("{what}: {}", if outcome.is_ok() { "answered" } else { "failed" });
///     outcome
/// };
/// let server = Server::new("watched", "1.0.0").middleware(watch);
/// ```
///
/// # What it sees
///
/// Every request of every client, in every revision and on every transport, and each of its ends
/// exactly once, as what [`Next::run`] returns:
///
/// | end | outcome |
/// |---|---|
/// | a result | `Ok`; see [`Answer::is_tool_error`](crate::Answer::is_tool_error) |
/// | the client must answer a question first (2026-07-28) | `Ok(`[`Answer::InputRequired`](crate::Answer::InputRequired)`)`; the next round is a request of its own |
/// | the method, name or parameters are wrong | `Err`, [`Rejected`](crate::FailureKind::Rejected) |
/// | the caller lacks scopes | `Err`, [`Forbidden`](crate::FailureKind::Forbidden) |
/// | a limit is reached | `Err`, [`Busy`](crate::FailureKind::Busy) |
/// | the handler returns a protocol error | `Err`, [`Failed`](crate::FailureKind::Failed) |
/// | the handler panics or times out | `Err`, [`Panicked`](crate::FailureKind::Panicked) or [`TimedOut`](crate::FailureKind::TimedOut) |
/// | the client cancels the request or disconnects, the server stops | `Err`, [`Cancelled`](crate::FailureKind::Cancelled) or [`Disconnected`](crate::FailureKind::Disconnected) |
/// | a `subscriptions/listen` stream ends | as above; `Ok(`[`Answer::ListenEnd`](crate::Answer::ListenEnd)`)` if the server ends it |
///
/// The handler is dropped then, but middleware is not: it runs to its end. After a cancellation or
/// a disconnect it gets [`Limits::grace`](crate::Limits::grace) for that, and what it returns is
/// discarded. Nothing of the handler runs before `next.run` is called. A panic of middleware
/// becomes an internal error.
///
/// What never becomes a request is outside: messages that cannot be read; HTTP requests that are
/// rejected because of their headers, their token or their session; requests that a connection
/// cannot take, because their id is in use or the server is shutting down, and those that are
/// cancelled while they are still queued.
///
/// # Examples
///
/// Logging, metrics, an audit and a rate limit, all complete:
///
/// ```no_run
#[doc = include_str!("../../examples/middleware.rs")]
/// ```
pub trait Middleware: Send + Sync + 'static {
    /// Handles the request, usually by calling [`Next::run`].
    fn handle(&self, incoming: Incoming, next: Next) -> BoxFuture<Outcome>;
}

impl<F, R> Middleware for F
where
    F: Fn(Incoming, Next) -> R + Send + Sync + 'static,
    R: Future<Output = Outcome> + Send + 'static,
{
    fn handle(&self, incoming: Incoming, next: Next) -> BoxFuture<Outcome> {
        Box::pin(self(incoming, next))
    }
}

/// A request on its way to its handler. Changing it does not change what the handler gets.
#[derive(Debug, Clone)]
pub struct Incoming {
    /// Which method, as it came: it may be one that does not exist.
    pub method: Cow<'static, str>,
    /// The name of the tool or prompt, or the URI of the resource, if the request has one. It may
    /// be one that does not exist.
    pub name: Option<String>,
    /// The parameters, as they came.
    pub params: Option<Json>,
    /// The context of the request: the caller, the transport, and everything that a handler can do.
    pub context: Context,
}

impl Incoming {
    /// The arguments of a tool or prompt as JSON text, as they came.
    pub fn arguments(&self) -> Option<&str> {
        let params: RawMembers<'_> = self.params.as_ref()?.parse().ok()?;
        params.get("arguments").map(Raw::get)
    }
}

/// The remaining middleware and the handler.
#[must_use = "the request is not handled until `run` is called"]
pub struct Next {
    middleware: Arc<[Arc<dyn Middleware>]>,
    at: usize,
    context: Context,
    handler: Handling,
}

impl Next {
    /// Runs the next middleware or, after the last one, the handler.
    pub async fn run(mut self, incoming: Incoming) -> Outcome {
        match self.middleware.get(self.at).cloned() {
            Some(middleware) => {
                self.at += 1;
                middleware.handle(incoming, self).await
            }
            None => guarded(self.context.call, self.handler).await,
        }
    }
}

/// The middleware of a request that has some.
pub(crate) struct Around {
    pub(crate) middleware: Arc<[Arc<dyn Middleware>]>,
    pub(crate) incoming: Incoming,
}

impl Around {
    pub(crate) fn run(self, handler: Handling) -> Running {
        let Self { middleware, incoming } = self;
        let context = incoming.context.clone();
        let next = Next { middleware, at: 0, context, handler };
        Running::middleware(next, incoming)
    }
}
