//! Asking in the modern era, in which servers send no requests: by replay.
//!
//! A question without an answer ends the request with `input_required`. The client repeats the
//! request with answers; the handler runs again from the top, and each question it asks finds its
//! answer at once. The answers of earlier rounds travel in `requestState`, sealed, so that any
//! replica with the same keys can continue and nobody can forge an answer. A state belongs to one
//! server (by name), principal, method, name and arguments. Answers to other questions than those
//! in it are ignored. Answers without a state are accepted, as the official conformance suite
//! demands: they say nothing that the same caller could not have answered a moment later.
//!
//! A state may be used again until it expires, because no replica remembers anything: a client that
//! lost the answer repeats its request, and gets the same. Whoever repeats it can only repeat a
//! request of their own, as they could without questions. A handler whose work must not be done
//! twice draws an id with [`Context::once`](super::Context::once) before it asks, and does nothing
//! for an id that is already settled.
//!
//! The run is cut when the handler is pending and a question is open: questions that are asked
//! together (`join!`) are sent together. Whatever else the handler was waiting for is dropped with
//! it and done again in the next round; [`Context::once`](super::Context::once) keeps what must not
//! be repeated.
//!
//! A call that runs as a [task](super::tasks) is replayed in the same way, in both eras. Its past
//! is kept in the task instead of a sealed state, and answers come by themselves.

mod past;
mod subject;
mod task;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context as TaskContext, Poll, Waker};

use bowline_proto::error::ErrorObject;
use bowline_proto::json::Json;
use bowline_proto::members::{Members, RawMembers};
use bowline_proto::model::{InputRequest, InputRequests, InputRequiredResult};
use tokio::sync::Notify;

pub(crate) use self::past::{AskedForm, Past, interrupted};
use self::past::{Recorded, fingerprint, fits};
pub(crate) use self::subject::Subject;
use super::ask::AskError;
use super::call::Call;
use super::core::Core;
use super::tasks::Link;

/// The questions and answers of one modern request, or of one task.
pub(crate) struct Rounds {
    subject: Subject,
    inner: Mutex<Inner>,
    /// The task that the request has become.
    task: OnceLock<Arc<Link>>,
    /// Whether it can become one while it runs, and whether its handler wants that.
    may_become_task: bool,
    wants_task: Notify,
    /// It stays an ordinary request, although its handler wants a task.
    is_refused: AtomicBool,
    /// It has become a task, or will not.
    settled: Notify,
    /// Whether a handler within middleware runs. It is cut then, and the middleware is not.
    is_held: AtomicBool,
}

/// Cuts at the handler within middleware, not around the middleware, while this exists.
pub(crate) struct Held<'a>(&'a AtomicBool);

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

#[derive(Default)]
struct Inner {
    past: Past,
    has_state: bool,
    /// Answers that came with this request.
    fresh: BTreeMap<String, Json>,
    /// Questions of this run that have no answer yet.
    open: InputRequests,
    /// The number of questions of each kind in this run, for their keys.
    counts: BTreeMap<&'static str, u32>,
    is_cut: bool,
    waiting: Vec<Waker>,
    /// Wakes the task that polls the handler: a question may be asked by another task.
    driver: Option<Waker>,
}

const PURPOSE: &str = "requestState";

impl Rounds {
    /// Reads the answers and the state of a request. That of a handler that passes requests on
    /// stands for a call elsewhere, and lasts as long as that, at most as long as this process.
    ///
    /// # Errors
    /// When the state was not issued for this request, or has expired, or an answer does not fit
    /// the form that a handler has returned.
    pub(crate) fn new(
        core: &Core,
        subject: Subject,
        responses: Option<&RawMembers<'_>>,
        state: Option<&str>,
    ) -> Result<Self, ErrorObject> {
        let mut inner = Inner::default();
        if let Some(token) = state {
            inner.past = open_state(core, &subject, token)
                .map_err(|error| if subject.passes_on { lost(&subject) } else { error })?;
            if !subject.passes_on && inner.past.expires < core.unix_seconds() {
                return Err(refused(&subject, "has expired; call again without it"));
            }
            inner.has_state = true;
        }
        for (key, answer) in responses.iter().flat_map(|responses| responses.iter()) {
            let answer = Json::copy_of(answer);
            inner.past.check_form(key, &answer)?;
            inner.fresh.insert(key.to_owned(), answer);
        }
        Ok(Self::with(subject, inner))
    }

    /// Another run of a task.
    pub(crate) fn again(subject: Subject, past: Past) -> Self {
        let answers = past.answers.iter().filter(|(key, _)| past.asked.contains_key(*key));
        let fresh = answers.map(|(key, it)| (key.clone(), it.answer.clone())).collect();
        Self::with(subject, Inner { past, has_state: true, fresh, ..Inner::default() })
    }

    fn with(subject: Subject, inner: Inner) -> Self {
        Self {
            subject,
            inner: Mutex::new(inner),
            task: OnceLock::new(),
            may_become_task: false,
            wants_task: Notify::new(),
            is_refused: AtomicBool::new(false),
            settled: Notify::new(),
            is_held: AtomicBool::new(false),
        }
    }

    /// What is known so far.
    pub(crate) fn past(&self) -> Past {
        self.lock().past.clone()
    }

    /// The key of the next question of a kind, which is the same in every run of a handler.
    pub(crate) fn next_key(&self, kind: &'static str) -> String {
        let mut inner = self.lock();
        let count = inner.counts.entry(kind).or_default();
        *count += 1;
        format!("{kind}-{count}")
    }

    /// Returns the answer to a question, or opens the question if there is none.
    pub(crate) fn poll_answer(
        &self,
        key: &str,
        question: &InputRequest,
        cx: &TaskContext<'_>,
    ) -> Poll<Result<Json, AskError>> {
        let mut inner = self.lock();
        if inner.is_cut {
            return Poll::Ready(Err(AskError::Closed));
        }
        let fingerprint = fingerprint(question);
        let is_taken = self.task().is_some() && inner.past.is_taken(key, &fingerprint);
        let key = match is_taken {
            true => &format!("{key}-{}", &fingerprint[..8]),
            false => key,
        };
        if let Some(answer) = inner.past.recorded(key, &fingerprint) {
            return Poll::Ready(Ok(answer));
        }
        if let Some(answer) = inner.accept_fresh(key, question, fingerprint) {
            return Poll::Ready(Ok(answer));
        }
        inner.open.insert(key, question.clone());
        inner.waiting.push(cx.waker().clone());
        if let Some(driver) = inner.driver.as_ref().filter(|it| !it.will_wake(cx.waker())) {
            driver.wake_by_ref();
        }
        Poll::Pending
    }

    pub(crate) fn hold(&self) -> Held<'_> {
        self.is_held.store(true, Ordering::Release);
        Held(&self.is_held)
    }

    pub(crate) fn is_held(&self) -> bool {
        self.is_held.load(Ordering::Acquire)
    }

    /// Sets the waker that is called when a question is opened.
    pub(crate) fn watch(&self, driver: &Waker) {
        self.lock().driver = Some(driver.clone());
    }

    /// A value that was kept in an earlier round.
    pub(crate) fn memo(&self, key: &str) -> Option<Json> {
        self.lock().past.memo.get(key).cloned()
    }

    /// Keeps a value for later rounds.
    pub(crate) fn keep(&self, key: &str, value: Json) {
        self.lock().past.memo.insert(key.to_owned(), value);
    }

    /// The answers that came with this request to the questions of the last round.
    pub(crate) fn answers(&self) -> Vec<(String, Json)> {
        let inner = self.lock();
        let was_asked = |key: &str| inner.has_state && inner.past.asked.contains_key(key);
        let answers = inner.fresh.iter().filter(|(key, _)| was_asked(key));
        answers.map(|(key, answer)| (inner.past.name_of(key), answer.clone())).collect()
    }

    /// Whether an earlier round has led here, as state says that this server has sealed.
    pub(crate) fn is_continued(&self) -> bool {
        self.lock().has_state
    }

    /// The state that the handler returned in the last round.
    pub(crate) fn own_state(&self) -> Option<Json> {
        self.lock().past.own.clone()
    }

    /// Ends the run with the questions that the handler returned.
    pub(crate) fn ask(
        &self,
        call: &Call,
        asked: InputRequiredResult,
    ) -> Result<InputRequiredResult, ErrorObject> {
        let own = asked.request_state.map(Json::from_text).transpose();
        let mut past = std::mem::take(&mut self.lock().past);
        past.own = own.map_err(|error| ErrorObject::internal(format!("request state: {error}")))?;
        let mut open = asked.input_requests.unwrap_or_default();
        if self.task().is_some() {
            open = past.rename(open);
        }
        past.forms = self.subject.forms(&open)?;
        self.next(call, past, open)
    }

    /// What the answer to a question that the handler returned must fit.
    ///
    /// # Errors
    /// When no answer can be checked.
    pub(crate) fn form_of(&self, asked: &InputRequest) -> Result<Option<AskedForm>, ErrorObject> {
        self.subject.form_of(asked)
    }

    /// Goes on to the next run of a handler whose questions have been answered.
    pub(crate) fn turn(
        &self,
        call: &Call,
        answers: Vec<(String, Json)>,
        own: Option<Json>,
    ) -> Result<(), ErrorObject> {
        let mut inner = self.lock();
        inner.past.round += 1;
        check_round(call, inner.past.round)?;
        inner.has_state = true;
        inner.past.own = own;
        inner.past.asked = answers.iter().map(|(key, _)| (key.clone(), String::new())).collect();
        inner.fresh = answers.into_iter().collect();
        Ok(())
    }

    /// Ends the run if it waits for an answer, and with it all questions that are open.
    pub(crate) fn cut(&self, call: &Call) -> Option<Result<InputRequiredResult, ErrorObject>> {
        let mut inner = self.lock();
        if inner.open.is_empty() {
            return None;
        }
        inner.is_cut = true;
        for waker in inner.waiting.drain(..) {
            waker.wake();
        }
        let open = std::mem::take(&mut inner.open);
        let mut past = std::mem::take(&mut inner.past);
        past.forms.clear();
        drop(inner);
        Some(self.next(call, past, open))
    }

    /// Seals the state of the next round. A task keeps it instead.
    fn next(
        &self,
        call: &Call,
        mut past: Past,
        open: InputRequests,
    ) -> Result<InputRequiredResult, ErrorObject> {
        match self.task() {
            // Without questions, it only waits.
            Some(_) if open.is_empty() => {}
            Some(task) => {
                past.round += 1;
                check_rounds(call, past.round, task.rounds())?;
            }
            None => {
                past.round += 1;
                check_round(call, past.round)?;
            }
        }
        past.asked =
            open.iter().map(|(key, question)| (key.to_owned(), fingerprint(question))).collect();
        if self.task().is_some() {
            self.lock().past = past;
            let input_requests = (!open.is_empty()).then_some(open);
            return Ok(InputRequiredResult { input_requests, ..InputRequiredResult::default() });
        }
        let core = &call.peer().core;
        past.expires = core.unix_seconds() + core.limits.request_state_age.as_secs();
        self.seal(call, &past, open)
    }

    fn seal(
        &self,
        call: &Call,
        state: &Past,
        open: Members<InputRequest>,
    ) -> Result<InputRequiredResult, ErrorObject> {
        let plain = serde_json::to_vec(state)
            .map_err(|error| ErrorObject::internal(format!("request state: {error}")))?;
        let core = &call.peer().core;
        let sealed = core.keys.seal(PURPOSE, &self.subject.binding(core), &plain);
        let token = sealed.map_err(|error| {
            let size = plain.len();
            ErrorObject::internal(format!(
                "{}: {size} bytes of request state: {error}",
                call.method
            ))
        })?;
        Ok(InputRequiredResult {
            input_requests: (!open.is_empty()).then_some(open),
            request_state: Some(token),
            ..InputRequiredResult::default()
        })
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// An answer that came with this request, if it fits the question; otherwise the question is
    /// asked again.
    fn accept_fresh(
        &mut self,
        key: &str,
        question: &InputRequest,
        fingerprint: String,
    ) -> Option<Json> {
        let answer = self.fresh.remove(key)?;
        let was_asked = !self.has_state || self.past.asked.get(key) == Some(&fingerprint);
        if !was_asked || !fits(question, &answer) {
            return None;
        }
        let recorded = Recorded { question: fingerprint, answer: answer.clone() };
        self.past.answers.insert(key.to_owned(), recorded);
        Some(answer)
    }
}

fn check_round(call: &Call, round: u32) -> Result<(), ErrorObject> {
    check_rounds(call, round, call.peer().core.limits.rounds)
}

fn check_rounds(call: &Call, round: u32, limit: u32) -> Result<(), ErrorObject> {
    if round <= limit {
        return Ok(());
    }
    let message = format!("{}: more than {limit} rounds of questions", call.method);
    Err(ErrorObject::internal(message))
}

fn open_state(core: &Core, subject: &Subject, token: &str) -> Result<Past, ErrorObject> {
    let plain = core
        .keys
        .open(PURPOSE, &subject.binding(core), token)
        .map_err(|_| refused(subject, "is not one that this server issued for this request"))?;
    serde_json::from_slice(&plain).map_err(|_| refused(subject, "is of another release"))
}

/// A state of a process that is gone, most likely.
fn lost(subject: &Subject) -> ErrorObject {
    interrupted(&format!("{}: the call of params.requestState", subject.method))
}

fn refused(subject: &Subject, why: &str) -> ErrorObject {
    ErrorObject::invalid_params(format!("{}: params.requestState {why}", subject.method))
}
