//! What servers ask (forms, URLs, sampling), and answers that are prepared for commands that run
//! without a user. Their file is described in `docs/answers.md`.

use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;

use bowline::client::{ClientBuilder, FormAnswer, UrlAnswer};
use bowline::model::{
    CreateMessageParams, CreateMessageResult, ElicitAction, ElicitFormParams, ElicitResult,
    ElicitUrlParams,
};
use bowline::{ErrorCode, ErrorObject};
use bowline_schema::Schema;
use clap::Args;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::failure::Failure;
use crate::person;
use crate::screen::{Screen, Style};
use crate::target::file_uri;

/// Prepared answers.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Answers to the server's questions")]
pub(crate) struct AnswerArgs {
    /// Answer forms, URLs and sampling from a JSON file (see docs/answers.md)
    #[arg(long, value_name = "FILE")]
    pub(crate) answer: Option<PathBuf>,

    /// Accept every form with its defaults, and every URL
    #[arg(long, conflicts_with = "decline")]
    pub(crate) accept: bool,

    /// Decline everything
    #[arg(long)]
    pub(crate) decline: bool,

    /// A folder to offer to the server; may be repeated
    #[arg(long, value_name = "DIR")]
    pub(crate) root: Vec<PathBuf>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Answers {
    script: Arc<Script>,
    /// What happens to questions that the file does not answer.
    pub(crate) otherwise: Option<ElicitAction>,
    /// The folders to offer to servers, as URIs.
    pub(crate) roots: Vec<String>,
    /// Whether the person at the terminal is asked what is not answered yet.
    asks: bool,
}

/// The contents of the file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Script {
    forms: Vec<FormRule>,
    urls: Vec<UrlRule>,
    sampling: Vec<SamplingRule>,
    roots: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct FormRule {
    when: String,
    action: Option<ElicitAction>,
    content: Map<String, Value>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct UrlRule {
    #[serde(default)]
    when: String,
    action: ElicitAction,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct SamplingRule {
    when: String,
    text: String,
    model: Option<String>,
    result: Option<CreateMessageResult>,
    error: Option<String>,
}

impl Answers {
    /// Reads the command line.
    pub(crate) fn read(args: &AnswerArgs) -> Result<Self, Failure> {
        let script = args.answer.as_deref().map(Script::read).transpose()?.unwrap_or_default();
        let otherwise = match (args.accept, args.decline) {
            (true, _) => Some(ElicitAction::Accept),
            (_, true) => Some(ElicitAction::Decline),
            _ => None,
        };
        let mut roots = script.roots.clone();
        for dir in &args.root {
            roots.push(file_uri(dir)?);
        }
        Ok(Self { script: Arc::new(script), otherwise, roots, asks: person::is_there() })
    }

    /// The same with other prepared answers, in the syntax of the file.
    pub(crate) fn with_rules(mut self, text: &str) -> Result<Self, Failure> {
        let script = serde_json::from_str::<Script>(text);
        let script = script.map_err(|error| Failure::usage(format!("the rules: {error}")))?;
        self.roots.extend(script.roots.iter().cloned());
        self.script = Arc::new(script);
        Ok(self)
    }

    /// Reads rules that answer what they fit, and nothing else.
    pub(crate) fn of_rules(text: &str) -> Result<Self, Failure> {
        let rules = Self::default().with_rules(text)?;
        if rules.roots.is_empty() {
            return Ok(rules);
        }
        let help = "the overview of a connection offers roots";
        Err(Failure::usage("the rules: roots are not answers").with_remedy(help))
    }

    /// Lets a client answer. It does not offer what there are no answers for.
    pub(crate) fn add_to(&self, builder: ClientBuilder, screen: &Arc<Screen>) -> ClientBuilder {
        let offered = Offered {
            forms: self.asks || !self.script.forms.is_empty() || self.otherwise.is_some(),
            urls: self.asks || !self.script.urls.is_empty() || self.otherwise.is_some(),
            sampling: self.asks
                || !self.script.sampling.is_empty()
                || self.otherwise == Some(ElicitAction::Decline),
        };
        let (answers, screen) = (self.clone(), Arc::clone(screen));
        let answer: Answering = Arc::new(move |asked| {
            let (prepared, screen) = (answers.answer(&asked, &screen), Arc::clone(&screen));
            let asks = answers.asks;
            Box::pin(async move {
                match prepared {
                    Some(answer) => answer,
                    None if asks => person::ask(asked, &screen).await,
                    None => {
                        Err(refusal(format!("no answer was prepared for {:?}", texts(&asked).1)))
                    }
                }
            })
        });
        let builder = listen(builder, offered, &answer);
        if self.roots.is_empty() { builder } else { builder.roots(self.roots.iter().cloned()) }
    }

    /// The answer that was prepared for a question, if there is one; shown on the screen.
    pub(crate) fn answer(&self, asked: &Asked, screen: &Screen) -> Option<Answer> {
        let script = &self.script;
        let (text, question) = texts(asked);
        let fits = |when: &String| text.contains(when);
        let by_rule = match asked {
            Asked::Form(_) => {
                script.forms.iter().find(|rule| fits(&rule.when)).map(FormRule::answer)
            }
            Asked::Url(_) => {
                let rule = script.urls.iter().find(|rule| fits(&rule.when));
                rule.map(|rule| Ok(json!({ "action": rule.action })))
            }
            Asked::Sampling(_) => {
                script.sampling.iter().find(|rule| fits(&rule.when)).map(SamplingRule::answer)
            }
        };
        let answer = by_rule.or_else(|| asked.by(self.otherwise?))?;
        let answer = answer.and_then(|result| asked.fitting(result));
        screen.aside("asked", Style::Cyan, &format!("{question} → {}", shown(&answer)));
        Some(answer)
    }
}

impl FormRule {
    fn answer(&self) -> Answer {
        let action = self.action.unwrap_or(ElicitAction::Accept);
        Ok(json!({ "action": action, "content": self.content }))
    }
}

impl SamplingRule {
    fn answer(&self) -> Answer {
        match (&self.error, &self.result) {
            (Some(error), _) => Err(refusal(error)),
            (None, Some(result)) => Ok(json!(result)),
            (None, None) => Ok(said(&self.text, self.model.as_deref().unwrap_or("bowline-script"))),
        }
    }
}

/// What rules look for in a question, and the question for people.
fn texts(asked: &Asked) -> (String, String) {
    let text = match asked {
        Asked::Form(form) => form.message.clone(),
        Asked::Url(url) => format!("{} {}", url.message, url.url),
        Asked::Sampling(params) => {
            let question = match params.messages.len() {
                1 => "sampling of a message".to_owned(),
                many => format!("sampling of {many} messages"),
            };
            return (json!(params.messages).to_string(), question);
        }
    };
    (text.clone(), text)
}

/// An answer for people.
fn shown(answer: &Answer) -> String {
    let result = match answer {
        Ok(result) => result,
        Err(error) => return format!("refused: {}", error.message),
    };
    match (result["action"].as_str(), result["content"].as_object()) {
        (Some("accept"), Some(content)) if !content.is_empty() => {
            format!("accepted with {}", json!(content))
        }
        (Some("accept"), _) => "accepted".to_owned(),
        (Some("decline"), _) => "declined".to_owned(),
        (Some(_), _) => "cancelled".to_owned(),
        (None, _) => {
            let text = result["content"]["text"].as_str();
            format!("answered: {}", text.unwrap_or("a whole result from the file"))
        }
    }
}

impl Script {
    fn read(file: &Path) -> Result<Self, Failure> {
        let text = std::fs::read_to_string(file);
        let text = text.map_err(|error| Failure::file("--answer", file, error))?;
        serde_json::from_str(&text).map_err(|error| Failure::file("--answer", file, error))
    }
}

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
            async move { elicited(&answer.await?) }
        });
    }
    if offered.urls {
        let answer = Arc::clone(answer);
        builder = builder.on_url(move |url| {
            let answer = answer(Asked::Url(url));
            async move {
                Ok(match elicited(&answer.await?)? {
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

fn elicited(answer: &Value) -> Result<FormAnswer, ErrorObject> {
    let result: ElicitResult = parse(answer).map_err(ErrorObject::internal)?;
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

    /// An answer, unless it accepts a form that it does not fit: that would not be sent.
    fn fitting(&self, result: Value) -> Answer {
        let Self::Form(form) = self else { return Ok(result) };
        if result["action"] != "accept" {
            return Ok(result);
        }
        let schema = json!(form.requested_schema);
        let mut content = result["content"].as_object().cloned().unwrap_or_default();
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            if let Some(default) = field.get("default").filter(|_| !content.contains_key(name)) {
                content.insert(name.clone(), default.clone());
            }
        }
        // A schema that does not compile is the client's to judge.
        let Ok(compiled) = Schema::compile(&schema) else { return Ok(result) };
        match compiled.validate("content", &Value::Object(content)) {
            Ok(()) => Ok(result),
            Err(invalid) => Err(refusal(format!("the answer does not fit the form: {invalid}"))),
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

/// What to do about a question that has no answer, by its method or the capability that it needs.
pub(crate) fn remedy(asked: &str) -> &'static str {
    if asked.contains("roots") {
        "--root DIR offers a folder"
    } else if asked.contains("sampling") {
        "--answer FILE answers for a model, and --decline declines; in a terminal, you are asked"
    } else {
        "--answer FILE answers, --accept takes the defaults, --decline declines; in a terminal, \
         you are asked"
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
    use crate::screen::OutputArgs;

    fn answers(script: Value, otherwise: Option<ElicitAction>) -> Answers {
        let script = Arc::new(serde_json::from_value(script).unwrap());
        Answers { script, otherwise, roots: Vec::new(), asks: false }
    }

    #[test]
    fn the_first_rule_that_fits_answers() {
        let screen = Screen::new(&OutputArgs { quiet: true, ..OutputArgs::default() });
        let rules = json!({ "forms": [
            { "when": "name", "content": { "name": "Ada" } },
            { "when": "sure", "action": "cancel" },
        ]});
        let answers = answers(rules, None);
        let answer = |answers: &Answers, message: &str| {
            let form = ElicitFormParams { message: message.to_owned(), ..Default::default() };
            answers.answer(&Asked::Form(Box::new(form)), &screen).map(Result::unwrap)
        };
        let ada = json!({ "action": "accept", "content": { "name": "Ada" } });
        assert_eq!(answer(&answers, "Your name, for sure?"), Some(ada));
        assert_eq!(answer(&answers, "Are you sure?").unwrap()["action"], "cancel");
        assert_eq!(answer(&answers, "Else?"), None);
        let polite = Answers { otherwise: Some(ElicitAction::Decline), ..answers };
        assert_eq!(answer(&polite, "Else?"), Some(json!({ "action": "decline" })));
    }

    #[test]
    fn mistakes_in_the_file_are_told() {
        let wrong = serde_json::from_str::<Script>(r#"{"form":[]}"#).unwrap_err().to_string();
        assert!(wrong.contains("unknown field `form`, expected one of `forms`"), "{wrong}");
    }

    #[test]
    #[cfg(unix)]
    fn folders_become_uris() {
        assert_eq!(file_uri("/a b/ü".as_ref()).unwrap(), "file:///a%20b/%C3%BC");
        assert_eq!(file_uri("/".as_ref()).unwrap(), "file:///");
        assert!(file_uri(".".as_ref()).unwrap().starts_with("file:///"));
    }

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
        assert_eq!(elicited(&written).unwrap(), FormAnswer::accept(&json!({ "a": 1 })));
        assert!(form.check(&json!({ "roots": [] })).unwrap_err().contains("does not answer"));
        let sample = Asked::Sampling(Box::default());
        assert!(sample.check(&json!({})).is_err());
        sample.check(&said("yes", "a person")).unwrap();
    }
}
