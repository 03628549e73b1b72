//! Runs a program once, and measures how long it took, how it ended and what it printed.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// A line for a shell, and its expected outcome.
#[derive(Debug)]
pub(super) struct Typed {
    /// Quotes are single ones. A single letter stands for an address.
    pub(super) line: &'static str,
    pub(super) exit: i32,
    /// A part of its output.
    pub(super) says: &'static str,
}

/// The outcome of a line.
#[derive(Debug)]
pub(super) struct Run {
    /// Milliseconds from the start of the program to its end.
    pub(super) ms: f64,
    pub(super) exit: Option<i32>,
    /// Standard output and standard error.
    pub(super) said: String,
}

impl Typed {
    /// How an outcome differs from what is expected.
    pub(super) fn differs(&self, answer: &Run) -> Option<String> {
        let Self { exit, says, .. } = self;
        let is_right = answer.exit == Some(*exit) && answer.said.contains(says);
        (!is_right).then(|| {
            format!(
                "exits with {:?} and prints\n{}\nexpected {exit} and {says:?}",
                answer.exit,
                answer.said.trim_end()
            )
        })
    }
}

/// Runs lines with the programs that were installed or built here.
#[derive(Clone)]
pub(super) struct Asker {
    path: OsString,
    home: PathBuf,
}

impl Asker {
    /// `path` precedes the environment's; programs keep their data in `folder`.
    pub(super) fn new(mut path: Vec<PathBuf>, folder: &Path) -> Result<Self, String> {
        path.extend(env::split_paths(&env::var_os("PATH").unwrap_or_default()));
        let home = folder.join("home");
        fs::create_dir_all(&home).map_err(|error| format!("{}: {error}", home.display()))?;
        for (name, text) in super::questions::FILES {
            fs::write(home.join(name), text).map_err(|error| format!("{name}: {error}"))?;
        }
        let path = env::join_paths(path).map_err(|error| error.to_string())?;
        Ok(Self { path, home })
    }

    /// The same with more folders of programs.
    pub(super) fn also(&self, folders: &[PathBuf]) -> Result<Self, String> {
        let all = env::split_paths(&self.path).chain(folders.iter().cloned());
        let path = env::join_paths(all).map_err(|error| error.to_string())?;
        Ok(Self { path, home: self.home.clone() })
    }

    pub(super) fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(arguments).env("PATH", &self.path).env("HOME", &self.home);
        command.env_remove("XDG_DATA_HOME").env_remove("XDG_CONFIG_HOME").env("NO_COLOR", "1");
        command.current_dir(&self.home).stdin(Stdio::null());
        command
    }

    /// Runs a line to its end.
    #[expect(clippy::disallowed_methods, reason = "this is what it measures")]
    pub(super) fn ask(&self, line: &str) -> Result<Run, String> {
        let words = words(line);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let mut command = self.command(words[0], &words[1..]);
        let start = Instant::now();
        let output = command.output().map_err(|error| format!("{line}: {error}"))?;
        let ms = start.elapsed().as_secs_f64() * 1e3;
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said).into_owned();
        Ok(Run { ms, exit: output.status.code(), said })
    }
}

/// The words of a line, as a shell splits it. There is at least one.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut is_quoted = false;
    for letter in line.chars() {
        match letter {
            '\'' => is_quoted = !is_quoted,
            ' ' if !is_quoted => words.push(String::new()),
            _ => words.last_mut().expect("there is one").push(letter),
        }
    }
    words
}

/// The median.
pub(super) fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The median of the ratios within each round.
pub(super) fn ratio(over: &[f64], under: &[f64]) -> f64 {
    median(&over.iter().zip(under).map(|(over, under)| over / under).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_a_shells() {
        assert_eq!(words("a 'b c'=d"), ["a", "b c=d"]);
        assert_eq!(words(r#"x 'v=["x"]'"#), ["x", r#"v=["x"]"#]);
    }

    #[test]
    fn ratios_are_taken_within_a_round() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(ratio(&[10.0, 30.0, 8.0], &[1.0, 1.0, 2.0]), 10.0);
    }

    #[test]
    fn an_answer_must_end_and_say_as_expected() {
        let typed = Typed { line: "x", exit: 3, says: "no" };
        let answer = |exit, said: &str| Run { ms: 1.0, exit, said: said.to_owned() };
        assert_eq!(typed.differs(&answer(Some(3), "oh no\n")), None);
        assert!(typed.differs(&answer(Some(0), "oh no\n")).is_some());
        assert!(typed.differs(&answer(Some(3), "yes\n")).is_some());
    }
}
