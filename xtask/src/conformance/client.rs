//! The client's side of the official suite: every scenario it lists, in every revision that has
//! it, one by one.
//!
//! Run as a whole, the suite ignores the client's exit status.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::verdict::Verdict;
use super::{PLACE, Suite};
use crate::process::{Ran, run};

/// How many runs there are, so that none can go missing unnoticed.
const RUNS: usize = 69;

/// One scenario in one revision. Extensions belong to no revision; the suite chooses one.
#[derive(Debug, PartialEq, Eq)]
struct Run {
    scenario: String,
    revision: Option<String>,
}

/// Runs all of them, with the client at `program`.
pub(super) fn judge(suite: &Suite, program: &Path) -> Result<Verdict, String> {
    let runs = read_list(&suite.list()?);
    let results = Path::new(PLACE).join("results/client");
    // Results of an earlier run must not count.
    let _ = fs::remove_dir_all(&results);
    let mut verdict = Verdict::default();
    for one in &runs {
        one.judge(suite, program, &results, &mut verdict)?;
    }
    verdict.finish(RUNS, true, "");
    Ok(verdict)
}

impl Run {
    fn judge(
        &self,
        suite: &Suite,
        program: &Path,
        results: &Path,
        verdict: &mut Verdict,
    ) -> Result<(), String> {
        let folder = results.join(self.name().replace('/', "-"));
        let mut command = suite.command();
        command.args(["client", "--scenario", &self.scenario, "--command"]).arg(program);
        if let Some(revision) = &self.revision {
            command.args(["--spec-version", revision]);
        }
        command.arg("--output-dir").arg(&folder);
        let Ran { ok, output } = run(command);
        let found =
            checks(&folder).ok_or_else(|| format!("{}: no checks\n{output}", self.name()))?;
        let text = fs::read_to_string(&found).map_err(|error| error.to_string())?;
        let before = (verdict.problems.len(), verdict.excused.len());
        verdict.add(&self.name(), &text);
        // The client may exit with an error although every check passed.
        if !ok && before == (verdict.problems.len(), verdict.excused.len()) {
            verdict
                .problems
                .push(format!("{}: failed without a failed check\n{output}", self.name()));
        }
        Ok(())
    }

    fn name(&self) -> String {
        match &self.revision {
            Some(revision) => format!("{} in {revision}", self.scenario),
            None => self.scenario.clone(),
        }
    }
}

/// The one file of checks in a folder.
fn checks(folder: &Path) -> Option<PathBuf> {
    for entry in fs::read_dir(folder).ok()?.flatten() {
        let path = entry.path();
        match path.is_dir() {
            true => {
                if let Some(found) = checks(&path) {
                    return Some(found);
                }
            }
            false if path.ends_with("checks.json") => return Some(path),
            false => {}
        }
    }
    None
}

/// What the suite says it has for clients: `  - name [revision,revision]` or `[extension]`.
fn read_list(listing: &str) -> Vec<Run> {
    let lines = listing.lines().skip_while(|line| !line.starts_with("Client scenarios"));
    let lines = lines.skip(1).take_while(|line| line.starts_with("  - "));
    let mut runs = Vec::new();
    for line in lines {
        let Some((name, revisions)) = line.trim_start_matches("  - ").split_once(" [") else {
            continue;
        };
        for revision in revisions.trim_end_matches(']').split(',') {
            let revision = (revision != "extension").then(|| revision.to_owned());
            runs.push(Run { scenario: name.to_owned(), revision });
        }
    }
    runs
}

impl Suite {
    fn list(&self) -> Result<String, String> {
        let mut command = self.command();
        command.arg("list");
        let Ran { ok, output } = run(command);
        if ok { Ok(output) } else { Err(output) }
    }

    pub(super) fn command(&self) -> Command {
        let mut suite = Command::new(&self.node);
        suite.arg(Path::new(PLACE).join("node_modules/.bin/conformance"));
        suite
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_read() {
        let listing = "\
Server scenarios (test against a server):
  - tools-list [2025-11-25]

Client scenarios (test against a client):
  - initialize [2025-06-18,2025-11-25]
  - auth/dpop [extension]

Authorization server scenarios:
  - other [2025-03-26]
";
        let names: Vec<String> = read_list(listing).iter().map(Run::name).collect();
        let expected = ["initialize in 2025-06-18", "initialize in 2025-11-25", "auth/dpop"];
        assert_eq!(names, expected);
    }
}
