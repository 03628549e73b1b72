//! Answers to a server's questions, prepared for commands that run without a user. The file is
//! described in `docs/answers.md`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bowline::client::{ClientBuilder, FormAnswer, UrlAnswer};
use bowline::model::{CreateMessageParams, CreateMessageResult};
use bowline::{ErrorCode, ErrorObject};
use clap::Args;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::failure::Failure;
use crate::screen::{Screen, Style};

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
    otherwise: Option<Action>,
    /// Folders as URIs.
    roots: Vec<String>,
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
    action: Action,
    content: Map<String, Value>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct UrlRule {
    #[serde(default)]
    when: String,
    action: Action,
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

/// What to do with a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Action {
    #[default]
    Accept,
    Decline,
    Cancel,
}

impl Action {
    fn past(self) -> &'static str {
        match self {
            Self::Accept => "accepted",
            Self::Decline => "declined",
            Self::Cancel => "cancelled",
        }
    }
}

impl Answers {
    /// Reads the command line.
    pub(crate) fn read(args: &AnswerArgs) -> Result<Self, Failure> {
        let script = args.answer.as_deref().map(Script::read).transpose()?.unwrap_or_default();
        let otherwise = match (args.accept, args.decline) {
            (true, _) => Some(Action::Accept),
            (_, true) => Some(Action::Decline),
            _ => None,
        };
        let mut roots = script.roots.clone();
        for dir in &args.root {
            roots.push(file_uri(dir)?);
        }
        Ok(Self { script: Arc::new(script), otherwise, roots })
    }

    /// The folders to offer to servers, as URIs.
    pub(crate) fn roots(&self) -> &[String] {
        &self.roots
    }

    /// Lets a client answer. It does not offer what there are no answers for.
    pub(crate) fn add_to(&self, mut builder: ClientBuilder, screen: &Arc<Screen>) -> ClientBuilder {
        let shared = || (self.clone(), Arc::clone(screen));
        if !self.script.forms.is_empty() || self.otherwise.is_some() {
            let (answers, screen) = shared();
            builder = builder
                .on_form(move |form| std::future::ready(answers.form(&form.message, &screen)));
        }
        if !self.script.urls.is_empty() || self.otherwise.is_some() {
            let (answers, screen) = shared();
            builder = builder.on_url(move |asked| {
                let question = format!("{} {}", asked.message, asked.url);
                std::future::ready(answers.url(&question, &screen))
            });
        }
        if !self.script.sampling.is_empty() || self.otherwise == Some(Action::Decline) {
            let (answers, screen) = shared();
            builder = builder
                .on_sampling(move |asked| std::future::ready(answers.sampling(&asked, &screen)));
        }
        if self.roots.is_empty() { builder } else { builder.roots(self.roots.iter().cloned()) }
    }

    fn form(&self, message: &str, screen: &Screen) -> Result<FormAnswer, ErrorObject> {
        let rule = self.script.forms.iter().find(|rule| message.contains(&rule.when));
        let content = rule.map(|rule| rule.content.clone()).unwrap_or_default();
        let with =
            if content.is_empty() { String::new() } else { format!(" with {}", json!(content)) };
        Ok(match self.decide(rule.map(|rule| rule.action), message, &with, screen)? {
            Action::Accept => FormAnswer::Accept(content),
            Action::Decline => FormAnswer::Decline,
            Action::Cancel => FormAnswer::Cancel,
        })
    }

    fn url(&self, message: &str, screen: &Screen) -> Result<UrlAnswer, ErrorObject> {
        let rule = self.script.urls.iter().find(|rule| message.contains(&rule.when));
        Ok(match self.decide(rule.map(|rule| rule.action), message, "", screen)? {
            Action::Accept => UrlAnswer::Accept,
            Action::Decline => UrlAnswer::Decline,
            Action::Cancel => UrlAnswer::Cancel,
        })
    }

    fn decide(
        &self,
        rule: Option<Action>,
        message: &str,
        with: &str,
        screen: &Screen,
    ) -> Result<Action, ErrorObject> {
        let unanswered = || format!("no answer was prepared for {message:?}");
        let action = rule.or(self.otherwise);
        let action = action.ok_or_else(|| ErrorObject::new(ErrorCode(-1), unanswered()))?;
        report(screen, message, &format!("{}{with}", action.past()));
        Ok(action)
    }

    fn sampling(
        &self,
        asked: &CreateMessageParams,
        screen: &Screen,
    ) -> Result<CreateMessageResult, ErrorObject> {
        let text = serde_json::to_string(&asked.messages).unwrap_or_default();
        let rule = self.script.sampling.iter().find(|rule| text.contains(&rule.when));
        let question = match asked.messages.len() {
            1 => "sampling of a message".to_owned(),
            many => format!("sampling of {many} messages"),
        };
        let refused = |told: &str, error: &str| {
            report(screen, &question, told);
            Err(ErrorObject::new(ErrorCode(-1), error))
        };
        let Some(rule) = rule else { return refused("declined", "the user declined") };
        if let Some(error) = &rule.error {
            return refused(&format!("refused: {error}"), error);
        }
        if let Some(result) = &rule.result {
            report(screen, &question, "answered from the file");
            return Ok(result.clone());
        }
        report(screen, &question, &format!("answered: {}", rule.text));
        let result = json!({
            "role": "assistant",
            "content": { "type": "text", "text": rule.text },
            "model": rule.model.as_deref().unwrap_or("bowline-script"),
            "stopReason": "endTurn",
        });
        serde_json::from_value(result).map_err(|error| ErrorObject::internal(error.to_string()))
    }
}

impl Script {
    fn read(file: &Path) -> Result<Self, Failure> {
        let wrong = |problem: &dyn std::fmt::Display| {
            Failure::usage(format!("--answer {}: {problem}", file.display()))
        };
        let text = std::fs::read_to_string(file).map_err(|error| wrong(&error))?;
        serde_json::from_str(&text).map_err(|error| wrong(&error))
    }
}

fn report(screen: &Screen, question: &str, answer: &str) {
    screen.aside("asked", Style::Cyan, &format!("{question} → {answer}"));
}

fn file_uri(dir: &Path) -> Result<String, Failure> {
    let wrong = |problem: &dyn std::fmt::Display| {
        Failure::usage(format!("--root {}: {problem}", dir.display()))
    };
    let whole = std::path::absolute(dir).map_err(|error| wrong(&error))?;
    let text = whole.to_str().ok_or_else(|| wrong(&"its name is not valid Unicode"))?;
    let text = text.replace('\\', "/");
    let mut uri = String::from(if text.starts_with('/') { "file://" } else { "file:///" });
    let path = text.trim_end_matches('/');
    for byte in if path.is_empty() { "/" } else { path }.bytes() {
        if byte.is_ascii_alphanumeric() || b"/-_.~:".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            uri += &format!("%{byte:02X}");
        }
    }
    Ok(uri)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::OutputArgs;

    fn answers(script: Value, otherwise: Option<Action>) -> Answers {
        let script = Arc::new(serde_json::from_value(script).unwrap());
        Answers { script, otherwise, roots: Vec::new() }
    }

    #[test]
    fn the_first_rule_that_fits_answers() {
        let screen = Screen::new(&OutputArgs { quiet: true, ..OutputArgs::default() });
        let rules = json!({ "forms": [
            { "when": "name", "content": { "name": "Ada" } },
            { "when": "sure", "action": "cancel" },
        ]});
        let answers = answers(rules, None);
        let ada = FormAnswer::accept(&json!({ "name": "Ada" }));
        assert_eq!(answers.form("Your name, for sure?", &screen).unwrap(), ada);
        assert_eq!(answers.form("Are you sure?", &screen).unwrap(), FormAnswer::Cancel);
        let told = answers.form("Else?", &screen).unwrap_err().message;
        assert!(told.contains("no answer was prepared"), "{told}");
        let polite = Answers { otherwise: Some(Action::Decline), ..answers };
        assert_eq!(polite.form("Else?", &screen).unwrap(), FormAnswer::Decline);
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
}
