//! Which call a message of the upstream server belongs to.
//!
//! Over HTTP a question or a log message arrives in the stream of its call, which is polled by the
//! task of the call: a task-local value tells. On a byte stream nothing tells, so the message
//! belongs to the only call in flight; or to any one of several, if all come from one session of
//! one client, because it reaches the same person. Otherwise a question is refused: to show it to
//! somebody else's user would be worse.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bowline_proto::error::ErrorObject;
use bowline_proto::json::Json;
use bowline_proto::model::{InputRequest, LoggingMessageParams, ProgressParams};
use tokio::sync::{mpsc, oneshot};

use crate::Context;

tokio::task_local! {
    /// The call that is being polled.
    static CURRENT: Arc<Route>;
}

/// A question of the upstream server that waits for its answer.
pub(super) struct Question {
    pub(super) request: InputRequest,
    pub(super) answer: oneshot::Sender<Result<Json, ErrorObject>>,
}

/// The way from the upstream server back to the caller of one call.
pub(super) struct Route {
    /// The request at the front. It changes from round to round.
    context: Mutex<Context>,
    questions: mpsc::Sender<Question>,
}

/// How many questions of one call may wait.
const MOST_QUESTIONS: usize = 16;

impl Route {
    pub(super) fn new(context: &Context) -> (Arc<Self>, mpsc::Receiver<Question>) {
        let (questions, asked) = mpsc::channel(MOST_QUESTIONS);
        (Arc::new(Self { context: Mutex::new(context.clone()), questions }), asked)
    }

    /// Goes on with another request at the front.
    pub(super) fn lead_to(&self, context: &Context) {
        *lock(&self.context) = context.clone();
    }

    /// Passes progress on.
    pub(super) fn report(&self, progress: &ProgressParams) {
        let message = progress.message.as_deref().unwrap_or_default();
        lock(&self.context).progress(progress.progress, progress.total, message);
    }

    /// Makes this the current call while the future is polled.
    pub(super) fn during<F: Future>(self: Arc<Self>, call: F) -> impl Future<Output = F::Output> {
        CURRENT.scope(self, call)
    }

    /// Whether both lead to the same session of the same client.
    fn meets(&self, other: &Self) -> bool {
        let ours = lock(&self.context).call.peer().session.clone();
        let theirs = lock(&other.context).call.peer().session.clone();
        matches!((ours, theirs), (Some(ours), Some(theirs)) if Arc::ptr_eq(&ours, &theirs))
    }
}

/// The calls in flight.
#[derive(Default)]
pub(super) struct Routes(Mutex<Vec<Arc<Route>>>);

impl Routes {
    pub(super) fn add(&self, route: &Arc<Route>) {
        lock(&self.0).push(Arc::clone(route));
    }

    pub(super) fn remove(&self, route: &Arc<Route>) {
        lock(&self.0).retain(|it| !Arc::ptr_eq(it, route));
    }

    /// The call that a message belongs to.
    fn find(&self) -> Result<Arc<Route>, ErrorObject> {
        let routes = lock(&self.0);
        let current = CURRENT.try_with(Arc::clone).ok();
        let current = current.filter(|it| routes.iter().any(|route| Arc::ptr_eq(it, route)));
        if let Some(current) = current {
            return Ok(current);
        }
        match routes.as_slice() {
            [] => Err(ErrorObject::invalid_request(
                "this client is a proxy, and no call is in flight whose caller could be asked",
            )),
            [first, rest @ ..] if rest.iter().all(|other| other.meets(first)) => {
                Ok(Arc::clone(first))
            }
            several => Err(ErrorObject::invalid_request(format!(
                "this client is a proxy, and {} calls of different callers are in flight: it \
                 cannot tell whom to ask",
                several.len()
            ))),
        }
    }

    /// Passes a question on to the caller it is for.
    pub(super) fn ask(
        &self,
        request: InputRequest,
    ) -> impl Future<Output = Result<Json, ErrorObject>> + Send + use<> {
        let asked = self.find().and_then(|route| {
            let (answer, answered) = oneshot::channel();
            let sent = route.questions.try_send(Question { request, answer });
            sent.map_err(|_| ErrorObject::internal("too many questions at a time"))?;
            Ok(answered)
        });
        async move {
            let gone = || ErrorObject::internal("the call that this question is for has ended");
            asked?.await.unwrap_or_else(|_| Err(gone()))
        }
    }

    /// Passes a log message on to the caller it is for. Without one it is dropped.
    pub(super) fn log(&self, message: &LoggingMessageParams) {
        match self.find() {
            Ok(route) => drop(lock(&route.context).call.try_log(message)),
            Err(_) => tracing::debug!(?message, "a log message that belongs to no single call"),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
