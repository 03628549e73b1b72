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

/// A question that waits for its answer.
#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) asked: Asked,
    /// The id of the request, in the legacy era.
    pub(crate) id: Option<Value>,
    /// `None` once it is answered.
    reply: Option<oneshot::Sender<Result<Reply, ErrorObject>>>,
}

#[derive(Debug)]
pub(crate) enum Asked {
    Form(Box<ElicitFormParams>),
    Url(ElicitUrlParams),
    Sampling(Box<CreateMessageParams>),
}

#[derive(Debug)]
pub(crate) enum Reply {
    /// To a form, or to a URL, which has no content.
    Elicited(FormAnswer),
    Sampled(Box<CreateMessageResult>),
}

/// What happens to questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Policy {
    #[default]
    Ask,
    /// Sends forms with their defaults and agrees to URLs. Sampling is still asked for.
    Accept,
    Decline,
    Cancel,
}

impl Policy {
    const WORDS: [(&str, Self); 4] = [
        ("ask", Self::Ask),
        ("accept", Self::Accept),
        ("decline", Self::Decline),
        ("cancel", Self::Cancel),
    ];

    pub(crate) fn parse(word: &str) -> Option<Self> {
        Self::WORDS.iter().find(|known| known.0 == word).map(|known| known.1)
    }

    pub(crate) fn word(self) -> &'static str {
        Self::WORDS.iter().find(|known| known.1 == self).map_or("", |known| known.0)
    }
}

/// Lets a client pass questions on.
pub(crate) fn listen(builder: ClientBuilder, events: &mpsc::Sender<Event>) -> ClientBuilder {
    let (forms, urls, samples) = (events.clone(), events.clone(), events.clone());
    builder
        .on_form(move |form| elicit(forms.clone(), Asked::Form(Box::new(form))))
        .on_url(move |url| {
            let answer = elicit(urls.clone(), Asked::Url(url));
            async move {
                Ok(match answer.await? {
                    FormAnswer::Accept(_) => UrlAnswer::Accept,
                    FormAnswer::Decline => UrlAnswer::Decline,
                    FormAnswer::Cancel => UrlAnswer::Cancel,
                })
            }
        })
        .on_sampling(move |params| {
            let reply = ask(samples.clone(), Asked::Sampling(Box::new(params)));
            async move {
                match reply.await? {
                    Reply::Sampled(message) => Ok(*message),
                    Reply::Elicited(_) => Err(mixed_up()),
                }
            }
        })
        .samples_with_tools()
}

async fn elicit(events: mpsc::Sender<Event>, asked: Asked) -> Result<FormAnswer, ErrorObject> {
    match ask(events, asked).await? {
        Reply::Elicited(answer) => Ok(answer),
        Reply::Sampled(_) => Err(mixed_up()),
    }
}

async fn ask(events: mpsc::Sender<Event>, asked: Asked) -> Result<Reply, ErrorObject> {
    let (reply, answer) = oneshot::channel();
    let _ = events.send(Event::Asked(Question { asked, id: None, reply: Some(reply) })).await;
    answer.await.unwrap_or_else(|_| Err(refusal("the session ended")))
}

fn mixed_up() -> ErrorObject {
    ErrorObject::internal("the answer belongs to another question")
}

/// What a server receives when a person refuses to sample.
fn refusal(why: &str) -> ErrorObject {
    ErrorObject::new(ErrorCode(-1), why)
}

impl Question {
    /// Sends an answer; says how it was answered. A server that went away needs none.
    pub(crate) fn answer(&mut self, answer: Result<Reply, ErrorObject>) -> &'static str {
        let how = match &answer {
            Ok(Reply::Elicited(FormAnswer::Decline)) => "declined",
            Ok(Reply::Elicited(FormAnswer::Cancel)) => "cancelled",
            _ => "answered",
        };
        if let Some(reply) = self.reply.take() {
            let _ = reply.send(answer);
        }
        how
    }

    /// Answers as if nobody were there.
    pub(crate) fn cancel(&mut self) -> &'static str {
        if let Some(answer) = self.asked.by(Policy::Cancel) {
            self.answer(answer);
        }
        "cancelled"
    }

    pub(crate) fn is_withdrawn(&self) -> bool {
        self.reply.as_ref().is_none_or(oneshot::Sender::is_closed)
    }

    /// Waits until the server no longer wants the answer.
    pub(crate) async fn withdrawn(&mut self) {
        match &mut self.reply {
            Some(reply) => reply.closed().await,
            None => std::future::pending().await,
        }
    }
}

impl Asked {
    pub(crate) fn method(&self) -> &'static str {
        match self {
            Self::Form(_) | Self::Url(_) => "elicitation/create",
            Self::Sampling(_) => "sampling/createMessage",
        }
    }

    /// What a policy answers, if it does.
    pub(crate) fn by(&self, policy: Policy) -> Option<Result<Reply, ErrorObject>> {
        let answer = match (self, policy) {
            (_, Policy::Ask) | (Self::Sampling(_), Policy::Accept) => return None,
            (Self::Sampling(_), _) => return Some(Err(refusal("the user refused"))),
            (_, Policy::Accept) => FormAnswer::defaults(),
            (_, Policy::Decline) => FormAnswer::Decline,
            (_, Policy::Cancel) => FormAnswer::Cancel,
        };
        Some(Ok(Reply::Elicited(answer)))
    }

    /// Reads an answer that was written as JSON.
    ///
    /// # Errors
    /// When it does not answer this question.
    pub(crate) fn read(&self, result: &Value) -> Result<Reply, String> {
        if let Self::Sampling(_) = self {
            return Ok(Reply::Sampled(Box::new(parse(result)?)));
        }
        let result: ElicitResult = parse(result)?;
        Ok(Reply::Elicited(match result.action {
            ElicitAction::Accept => FormAnswer::Accept(result.content.unwrap_or_default()),
            ElicitAction::Decline => FormAnswer::Decline,
            ElicitAction::Cancel => FormAnswer::Cancel,
        }))
    }
}

/// Text as the answer of a model.
pub(crate) fn said(text: &str) -> Result<Reply, String> {
    let result = json!({
        "role": "assistant",
        "content": { "type": "text", "text": text },
        "model": "a person",
        "stopReason": "endTurn",
    });
    Ok(Reply::Sampled(Box::new(parse(&result)?)))
}

fn parse<T: DeserializeOwned>(value: &Value) -> Result<T, String> {
    T::deserialize(value).map_err(|error| format!("this does not answer the question: {error}"))
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
        let Reply::Elicited(FormAnswer::Accept(content)) = read else { panic!("{read:?}") };
        assert_eq!(Value::Object(content), json!({ "a": 1 }));
        assert!(form.read(&json!({ "roots": [] })).unwrap_err().contains("does not answer"));
        let sample = Asked::Sampling(Box::default());
        assert!(sample.read(&json!({})).is_err());
        assert!(matches!(said("yes"), Ok(Reply::Sampled(it)) if it.content.text() == "yes"));
    }
}
