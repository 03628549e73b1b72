//! Handlers that return questions themselves, instead of asking through their context.
//!
//! In the modern era the questions become the answer to the request, with the handler's state
//! sealed beside them; the client repeats the request with its answers. In the legacy era the
//! client is asked at once, and the handler runs again with the answers. The handler cannot tell.

use std::time::Duration;

use bowline_proto::error::ErrorObject;
use bowline_proto::json::Json;
use bowline_proto::members::Members;
use bowline_proto::model::{InputRequest, InputRequests, InputRequiredResult};

use super::answer::{Answer, Outcome};
use super::ask::{Ask, AskError, check_capability};
use super::call::Call;
use super::context::Context;
use super::error::HandlerError;
use super::handler::BoxFuture;
use super::output::{ToolOutcome, ToolOutput};
use super::prompt::{PromptOutcome, PromptOutput};
use super::resource::{ResourceOutcome, ResourceOutput};

/// What a handler returns that asks without waiting: a result, or questions.
///
/// Most handlers do better with [`Context::elicit`] and its neighbours. This is for state machines
/// and for gateways: the handler returns, and starts again with [`Context::answer`] and
/// [`Context::request_state`] once the client has answered.
///
/// ```
/// use bowline::model::{ElicitResult, ElicitUrlParams, ElicitParams, InputRequest};
/// use bowline::{Context, InputRequired, Json, Server, Step, Tool};
/// use serde_json::json;
///
/// let schema = json!({ "type": "object" });
/// let pay = Tool::raw("pay", schema, |context: Context, _: Json| async move {
///     match context.answer::<ElicitResult>("consent") {
///         Some(_) => Step::Done("paid"),
///         None => {
///             let page = ElicitUrlParams {
///                 message: "Please pay here".to_owned(),
///                 url: "https://pay.example/1".to_owned(),
///                 ..ElicitUrlParams::default()
///             };
///             let question = InputRequest::Elicit(ElicitParams::Url(page));
///             let asked = InputRequired::new().ask("consent", question);
///             Step::Ask(asked.state(json!({ "order": 1 })))
///         }
///     }
/// });
/// let server = Server::new("shop", "1.0.0").with(pay);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum Step<T> {
    /// The result.
    Done(T),
    /// Questions that the client must answer first.
    Ask(InputRequired),
}

/// Questions that the client must answer first, and what the handler wants to remember meanwhile.
#[derive(Debug, Clone, PartialEq, Default)]
#[must_use = "questions do nothing until they are returned in `Step::Ask`"]
pub struct InputRequired {
    /// The questions, by the key that their answers come back under.
    pub requests: InputRequests,
    /// The state of the handler. Clients can neither read nor change it.
    pub state: Option<Json>,
}

impl InputRequired {
    /// No questions yet. Without any, the client just calls again after a while.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a question.
    pub fn ask(mut self, key: impl Into<String>, question: InputRequest) -> Self {
        self.requests.insert(key, question);
        self
    }

    /// Sets the state, which [`Context::request_state`] returns in the next run.
    pub fn state(mut self, state: impl Into<Json>) -> Self {
        self.state = Some(state.into());
        self
    }

    /// The questions as an answer, with the state in plain text: it is sealed on its way out.
    pub(crate) fn into_answer(self) -> Answer {
        let Self { requests, state } = self;
        Answer::InputRequired(InputRequiredResult {
            input_requests: (!requests.is_empty()).then_some(requests),
            request_state: state.map(|state| state.as_str().to_owned()),
            ..InputRequiredResult::default()
        })
    }
}

impl<T: ToolOutput> ToolOutput for Step<T> {
    const ASKS: bool = true;

    fn into_outcome(self) -> ToolOutcome {
        self.done()?.into_outcome()
    }

    fn output_schema() -> Option<serde_json::Value> {
        T::output_schema()
    }
}

impl<T: PromptOutput> PromptOutput for Step<T> {
    const ASKS: bool = true;

    fn into_prompt(self) -> PromptOutcome {
        self.done()?.into_prompt()
    }
}

impl<T: ResourceOutput> ResourceOutput for Step<T> {
    const ASKS: bool = true;

    fn into_contents(self, uri: &str) -> ResourceOutcome {
        self.done()?.into_contents(uri)
    }
}

/// A result as another server wrote it, in the revision of the caller: everything in it stays,
/// known or not. Only the identity of the server that sends it is replaced.
///
/// A tool, a prompt or a resource may return it. Nothing checks it, so be sure that it is a
/// complete result of the same method, and that both servers speak the same revision.
#[derive(Debug, Clone, PartialEq)]
pub struct Verbatim(pub Json);

impl Verbatim {
    fn instead(self) -> HandlerError {
        HandlerError::Instead(Box::new(Answer::Verbatim(self.0)))
    }
}

impl ToolOutput for Verbatim {
    fn into_outcome(self) -> ToolOutcome {
        Err(self.instead())
    }
}

impl PromptOutput for Verbatim {
    fn into_prompt(self) -> PromptOutcome {
        Err(self.instead())
    }
}

impl ResourceOutput for Verbatim {
    fn into_contents(self, _: &str) -> ResourceOutcome {
        Err(self.instead())
    }
}

impl<T> Step<T> {
    fn done(self) -> Result<T, HandlerError> {
        match self {
            Self::Done(value) => Ok(value),
            Self::Ask(asked) => Err(HandlerError::Instead(Box::new(asked.into_answer()))),
        }
    }
}

/// Starts a handler that may return questions. In a legacy session it is started again, with the
/// answers, until it returns something else.
pub(crate) fn start<T, S>(
    context: &Context,
    start: S,
) -> Result<BoxFuture<Result<T, HandlerError>>, String>
where
    T: Send + 'static,
    S: Fn(&Context) -> Result<BoxFuture<Result<T, HandlerError>>, String> + Send + Sync + 'static,
{
    let first = start(context)?;
    if context.call.peer().session.is_none() || context.call.task().is_some() {
        return Ok(first);
    }
    let context = context.clone();
    Ok(Box::pin(async move {
        let mut outcome = first.await;
        loop {
            let asked = match outcome {
                Err(HandlerError::Instead(instead)) => match *instead {
                    // It may have become a task meanwhile, which keeps its questions.
                    Answer::InputRequired(asked) if context.call.task().is_none() => asked,
                    other => return Err(HandlerError::Instead(Box::new(other))),
                },
                outcome => return outcome,
            };
            answer(&context, asked).await?;
            outcome = start(&context).map_err(HandlerError::Failed)?.await;
        }
    }))
}

/// How long a handler without questions is given before it runs again.
const PAUSE: Duration = Duration::from_millis(500);

/// Asks a legacy client, one question after another, and keeps the answers for the next run.
async fn answer(context: &Context, asked: InputRequiredResult) -> Result<(), HandlerError> {
    let call = &context.call;
    let rounds = call.rounds.as_ref().ok_or_else(|| HandlerError::Refused(unprepared(call)))?;
    let requests = asked.input_requests.unwrap_or_default();
    if requests.is_empty() {
        tokio::time::sleep(PAUSE).await;
    }
    let mut answers = Vec::new();
    for (key, question) in requests {
        let form = rounds.form_of(&question).map_err(HandlerError::Refused)?;
        let answer = Ask { call, key: None }.put(question).await?;
        if let Some(form) = form {
            form.check(&answer).map_err(AskError::Malformed)?;
        }
        answers.push((key, answer));
    }
    let state = asked.request_state.map(Json::from_text).transpose();
    let state = state.map_err(|error| HandlerError::failed(error.to_string()))?;
    rounds.turn(call, answers, state).map_err(HandlerError::Refused)
}

/// The answer to a modern request whose handler returned questions.
pub(crate) fn seal(call: &Call, asked: InputRequiredResult) -> Outcome {
    let rounds = call.rounds.as_ref().ok_or_else(|| unprepared(call))?;
    for (_, question) in asked.input_requests.iter().flat_map(Members::iter) {
        if let Err(error) = check_capability(question, &call.caller.capabilities) {
            return HandlerError::from(error).into_outcome();
        }
    }
    Ok(rounds.ask(call, asked).map(Answer::InputRequired)?)
}

fn unprepared(call: &Call) -> ErrorObject {
    ErrorObject::internal(format!(
        "{}: the handler returned questions, but its type does not say so; help: return `Step`",
        call.method
    ))
}
