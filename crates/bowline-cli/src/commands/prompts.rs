//! `bowline prompts` and `bowline prompt`.

use std::path::PathBuf;

use bowline::Json;
use bowline::model::{GetPromptResult, Prompt as Listed, Role};
use clap::Args;
use serde_json::{Map, Value, json};

use super::{items, list, read};
use crate::failure::Failure;
use crate::render::content::Shower;
use crate::render::table::Table;
use crate::screen::{OutputArgs, Screen, Style};
use crate::session::{Session, Settings};
use crate::target::{TargetArgs, TargetOptions};
use crate::text::{did_you_mean, line};

/// List the prompts of a server
#[derive(Args)]
pub(crate) struct Prompts {
    #[command(flatten)]
    target: TargetArgs,
}

impl Prompts {
    pub(crate) async fn run(self, root: &OutputArgs) -> Result<(), Failure> {
        let settings = Settings::new(&self.target.options, root)?;
        Session::run(&self.target.resolve()?, &settings, async |session| {
            let screen = session.screen();
            let result = list(session, "prompts/list", "prompts").await?;
            if screen.is_json() {
                screen.print_json(&result);
                return Ok(());
            }
            let prompts = items::<Listed>(session, &result, "prompts")?;
            screen.print(&table(prompts.iter().map(|(prompt, _)| prompt), screen));
            Ok(())
        })
        .await
    }
}

/// Prompts, a line each.
pub(crate) fn table<'a>(prompts: impl IntoIterator<Item = &'a Listed>, screen: &Screen) -> String {
    let mut prompts = prompts.into_iter().peekable();
    if prompts.peek().is_none() {
        return "no prompts\n".to_owned();
    }
    let mut table = Table::new(&["PROMPT", "ARGUMENTS (* REQUIRED)", "DESCRIPTION"]);
    for prompt in prompts {
        let arguments = prompt.arguments.iter().flatten().map(|argument| {
            let star = if argument.required == Some(true) { "*" } else { "" };
            format!("{}{star}", line(&argument.name))
        });
        let about = prompt.description.as_deref().or(prompt.title.as_deref());
        table.row([
            line(&prompt.name),
            arguments.collect::<Vec<_>>().join(", "),
            line(about.unwrap_or_default()),
        ]);
    }
    table.render(screen)
}

/// Fill in a prompt and show its messages
#[derive(Args)]
#[command(override_usage = "bowline prompt [OPTIONS] TARGET PROMPT [KEY=VALUE]...\n       \
    bowline prompt [OPTIONS] PROMPT [KEY=VALUE]... -- COMMAND [ARGS]...")]
pub(crate) struct Prompt {
    /// The server, unless a command follows `--`; the prompt; its arguments, which are text
    #[arg(value_name = "TARGET PROMPT KEY=VALUE")]
    words: Vec<String>,

    /// Send arguments that the prompt does not list, too
    #[arg(long)]
    unchecked: bool,

    /// Save pictures, sound and other bytes here
    #[arg(long, value_name = "DIR")]
    save: Option<PathBuf>,

    #[command(flatten)]
    options: TargetOptions,
}

impl Prompt {
    pub(crate) async fn run(self, root: &OutputArgs) -> Result<(), Failure> {
        let settings = Settings::new(&self.options, root)?;
        let (resolved, words) = self.options.resolve_words(&self.words)?;
        let Some((name, words)) = words.split_first() else {
            return Err(Failure::usage("which prompt?").with_remedy("`bowline prompts` lists them"));
        };
        let arguments = pairs(words)?;
        Session::run(&resolved, &settings, async |session| {
            let screen = session.screen();
            if !self.unchecked {
                let listed = list(session, "prompts/list", "prompts").await?;
                check(&items(session, &listed, "prompts")?, name, &arguments)?;
            }
            let mut params = json!({ "name": name });
            if !arguments.is_empty() {
                params["arguments"] = Value::Object(arguments.clone());
            }
            let call = session.client().call_json("prompts/get", params);
            let result = call.on_progress(session.progress()).await?;
            if screen.is_json() {
                screen.print_json(&result);
                return Ok(());
            }
            let prompt = read::<GetPromptResult>(&result)?;
            let mut shower = Shower::new(screen, self.save.clone());
            screen.print(&messages(&prompt, &mut shower, screen)?);
            Ok(())
        })
        .await
    }
}

/// What a prompt became.
///
/// # Errors
/// When something cannot be saved.
pub(crate) fn messages(
    prompt: &GetPromptResult,
    shower: &mut Shower<'_>,
    screen: &Screen,
) -> Result<String, Failure> {
    let mut text = String::new();
    if let Some(about) = &prompt.description {
        text += &format!("{}\n\n", screen.out.paint(Style::Dim, &line(about)));
    }
    for message in &prompt.messages {
        let role = match message.role {
            Role::User => "user",
            Role::Assistant => "assistant",
        };
        text += &format!("{}\n", screen.out.paint(Style::Bold, &format!("{role}:")));
        text += &shower.block(&message.content)?;
    }
    Ok(text)
}

/// `key=value`, each of them text; `key=@file` reads a file.
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

fn check(
    prompts: &[(Listed, Json)],
    name: &str,
    given: &Map<String, Value>,
) -> Result<(), Failure> {
    let Some((prompt, _)) = prompts.iter().find(|(prompt, _)| prompt.name == name) else {
        let failure = Failure::usage(format!("there is no prompt {name:?}"));
        let near = did_you_mean(name, prompts.iter().map(|(prompt, _)| prompt.name.as_str()));
        let remedy = near.unwrap_or_else(|| "`bowline prompts` lists them".to_owned());
        return Err(failure.with_remedy(remedy));
    };
    let arguments = prompt.arguments.as_deref().unwrap_or_default();
    let names: Vec<&str> = arguments.iter().map(|argument| argument.name.as_str()).collect();
    let takes = match names.is_empty() {
        true => "takes no arguments".to_owned(),
        false => format!("takes {}", names.join(", ")),
    };
    if let Some(unknown) = given.keys().find(|key| !names.contains(&key.as_str())) {
        let failure = Failure::usage(format!("there is no {unknown:?}: the prompt {takes}"));
        let near = did_you_mean(unknown, names.iter().copied());
        let remedy = near.unwrap_or_else(|| "--unchecked sends it anyway".to_owned());
        return Err(failure.with_remedy(remedy));
    }
    let required = arguments.iter().filter(|argument| argument.required == Some(true));
    let missing: Vec<&str> = required
        .map(|argument| argument.name.as_str())
        .filter(|name| !given.contains_key(*name))
        .collect();
    match missing.is_empty() {
        true => Ok(()),
        false => {
            let what = format!("missing: {}; the prompt {takes}", missing.join(", "));
            Err(Failure::usage(what).with_remedy("--unchecked sends it anyway"))
        }
    }
}
