//! Secrets: read from files, variables and commands, and put where they are named.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use super::file::Secret;

/// Replaces `${NAME}` by a secret or a variable of the environment. What is in a value stays.
pub(super) fn filled(text: &str, secrets: &BTreeMap<String, String>) -> Result<String, String> {
    let (mut filled, mut rest) = (String::new(), text);
    while let Some(at) = rest.find("${") {
        let Some((name, after)) = rest[at + 2..].split_once('}') else { break };
        let value = secrets.get(name).cloned().or_else(|| std::env::var(name).ok());
        filled += &rest[..at];
        filled += &value
            .ok_or_else(|| format!("${{{name}}} is neither a secret nor set in the environment"))?;
        rest = after;
    }
    Ok(filled + rest)
}

/// How long a command that prints a secret may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// How often to look whether it has ended.
const LOOK: Duration = Duration::from_millis(5);

/// The most bytes of a secret.
const LONGEST: u64 = 1 << 20;

/// What a command prints.
fn printed(words: &[String]) -> Result<Vec<u8>, String> {
    let (program, args) = words.split_first().ok_or("the command is empty")?;
    let mut command = std::process::Command::new(bowline::client::find_program(program, None));
    let spawned = command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
    let mut child = spawned.map_err(|error| format!("cannot run {program}: {error}"))?;
    let started = tokio::time::Instant::now();
    let late = || format!("{program} did not finish within {PATIENCE:?} and was ended");
    let output = child.stdout.take();
    let (done, waiting) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = output.map(|it| it.take(LONGEST + 2).read_to_end(&mut bytes));
        let _ = done.send(read.transpose().map(|_| bytes));
    });
    let Ok(read) = waiting.recv_timeout(PATIENCE) else {
        let _ = child.kill();
        let _ = child.wait();
        return Err(late());
    };
    // One that has closed its output may go on.
    let status = loop {
        match child.try_wait().map_err(|error| format!("{program}: {error}"))? {
            Some(status) => break status,
            None if started.elapsed() < PATIENCE => std::thread::sleep(LOOK),
            None => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(late());
            }
        }
    };
    if !status.success() {
        return Err(format!("{program} failed ({status})"));
    }
    read.map_err(|error| format!("{program}: {error}"))
}

pub(super) fn value_of(secret: &Secret, near: &Path) -> Result<String, String> {
    let text = match secret {
        Secret::Env(name) => {
            std::env::var(name).map_err(|_| format!("the variable {name} is not set"))?
        }
        Secret::File(file) => {
            let file = near.parent().unwrap_or_else(|| Path::new(".")).join(home(file));
            let mut text = String::new();
            let read = std::fs::File::open(&file)
                .and_then(|it| it.take(LONGEST + 2).read_to_string(&mut text));
            read.map_err(|error| format!("{}: {error}", file.display()))?;
            text
        }
        Secret::Command(words) => {
            let program = words.first().map(String::as_str).unwrap_or_default();
            String::from_utf8(printed(words)?)
                .map_err(|_| format!("{program} did not print text"))?
        }
    };
    let text = text.strip_suffix('\n').unwrap_or(&text);
    let text = text.strip_suffix('\r').unwrap_or(text);
    match text.len() as u64 {
        0 => Err("it is empty".to_owned()),
        1..=LONGEST => Ok(text.to_owned()),
        _ => Err("it is longer than 1 MiB".to_owned()),
    }
}

/// A path whose `~` is the user's folder.
pub(super) fn home(path: &Path) -> PathBuf {
    match (path.strip_prefix("~"), std::env::home_dir()) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => path.to_owned(),
    }
}
