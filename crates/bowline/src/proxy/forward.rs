//! One call on its way to the upstream server, with everything that goes back meanwhile.
//!
//! A modern server returns its questions, and so does the front: under the same keys, with the
//! server's state inside its own. A legacy server asks while its call waits. A legacy caller is
//! asked at once. A modern one gets the question as the answer to its request, and the call to the
//! server is parked until the caller comes back.

use std::collections::BTreeMap;
use std::sync::Arc;

use bowline_proto::error::ErrorObject;
use bowline_proto::json::Json;
use bowline_proto::members::Members;
use bowline_proto::method::{ElicitationCreate, Method};
use bowline_proto::model::{InputRequiredResult, meta_key};
use bowline_proto::revision::{Outcome, Revision, decode_outcome};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use super::LONGEST;
use super::crossing::{adapted, answers, cancel, cancelled, refusal, visited, visits};
use super::losses::Loss;
use super::params::Hop;
use super::parked::{Parked, park, resume};
use super::pool::Lease;
use super::route::{Question, Route};
use super::upstream::Upstream;
use crate::client::{CallError, Client, TaskState};
use crate::server::Ask;
use crate::{Answer, AskError, Context, HandlerError, InputRequired, Step};

/// What the front remembers while its caller answers.
#[derive(Serialize, Deserialize)]
pub(super) enum Waiting {
    /// The server's state, the methods of its questions by key, and the answers that the caller was
    /// not asked for.
    Returned {
        state: Option<String>,
        methods: BTreeMap<String, String>,
        given: Vec<(String, Json)>,
    },
    /// So many visits to URLs, before which the server does nothing.
    Visiting(usize),
    /// The call is parked.
    Parked(String),
}

/// A call to the upstream server, in flight.
pub(super) struct InFlight {
    pub(super) upstream: Arc<Upstream>,
    pub(super) revision: Revision,
    pub(super) answer: Answering,
    pub(super) route: Arc<Route>,
    /// Ends after the call does.
    lease: Lease,
    /// Whether the request asks for a task, in the manner of 2025-11-25.
    requests_task: bool,
    pub(super) questions: mpsc::Receiver<Question>,
    /// Questions that the caller has been asked, in order.
    pub(super) asked: Vec<Question>,
    /// What the server asked for and the caller does not have.
    pub(super) missing: Option<AskError>,
}

type Answering = std::pin::Pin<Box<dyn Future<Output = Result<Json, CallError>> + Send>>;

/// Calls a method of the upstream server on behalf of a caller of the front.
pub(super) async fn forward<M: Method>(
    upstream: Arc<Upstream>,
    context: Context,
    mut params: Members<Json>,
) -> Result<Step<M::Result>, HandlerError> {
    let in_flight = match context.request_state::<Waiting>() {
        Some(Waiting::Parked(token)) => resume(&upstream, &context, &token)?,
        Some(Waiting::Visiting(count)) => {
            visited(&context, count)?;
            send(&upstream, &context, M::NAME, params).await?
        }
        Some(Waiting::Returned { state, methods, given }) => {
            let revision = upstream.revision(M::NAME).await?;
            let mut answers = answers(&context, revision, &methods)?;
            given.into_iter().for_each(|(key, answer)| answers.insert(key, answer));
            params.insert("inputResponses", json(&answers)?);
            if let Some(state) = state {
                params.insert("requestState", json(&state)?);
            }
            send(&upstream, &context, M::NAME, params).await?
        }
        None => send(&upstream, &context, M::NAME, params).await?,
    };
    wait::<M>(in_flight, &context).await
}

/// Sends a request that asks what the caller asked.
pub(super) async fn send(
    upstream: &Arc<Upstream>,
    context: &Context,
    method: &str,
    mut params: Members<Json>,
) -> Result<InFlight, HandlerError> {
    let revision = upstream.revision(method).await?;
    let level = context.call.wanted_level();
    let hop = Hop { revision, level, takes_tasks: upstream.has_tasks() };
    let meta = hop.meta(context)?;
    if !meta.is_empty() {
        params.insert("_meta", json(&meta)?);
    }
    let requests_task = params.get("task").is_some();
    let (route, questions) = Route::new(context);
    let lease = upstream.lease(&route, revision.is_modern()).await?;
    if !revision.is_modern() {
        lease.connection.want_logs(level).await;
    }
    let call = lease.connection.client.call_json(method, json(&params)?).without_cache();
    let mut call = call.timeout(LONGEST).idle_timeout(LONGEST);
    if context.call.wants_progress() {
        let route = Arc::clone(&route);
        call = call.on_progress(move |progress| route.report(&progress));
    }
    let answer = Box::pin(Arc::clone(&route).during(call.once()));
    let upstream = Arc::clone(upstream);
    let (asked, missing) = (Vec::new(), None);
    Ok(InFlight {
        upstream,
        revision,
        answer,
        route,
        lease,
        requests_task,
        questions,
        asked,
        missing,
    })
}

/// Waits for the result, and passes questions on meanwhile.
async fn wait<M: Method>(
    mut call: InFlight,
    context: &Context,
) -> Result<Step<M::Result>, HandlerError> {
    loop {
        let question = tokio::select! {
            biased;
            result = &mut call.answer => match call.finish::<M>(context, result)? {
                Finished::Done(step) => return Ok(step),
                Finished::Task(state) => {
                    call.follow(*state);
                    // The caller need not wait either.
                    context.background().await;
                    continue;
                }
            },
            Some(question) = call.questions.recv() => question,
        };
        if context.call.peer().session.is_none() || context.call.task().is_some() {
            match park::<M>(call, context, question).await? {
                Parked::Step(step) => return Ok(step),
                Parked::Unasked(unasked) => call = *unasked,
            }
        } else {
            let Some(question) = call.answerable(context, question) else { continue };
            let ask = Ask { call: &context.call, key: None };
            let answer = tokio::select! {
                biased;
                result = &mut call.answer => match call.finish::<M>(context, result)? {
                    Finished::Done(step) => return Ok(step),
                    Finished::Task(state) => {
                        call.follow(*state);
                        continue;
                    }
                },
                answer = ask.put(question.request.clone()) => answer,
            };
            let answer = match answer {
                Ok(answer) => adapted(answer, question.request.method(), call.revision),
                Err(AskError::Refused(error)) => Err(error),
                // The caller's revision has forms, and none like this.
                Err(AskError::Revision(_))
                    if question.request.method() == ElicitationCreate::NAME =>
                {
                    call.upstream.pool.losses().add(Loss::MultiSelect);
                    adapted(cancel()?, ElicitationCreate::NAME, call.revision)
                }
                Err(error) => Err(ErrorObject::internal(error.to_string())),
            };
            // The server may have withdrawn its question.
            let _ = question.answer.send(answer);
        }
    }
}

impl InFlight {
    /// Waits for the result of a method whose answer cannot carry questions: they are refused.
    pub(super) async fn unasked(
        mut self,
        context: &Context,
        method: &str,
    ) -> Result<Json, HandlerError> {
        loop {
            tokio::select! {
                biased;
                result = &mut self.answer => {
                    return result.map_err(|error| self.failed(context, error));
                }
                Some(question) = self.questions.recv() => {
                    self.upstream.pool.losses().add(Loss::QuestionOutsideCall);
                    let refusal = format!("this client is a proxy, whose caller cannot be asked in {method:?}");
                    let _ = question.answer.send(Err(ErrorObject::invalid_request(refusal)));
                }
            }
        }
    }

    pub(super) fn finish<M: Method>(
        &mut self,
        context: &Context,
        result: Result<Json, CallError>,
    ) -> Result<Finished<M::Result>, HandlerError> {
        // A server that copes without an answer has succeeded.
        if context.caller().revision.is_modern()
            && has_failed(&result)
            && let Some(missing) = self.missing.take()
        {
            return Err(missing.into());
        }
        let written = match result {
            Ok(written) => written,
            Err(error) => match visits(&error, self.revision, context) {
                Some(asked) => return asked.map(|asked| Finished::Done(Step::Ask(asked))),
                None => return Err(self.failed(context, error)),
            },
        };
        if self.requests_task
            && let Some(state) = Client::created_task(self.revision, &written)
                .map_err(|error| self.upstream.failed(error))?
        {
            return Ok(Finished::Task(Box::new(state)));
        }
        let outcome = decode_outcome::<M>(self.revision, written.as_raw());
        match outcome.map_err(|error| self.upstream.failed(error.into()))? {
            // To the letter where that is possible.
            Outcome::Complete(_)
                if context.caller().revision == self.revision && context.call.task().is_none() =>
            {
                Err(HandlerError::Instead(Box::new(Answer::Verbatim(written))))
            }
            Outcome::Complete(result) => {
                self.note_content(context, &written);
                Ok(Finished::Done(Step::Done(result)))
            }
            Outcome::InputRequired(asked) => {
                let asked = self.returned(context, asked)?;
                Ok(Finished::Done(Step::Ask(asked)))
            }
            Outcome::Task(created) => Ok(Finished::Task(Box::new(created.task.into()))),
        }
    }

    /// What the caller hears of a call that failed.
    fn failed(&self, context: &Context, error: CallError) -> HandlerError {
        match self.upstream.failed(error) {
            HandlerError::Refused(error) => {
                refusal(error, context.call.method, self.revision, context)
            }
            other => other,
        }
    }

    /// Counts structured content that the caller's revision takes only as text.
    fn note_content(&self, context: &Context, written: &Json) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Content {
            structured_content: Option<Json>,
        }
        if !self.revision.is_modern() || context.caller().revision.is_modern() {
            return;
        }
        let content = written.parse::<Content>().ok().and_then(|it| it.structured_content);
        if content.is_some_and(|content| !content.is_object()) {
            self.upstream.pool.losses().add(Loss::StructuredContent);
        }
    }

    /// The questions of a modern server, under the same keys, as far as the caller's revision has
    /// words for them.
    fn returned(
        &self,
        context: &Context,
        asked: InputRequiredResult,
    ) -> Result<InputRequired, HandlerError> {
        let mut requests = asked.input_requests.unwrap_or_default();
        let given = cancelled(&mut requests, context.caller().revision)?;
        given.iter().for_each(|_| self.upstream.pool.losses().add(Loss::MultiSelect));
        let methods = requests.iter().map(|(key, it)| (key.to_owned(), it.method().to_owned()));
        let methods = methods.collect();
        let waiting = Waiting::Returned { state: asked.request_state, methods, given };
        Ok(InputRequired { requests, state: Some(json(&waiting)?) })
    }

    /// Goes on with the task that the call has become at the server.
    pub(super) fn follow(&mut self, state: TaskState) {
        self.requests_task = false;
        let client = self.lease.connection.client.clone();
        let route = Arc::clone(&self.route);
        let ending = async move {
            let told = Arc::clone(&route);
            let hear = move |state: &TaskState| {
                if let Some(message) = &state.message {
                    told.tell_status(message);
                }
            };
            let waiting = client.end_of_task(state, LONGEST, hear);
            Ok(without_related_task(route.during(waiting).await?))
        };
        self.answer = Box::pin(ending);
    }
}

/// What a call has come to.
pub(super) enum Finished<T> {
    Done(Step<T>),
    /// The server goes on with it as a task.
    Task(Box<TaskState>),
}

/// The result of a task, without the mention of it: the task at the front is another one.
fn without_related_task(result: Json) -> Json {
    let Ok(mut members) = result.parse::<Members<Json>>() else { return result };
    let meta = members.get("_meta").and_then(|meta| meta.parse::<Members<Json>>().ok());
    let Some(mut meta) = meta else { return result };
    if meta.remove(meta_key::RELATED_TASK).is_none() {
        return result;
    }
    if meta.is_empty() {
        members.remove("_meta");
    } else if let Ok(meta) = Json::new(&meta) {
        members.insert("_meta", meta);
    }
    Json::new(&members).unwrap_or(result)
}

/// Whether the server reports a failure, of the protocol or of a tool.
fn has_failed(result: &Result<Json, CallError>) -> bool {
    #[derive(Deserialize)]
    struct Verdict {
        #[serde(rename = "isError", default)]
        is_error: bool,
    }
    match result {
        Ok(written) => written.parse::<Verdict>().is_ok_and(|it| it.is_error),
        Err(error) => error.as_refusal().is_some(),
    }
}

pub(super) fn json<T: Serialize + ?Sized>(value: &T) -> Result<Json, HandlerError> {
    Json::new(value).map_err(internal)
}

pub(super) fn internal(error: impl std::error::Error) -> HandlerError {
    HandlerError::Refused(ErrorObject::internal(error.to_string()))
}
