//! One client's walk through the server, and the table of all of them.

use std::path::Path;

use super::PLACE;
use crate::process::{Ran, command, run};

/// What a client found. Each of its connections makes the same checks, in a mode of its own.
pub(super) struct Walked {
    /// Checks with their verdicts, in order.
    checks: Vec<(String, bool)>,
    /// Whether the walk ended before it had said how it went.
    is_broken: bool,
    /// Everything that was said.
    pub(super) said: String,
}

/// Runs a walk to its end, through the server that a command or a URL names.
pub(super) fn walk(program: &Path, script: &str, server: &str) -> Walked {
    let mut walk = command(&program.to_string_lossy());
    walk.arg(Path::new(PLACE).join(script)).arg(server);
    let Ran { ok, output } = run(walk);
    let checks: Vec<_> = output.lines().filter_map(read).collect();
    let has_failed = checks.iter().any(|(_, ok)| !ok);
    let is_broken = checks.is_empty() || ok == has_failed;
    Walked { checks, is_broken, said: output }
}

impl Walked {
    /// A walk that could not begin.
    pub(super) fn not_at_all(why: String) -> Self {
        Self { checks: Vec::new(), is_broken: true, said: why }
    }

    pub(super) fn passed(&self) -> u64 {
        self.checks.iter().filter(|(_, ok)| *ok).count() as u64
    }

    pub(super) fn failed(&self) -> u64 {
        self.checks.len() as u64 - self.passed() + u64::from(self.is_broken)
    }

    /// How often a check passed, of how often it was made.
    fn cell(&self, name: &str) -> String {
        let made: Vec<bool> =
            self.checks.iter().filter(|(check, _)| check == name).map(|(_, ok)| *ok).collect();
        let passed = made.iter().filter(|ok| **ok).count();
        if made.is_empty() { "-".to_owned() } else { format!("{passed}/{}", made.len()) }
    }
}

/// `ok <mode> <check>` or `not ok <mode> <check>: <reason>`.
fn read(line: &str) -> Option<(String, bool)> {
    let (rest, ok) = match line.strip_prefix("not ok ") {
        Some(rest) => (rest, false),
        None => (line.strip_prefix("ok ")?, true),
    };
    let check = rest.split_whitespace().nth(1)?;
    Some((check.trim_end_matches(':').to_owned(), ok))
}

/// A line for each check, a column for each walk. Its name is above it, a word a line.
pub(super) fn table(walked: &[(String, Walked)]) -> String {
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
    for line in 0..3 {
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
        let said =
            "$ node walk\nok auto call\nnot ok legacy call: too late: 5 s\nok auto end\nwhat";
        let walked = walked(said, false);
        assert_eq!((walked.passed(), walked.failed()), (2, 1));
        let cells = ["call", "end", "other"].map(|name| walked.cell(name));
        assert_eq!(cells, ["1/2", "1/1", "-"]);
        let table = table(&[("python 1 stdio".to_owned(), walked)]);
        assert_eq!(table.lines().count(), 5, "{table}");
    }

    #[test]
    fn a_walk_that_breaks_off_has_failed() {
        assert_eq!(walked("ok auto call", true).failed(), 1);
        assert_eq!(Walked::not_at_all(String::new()).failed(), 1);
    }
}
