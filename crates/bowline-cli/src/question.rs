//! What servers ask (forms, URLs, sampling), and the way of a question to whatever answers it: what
//! was prepared, or a person at the prompt.

use std::pin::Pin;
use std::sync::Arc;

use bowline::client::{ClientBuilder, FormAnswer, UrlAnswer};
use bowline::model::{
    CreateMessageParams, CreateMessageResult, ElicitAction, ElicitFormParams, ElicitResult,
    ElicitUrlParams,
};
use bowline::{ErrorCode, ErrorObject};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// A question.
#[derive(Debug)]
pub(crate) enum Asked {
    Form(Box<ElicitFormParams>),
    Url(ElicitUrlParams),
    Sampling(Box<CreateMessageParams>),
}

/// The result of the server's request, as the protocol defines it, or an error.
pub(crate) type Answer = Result<Value, ErrorObject>;

/// Answers a question, now or later.
pub(crate) type Answering =
    Arc<dyn Fn(Asked) -> Pin<Box<dyn Future<Output = Answer> + Send>> + Send + Sync>;

/// Which questions a client offers to answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Offered {
    pub(crate) forms: bool,
    pub(crate) urls: bool,
    pub(crate) sampling: bool,
}

/// Lets a client answer questions.
pub(crate) fn listen(
    mut builder: ClientBuilder,
    offered: Offered,
    answer: &Answering,
) -> ClientBuilder {
    if offered.forms {
        let answer = Arc::clone(answer);
        builder = builder.on_form(move |form| {
            let answer = answer(Asked::Form(Box::new(form)));
            async move { elicited(answer.await?) }
        });
    }
    if offered.urls {
        let answer = Arc::clone(answer);
        builder = builder.on_url(move |url| {
            let answer = answer(Asked::Url(url));
            async move {
                Ok(match elicited(answer.await?)? {
                    FormAnswer::Accept(_) => UrlAnswer::Accept,
                    FormAnswer::Decline => UrlAnswer::Decline,
                    FormAnswer::Cancel => UrlAnswer::Cancel,
                })
            }
        });
    }
    if offered.sampling {
        let answer = Arc::clone(answer);
        builder = builder.on_sampling(move |params| {
            let answer = answer(Asked::Sampling(Box::new(params)));
            async move { parse(&answer.await?).map_err(ErrorObject::internal) }
        });
    }
    builder
}

fn elicited(answer: Value) -> Result<FormAnswer, ErrorObject> {
    let result: ElicitResult = parse(&answer).map_err(ErrorObject::internal)?;
    Ok(match result.action {
        ElicitAction::Accept => FormAnswer::Accept(result.content.unwrap_or_default()),
        ElicitAction::Decline => FormAnswer::Decline,
        ElicitAction::Cancel => FormAnswer::Cancel,
    })
}

impl Asked {
    pub(crate) fn method(&self) -> &'static str {
        match self {
            Self::Form(_) | Self::Url(_) => "elicitation/create",
            Self::Sampling(_) => "sampling/createMessage",
        }
    }

    /// The answer that accepts with the defaults, declines or cancels. `None`: nobody can sample by
    /// accepting.
    pub(crate) fn by(&self, action: ElicitAction) -> Option<Answer> {
        match (self, action) {
            (Self::Sampling(_), ElicitAction::Accept) => None,
            (Self::Sampling(_), _) => Some(Err(refusal("the user declined"))),
            _ => Some(Ok(json!({ "action": action }))),
        }
    }

    /// Checks an answer that was written as JSON.
    ///
    /// # Errors
    /// When it does not answer this question.
    pub(crate) fn check(&self, result: &Value) -> Result<(), String> {
        match self {
            Self::Form(_) | Self::Url(_) => parse::<ElicitResult>(result).map(drop),
            Self::Sampling(_) => parse::<CreateMessageResult>(result).map(drop),
        }
    }
}

/// The error for a server that gets no answer.
pub(crate) fn refusal(why: impl Into<String>) -> ErrorObject {
    ErrorObject::new(ErrorCode(-1), why)
}

/// Text as the answer of a model.
pub(crate) fn said(text: &str, model: &str) -> Value {
    json!({
        "role": "assistant",
        "content": { "type": "text", "text": text },
        "model": model,
        "stopReason": "endTurn",
    })
}

fn parse<T: DeserializeOwned>(value: &Value) -> Result<T, String> {
    T::deserialize(value).map_err(|error| format!("this does not answer the question: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actions_answer_for_people() {
        let form = Asked::Form(Box::default());
        let url = Asked::Url(ElicitUrlParams::default());
        let sample = Asked::Sampling(Box::default());
        for action in [ElicitAction::Accept, ElicitAction::Decline, ElicitAction::Cancel] {
            assert!(form.by(action).is_some() && url.by(action).is_some());
        }
        assert!(sample.by(ElicitAction::Accept).is_none());
        let declined = sample.by(ElicitAction::Decline);
        assert!(matches!(declined, Some(Err(error)) if error.code.0 == -1));
    }

    #[test]
    fn answers_can_be_written_as_json() {
        let form = Asked::Form(Box::default());
        let written = json!({ "action": "accept", "content": { "a": 1 } });
        form.check(&written).unwrap();
        assert_eq!(elicited(written).unwrap(), FormAnswer::accept(&json!({ "a": 1 })));
        assert!(form.check(&json!({ "roots": [] })).unwrap_err().contains("does not answer"));
        let sample = Asked::Sampling(Box::default());
        assert!(sample.check(&json!({})).is_err());
        sample.check(&said("yes", "a person")).unwrap();
    }
}
