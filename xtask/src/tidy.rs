//! The rules of `CONTRIBUTING.md` that neither the compiler nor clippy checks.
//!
//! Looks at every file that git tracks or would track. A rule that a file must break is broken by a
//! line in [`exceptions`], with a reason; a line that excuses nothing any more is itself a problem.

mod exceptions;
mod links;
mod rules;
#[cfg(test)]
mod tests;

use std::fmt;
use std::fs;
use std::path::Path;

use crate::process::{Ran, command, run};
use crate::step::Outcome;
use exceptions::{EXCEPTIONS, Exception};

/// A file of the repository.
struct File {
    /// From the root, with forward slashes.
    path: String,
    text: String,
}

/// A rule that a file breaks.
#[derive(Debug)]
struct Problem {
    path: String,
    /// Counted from one; zero when it is about the file as a whole.
    line: usize,
    rule: &'static str,
    message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path)?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
        }
        write!(f, ": {} [{}]", self.message, self.rule)
    }
}

/// Checks the repository.
pub(crate) fn step() -> Outcome {
    let files = match files() {
        Ok(files) => files,
        Err(why) => return Outcome::one(false, why),
    };
    let mut problems = check(&files, EXCEPTIONS);
    problems.extend(links::check(&files, Path::exists));
    let output: String = problems.iter().map(|problem| format!("{problem}\n")).collect();
    Outcome::one(problems.is_empty(), output).with_note(format!("{} files", files.len()))
}

/// Every file that is text, except inputs for fuzzers: they are as broken as they must be.
fn files() -> Result<Vec<File>, String> {
    let Ran { ok, output } = run(command(
        "git -c core.quotePath=false ls-files --cached --others --exclude-standard --deduplicate",
    ));
    if !ok {
        return Err(output);
    }
    let paths = output.lines().skip(1);
    let paths = paths.filter(|path| !path.starts_with("fuzz/seeds/"));
    // A file that was deleted but not yet from the index, or that is not text, cannot be read.
    let read = |path: &str| {
        let text = fs::read_to_string(path).ok()?;
        let path = path.to_owned();
        Some(File { path, text })
    };
    Ok(paths.filter_map(read).collect())
}

fn check(files: &[File], exceptions: &[Exception]) -> Vec<Problem> {
    let mut found = rules::repository(files);
    for file in files {
        rules::file(file, &mut found);
    }
    let excuses = |exception: &Exception, problem: &Problem| {
        exception.path == problem.path && exception.rule == problem.rule
    };
    let stale: Vec<Problem> = exceptions
        .iter()
        .filter(|exception| !found.iter().any(|problem| excuses(exception, problem)))
        .map(|exception| Problem {
            path: exception.path.to_owned(),
            line: 0,
            rule: "exceptions",
            message: format!(
                "breaks no rule `{}`, yet has an exception ({})",
                exception.rule, exception.reason
            ),
        })
        .collect();
    found.retain(|problem| !exceptions.iter().any(|exception| excuses(exception, problem)));
    found.extend(stale);
    found.sort_by(|one, two| (&one.path, one.line).cmp(&(&two.path, two.line)));
    found
}
