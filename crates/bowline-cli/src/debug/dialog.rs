//! Questions at the prompt, one line each: the fields of a call, and what a server asks.

use bowline::ErrorObject;
use bowline::client::{FormAnswer, UrlAnswer};
use bowline::model::{CreateMessageParams, ElicitFormParams};
use serde_json::{Map, Value};

use super::form::{Ask, Form, Step};
use super::loose;
use super::question::{Asked, Policy, Question, Reply, said};
use crate::text::plain;

/// What is being asked.
#[derive(Debug)]
pub(crate) enum Dialog {
    /// The arguments of a tool.
    Call { tool: String, form: Form, in_background: bool },
    /// Whether to answer a server at all.
    Consent(Question),
    /// The form of a server.
    Fill { question: Question, form: Form },
    /// What a model would say.
    Model(Question),
}

/// What an answer led to.
#[derive(Debug)]
pub(crate) enum Next {
    /// There is more to ask.
    Ask(Box<Dialog>),
    /// A tool is to be called.
    Call { tool: String, arguments: Map<String, Value>, in_background: bool },
    /// The server was answered; how, for people.
    Answered(&'static str),
}

impl Dialog {
    /// Asks for the arguments of a tool. `None` if it has none.
    pub(crate) fn call(tool: &str, schema: &Value, in_background: bool) -> Option<Self> {
        let mut form = Form::new(schema);
        match form.step() {
            Step::Done(_) => None,
            Step::Ask(_) => Some(Self::Call { tool: tool.to_owned(), form, in_background }),
        }
    }

    /// Takes up a question of the server; with what there is to read before.
    pub(crate) fn open(question: Question) -> (String, Self) {
        let id = question.id.as_ref().map(|id| format!(" (request {id})")).unwrap_or_default();
        let text = match &question.asked {
            Asked::Form(form) => format!("The server asks{id}: {}", plain(&form.message)),
            Asked::Url(url) => {
                let (message, url) = (plain(&url.message), plain(&url.url));
                format!("The server asks{id}: {message}\nand wants you to visit: {url}")
            }
            Asked::Sampling(params) => {
                format!("The server asks the model{id}:\n{}", shown(params))
            }
        };
        match question.asked {
            Asked::Sampling(_) => (text, Self::Model(question)),
            _ => (text, Self::Consent(question)),
        }
    }

    /// What to ask.
    pub(crate) fn ask(&mut self) -> Ask {
        let plainly = |prompt: &str, choices: &[&str]| Ask {
            about: Vec::new(),
            prompt: prompt.to_owned(),
            choices: choices.iter().map(|it| (*it).to_owned()).collect(),
        };
        match self {
            Self::Call { form, .. } | Self::Fill { form, .. } => match form.step() {
                Step::Ask(ask) => safe(ask),
                Step::Done(_) => plainly("", &[]),
            },
            Self::Consent(question) => match question.asked {
                Asked::Url(_) => plainly(
                    "I will go there: yes, decline, cancel? ",
                    &["yes", "decline", "cancel"],
                ),
                _ => plainly("Answer: yes, decline, cancel? ", &["yes", "decline", "cancel"]),
            },
            Self::Model(_) => plainly("reply (text, or {json} for a whole result): ", &[]),
        }
    }

    /// Takes an answer; with a wrong one the question stays.
    pub(crate) fn take(self, line: &str) -> Result<Next, (Box<Self>, String)> {
        let again = |dialog: Self, problem| Err((Box::new(dialog), problem));
        match self {
            Self::Call { tool, mut form, in_background } => match advance(&mut form, line) {
                Ok(Some(arguments)) => Ok(Next::Call { tool, arguments, in_background }),
                Ok(None) => Ok(Next::Ask(Box::new(Self::Call { tool, form, in_background }))),
                Err(problem) => again(Self::Call { tool, form, in_background }, problem),
            },
            Self::Fill { question, mut form } => match advance(&mut form, line) {
                Ok(Some(content)) => Ok(answer(question, Reply::Form(FormAnswer::Accept(content)))),
                Ok(None) => Ok(Next::Ask(Box::new(Self::Fill { question, form }))),
                Err(problem) => again(Self::Fill { question, form }, problem),
            },
            Self::Consent(question) => consent(question, line),
            Self::Model(question) => {
                let text = line.trim();
                if text.is_empty() {
                    let problem = "type a reply, or press Ctrl-C to refuse".to_owned();
                    return again(Self::Model(question), problem);
                }
                let reply = match text.starts_with('{') {
                    false => said(text),
                    true => loose::parse_value(text)
                        .map_err(|error| error.to_string())
                        .and_then(|result| question.asked.read(&result)),
                };
                match reply {
                    Ok(reply) => Ok(answer(question, reply)),
                    Err(problem) => again(Self::Model(question), problem),
                }
            }
        }
    }

    /// Gives up: nothing is called, the server hears that nobody answered.
    pub(crate) fn cancel(self) -> &'static str {
        match self {
            Self::Call { .. } => "not called",
            Self::Consent(question) | Self::Fill { question, .. } | Self::Model(question) => {
                cancel(question);
                "cancelled"
            }
        }
    }

    /// The question of the server, if it is one.
    pub(crate) fn question(&self) -> Option<&Question> {
        match self {
            Self::Call { .. } => None,
            Self::Consent(question) | Self::Fill { question, .. } | Self::Model(question) => {
                Some(question)
            }
        }
    }

    /// The same, to be waited on.
    pub(crate) fn question_mut(&mut self) -> Option<&mut Question> {
        match self {
            Self::Call { .. } => None,
            Self::Consent(question) | Self::Fill { question, .. } | Self::Model(question) => {
                Some(question)
            }
        }
    }

    /// The same, to be answered otherwise.
    pub(crate) fn into_question(self) -> Option<Question> {
        match self {
            Self::Call { .. } => None,
            Self::Consent(question) | Self::Fill { question, .. } | Self::Model(question) => {
                Some(question)
            }
        }
    }
}

/// Answers as if nobody were there.
pub(crate) fn cancel(question: Question) {
    if let Some(answer) = question.asked.by(Policy::Cancel) {
        // A server that went away wants no answer.
        let _ = question.reply.send(answer);
    }
}

/// Answers with an error that somebody wrote.
pub(crate) fn refuse(question: Question, error: ErrorObject) {
    let _ = question.reply.send(Err(error));
}

/// Answers.
pub(crate) fn answer(question: Question, reply: Reply) -> Next {
    let told = match &reply {
        Reply::Form(FormAnswer::Decline) | Reply::Url(UrlAnswer::Decline) => "declined",
        Reply::Form(FormAnswer::Cancel) | Reply::Url(UrlAnswer::Cancel) => "cancelled",
        _ => "answered",
    };
    let _ = question.reply.send(Ok(reply));
    Next::Answered(told)
}

fn advance(form: &mut Form, line: &str) -> Result<Option<Map<String, Value>>, String> {
    form.take(line)?;
    match form.step() {
        Step::Ask(_) => Ok(None),
        Step::Done(filled) => Ok(Some(filled)),
    }
}

fn consent(question: Question, line: &str) -> Result<Next, (Box<Dialog>, String)> {
    let policy = match line.trim().to_ascii_lowercase().as_str() {
        "" | "y" | "yes" => Policy::Accept,
        "d" | "n" | "no" | "decline" => Policy::Decline,
        "c" | "cancel" => Policy::Cancel,
        other => {
            let problem = format!("{other:?}: type yes, decline or cancel");
            return Err((Box::new(Dialog::Consent(question)), problem));
        }
    };
    if let (Asked::Form(form), Policy::Accept) = (&question.asked, policy) {
        let mut form = Form::new(&schema(form));
        return Ok(match form.step() {
            Step::Ask(_) => Next::Ask(Box::new(Dialog::Fill { question, form })),
            Step::Done(empty) => answer(question, Reply::Form(FormAnswer::Accept(empty))),
        });
    }
    match question.asked.by(policy) {
        Some(Ok(reply)) => Ok(answer(question, reply)),
        _ => {
            cancel(question);
            Ok(Next::Answered("cancelled"))
        }
    }
}

fn schema(form: &ElicitFormParams) -> Value {
    serde_json::to_value(&form.requested_schema).unwrap_or_default()
}

/// What a schema of a server says, made harmless.
fn safe(ask: Ask) -> Ask {
    let about = ask.about.iter().map(|line| plain(line).into_owned()).collect();
    Ask { about, prompt: crate::text::line(&ask.prompt) + " ", choices: ask.choices }
}

/// A conversation with a model.
fn shown(params: &CreateMessageParams) -> String {
    let mut text = String::new();
    if let Some(system) = &params.system_prompt {
        text.push_str(&format!("  system: {}\n", plain(system)));
    }
    for message in &params.messages {
        let role = serde_json::to_value(message.role).unwrap_or_default();
        let role = role.as_str().unwrap_or("somebody").to_owned();
        let said = message.content.text();
        let others = message.content.blocks().len();
        match said.is_empty() {
            true => text.push_str(&format!("  {role}: {others} blocks without text\n")),
            false => text.push_str(&format!("  {role}: {}\n", plain(&said))),
        }
    }
    let tools = params.tools.as_ref().map(|tools| format!(", {} tools", tools.len()));
    text.push_str(&format!(
        "  (at most {} tokens{})",
        params.max_tokens,
        tools.unwrap_or_default()
    ));
    text
}
