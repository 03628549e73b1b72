//! `bowline prompt`: a prompt with its arguments filled in.

use std::path::PathBuf;

use bowline::Json;
use bowline::model::{GetPromptResult, Prompt as Listed};
use clap::Args;
use serde_json::{Map, Value, json};

use super::list::PROMPTS;
use super::parse;
use crate::failure::Failure;
use crate::render::content::ContentRenderer;
use crate::screen::OutputArgs;
use crate::session::Invocation;
use crate::target::TargetOptions;
use crate::text::did_you_mean;

/// Fill in a prompt and show its messages
#[derive(Args)]
#[command(override_usage = "bowline prompt [OPTIONS] TARGET PROMPT [KEY=VALUE]...\n       \
    bowline prompt [OPTIONS] PROMPT [KEY=VALUE]... -- COMMAND [ARGS]...")]
pub(crate) struct Prompt {
    /// The server, unless a command follows `--`; the prompt; its arguments, which are text
    #[arg(value_name = "TARGET PROMPT KEY=VALUE")]
    words: Vec<String>,

    /// Also send arguments that the prompt does not declare
    #[arg(long)]
    unchecked: bool,

    /// Save images, audio and other binary content to this directory
    #[arg(long, value_name = "DIR")]
    save: Option<PathBuf>,

    #[command(flatten)]
    options: TargetOptions,
}

impl Prompt {
    pub(crate) async fn run(self, root: &OutputArgs) -> Result<(), Failure> {
        let (invocation, words) = Invocation::split(&self.options, &self.words, root)?;
        let [name, words @ ..] = words else {
            return Err(Failure::usage("which prompt?").with_remedy("`bowline prompts` lists them"));
        };
        let arguments = pairs(words)?;
        invocation
            .run(async |session| {
                if !self.unchecked {
                    let listed = PROMPTS.fetch(session).await?;
                    let prompts: Vec<(Listed, Json)> = PROMPTS.read(&listed, session.screen())?;
                    check(&PROMPTS.find(&prompts, name)?.0, &arguments)?;
                }
                let mut params = json!({ "name": name });
                if !arguments.is_empty() {
                    params["arguments"] = Value::Object(arguments);
                }
                let screen = session.screen();
                let result = session.call("prompts/get", params).await?;
                screen.show(&result, || {
                    let prompt = parse::<GetPromptResult>(&result)?;
                    ContentRenderer::new(screen, self.save).prompt(&prompt)
                })
            })
            .await
    }
}

/// Text arguments: `key=value`, or `key=@file` to read a file.
pub(super) fn pairs(words: &[String]) -> Result<Map<String, Value>, Failure> {
    let mut arguments = Map::new();
    for word in words {
        let wrong = |problem: &str| Failure::usage(format!("{word:?}: {problem}"));
        let (name, value) = word.split_once('=').ok_or_else(|| wrong("expected key=value"))?;
        let value = match value.strip_prefix('@') {
            Some(file) => {
                std::fs::read_to_string(file).map_err(|error| wrong(&error.to_string()))?
            }
            None => value.to_owned(),
        };
        if arguments.insert(name.to_owned(), Value::String(value)).is_some() {
            return Err(wrong("is given twice"));
        }
    }
    Ok(arguments)
}

/// Compares arguments with what the prompt declares.
fn check(prompt: &Listed, given: &Map<String, Value>) -> Result<(), Failure> {
    const ANYWAY: &str = "--unchecked sends it anyway";
    let arguments = prompt.arguments.as_deref().unwrap_or_default();
    let names: Vec<&str> = arguments.iter().map(|argument| argument.name.as_str()).collect();
    let takes = if names.is_empty() { "no arguments".to_owned() } else { names.join(", ") };
    if let Some(unknown) = given.keys().find(|key| !names.contains(&key.as_str())) {
        let what = format!("there is no {unknown:?}: the prompt takes {takes}");
        let near = did_you_mean(unknown, names.iter().copied());
        return Err(Failure::usage(what).with_remedy(near.unwrap_or_else(|| ANYWAY.to_owned())));
    }
    let required = arguments.iter().filter(|argument| argument.required == Some(true));
    let missing: Vec<&str> = required
        .map(|argument| argument.name.as_str())
        .filter(|name| !given.contains_key(*name))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let what = format!("missing: {}; the prompt takes {takes}", missing.join(", "));
    Err(Failure::usage(what).with_remedy(ANYWAY))
}
