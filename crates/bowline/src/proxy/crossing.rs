//! Errors, questions and answers that are written differently in the other era.

use std::collections::BTreeMap;

use bowline_proto::error::{ErrorCode, ErrorObject};
use bowline_proto::json::Json;
use bowline_proto::members::Members;
use bowline_proto::method::{CallTool, CreateMessage, ElicitationCreate, Method};
use bowline_proto::model::{
    CallToolResult, CreateMessageResult, ElicitAction, ElicitParams, ElicitResult, ElicitUrlParams,
    InputRequest, InputRequests,
};
use bowline_proto::revision::{Adapt, Revision, crossed_error};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::forward::{Waiting, json};
use crate::client::CallError;
use crate::{Answer, Context, HandlerError, InputRequired};

/// The most URLs that one error may ask the user to visit.
const MOST_VISITS: usize = 16;

/// What a caller hears of the server's own error. `from` is the server's revision.
pub(super) fn refusal(
    error: ErrorObject,
    method: &str,
    from: Revision,
    context: &Context,
) -> HandlerError {
    let caller = context.caller().revision;
    let lacks = error.code == ErrorCode::MISSING_CLIENT_CAPABILITY && from.is_modern();
    if lacks && !caller.is_modern() {
        // The code means nothing there. A model can act on the result of a tool.
        if method == CallTool::NAME {
            let text = format!("{}{}", error.message, required(&error));
            return HandlerError::Instead(Box::new(Answer::Tool(CallToolResult::failure(text))));
        }
        let code = ErrorCode::INVALID_PARAMS;
        return HandlerError::Refused(ErrorObject { code, ..error });
    }
    HandlerError::Refused(crossed_error(error, from, caller))
}

/// The capabilities that an error names, for people and models.
fn required(error: &ErrorObject) -> String {
    let data = error.data.as_ref().map(Json::to_value).unwrap_or_default();
    match data.get("requiredCapabilities") {
        Some(required) => format!("; required capability: {required}"),
        None => String::new(),
    }
}

/// The visits that a server of 2025-11-25 demands before the call, as questions to a modern caller
/// that can show URLs.
pub(super) fn visits(
    error: &CallError,
    from: Revision,
    context: &Context,
) -> Option<Result<InputRequired, HandlerError>> {
    #[derive(Deserialize)]
    struct Data {
        elicitations: Vec<ElicitUrlParams>,
    }
    let refused = error.as_refusal()?;
    let caller = context.caller();
    let is_ours = refused.code == ErrorCode::URL_ELICITATION_REQUIRED
        && from.has_elicitation_ids()
        && caller.revision.is_modern()
        && caller.capabilities.has_elicitation_url();
    let data = refused.data.as_ref().filter(|_| is_ours)?.parse::<Data>().ok()?;
    let count = data.elicitations.len();
    if count == 0 || count > MOST_VISITS {
        return None;
    }
    let mut required = InputRequired::new();
    for (place, url) in data.elicitations.into_iter().enumerate() {
        let question = InputRequest::Elicit(ElicitParams::Url(url));
        required = required.ask(format!("visit-{place}"), question);
    }
    Some(json(&Waiting::Visiting(count)).map(|state| required.state(state)))
}

/// Whether the user agreed to all visits. Only then is the call, which the server refused, made.
pub(super) fn visited(context: &Context, count: usize) -> Result<(), HandlerError> {
    for place in 0..count {
        let answer: Option<ElicitResult> = context.answer(&format!("visit-{place}"));
        if answer.is_none_or(|answer| answer.action != ElicitAction::Accept) {
            let what = "the server does nothing before its user has visited a URL, and the user did \
                 not agree to";
            return Err(HandlerError::Refused(ErrorObject::invalid_request(what)));
        }
    }
    Ok(())
}

/// Takes the questions that the caller's revision cannot express, and answers them: forms are
/// cancelled. Returns the answers.
pub(super) fn cancelled(
    requests: &mut InputRequests,
    caller: Revision,
) -> Result<Vec<(String, Json)>, HandlerError> {
    let mut answers = Vec::new();
    let keys: Vec<_> = requests.iter().filter(|(_, it)| !is_sayable(it, caller)).collect();
    let keys: Vec<_> = keys.into_iter().map(|(key, _)| key.to_owned()).collect();
    for key in keys {
        requests.remove(&key);
        answers.push((key, cancel()?));
    }
    Ok(answers)
}

/// Whether a revision that has forms at all can express a question.
fn is_sayable(question: &InputRequest, caller: Revision) -> bool {
    match question {
        InputRequest::Elicit(ElicitParams::Form(form)) => {
            !caller.has_forms() || form.clone().adapt(caller).is_ok()
        }
        _ => true,
    }
}

/// The caller's answers, as the server's revision writes them.
pub(super) fn answers(
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

/// An answer of the caller, as a revision writes it.
pub(super) fn adapted(answer: Json, method: &str, to: Revision) -> Result<Json, ErrorObject> {
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

/// The answer of a user who closes a form.
pub(super) fn cancel() -> Result<Json, HandlerError> {
    json(&ElicitResult::cancel())
}
