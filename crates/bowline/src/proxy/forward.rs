//! One call on its way to the upstream server, with everything that goes back meanwhile.
//!
//! A modern server returns its questions, and so does the front: under the same keys, with the
//! server's state inside its own. A legacy server asks while its call waits. A legacy caller is
//! asked at once. A modern one gets the question as the answer to its request, and the call to the
//! server is parked until the caller comes back.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bowline_proto::error::ErrorObject;
use bowline_proto::json::{Extra, Json};
use bowline_proto::members::Members;
use bowline_proto::method::{CreateMessage, ElicitationCreate, Method};
use bowline_proto::model::{
    CreateMessageResult, ElicitResult, InputRequiredResult, LoggingLevel, Settings, meta_key,
    task_extension,
};
use bowline_proto::revision::{Adapt, Outcome, Revision, decode_outcome};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use super::pool::Lease;
use super::route::{Question, Route};
use super::upstream::Upstream;
use crate::client::{CallError, Client, TaskState};
use crate::server::{Ask, check_capability};
use crate::{Answer, AskError, Context, HandlerError, InputRequired, Step};

/// The front's own limit on a handler ends a call first.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// What the front remembers while its caller answers.
#[derive(Serialize, Deserialize)]
enum Waiting {
    /// The server's state, and the methods of its questions by key.
    Returned { state: Option<String>, methods: BTreeMap<String, String> },
    /// The call is parked.
    Parked(String),
}

/// A call to the upstream server, in flight.
pub(super) struct InFlight {
    upstream: Arc<Upstream>,
    revision: Revision,
    answer: Answering,
    route: Arc<Route>,
    /// Ends after the call does.
    lease: Lease,
    /// Whether the request asks for a task, in the manner of 2025-11-25.
    requests_task: bool,
    questions: mpsc::Receiver<Question>,
    /// Questions that the caller has been asked, in order.
    asked: Vec<Question>,
    /// What the server asked for and the caller does not have.
    missing: Option<AskError>,
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
        Some(Waiting::Returned { state, methods }) => {
            let revision = upstream.revision(M::NAME).await?;
            params.insert("inputResponses", json(&answers(&context, revision, &methods)?)?);
            if let Some(state) = state {
                params.insert("requestState", json(&state)?);
            }
            send::<M>(&upstream, &context, params).await?
        }
        None => send::<M>(&upstream, &context, params).await?,
    };
    wait::<M>(in_flight, &context).await
}

async fn send<M: Method>(
    upstream: &Arc<Upstream>,
    context: &Context,
    mut params: Members<Json>,
) -> Result<InFlight, HandlerError> {
    let revision = upstream.revision(M::NAME).await?;
    let level = context.call.wanted_level();
    let takes_tasks = upstream.has_tasks();
    let meta = meta(context, revision, level, takes_tasks)?;
    if !meta.is_empty() {
        params.insert("_meta", json(&meta)?);
    }
    let requests_task = params.get("task").is_some();
    let (route, questions) = Route::new(context);
    let lease = upstream.pool.lease(&route, revision.is_modern()).await?;
    if !revision.is_modern() {
        lease.connection.want_logs(level).await;
    }
    let call = lease.connection.client.call_json(M::NAME, json(&params)?).without_cache();
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

/// What a request says about its caller: to a modern server, what the caller of the front can do.
fn meta(
    context: &Context,
    revision: Revision,
    level: Option<LoggingLevel>,
    takes_tasks: bool,
) -> Result<Members<Json>, HandlerError> {
    let mut meta = Members::new();
    if let Some(trace) = context.traceparent() {
        meta.insert(meta_key::TRACEPARENT, json(trace)?);
    }
    if revision.is_modern() {
        let mut capabilities = context.caller().capabilities.clone();
        // Extensions are agreed on between neighbours. The proxy itself waits for tasks.
        capabilities.extensions = takes_tasks.then(|| {
            let mut settings = Settings::default();
            settings.insert(task_extension::ID, Extra::new());
            settings
        });
        capabilities.experimental = None;
        capabilities.adapt(revision).map_err(internal)?;
        meta.insert(meta_key::CLIENT_CAPABILITIES, json(&capabilities)?);
        if let Some(level) = level {
            meta.insert(meta_key::LOG_LEVEL, json(&level)?);
        }
    }
    Ok(meta)
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
        let client = &context.caller().capabilities;
        if let Err(error) = check_capability(&question.request, client) {
            let refusal =
                ErrorObject::invalid_request(format!("the caller cannot answer: {error}"));
            let _ = question.answer.send(Err(refusal));
            call.missing = Some(error);
        } else if context.call.peer().session.is_none() || context.call.task().is_some() {
            return park(call, context, question);
        } else {
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
                Err(error) => Err(ErrorObject::internal(error.to_string())),
            };
            // The server may have withdrawn its question.
            let _ = question.answer.send(answer);
        }
    }
}

/// Returns questions to a modern caller, and keeps the call until it comes back.
fn park<T>(
    mut call: InFlight,
    context: &Context,
    first: Question,
) -> Result<Step<T>, HandlerError> {
    call.asked = vec![first];
    while let Ok(question) = call.questions.try_recv() {
        call.asked.push(question);
    }
    let mut required = InputRequired::new();
    for (place, question) in call.asked.iter().enumerate() {
        required = required.ask(format!("upstream-{place}"), question.request.clone());
    }
    call.route.park();
    let age = context.call.peer().core.limits.request_state_age;
    let upstream = Arc::clone(&call.upstream);
    let token = upstream.park(call, age)?;
    Ok(Step::Ask(required.state(json(&Waiting::Parked(token))?)))
}

/// Goes on with a call whose questions the caller has answered.
fn resume(
    upstream: &Arc<Upstream>,
    context: &Context,
    token: &str,
) -> Result<InFlight, HandlerError> {
    let mut call = upstream.unpark(token).ok_or_else(|| {
        let name = &upstream.name;
        HandlerError::Refused(ErrorObject::invalid_params(format!(
            "the call to {name:?} no longer waits for this answer; help: call again from the start"
        )))
    })?;
    call.route.lead_to(context);
    for (place, question) in std::mem::take(&mut call.asked).into_iter().enumerate() {
        let answer = match context.answer::<Json>(&format!("upstream-{place}")) {
            Some(answer) => adapted(answer, question.request.method(), call.revision),
            None => Err(ErrorObject::internal("the caller did not answer this question")),
        };
        let _ = question.answer.send(answer);
    }
    Ok(call)
}

impl InFlight {
    fn finish<M: Method>(
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
        let written = result.map_err(|error| self.upstream.failed(error))?;
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
            Outcome::Complete(result) => Ok(Finished::Done(Step::Done(result))),
            Outcome::InputRequired(asked) => {
                returned(asked).map(|asked| Finished::Done(Step::Ask(asked)))
            }
            Outcome::Task(created) => Ok(Finished::Task(Box::new(created.task.into()))),
        }
    }

    /// Goes on with the task that the call has become at the server.
    fn follow(&mut self, state: TaskState) {
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
enum Finished<T> {
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

/// The questions of a modern server, under the same keys.
fn returned(asked: InputRequiredResult) -> Result<InputRequired, HandlerError> {
    let requests = asked.input_requests.unwrap_or_default();
    let methods = requests.iter().map(|(key, it)| (key.to_owned(), it.method().to_owned()));
    let waiting = Waiting::Returned { state: asked.request_state, methods: methods.collect() };
    Ok(InputRequired { requests, state: Some(json(&waiting)?) })
}

/// The caller's answers, as the server's revision writes them.
fn answers(
    context: &Context,
    revision: Revision,
    methods: &BTreeMap<String, String>,
) -> Result<Members<Json>, HandlerError> {
    let mut answers = Members::new();
    for (key, method) in methods {
        if let Some(answer) = context.answer::<Json>(key) {
            let answer = adapted(answer, method, revision).map_err(HandlerError::Refused)?;
            answers.insert(key.as_str(), answer);
        }
    }
    Ok(answers)
}

fn adapted(answer: Json, method: &str, to: Revision) -> Result<Json, ErrorObject> {
    fn typed<T: DeserializeOwned + Serialize + Adapt>(
        answer: &Json,
        to: Revision,
    ) -> Result<Json, ErrorObject> {
        let invalid = |error: &dyn std::fmt::Display| {
            ErrorObject::internal(format!("the caller's answer cannot be passed on: {error}"))
        };
        let mut result: T = answer.parse().map_err(|error| invalid(&error))?;
        result.adapt(to).map_err(|error| invalid(&error))?;
        Json::new(&result).map_err(|error| invalid(&error))
    }
    match method {
        ElicitationCreate::NAME => typed::<ElicitResult>(&answer, to),
        CreateMessage::NAME => typed::<CreateMessageResult>(&answer, to),
        _ => Ok(answer),
    }
}

pub(super) fn json<T: Serialize + ?Sized>(value: &T) -> Result<Json, HandlerError> {
    Json::new(value).map_err(internal)
}

fn internal(error: impl std::error::Error) -> HandlerError {
    HandlerError::Refused(ErrorObject::internal(error.to_string()))
}
