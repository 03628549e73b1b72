//! Secrets: read from files, variables and commands, and put where they are named.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::file::Secret;

/// Replaces `${NAME}` by secrets, in all texts.
pub(super) fn fill(value: &mut Value, secrets: &BTreeMap<String, String>) {
    match value {
        Value::String(text) => {
            for (name, secret) in secrets {
                *text = text.replace(&format!("${{{name}}}"), secret);
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|it| fill(it, secrets)),
        Value::Object(members) => members.values_mut().for_each(|it| fill(it, secrets)),
        _ => {}
    }
}

pub(super) fn value_of(secret: &Secret, near: &Path) -> Result<String, String> {
    let text = match secret {
        Secret::Env(name) => {
            std::env::var(name).map_err(|_| format!("the variable {name} is not set"))?
        }
        Secret::File(file) => {
            let file = near.parent().unwrap_or_else(|| Path::new(".")).join(home(file));
            let read = std::fs::read_to_string(&file);
            read.map_err(|error| format!("{}: {error}", file.display()))?
        }
        Secret::Command(words) => {
            let (program, args) = words.split_first().ok_or("the command is empty")?;
            let mut command =
                std::process::Command::new(bowline::client::find_program(program, None));
            let ran = command.args(args).stdin(std::process::Stdio::null()).output();
            let ran = ran.map_err(|error| format!("cannot run {program}: {error}"))?;
            if !ran.status.success() {
                return Err(format!("{program} failed ({})", ran.status));
            }
            String::from_utf8(ran.stdout).map_err(|_| format!("{program} did not print text"))?
        }
    };
    let text = text.strip_suffix('\n').unwrap_or(&text);
    let text = text.strip_suffix('\r').unwrap_or(text);
    if text.is_empty() { Err("it is empty".to_owned()) } else { Ok(text.to_owned()) }
}

/// A path whose `~` is the user's folder.
pub(super) fn home(path: &Path) -> PathBuf {
    match (path.strip_prefix("~"), std::env::home_dir()) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => path.to_owned(),
    }
}
