//! Asking the client about its user, its model or its folders, in the same way in both eras.

use std::future::poll_fn;
use std::sync::Arc;

use bowline_proto::debug_as_sentence;
use bowline_proto::error::{ErrorCode, ErrorObject};
use bowline_proto::json::Json;
use bowline_proto::method::{CreateMessage, ElicitationCreate, ListRoots};
use bowline_proto::model::{
    ClientCapabilities, CreateMessageParams, CreateMessageResult, ElicitAction, ElicitFormParams,
    ElicitParams, ElicitResult, ElicitSchema, ElicitUrlParams, InputRequest, ListRootsParams,
    ListRootsResult, Root,
};
use bowline_proto::revision::{Adapt, Unsupported};
use bowline_schema::Schema;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::call::Call;
use super::form::{self, Form};
use crate::random;

/// One question to the client, under a key of the handler's choice.
///
/// [`Context::elicit`](super::Context::elicit) and its neighbours derive a key from the order of
/// the questions. Where that order can differ from run to run, or a client relies on the key,
/// choose one: `context.ask("user_name").elicit::<Name>("Who are you?")`.
#[must_use = "a question does nothing until it is asked"]
pub struct Ask<'a> {
    pub(crate) call: &'a Arc<Call>,
    pub(crate) key: Option<String>,
}

/// What the user did with a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Elicited<T> {
    /// Answered it.
    Accepted(T),
    /// Declined it.
    Declined,
    /// Dismissed it.
    Cancelled,
}

impl<T> Elicited<T> {
    /// The answer, if there is one.
    pub fn accepted(self) -> Option<T> {
        match self {
            Self::Accepted(answer) => Some(answer),
            Self::Declined | Self::Cancelled => None,
        }
    }

    fn map<U>(
        self,
        change: impl FnOnce(T) -> Result<U, AskError>,
    ) -> Result<Elicited<U>, AskError> {
        Ok(match self {
            Self::Accepted(answer) => Elicited::Accepted(change(answer)?),
            Self::Declined => Elicited::Declined,
            Self::Cancelled => Elicited::Cancelled,
        })
    }
}

/// Why a question was not answered.
///
/// A handler may return it with `?`: see [`HandlerError`](crate::HandlerError).
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum AskError {
    /// The client lacks the capability. Do without, or return the error: it tells a modern client
    /// which capability is required.
    #[error("the client does not offer {}", .0.what)]
    Unsupported(#[source] MissingCapability),
    /// The client's revision does not have such a question. Do without.
    #[error("the client's revision does not allow this question")]
    Revision(#[source] Unsupported),
    /// The form has a field of a type that forms do not support. This is a mistake in the server.
    #[error("{0}")]
    Form(String),
    /// The client refused to answer. Its error is not a source, because it is not the answer to the
    /// request of the handler.
    #[error("the client refused to answer: {0}")]
    Refused(ErrorObject),
    /// The client's answer does not fit the question.
    #[error("invalid answer from the client: {0}")]
    Malformed(String),
    /// The client did not answer in time.
    #[error("the client did not answer in time")]
    TimedOut,
    /// The client disconnected, or the request has ended.
    #[error("the client disconnected")]
    Closed,
}

debug_as_sentence!(AskError);

/// A capability that a client must have.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("required capability: {required}")]
pub struct MissingCapability {
    /// What it is good for.
    pub what: &'static str,
    /// The capability, as the client would declare it.
    pub required: Value,
}

impl MissingCapability {
    pub(crate) fn to_error_object(&self) -> ErrorObject {
        let message = format!("this needs a client that offers {}", self.what);
        let data = json!({ "requiredCapabilities": self.required });
        ErrorObject::new(ErrorCode::MISSING_CLIENT_CAPABILITY, message).with_data(data.into())
    }
}

impl Ask<'_> {
    /// Asks the user to fill in the fields of `T`: a struct of text, numbers, booleans and
    /// enumerations, or one of these alone.
    ///
    /// # Errors
    /// When the client cannot ask its user, or does not answer.
    pub async fn elicit<T>(self, message: impl Into<String>) -> Result<Elicited<T>, AskError>
    where
        T: JsonSchema + DeserializeOwned,
    {
        let form = Form::of::<T>().map_err(AskError::Form)?;
        let answered = self.elicit_form(message, form.fields).await?;
        let malformed = |error: serde_json::Error| AskError::Malformed(error.to_string());
        answered.map(|mut content| {
            let value = match form.only {
                Some(name) => content.remove(name).unwrap_or_default(),
                None => Value::Object(content),
            };
            serde_json::from_value(value).map_err(malformed)
        })
    }

    /// Asks the user to agree. Declining and dismissing the question count as no.
    ///
    /// # Errors
    /// When the client cannot ask its user, or does not answer.
    pub async fn confirm(self, message: impl Into<String>) -> Result<bool, AskError> {
        let answered = self.elicit_form(message, ElicitSchema::default()).await?;
        Ok(matches!(answered, Elicited::Accepted(_)))
    }

    /// Asks the user to choose one of these.
    ///
    /// # Errors
    /// When the client cannot ask its user, does not answer, or answers with something else.
    pub async fn choose<S: Into<String>>(
        self,
        message: impl Into<String>,
        choices: impl IntoIterator<Item = S>,
    ) -> Result<Elicited<String>, AskError> {
        let choices: Vec<String> = choices.into_iter().map(Into::into).collect();
        let answered = self.elicit_form(message, form::choice_of(&choices)).await?;
        answered.map(|mut content| match content.remove(form::ONLY) {
            Some(Value::String(chosen)) if choices.contains(&chosen) => Ok(chosen),
            other => {
                let found = other.unwrap_or_default();
                let choices = choices.join(", ");
                Err(AskError::Malformed(format!("{found} is not one of the choices: {choices}")))
            }
        })
    }

    /// Asks the user to fill in a form that is built by hand. The answer fits the form.
    ///
    /// # Errors
    /// When the client cannot ask its user, does not answer, or sends something that does not fit
    /// the form ([`AskError::Malformed`]).
    pub async fn elicit_form(
        self,
        message: impl Into<String>,
        fields: ElicitSchema,
    ) -> Result<Elicited<serde_json::Map<String, Value>>, AskError> {
        let form = serde_json::to_value(&fields).map_err(|error| AskError::Form(error.to_string()));
        let form = Schema::compile(&form?).map_err(|error| AskError::Form(error.to_string()))?;
        let params = ElicitFormParams {
            message: message.into(),
            requested_schema: fields,
            ..ElicitFormParams::default()
        };
        let question = InputRequest::Elicit(ElicitParams::Form(params));
        elicited(&self.put(question).await?)?.map(|content| check_content(&form, content))
    }

    /// Asks the user to visit a URL: for secrets, payments and logins, which forms may not ask for.
    ///
    /// Accepting means that the user agreed to open it, not that they have finished there.
    ///
    /// # Errors
    /// When the client cannot show URLs, or does not answer.
    pub async fn elicit_url(
        self,
        message: impl Into<String>,
        url: impl Into<String>,
    ) -> Result<Elicited<()>, AskError> {
        let params = ElicitUrlParams {
            message: message.into(),
            url: url.into(),
            ..ElicitUrlParams::default()
        };
        let question = InputRequest::Elicit(ElicitParams::Url(params));
        elicited(&self.put(question).await?)?.map(|_| Ok(()))
    }

    /// Asks the client's model.
    ///
    /// # Errors
    /// When the client does not offer its model, or does not answer.
    pub async fn sample(
        self,
        params: CreateMessageParams,
    ) -> Result<CreateMessageResult, AskError> {
        let question = InputRequest::CreateMessage(Box::new(params));
        read(&self.put(question).await?)
    }

    /// Asks which folders the client works in.
    ///
    /// # Errors
    /// When the client does not offer its folders, or does not answer.
    pub async fn roots(self) -> Result<Vec<Root>, AskError> {
        let question = InputRequest::ListRoots(ListRootsParams::default());
        let result: ListRootsResult = read(&self.put(question).await?)?;
        Ok(result.roots)
    }

    /// Asks in the way of the caller's era.
    pub(crate) async fn put(self, mut question: InputRequest) -> Result<Json, AskError> {
        let call = self.call;
        check_capability(&question, &call.caller.capabilities)?;
        if let InputRequest::Elicit(ElicitParams::Url(url)) = &mut question
            && call.caller.revision.has_elicitation_ids()
        {
            // Only where the revision demands one: a replay must ask the very same question again.
            url.elicitation_id.get_or_insert_with(random::token);
        }
        question.adapt(call.caller.revision).map_err(AskError::Revision)?;
        let answer = async {
            match (&call.peer().session, &call.rounds) {
                (Some(session), _) if call.task().is_none() => match &question {
                    InputRequest::Elicit(params) => {
                        session.call::<ElicitationCreate>(&call.outbox, params).await
                    }
                    InputRequest::CreateMessage(params) => {
                        session.call::<CreateMessage>(&call.outbox, params).await
                    }
                    InputRequest::ListRoots(params) => {
                        session.call::<ListRoots>(&call.outbox, params).await
                    }
                }
                .map_err(|error| refused(error, &question)),
                (_, Some(rounds)) => {
                    let key = self.key.unwrap_or_else(|| rounds.next_key(kind(&question)));
                    poll_fn(|cx| rounds.poll_answer(&key, &question, cx)).await
                }
                (_, None) => Err(AskError::Closed),
            }
        };
        let timeout = call.peer().core.limits.ask_timeout;
        tokio::time::timeout(timeout, answer).await.map_err(|_| AskError::TimedOut)?
    }
}

/// The prefix of a key.
fn kind(question: &InputRequest) -> &'static str {
    match question {
        InputRequest::Elicit(_) => "elicit",
        InputRequest::CreateMessage(_) => "sample",
        InputRequest::ListRoots(_) => "roots",
    }
}

/// 2026-07-28, basic/patterns/mrtr, and all legacy revisions: never ask for what was not declared.
pub(crate) fn check_capability(
    question: &InputRequest,
    client: &ClientCapabilities,
) -> Result<(), AskError> {
    let is_offered = match question {
        InputRequest::Elicit(ElicitParams::Form(_)) => client.has_elicitation_form(),
        InputRequest::Elicit(ElicitParams::Url(_)) => client.has_elicitation_url(),
        InputRequest::CreateMessage(params) if params.tools.is_some() => {
            client.sampling.as_ref().is_some_and(|it| it.tools.is_some())
        }
        InputRequest::CreateMessage(_) => client.sampling.is_some(),
        InputRequest::ListRoots(_) => client.roots.is_some(),
    };
    if is_offered { Ok(()) } else { Err(AskError::Unsupported(needed(question))) }
}

/// The capability that a question needs.
fn needed(question: &InputRequest) -> MissingCapability {
    let (what, required) = match question {
        InputRequest::Elicit(ElicitParams::Form(_)) => {
            ("forms for its user", json!({ "elicitation": { "form": {} } }))
        }
        InputRequest::Elicit(ElicitParams::Url(_)) => {
            ("URLs for its user", json!({ "elicitation": { "url": {} } }))
        }
        InputRequest::CreateMessage(params) if params.tools.is_some() => {
            ("sampling with tools", json!({ "sampling": { "tools": {} } }))
        }
        InputRequest::CreateMessage(_) => ("sampling", json!({ "sampling": {} })),
        InputRequest::ListRoots(_) => ("roots", json!({ "roots": {} })),
    };
    MissingCapability { what, required }
}

/// Some clients declare what they do not have, and say so only when they are asked.
fn refused(error: AskError, question: &InputRequest) -> AskError {
    match error {
        AskError::Refused(error) if error.code == ErrorCode::METHOD_NOT_FOUND => {
            AskError::Unsupported(needed(question))
        }
        error => error,
    }
}

fn read<T: DeserializeOwned>(answer: &Json) -> Result<T, AskError> {
    serde_json::from_str(answer.as_str()).map_err(|error| AskError::Malformed(error.to_string()))
}

/// Checks an answer against the form that was asked.
fn check_content(
    form: &Schema,
    content: serde_json::Map<String, Value>,
) -> Result<serde_json::Map<String, Value>, AskError> {
    let content = Value::Object(content);
    form.validate("content", &content).map_err(|error| AskError::Malformed(error.to_string()))?;
    match content {
        Value::Object(content) => Ok(content),
        _ => Err(AskError::Malformed("content is not an object".to_owned())),
    }
}

fn elicited(answer: &Json) -> Result<Elicited<serde_json::Map<String, Value>>, AskError> {
    let result: ElicitResult = read(answer)?;
    Ok(match result.action {
        ElicitAction::Accept => Elicited::Accepted(result.content.unwrap_or_default()),
        ElicitAction::Decline => Elicited::Declined,
        ElicitAction::Cancel => Elicited::Cancelled,
    })
}
