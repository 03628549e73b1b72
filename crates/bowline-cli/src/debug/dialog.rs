//! Questions at the prompt, one line each: the arguments of a call, and what a server asks.

use std::sync::Arc;

use bowline::client::ClientBuilder;
use bowline::model::{CreateMessageParams, ElicitAction};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use super::form::{Ask, Form, Step};
use super::link::Event;
use crate::answers::{self, Answer, Answering, Asked, Offered, refusal, said};
use crate::loose;
use crate::schema::unquoted;
use crate::text::{line, plain};

/// A question of the server that waits for its answer.
#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) asked: Asked,
    /// The id of the request, in the legacy era.
    pub(crate) id: Option<Value>,
    reply: oneshot::Sender<Answer>,
}

/// Lets a client pass all questions on.
pub(crate) fn listen(builder: ClientBuilder, events: &mpsc::Sender<Event>) -> ClientBuilder {
    let events = events.clone();
    let ask: Answering = Arc::new(move |asked| {
        let events = events.clone();
        Box::pin(async move {
            let (question, answer) = Question::new(asked);
            let _ = events.send(Event::Asked(question)).await;
            answer.await.unwrap_or_else(|_| Err(refusal("the session ended")))
        })
    });
    let everything = Offered { forms: true, urls: true, sampling: true };
    answers::listen(builder, everything, &ask).samples_with_tools()
}

impl Question {
    /// A question, and where its answer arrives.
    pub(crate) fn new(asked: Asked) -> (Self, oneshot::Receiver<Answer>) {
        let (reply, answer) = oneshot::channel();
        (Self { asked, id: None, reply }, answer)
    }

    /// Sends an answer; says how it was answered. A server that went away needs none.
    pub(crate) fn answer(self, answer: Answer) -> &'static str {
        let how = match answer.as_ref().ok().and_then(|result| result["action"].as_str()) {
            Some("decline") => "declined",
            Some("cancel") => "cancelled",
            _ => "answered",
        };
        let _ = self.reply.send(answer);
        how
    }

    /// Answers as if nobody were there.
    pub(crate) fn cancel(self) -> &'static str {
        if let Some(answer) = self.asked.by(ElicitAction::Cancel) {
            self.answer(answer);
        }
        "cancelled"
    }

    pub(crate) fn is_withdrawn(&self) -> bool {
        self.reply.is_closed()
    }
}

/// What is being asked, and the form that is being filled in.
#[derive(Debug)]
pub(crate) struct Dialog {
    pub(crate) about: About,
    form: Option<Form>,
}

#[derive(Debug)]
pub(crate) enum About {
    /// The arguments of this tool.
    Call(String),
    /// A question of the server.
    Question(Box<Question>),
}

impl Dialog {
    /// Asks for the arguments of a tool. `None` if it has none.
    pub(crate) fn call(tool: &str, schema: &Value) -> Option<Self> {
        let form = Some(started(schema, false)?);
        Some(Self { about: About::Call(tool.to_owned()), form })
    }

    /// Opens a question of the server; with the text to show first.
    pub(crate) fn open(question: Question) -> (String, Self) {
        let id = question.id.as_ref().map(|id| format!(" (request {id})")).unwrap_or_default();
        let text = match &question.asked {
            Asked::Form(form) => format!("The server asks{id}: {}", plain(&form.message)),
            Asked::Url(url) => {
                let (message, url) = (plain(&url.message), plain(&url.url));
                format!("The server asks{id}: {message}\nand wants you to visit: {url}")
            }
            Asked::Sampling(params) => {
                format!("The server asks the model{id}:\n{}", conversation(params))
            }
        };
        (text, Self { about: About::Question(Box::new(question)), form: None })
    }

    pub(crate) fn question(&self) -> Option<&Question> {
        match &self.about {
            About::Question(question) => Some(question),
            About::Call(_) => None,
        }
    }

    /// Waits until the server no longer wants the answer.
    pub(crate) async fn withdrawn(&mut self) {
        match &mut self.about {
            About::Question(question) => question.reply.closed().await,
            About::Call(_) => std::future::pending().await,
        }
    }

    /// What to ask.
    pub(crate) fn ask(&mut self) -> Ask {
        if let Some(Step::Ask(ask)) = self.form.as_mut().map(Form::step) {
            return safe(ask);
        }
        let (prompt, choices) = match self.question().map(|question| &question.asked) {
            Some(Asked::Form(_)) => ("Answer: yes, decline, cancel? ", &CONSENT[..]),
            Some(Asked::Url(_)) => ("I will go there: yes, decline, cancel? ", &CONSENT[..]),
            Some(Asked::Sampling(_)) => ("reply (text, or {json} for a whole result): ", &[][..]),
            None => ("", &[][..]),
        };
        let choices = choices.iter().map(|choice| (*choice).to_owned()).collect();
        Ask { about: Vec::new(), prompt: prompt.to_owned(), choices }
    }

    /// Takes an answer. Returns what is left to ask as `None`; otherwise the arguments of the call,
    /// or the answer to the server.
    ///
    /// # Errors
    /// What is wrong with it; the question stays.
    pub(crate) fn take(&mut self, line: &str) -> Result<Option<Answer>, String> {
        if let Some(form) = &mut self.form {
            form.take(line)?;
            return Ok(match (form.step(), &self.about) {
                (Step::Ask(_), _) => None,
                (Step::Done(filled), About::Call(_)) => Some(Ok(Value::Object(filled))),
                (Step::Done(filled), About::Question(_)) => {
                    Some(Ok(json!({ "action": "accept", "content": filled })))
                }
            });
        }
        let About::Question(question) = &self.about else { return Ok(None) };
        let asked = &question.asked;
        if let Asked::Sampling(_) = asked {
            return sampled(asked, line.trim()).map(|reply| Some(Ok(reply)));
        }
        let action = consent(line)?;
        if let (Asked::Form(params), ElicitAction::Accept) = (asked, action) {
            self.form = started(&json!(params.requested_schema), true);
            if self.form.is_some() {
                return Ok(None);
            }
        }
        Ok(asked.by(action))
    }

    /// Answers the question of the server.
    pub(crate) fn answer(self, answer: Answer) {
        if let About::Question(question) = self.about {
            question.answer(answer);
        }
    }

    /// Gives up: nothing is called, and the server is told that nobody answered.
    pub(crate) fn cancel(self) -> &'static str {
        match self.about {
            About::Call(_) => "not called",
            About::Question(question) => question.cancel(),
        }
    }
}

const CONSENT: [&str; 3] = ["yes", "decline", "cancel"];

/// A form, unless there is nothing to fill in.
fn started(schema: &Value, has_defaults: bool) -> Option<Form> {
    let mut form = Form::new(schema, has_defaults);
    matches!(form.step(), Step::Ask(_)).then_some(form)
}

fn consent(line: &str) -> Result<ElicitAction, String> {
    match line.trim().to_ascii_lowercase().as_str() {
        "" | "y" | "yes" => Ok(ElicitAction::Accept),
        "d" | "n" | "no" | "decline" => Ok(ElicitAction::Decline),
        "c" | "cancel" => Ok(ElicitAction::Cancel),
        other => Err(format!("expected yes, decline or cancel, got {other:?}")),
    }
}

fn sampled(asked: &Asked, text: &str) -> Result<Value, String> {
    if text.is_empty() {
        return Err("type a reply, or press Ctrl-C to refuse".to_owned());
    }
    if !text.starts_with('{') {
        return Ok(said(text, "a person"));
    }
    let result = loose::parse_value(text)?;
    asked.check(&result)?;
    Ok(result)
}

/// Text of a server's schema, made safe for the terminal.
fn safe(ask: Ask) -> Ask {
    let about = ask.about.iter().map(|line| plain(line).into_owned()).collect();
    Ask { about, prompt: line(&ask.prompt) + " ", choices: ask.choices }
}

fn conversation(params: &CreateMessageParams) -> String {
    let mut text = String::new();
    if let Some(system) = &params.system_prompt {
        text += &format!("  system: {}\n", plain(system));
    }
    for message in &params.messages {
        let role = unquoted(&json!(message.role));
        let (said, blocks) = (message.content.text(), message.content.blocks().len());
        text += &if said.is_empty() {
            format!("  {role}: {blocks} blocks without text\n")
        } else {
            format!("  {role}: {}\n", plain(&said))
        };
    }
    let tools = params.tools.as_ref().map(|tools| format!(", {} tools", tools.len()));
    let tokens = params.max_tokens;
    text + &format!("  (at most {tokens} tokens{})", tools.unwrap_or_default())
}
