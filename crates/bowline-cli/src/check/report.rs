//! What the checks found: for people, as JSON and as JUnit.

mod human;
mod json;
mod junit;

use bowline::Revision;

pub(super) use self::human::Look;
use super::evidence::Evidence;
use super::table::{Check, Severity, Transport};

/// How a check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Passed,
    /// What the specification demands is not so.
    Failed,
    /// Something else is not as it should be.
    Warned,
    Skipped,
}

impl Verdict {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Passed => "pass",
            Self::Failed => "fail",
            Self::Warned => "warn",
            Self::Skipped => "skipped",
        }
    }

    /// Whether something is not as it should be.
    pub(super) const fn is_problem(self) -> bool {
        matches!(self, Self::Failed | Self::Warned)
    }
}

/// One check in one revision.
#[derive(Clone)]
pub(super) struct Finding {
    pub(super) check: &'static Check,
    pub(super) revision: Revision,
    pub(super) verdict: Verdict,
    /// Problems, the reason for skipping, or a note.
    pub(super) said: Vec<String>,
    pub(super) evidence: Vec<Evidence>,
}

/// Everything that was found.
pub(super) struct Report {
    /// What the user called the server.
    pub(super) target: String,
    /// What it calls itself.
    pub(super) server: Option<String>,
    pub(super) transport: Transport,
    pub(super) revisions: Vec<Revision>,
    pub(super) findings: Vec<Finding>,
    /// Whether recommendations and portability count.
    pub(super) is_strict: bool,
    /// Why the server lets nobody in as we are, if so: all else could not be checked.
    pub(super) barred: Option<String>,
}

/// What the findings come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Conclusion {
    Good,
    /// The specification is broken.
    Broken,
    /// Only some clients choke.
    NotPortable,
    /// What could be checked without a token is well.
    Barred,
}

impl Conclusion {
    pub(super) const fn as_str(self) -> &'static str {
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
    pub(super) fn count(&self, verdict: Verdict) -> usize {
        self.findings.iter().filter(|finding| finding.verdict == verdict).count()
    }

    /// How many problems have a severity.
    pub(super) fn problems(&self, severity: Severity) -> usize {
        let is_it =
            |finding: &&Finding| finding.verdict.is_problem() && finding.check.severity == severity;
        self.findings.iter().filter(is_it).count()
    }

    /// Whether a finding counts against the server.
    pub(super) fn counts(&self, finding: &Finding) -> bool {
        finding.verdict.is_problem()
            && match finding.check.severity {
                Severity::Must => true,
                Severity::Should | Severity::Portability => self.is_strict,
                Severity::Info => false,
            }
    }

    /// What it comes to.
    pub(super) fn conclusion(&self) -> Conclusion {
        let severities: Vec<Severity> = self
            .findings
            .iter()
            .filter(|finding| self.counts(finding))
            .map(|finding| finding.check.severity)
            .collect();
        match severities.iter().min() {
            Some(Severity::Must | Severity::Should) => Conclusion::Broken,
            _ if self.barred.is_some() => Conclusion::Barred,
            None => Conclusion::Good,
            Some(_) => Conclusion::NotPortable,
        }
    }
}
