//! Which call a message of the upstream server belongs to.
//!
//! Over Streamable HTTP a question or a log message usually arrives in the stream of its call,
//! which is polled by the task of the call: a task-local value tells. On a byte stream, in HTTP+SSE
//! and in a stream that belongs to no call nothing tells, so the message belongs to the only call
//! in flight; or to any one of several, if all come from one client, because it reaches the same
//! person. Otherwise a question is refused: to show it to somebody else's user would be worse.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bowline_proto::error::ErrorObject;
use bowline_proto::json::Json;
use bowline_proto::model::{
    InputRequest, ListRootsResult, LoggingMessageParams, ProgressParams, Root,
};
use tokio::sync::{mpsc, oneshot};

use super::losses::{Loss, Losses};
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
    /// Whether the caller has been asked and has not come back. It may never do.
    is_parked: AtomicBool,
}

/// How many questions of one call may wait.
const MOST_QUESTIONS: usize = 16;

impl Route {
    pub(super) fn new(context: &Context) -> (Arc<Self>, mpsc::Receiver<Question>) {
        let (questions, asked) = mpsc::channel(MOST_QUESTIONS);
        let context = Mutex::new(context.clone());
        (Arc::new(Self { context, questions, is_parked: AtomicBool::new(false) }), asked)
    }

    /// Waits for its caller to come back.
    pub(super) fn park(&self) {
        self.is_parked.store(true, Ordering::Relaxed);
    }

    /// Goes on with another request at the front.
    pub(super) fn lead_to(&self, context: &Context) {
        *lock(&self.context) = context.clone();
        self.is_parked.store(false, Ordering::Relaxed);
    }

    /// Passes progress on.
    pub(super) fn report(&self, progress: &ProgressParams) {
        let message = progress.message.as_deref().unwrap_or_default();
        lock(&self.context).progress(progress.progress, progress.total, message);
    }

    /// Passes on what a task does.
    pub(super) fn tell_status(&self, message: &str) {
        lock(&self.context).status(message);
    }

    /// Makes this the current call while the future is polled.
    pub(super) fn during<F: Future>(self: Arc<Self>, call: F) -> impl Future<Output = F::Output> {
        CURRENT.scope(self, call)
    }

    /// Whose call it is, if that is known.
    pub(super) fn principal(&self) -> Option<String> {
        let context = lock(&self.context);
        context.caller().principal.as_ref().map(|it| it.as_str().to_owned())
    }

    /// Whether both lead to the same session of the same client.
    fn meets(&self, other: &Self) -> bool {
        let ours = lock(&self.context).call.peer().session.clone();
        let theirs = lock(&other.context).call.peer().session.clone();
        matches!((ours, theirs), (Some(ours), Some(theirs)) if Arc::ptr_eq(&ours, &theirs))
    }
}

/// The calls in flight on one connection.
pub(super) struct Routes {
    all: Mutex<Vec<Arc<Route>>>,
    /// What a server gets that asks for roots, if not its caller's.
    roots: Option<Arc<[Root]>>,
    losses: Arc<Losses>,
    /// Whether all calls come from one client.
    has_one_caller: bool,
    /// Whether the server has asked anything outside the stream of a call, on any connection.
    has_asked: Arc<AtomicBool>,
}

/// Why a message of the server belongs to no call.
enum Unclear {
    NoCall,
    Several(usize),
}

impl Unclear {
    fn count(&self, losses: &Losses) {
        match self {
            Self::NoCall => losses.add(Loss::QuestionOutsideCall),
            Self::Several(_) => losses.add(Loss::AmbiguousQuestion),
        }
    }
}

impl From<Unclear> for ErrorObject {
    fn from(unclear: Unclear) -> Self {
        match unclear {
            Unclear::NoCall => Self::invalid_request(
                "this client is a proxy, and no call is in flight whose caller could be asked",
            ),
            Unclear::Several(count) => Self::invalid_request(format!(
                "this client is a proxy, and {count} calls of different callers are in flight: it \
                 cannot tell whom to ask"
            )),
        }
    }
}

impl Routes {
    /// No calls yet; `has_one_caller` if all of them will come from one client.
    pub(super) fn new(
        has_one_caller: bool,
        roots: Option<Arc<[Root]>>,
        losses: Arc<Losses>,
        has_asked: Arc<AtomicBool>,
    ) -> Self {
        Self { all: Mutex::default(), roots, losses, has_one_caller, has_asked }
    }

    /// Adds a call unless calls of others are in flight. Returns whether it was added.
    pub(super) fn add_alone(&self, route: &Arc<Route>) -> bool {
        let mut routes = lock(&self.all);
        let is_alone = routes.iter().all(|other| other.meets(route));
        if is_alone {
            routes.push(Arc::clone(route));
        }
        is_alone
    }

    pub(super) fn is_empty(&self) -> bool {
        lock(&self.all).is_empty()
    }

    pub(super) fn add(&self, route: &Arc<Route>) {
        lock(&self.all).push(Arc::clone(route));
    }

    pub(super) fn remove(&self, route: &Arc<Route>) {
        lock(&self.all).retain(|it| !Arc::ptr_eq(it, route));
    }

    /// The call that a message belongs to.
    fn find(&self) -> Result<Arc<Route>, Unclear> {
        let routes = lock(&self.all);
        let current = CURRENT.try_with(Arc::clone).ok();
        let current = current.filter(|it| routes.iter().any(|route| Arc::ptr_eq(it, route)));
        if let Some(current) = current {
            return Ok(current);
        }
        match routes.as_slice() {
            [] => Err(Unclear::NoCall),
            [first, rest @ ..]
                if self.has_one_caller || rest.iter().all(|other| other.meets(first)) =>
            {
                // The caller of a parked call may never come back.
                let running = |it: &&Arc<Route>| !it.is_parked.load(Ordering::Relaxed);
                Ok(Arc::clone(routes.iter().find(running).unwrap_or(first)))
            }
            several => Err(Unclear::Several(several.len())),
        }
    }

    /// Passes a question on to the caller it is for.
    pub(super) fn ask(
        &self,
        request: InputRequest,
    ) -> impl Future<Output = Result<Json, ErrorObject>> + Send + use<> {
        let asked = match (&request, &self.roots) {
            (InputRequest::ListRoots(_), Some(roots)) => Err(listed(roots)),
            _ => Ok(self.pass_on(request)),
        };
        async move {
            let gone = || ErrorObject::internal("the call that this question is for has ended");
            match asked {
                Err(answer) => answer,
                Ok(asked) => asked?.await.unwrap_or_else(|_| Err(gone())),
            }
        }
    }

    /// Where the answer to a question will come from.
    fn pass_on(
        &self,
        request: InputRequest,
    ) -> Result<oneshot::Receiver<Result<Json, ErrorObject>>, ErrorObject> {
        // In the stream of its call, a question is never ambiguous.
        if CURRENT.try_with(|_| ()).is_err() {
            self.has_asked.store(true, Ordering::Relaxed);
        }
        let found = self.find().inspect_err(|unclear| unclear.count(&self.losses));
        let route = found?;
        let (answer, answered) = oneshot::channel();
        let sent = route.questions.try_send(Question { request, answer });
        sent.map_err(|_| ErrorObject::internal("too many questions at a time"))?;
        Ok(answered)
    }

    /// Passes a log message on to the caller it is for. Without one it is dropped.
    pub(super) fn log(&self, message: &LoggingMessageParams) {
        match self.find() {
            Ok(route) => drop(lock(&route.context).call.try_log(message)),
            Err(_) => {
                self.losses.add(Loss::LogOutsideCall);
                tracing::debug!(?message, "a log message that belongs to no single call");
            }
        }
    }
}

/// The answer to a server that asks for roots.
fn listed(roots: &[Root]) -> Result<Json, ErrorObject> {
    let result = ListRootsResult { roots: roots.to_vec(), ..ListRootsResult::default() };
    Json::new(&result).map_err(|error| ErrorObject::internal(error.to_string()))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
