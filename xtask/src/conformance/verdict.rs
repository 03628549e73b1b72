//! What the suite found, from the files it leaves behind.
//!
//! Each scenario writes `server-<name>-<time>/checks.json`: a list of checks, one member per line.
//! The indentation tells a check's own members from those of its details.

use std::fs;
use std::path::Path;

/// What may fail and why: scenarios by the prefix of their names, or `scenario/check`.
pub(crate) type MayFail = &'static [(&'static str, &'static str)];

/// What became of a set of scenarios. Counts are of checks, in scenarios that must pass.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    pub(crate) scenarios: usize,
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) warned: u64,
    pub(crate) skipped: u64,
    /// Which ones were skipped, as `scenario/check`.
    pub(crate) skips: Vec<String>,
    /// Beginnings of the names of scenarios that may fail, and why.
    pub(crate) may_fail: MayFail,
    /// Scenarios that may fail and do, or that were not really tested.
    pub(crate) excused: Vec<String>,
    /// Single checks that may fail and do.
    pub(crate) excused_checks: Vec<String>,
    /// What is wrong, one line each.
    pub(crate) problems: Vec<String>,
}

impl Verdict {
    /// Reads what was left in a folder.
    pub(crate) fn read(folder: &Path, may_fail: MayFail) -> Result<Self, String> {
        let said = |error| format!("{}: {error}", folder.display());
        let mut verdict = Self { may_fail, ..Self::default() };
        let Ok(entries) = fs::read_dir(folder) else { return Ok(verdict) };
        let mut names = Vec::new();
        for entry in entries {
            names.push(entry.map_err(said)?.file_name().to_string_lossy().into_owned());
        }
        names.sort();
        for name in names {
            let text = fs::read_to_string(folder.join(&name).join("checks.json")).map_err(said)?;
            verdict.add(scenario(&name), &text);
        }
        Ok(verdict)
    }

    /// Adds one scenario.
    pub(crate) fn add(&mut self, scenario: &str, checks: &str) {
        self.scenarios += 1;
        let checks = parse(checks);
        let may_fail = self.may_fail.iter().any(|(prefix, _)| scenario.starts_with(prefix));
        if may_fail && checks.iter().any(Check::is_short_of_success) {
            self.excused.push(scenario.to_owned());
            return;
        }
        if checks.is_empty() {
            self.problems.push(format!("{scenario}: no check"));
        }
        for check in &checks {
            let name = format!("{scenario}/{}", check.id);
            let may_fail = self.may_fail.iter().any(|(it, _)| *it == name);
            if may_fail && check.is_short_of_success() {
                self.excused_checks.push(name);
                continue;
            }
            match check.status {
                "SUCCESS" => self.passed += 1,
                "INFO" => {}
                "SKIPPED" => {
                    self.skipped += 1;
                    self.skips.push(name);
                }
                "WARNING" => self.warned += 1,
                _ => self.failed += 1,
            }
            if !["SUCCESS", "INFO", "SKIPPED"].contains(&check.status) {
                let Check { status, id, message } = check;
                self.problems.push(format!("{scenario}: {status}: {id}: {message}"));
            }
        }
    }

    fn has_excuses(&self) -> bool {
        !self.excused.is_empty() || !self.excused_checks.is_empty()
    }

    /// Adds what the files do not show.
    pub(crate) fn finish(&mut self, expected: usize, ok: bool, output: &str) {
        if self.scenarios != expected {
            let found = self.scenarios;
            self.problems
                .push(format!("{found} scenarios ran, {expected} were expected\n{output}"));
        } else if !ok && self.problems.is_empty() && !self.has_excuses() {
            self.problems.push(format!("the suite failed without a failed check\n{output}"));
        }
    }
}

/// One check of the suite.
#[derive(Debug, Default, PartialEq)]
struct Check<'a> {
    id: &'a str,
    status: &'a str,
    message: &'a str,
}

impl Check<'_> {
    fn is_short_of_success(&self) -> bool {
        !["SUCCESS", "INFO"].contains(&self.status)
    }
}

fn parse(text: &str) -> Vec<Check<'_>> {
    let mut checks = Vec::new();
    for line in text.lines() {
        if line == "  {" {
            checks.push(Check::default());
        }
        let Some(check) = checks.last_mut() else { continue };
        let member = |name: &str| {
            let value = line.strip_prefix("    \"")?.strip_prefix(name)?.strip_prefix("\": \"")?;
            Some(value.trim_end_matches(',').trim_end_matches('"'))
        };
        if let Some(id) = member("id") {
            check.id = id;
        } else if let Some(status) = member("status") {
            check.status = status;
        } else if let Some(message) = member("errorMessage") {
            check.message = message;
        }
    }
    checks
}

/// The name of a scenario, from that of its folder.
fn scenario(folder: &str) -> &str {
    const TIME: &str = "-2026-11-15T22-25-38-330Z";
    let name = folder.strip_prefix("server-").unwrap_or(folder);
    name.get(..name.len().saturating_sub(TIME.len())).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHECKS: &str = r#"[
  {
    "id": "one",
    "status": "SUCCESS",
    "details": {
      "status": "FAILURE",
      "id": 1
    }
  },
  {
    "id": "two",
    "status": "WARNING",
    "errorMessage": "should, \"really\""
  }
]
"#;

    #[test]
    fn checks_are_read_without_their_details() {
        let message = r#"should, \"really\"#;
        let expected = [
            Check { id: "one", status: "SUCCESS", message: "" },
            Check { id: "two", status: "WARNING", message },
        ];
        assert_eq!(parse(CHECKS), expected);
    }

    #[test]
    fn skipped_checks_have_names() {
        let mut verdict = Verdict::default();
        verdict.add("list", &CHECKS.replace("SUCCESS", "SKIPPED").replace("WARNING", "SUCCESS"));
        assert_eq!((verdict.skipped, verdict.skips.as_slice()), (1, &["list/one".to_owned()][..]));
        assert!(verdict.problems.is_empty());
    }

    #[test]
    fn warnings_count_unless_they_are_excused() {
        let may_fail = &[("tasks-", "for a reason")];
        let mut verdict = Verdict { may_fail, ..Verdict::default() };
        verdict.add("tasks-lifecycle", CHECKS);
        assert_eq!((verdict.problems.len(), verdict.excused.len()), (0, 1));
        let may_fail = &[("list/two", "for a reason")];
        let mut checked = Verdict { may_fail, ..Verdict::default() };
        checked.add("list", CHECKS);
        assert_eq!((checked.passed, checked.problems.len()), (1, 0));
        assert_eq!(checked.excused_checks, ["list/two"]);
        verdict.add(scenario("server-tools-list-2026-11-15T22-25-38-330Z"), CHECKS);
        assert_eq!((verdict.passed, verdict.warned, verdict.problems.len()), (1, 1, 1));
        assert!(verdict.problems[0].starts_with("tools-list: WARNING: two: should"));
        verdict.finish(2, false, "");
        assert_eq!(verdict.problems.len(), 1);
        verdict.finish(3, true, "");
        assert_eq!(verdict.problems.len(), 2);
    }
}
