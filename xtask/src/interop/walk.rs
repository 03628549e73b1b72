//! One client's walk through a server, and the table of all of them.

use std::process::Command;

use crate::process::{Ran, run};

/// What a client found. Each of its connections makes the same checks, in a mode of its own.
pub(crate) struct Walked {
    /// Checks with their verdicts, in order.
    checks: Vec<(String, bool)>,
    /// Whether the walk ended before it reported.
    is_broken: bool,
    /// The whole output.
    pub(crate) said: String,
}

/// How long a walk may take, in seconds, on a busy machine too.
const LIMIT: &str = "2700";

/// Runs a walk to its end, which is not far away: with its descendants it is killed then.
pub(crate) fn walk(walk: &Command) -> Walked {
    let Ran { ok, output } = run(bounded(walk, LIMIT));
    let walked = Walked::of(&output);
    let has_failed = walked.checks.iter().any(|(_, ok)| !ok);
    Walked { is_broken: walked.is_broken || ok == has_failed, ..walked }
}

fn bounded(walk: &Command, limit: &str) -> Command {
    let mut bounded = Command::new("timeout");
    bounded.args(["--kill-after=30", limit]).arg(walk.get_program()).args(walk.get_args());
    for (name, value) in walk.get_envs() {
        match value {
            Some(value) => bounded.env(name, value),
            None => bounded.env_remove(name),
        };
    }
    if let Some(folder) = walk.get_current_dir() {
        bounded.current_dir(folder);
    }
    bounded
}

impl Walked {
    /// What a walk said, that did not break off.
    pub(crate) fn of(said: &str) -> Self {
        let checks: Vec<_> = said.lines().filter_map(read).collect();
        Self { is_broken: checks.is_empty(), checks, said: said.to_owned() }
    }

    /// A walk that could not begin.
    pub(crate) fn not_at_all(why: String) -> Self {
        Self { checks: Vec::new(), is_broken: true, said: why }
    }

    pub(crate) fn passed(&self) -> u64 {
        self.checks.iter().filter(|(_, ok)| *ok).count() as u64
    }

    pub(crate) fn failed(&self) -> u64 {
        self.checks.len() as u64 - self.passed() + u64::from(self.is_broken)
    }

    /// The known gaps of the server.
    pub(super) fn lacking(&self) -> u64 {
        self.said.lines().filter(|line| line.starts_with("lacks ")).count() as u64
    }

    /// How many checks passed, of how many were made.
    pub(super) fn sum(&self) -> String {
        format!("{}/{}", self.passed(), self.passed() + self.failed())
    }

    /// How often a check passed, of how often it was made.
    fn cell(&self, name: &str) -> String {
        let made: Vec<bool> =
            self.checks.iter().filter(|(check, _)| check == name).map(|(_, ok)| *ok).collect();
        let passed = made.iter().filter(|ok| **ok).count();
        if made.is_empty() { "-".to_owned() } else { format!("{passed}/{}", made.len()) }
    }
}

/// `ok <mode> <check>` or `not ok <mode> <check>: <reason>`; what a server lacks is neither.
fn read(line: &str) -> Option<(String, bool)> {
    let (rest, ok) = match line.strip_prefix("not ok ") {
        Some(rest) => (rest, false),
        None => (line.strip_prefix("ok ")?, true),
    };
    let check = rest.split_whitespace().nth(1)?;
    Some((check.trim_end_matches(':').to_owned(), ok))
}

/// A row for each check, a column for each walk, its name above it, one word per line.
pub(crate) fn table(walked: &[(String, Walked)]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in walked.iter().flat_map(|(_, walked)| &walked.checks) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    let row = |first: &str, cells: Vec<String>| {
        let cells: String = cells.iter().map(|cell| format!("{cell:>11}")).collect();
        format!("    {first:18}{cells}\n")
    };
    let mut table = String::new();
    let words = |(name, _): &(String, Walked)| name.split(' ').count();
    for line in 0..walked.iter().map(words).max().unwrap_or(0) {
        let word = |name: &str| name.split(' ').nth(line).unwrap_or_default().to_owned();
        table += &row("", walked.iter().map(|(name, _)| word(name)).collect());
    }
    for name in names {
        table += &row(name, walked.iter().map(|(_, walked)| walked.cell(name)).collect());
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walked(said: &str, is_broken: bool) -> Walked {
        Walked { checks: said.lines().filter_map(read).collect(), is_broken, said: said.to_owned() }
    }

    #[test]
    fn checks_are_counted_by_name() {
        let said = "$ node walk\nok auto call\nnot ok legacy call: late: 5 s\nok auto end\nlacks auto x: y";
        let walked = walked(said, false);
        assert_eq!((walked.passed(), walked.failed(), walked.lacking()), (2, 1, 1));
        let cells = ["call", "end", "other"].map(|name| walked.cell(name));
        assert_eq!(cells, ["1/2", "1/1", "-"]);
        let table = table(&[("python 1 stdio".to_owned(), walked)]);
        assert_eq!(table.lines().count(), 5, "{table}");
    }

    #[test]
    fn a_walk_that_hangs_has_failed() {
        let mut walk = Command::new("sh");
        walk.args(["-c", "sleep 600 & wait"]);
        assert!(!run(bounded(&walk, "0.2")).ok);
        let mut walk = Command::new("sh");
        walk.args(["-c", "echo ok auto $CALL"]).env("CALL", "call");
        let Ran { ok, output } = run(bounded(&walk, LIMIT));
        assert!(ok && output.ends_with("ok auto call\n"), "{output}");
    }

    #[test]
    fn a_walk_that_breaks_off_has_failed() {
        assert_eq!(walked("ok auto call", true).failed(), 1);
        assert_eq!(Walked::not_at_all(String::new()).failed(), 1);
    }
}
