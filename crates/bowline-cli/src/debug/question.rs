//! What a server asks of the person at the prompt, and how it is answered.

use bowline::client::{ClientBuilder, FormAnswer, UrlAnswer};
use bowline::model::{
    CreateMessageParams, CreateMessageResult, ElicitAction, ElicitFormParams, ElicitResult,
    ElicitUrlParams,
};
use bowline::{ErrorCode, ErrorObject};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use super::event::Event;

/// A question that waits.
#[derive(Debug)]
pub(crate) struct Question {
    /// What is asked.
    pub(crate) asked: Asked,
    /// The id of the request, in the legacy era.
    pub(crate) id: Option<Value>,
    /// Who waits for the answer.
    pub(crate) reply: oneshot::Sender<Result<Reply, ErrorObject>>,
}

/// What is asked.
#[derive(Debug)]
pub(crate) enum Asked {
    /// To fill in a form.
    Form(Box<ElicitFormParams>),
    /// To visit a page.
    Url(ElicitUrlParams),
    /// To be the model.
    Sampling(Box<CreateMessageParams>),
}

/// What is answered.
#[derive(Debug)]
pub(crate) enum Reply {
    /// To a form.
    Form(FormAnswer),
    /// To a page.
    Url(UrlAnswer),
    /// As a model.
    Sampling(Box<CreateMessageResult>),
}

/// What is done with questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Policy {
    /// They are asked.
    #[default]
    Ask,
    /// Forms are sent with their defaults, pages agreed to. Models are still asked for.
    Accept,
    /// They are refused.
    Decline,
    /// They are dropped.
    Cancel,
}

impl Policy {
    /// The policy of a word.
    pub(crate) fn parse(word: &str) -> Option<Self> {
        match word {
            "ask" => Some(Self::Ask),
            "accept" => Some(Self::Accept),
            "decline" => Some(Self::Decline),
            "cancel" => Some(Self::Cancel),
            _ => None,
        }
    }

    /// Its word.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::Accept => "accept",
            Self::Decline => "decline",
            Self::Cancel => "cancel",
        }
    }
}

/// Lets a client pass questions on.
pub(crate) fn listen(builder: ClientBuilder, events: &mpsc::Sender<Event>) -> ClientBuilder {
    let (forms, urls, samples) = (events.clone(), events.clone(), events.clone());
    builder
        .on_form(move |form| {
            let reply = ask(forms.clone(), Asked::Form(Box::new(form)));
            async move {
                match reply.await? {
                    Reply::Form(answer) => Ok(answer),
                    _ => Err(mixed_up()),
                }
            }
        })
        .on_url(move |url| {
            let reply = ask(urls.clone(), Asked::Url(url));
            async move {
                match reply.await? {
                    Reply::Url(answer) => Ok(answer),
                    _ => Err(mixed_up()),
                }
            }
        })
        .on_sampling(move |params| {
            let reply = ask(samples.clone(), Asked::Sampling(Box::new(params)));
            async move {
                match reply.await? {
                    Reply::Sampling(answer) => Ok(*answer),
                    _ => Err(mixed_up()),
                }
            }
        })
        .samples_with_tools()
}

async fn ask(events: mpsc::Sender<Event>, asked: Asked) -> Result<Reply, ErrorObject> {
    let (reply, answer) = oneshot::channel();
    let question = Question { asked, id: None, reply };
    let _ = events.send(Event::Asked(question)).await;
    answer.await.unwrap_or_else(|_| Err(refusal("the session ended")))
}

fn mixed_up() -> ErrorObject {
    ErrorObject::internal("an answer to another question")
}

/// What a server reads when a person says no to a sample.
fn refusal(why: &str) -> ErrorObject {
    ErrorObject::new(ErrorCode(-1), why)
}

impl Asked {
    /// The method of the request.
    pub(crate) fn method(&self) -> &'static str {
        match self {
            Self::Form(_) | Self::Url(_) => "elicitation/create",
            Self::Sampling(_) => "sampling/createMessage",
        }
    }

    /// What a policy answers, if it does.
    pub(crate) fn by(&self, policy: Policy) -> Option<Result<Reply, ErrorObject>> {
        let answered = match (self, policy) {
            (_, Policy::Ask) | (Self::Sampling(_), Policy::Accept) => return None,
            (Self::Form(_), Policy::Accept) => Reply::Form(FormAnswer::defaults()),
            (Self::Form(_), Policy::Decline) => Reply::Form(FormAnswer::Decline),
            (Self::Form(_), Policy::Cancel) => Reply::Form(FormAnswer::Cancel),
            (Self::Url(_), Policy::Accept) => Reply::Url(UrlAnswer::Accept),
            (Self::Url(_), Policy::Decline) => Reply::Url(UrlAnswer::Decline),
            (Self::Url(_), Policy::Cancel) => Reply::Url(UrlAnswer::Cancel),
            (Self::Sampling(_), _) => return Some(Err(refusal("the user refused"))),
        };
        Some(Ok(answered))
    }

    /// An answer that was written as JSON.
    ///
    /// # Errors
    /// When it is no answer to this question.
    pub(crate) fn read(&self, result: &Value) -> Result<Reply, String> {
        match self {
            Self::Sampling(_) => Ok(Reply::Sampling(Box::new(parse(result)?))),
            Self::Form(_) => {
                let result: ElicitResult = parse(result)?;
                Ok(Reply::Form(match result.action {
                    ElicitAction::Accept => FormAnswer::Accept(result.content.unwrap_or_default()),
                    ElicitAction::Decline => FormAnswer::Decline,
                    ElicitAction::Cancel => FormAnswer::Cancel,
                }))
            }
            Self::Url(_) => {
                let result: ElicitResult = parse(result)?;
                Ok(Reply::Url(match result.action {
                    ElicitAction::Accept => UrlAnswer::Accept,
                    ElicitAction::Decline => UrlAnswer::Decline,
                    ElicitAction::Cancel => UrlAnswer::Cancel,
                }))
            }
        }
    }
}

/// A text as the answer of a model.
pub(crate) fn said(text: &str) -> Result<Reply, String> {
    let result = json!({
        "role": "assistant",
        "content": { "type": "text", "text": text },
        "model": "a person",
        "stopReason": "endTurn",
    });
    Ok(Reply::Sampling(Box::new(parse(&result)?)))
}

fn parse<T: DeserializeOwned>(value: &Value) -> Result<T, String> {
    T::deserialize(value).map_err(|error| format!("no answer to this question: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_answer_for_people() {
        let form = Asked::Form(Box::default());
        let url = Asked::Url(ElicitUrlParams::default());
        let sample = Asked::Sampling(Box::default());
        for policy in [Policy::Accept, Policy::Decline, Policy::Cancel] {
            assert_eq!(Policy::parse(policy.word()), Some(policy));
            assert!(form.by(policy).is_some() && url.by(policy).is_some());
        }
        assert!(form.by(Policy::Ask).is_none() && sample.by(Policy::Accept).is_none());
        assert!(matches!(sample.by(Policy::Decline), Some(Err(error)) if error.code.0 == -1));
    }

    #[test]
    fn answers_can_be_written_as_json() {
        let form = Asked::Form(Box::default());
        let read = form.read(&json!({ "action": "accept", "content": { "a": 1 } })).unwrap();
        let Reply::Form(FormAnswer::Accept(content)) = read else { panic!("{read:?}") };
        assert_eq!(Value::Object(content), json!({ "a": 1 }));
        assert!(form.read(&json!({ "roots": [] })).unwrap_err().contains("no answer"));
        let sample = Asked::Sampling(Box::default());
        assert!(sample.read(&json!({})).is_err());
        assert!(matches!(said("yes"), Ok(Reply::Sampling(it)) if it.content.text() == "yes"));
    }
}
