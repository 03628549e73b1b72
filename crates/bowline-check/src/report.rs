//! What the checks found.

mod json;
mod junit;

use bowline::Revision;

use crate::evidence::Evidence;
use crate::rule::{Rule, Severity, Transport};

/// How a check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The server keeps the rule.
    Passed,
    /// The server breaks a rule that the specification demands.
    Failed,
    /// The server breaks another rule.
    Warned,
    /// The rule does not apply to the server, or could not be checked.
    Skipped,
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
    /// Whether recommendations and portability count.
    pub is_strict: bool,
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
    /// How many findings have a verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.findings.iter().filter(|finding| finding.verdict == verdict).count()
    }

    /// All problems, counting or not.
    pub fn problems(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|finding| finding.verdict.is_problem())
    }

    /// How many problems have a severity.
    pub fn count_problems(&self, severity: Severity) -> usize {
        self.problems().filter(|finding| finding.rule.severity == severity).count()
    }

    /// Whether a finding counts against the server.
    pub fn counts(&self, finding: &Finding) -> bool {
        finding.verdict.is_problem()
            && match finding.rule.severity {
                Severity::Must => true,
                Severity::Should | Severity::Portability => self.is_strict,
                Severity::Info => false,
            }
    }

    /// What the findings amount to.
    pub fn conclusion(&self) -> Conclusion {
        let counting = self.findings.iter().filter(|finding| self.counts(finding));
        match counting.map(|finding| finding.rule.severity).min() {
            Some(Severity::Must | Severity::Should) => Conclusion::Broken,
            _ if self.barred.is_some() => Conclusion::Barred,
            None => Conclusion::Good,
            Some(_) => Conclusion::NotPortable,
        }
    }
}
