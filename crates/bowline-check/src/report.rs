//! What the checks found.

mod json;
mod junit;

use bowline::Revision;

use crate::evidence::Evidence;
use crate::rule::{Profile, Rule, Severity, Transport};

/// How a check ended, the worst last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// The rule does not apply to the server, or could not be checked.
    Skipped,
    /// The server keeps the rule.
    Passed,
    /// The server breaks a rule that does not count in the profile.
    Warned,
    /// The server breaks a rule that counts.
    Failed,
}

impl Verdict {
    /// The word for it in reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Passed => "pass",
            Self::Failed => "fail",
            Self::Warned => "warn",
            Self::Skipped => "skipped",
        }
    }

    /// Whether the server breaks the rule.
    pub const fn is_problem(self) -> bool {
        matches!(self, Self::Failed | Self::Warned)
    }
}

/// One rule in one revision.
#[derive(Debug, Clone)]
pub struct Finding {
    /// The rule.
    pub rule: &'static Rule,
    /// The revision that was spoken.
    pub revision: Revision,
    /// How the check ended.
    pub verdict: Verdict,
    /// Problems, the reason for skipping, or a note.
    pub said: Vec<String>,
    /// What was sent and received.
    pub evidence: Vec<Evidence>,
}

/// Everything that was found.
#[derive(Debug, Clone)]
pub struct Report {
    /// What the user calls the server.
    pub target: String,
    /// What it calls itself.
    pub server: Option<String>,
    /// How messages travelled.
    pub transport: Transport,
    /// The revisions that were checked, oldest first.
    pub revisions: Vec<Revision>,
    /// In the order of revisions, then of [`rules`](crate::rules).
    pub findings: Vec<Finding>,
    /// What counts.
    pub profile: Profile,
    /// Why the server rejects our requests, if it does: nothing else could be checked then.
    pub barred: Option<String>,
}

/// What the findings amount to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conclusion {
    /// Nothing that counts is wrong.
    Good,
    /// The server breaks the specification.
    Broken,
    /// Only some clients fail.
    NotPortable,
    /// Nothing that can be checked without a token is wrong.
    Barred,
}

impl Conclusion {
    /// The word for it in reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Broken => "broken",
            Self::NotPortable => "not-portable",
            Self::Barred => "unauthorized",
        }
    }
}

impl Report {
    /// Each check with the worst of its outcomes over the revisions, in the order of the report.
    pub fn checks(&self) -> Vec<(&'static Rule, Verdict)> {
        let mut checks: Vec<(&'static Rule, Verdict)> = Vec::new();
        for Finding { rule, verdict, .. } in &self.findings {
            match checks.iter_mut().find(|(known, _)| known.id == rule.id) {
                Some((_, worst)) => *worst = (*worst).max(*verdict),
                None => checks.push((rule, *verdict)),
            }
        }
        checks
    }

    /// All problems, counting or not.
    pub fn problems(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|finding| finding.verdict.is_problem())
    }

    /// What the findings amount to.
    pub fn conclusion(&self) -> Conclusion {
        let counting = self.findings.iter().filter(|finding| finding.verdict == Verdict::Failed);
        match counting.map(|finding| finding.rule.severity).min() {
            Some(Severity::Must | Severity::Should) => Conclusion::Broken,
            _ if self.barred.is_some() => Conclusion::Barred,
            None => Conclusion::Good,
            Some(_) => Conclusion::NotPortable,
        }
    }
}
