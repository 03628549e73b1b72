//! Questions at the prompt, one line each: the arguments of a call, and what a server asks.

use bowline::client::FormAnswer;
use bowline::model::CreateMessageParams;
use serde_json::{Map, Value};

use super::form::{Ask, Form, Step};
use super::question::{Asked, Policy, Question, Reply, said};
use crate::loose;
use crate::text::{line, plain};

/// What is being asked.
#[derive(Debug)]
pub(crate) enum Dialog {
    /// The arguments of a tool.
    Call { tool: String, form: Form, in_background: bool },
    /// What a server asks; with the form that is being filled in.
    Server { question: Box<Question>, form: Option<Form> },
}

/// What an answer led to.
#[derive(Debug)]
pub(crate) enum Next {
    /// There is more to ask.
    Ask,
    /// The arguments are complete.
    Call(Map<String, Value>),
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
        (text, Self::Server { question: Box::new(question), form: None })
    }

    /// What to ask.
    pub(crate) fn ask(&mut self) -> Ask {
        let (prompt, choices) = match self {
            Self::Call { form, .. } | Self::Server { form: Some(form), .. } => match form.step() {
                Step::Ask(ask) => return safe(ask),
                Step::Done(_) => ("", &[][..]),
            },
            Self::Server { question, .. } => match question.asked {
                Asked::Form(_) => ("Answer: yes, decline, cancel? ", &CONSENT[..]),
                Asked::Url(_) => ("I will go there: yes, decline, cancel? ", &CONSENT[..]),
                Asked::Sampling(_) => ("reply (text, or {json} for a whole result): ", &[][..]),
            },
        };
        let choices = choices.iter().map(|choice| (*choice).to_owned()).collect();
        Ask { about: Vec::new(), prompt: prompt.to_owned(), choices }
    }

    /// Takes an answer.
    ///
    /// # Errors
    /// What is wrong with it; the question stays.
    pub(crate) fn take(&mut self, line: &str) -> Result<Next, String> {
        match self {
            Self::Call { form, .. } => Ok(advance(form, line)?.map_or(Next::Ask, Next::Call)),
            Self::Server { question, form: Some(form) } => {
                let Some(content) = advance(form, line)? else { return Ok(Next::Ask) };
                let reply = Reply::Elicited(FormAnswer::Accept(content));
                Ok(Next::Answered(question.answer(Ok(reply))))
            }
            Self::Server { question, form } => match &question.asked {
                Asked::Sampling(_) => {
                    let reply = match line.trim() {
                        "" => Err("type a reply, or press Ctrl-C to refuse".to_owned()),
                        json if json.starts_with('{') => {
                            loose::parse_value(json).and_then(|it| question.asked.read(&it))
                        }
                        text => said(text),
                    };
                    Ok(Next::Answered(question.answer(Ok(reply?))))
                }
                _ => consent(question, form, line),
            },
        }
    }

    /// Gives up: nothing is called, and the server is told that nobody answered.
    pub(crate) fn cancel(self) -> &'static str {
        match self {
            Self::Call { .. } => "not called",
            Self::Server { mut question, .. } => question.cancel(),
        }
    }
}

const CONSENT: [&str; 3] = ["yes", "decline", "cancel"];

fn advance(form: &mut Form, line: &str) -> Result<Option<Map<String, Value>>, String> {
    form.take(line)?;
    match form.step() {
        Step::Ask(_) => Ok(None),
        Step::Done(filled) => Ok(Some(filled)),
    }
}

fn consent(question: &mut Question, form: &mut Option<Form>, line: &str) -> Result<Next, String> {
    let policy = match line.trim().to_ascii_lowercase().as_str() {
        "" | "y" | "yes" => Policy::Accept,
        "d" | "n" | "no" | "decline" => Policy::Decline,
        "c" | "cancel" => Policy::Cancel,
        other => return Err(format!("expected yes, decline or cancel, got {other:?}")),
    };
    if let (Asked::Form(params), Policy::Accept) = (&question.asked, policy) {
        let mut asks =
            Form::new(&serde_json::to_value(&params.requested_schema).unwrap_or_default());
        if let Step::Ask(_) = asks.step() {
            *form = Some(asks);
            return Ok(Next::Ask);
        }
    }
    let answer = question.asked.by(policy);
    Ok(Next::Answered(answer.map_or("cancelled", |answer| question.answer(answer))))
}

/// Text of a server's schema, made safe for the terminal.
fn safe(ask: Ask) -> Ask {
    let about = ask.about.iter().map(|line| plain(line).into_owned()).collect();
    Ask { about, prompt: line(&ask.prompt) + " ", choices: ask.choices }
}

fn conversation(params: &CreateMessageParams) -> String {
    let mut text = String::new();
    if let Some(system) = &params.system_prompt {
        text.push_str(&format!("  system: {}\n", plain(system)));
    }
    for message in &params.messages {
        let role = serde_json::to_value(message.role).unwrap_or_default();
        let role = role.as_str().unwrap_or_default();
        let (said, blocks) = (message.content.text(), message.content.blocks().len());
        text.push_str(&if said.is_empty() {
            format!("  {role}: {blocks} blocks without text\n")
        } else {
            format!("  {role}: {}\n", plain(&said))
        });
    }
    let tools = params.tools.as_ref().map(|tools| format!(", {} tools", tools.len()));
    let tokens = params.max_tokens;
    text + &format!("  (at most {tokens} tokens{})", tools.unwrap_or_default())
}
