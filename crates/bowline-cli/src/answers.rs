//! What a server is told when it asks for the user, the model or the folders, without anybody
//! there to ask. The file is described in `docs/answers.md`.

use std::path::PathBuf;
use std::sync::Arc;

use bowline::client::{ClientBuilder, FormAnswer, UrlAnswer};
use bowline::model::{CreateMessageParams, CreateMessageResult};
use bowline::{ErrorCode, ErrorObject};
use clap::Args;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::failure::Failure;
use crate::screen::{Screen, Style};

/// Answers that are given before they are asked for.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Answers to what the server asks")]
pub(crate) struct AnswerArgs {
    /// Answer forms, URLs and sampling as a JSON file says (see docs/answers.md)
    #[arg(long, value_name = "FILE")]
    pub(crate) answer: Option<PathBuf>,

    /// Accept every form with its defaults, and every URL
    #[arg(long, conflicts_with = "decline")]
    pub(crate) accept: bool,

    /// Decline everything
    #[arg(long)]
    pub(crate) decline: bool,

    /// A folder to tell the server of; may be repeated
    #[arg(long, value_name = "DIR")]
    pub(crate) root: Vec<PathBuf>,
}

/// The answers.
#[derive(Debug, Clone, Default)]
pub(crate) struct Answers {
    script: Arc<Script>,
    otherwise: Option<Action>,
    /// Folders as URIs.
    roots: Vec<String>,
}

/// What a file says.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Script {
    #[serde(default)]
    forms: Vec<FormRule>,
    #[serde(default)]
    urls: Vec<UrlRule>,
    #[serde(default)]
    sampling: Vec<SamplingRule>,
    #[serde(default)]
    roots: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FormRule {
    #[serde(default)]
    when: String,
    #[serde(default)]
    action: Action,
    #[serde(default)]
    content: Map<String, Value>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct UrlRule {
    #[serde(default)]
    when: String,
    action: Action,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SamplingRule {
    #[serde(default)]
    when: String,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    result: Option<CreateMessageResult>,
    #[serde(default)]
    error: Option<String>,
}

/// What is done with a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Action {
    #[default]
    Accept,
    Decline,
    Cancel,
}

impl Action {
    fn word(self) -> &'static str {
        match self {
            Self::Accept => "accepted",
            Self::Decline => "declined",
            Self::Cancel => "cancelled",
        }
    }
}

impl Answers {
    /// As the command line says.
    ///
    /// # Errors
    /// When the file cannot be read, or a folder is none.
    pub(crate) fn read(args: &AnswerArgs) -> Result<Self, Failure> {
        let script = match &args.answer {
            None => Script::default(),
            Some(file) => {
                let wrong = |problem: String| {
                    Failure::usage(format!("--answer {}: {problem}", file.display()))
                };
                let text =
                    std::fs::read_to_string(file).map_err(|error| wrong(error.to_string()))?;
                serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?
            }
        };
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

    /// The folders to tell servers of, as URIs.
    pub(crate) fn roots(&self) -> &[String] {
        &self.roots
    }

    /// Lets a client answer. What nothing is known to say to, the client does not offer.
    pub(crate) fn add_to(&self, builder: ClientBuilder, screen: &Arc<Screen>) -> ClientBuilder {
        let mut builder = builder;
        let declines = self.otherwise == Some(Action::Decline);
        if !self.script.forms.is_empty() || self.otherwise.is_some() {
            let (answers, screen) = (self.clone(), Arc::clone(screen));
            builder = builder.on_form(move |form| {
                let answer = answers.form(&form.message, &screen);
                async move { answer }
            });
        }
        if !self.script.urls.is_empty() || self.otherwise.is_some() {
            let (answers, screen) = (self.clone(), Arc::clone(screen));
            builder = builder.on_url(move |asked| {
                let answer = answers.url(&format!("{} {}", asked.message, asked.url), &screen);
                async move { answer }
            });
        }
        if !self.script.sampling.is_empty() || declines {
            let (answers, screen) = (self.clone(), Arc::clone(screen));
            builder = builder.on_sampling(move |asked| {
                let answer = answers.sampling(&asked, &screen);
                async move { answer }
            });
        }
        if !self.roots.is_empty() {
            builder = builder.roots(self.roots.iter().cloned());
        }
        builder
    }

    fn form(&self, message: &str, screen: &Screen) -> Result<FormAnswer, ErrorObject> {
        let rule = self.script.forms.iter().find(|rule| message.contains(&rule.when));
        let (action, content) = match (rule, self.otherwise) {
            (Some(rule), _) => (rule.action, rule.content.clone()),
            (None, Some(action)) => (action, Map::new()),
            (None, None) => return Err(unanswered(message)),
        };
        let told =
            if content.is_empty() { String::new() } else { format!(" with {}", json!(content)) };
        tell(screen, message, &format!("{}{told}", action.word()));
        Ok(match action {
            Action::Accept => FormAnswer::Accept(content),
            Action::Decline => FormAnswer::Decline,
            Action::Cancel => FormAnswer::Cancel,
        })
    }

    fn url(&self, message: &str, screen: &Screen) -> Result<UrlAnswer, ErrorObject> {
        let rule = self.script.urls.iter().find(|rule| message.contains(&rule.when));
        let action = rule.map(|rule| rule.action).or(self.otherwise);
        let action = action.ok_or_else(|| unanswered(message))?;
        tell(screen, message, action.word());
        Ok(match action {
            Action::Accept => UrlAnswer::Accept,
            Action::Decline => UrlAnswer::Decline,
            Action::Cancel => UrlAnswer::Cancel,
        })
    }

    fn sampling(
        &self,
        asked: &CreateMessageParams,
        screen: &Screen,
    ) -> Result<CreateMessageResult, ErrorObject> {
        let text = serde_json::to_string(&asked.messages).unwrap_or_default();
        let rule = self.script.sampling.iter().find(|rule| text.contains(&rule.when));
        let refused = |message: &str| Err(ErrorObject::new(ErrorCode(-1), message));
        let shown = match asked.messages.len() {
            1 => "sampling of a message".to_owned(),
            many => format!("sampling of {many} messages"),
        };
        let Some(rule) = rule else {
            tell(screen, &shown, "declined");
            return refused("the user declined");
        };
        match (&rule.error, &rule.result, &rule.text) {
            (Some(error), _, _) => {
                tell(screen, &shown, &format!("refused: {error}"));
                refused(error)
            }
            (_, Some(result), _) => {
                tell(screen, &shown, "answered as the file says");
                Ok(result.clone())
            }
            (_, _, text) => {
                let text = text.as_deref().unwrap_or_default();
                tell(screen, &shown, &format!("answered: {text}"));
                let model = rule.model.as_deref().unwrap_or("bowline-script");
                let result = json!({
                    "role": "assistant",
                    "content": { "type": "text", "text": text },
                    "model": model,
                    "stopReason": "endTurn",
                });
                serde_json::from_value(result)
                    .map_err(|error| ErrorObject::internal(error.to_string()))
            }
        }
    }
}

fn tell(screen: &Screen, question: &str, answer: &str) {
    screen.server_asks(Style::Cyan, &format!("{question} → {answer}"));
}

fn unanswered(message: &str) -> ErrorObject {
    ErrorObject::new(ErrorCode(-1), format!("no answer was prepared for {message:?}"))
}

/// A folder as a URI.
fn file_uri(dir: &std::path::Path) -> Result<String, Failure> {
    let wrong = |problem: &dyn std::fmt::Display| {
        Failure::usage(format!("--root {}: {problem}", dir.display()))
    };
    let whole = std::path::absolute(dir).map_err(|error| wrong(&error))?;
    let text = whole.to_str().ok_or_else(|| wrong(&"its name is no text"))?;
    let text = text.replace('\\', "/");
    let mut uri = String::from(if text.starts_with('/') { "file://" } else { "file:///" });
    let path = text.trim_end_matches('/');
    for byte in if path.is_empty() { "/" } else { path }.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' | b'~' | b':' => {
                uri.push(char::from(byte));
            }
            _ => uri += &format!("%{byte:02X}"),
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
