//! Code that runs around every request: authorization, rate limits, auditing, metrics.

use std::sync::Arc;

use super::answer::Outcome;
use super::context::Context;
use super::handler::BoxFuture;

/// Something that runs around every request that has a handler or a list behind it.
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

/// A request on its way to its handler.
#[derive(Debug, Clone)]
pub struct Incoming {
    /// Which method.
    pub method: &'static str,
    /// The tool, prompt or resource, if the method has one.
    pub name: Option<String>,
    /// The context of the request: the caller, and everything that a handler can do.
    pub context: Context,
}

/// The remaining middleware and the handler.
#[must_use = "the request is not handled until `run` is called"]
pub struct Next {
    pub(crate) middleware: Arc<[Arc<dyn Middleware>]>,
    pub(crate) at: usize,
    pub(crate) handler: BoxFuture<Outcome>,
}

impl Next {
    /// Runs the next middleware or, after the last one, the handler.
    pub async fn run(mut self, incoming: Incoming) -> Outcome {
        match self.middleware.get(self.at).cloned() {
            Some(middleware) => {
                self.at += 1;
                middleware.handle(incoming, self).await
            }
            None => self.handler.await,
        }
    }
}
