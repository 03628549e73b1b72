//! The report for programs: one JSON object.

use serde_json::{Value, json};

use super::{Finding, Report, Verdict};
use crate::evidence::Evidence;
use crate::rule::{Rule, Severity};

/// How many exchanges of a check are kept.
const EXCHANGES: usize = 8;

impl Report {
    /// As JSON. The exchanges of checks that passed are left out unless `all` is set.
    pub fn to_json(&self, all: bool) -> Value {
        let checks = self.checks();
        let count = |is_it: &dyn Fn(&Rule, Verdict) -> bool| {
            checks.iter().filter(|(rule, verdict)| is_it(rule, *verdict)).count()
        };
        let problems: serde_json::Map<String, Value> = Severity::ALL
            .iter()
            .map(|severity| {
                let is_it =
                    |rule: &Rule, it: Verdict| it.is_problem() && rule.severity == *severity;
                (severity.as_str().to_owned(), json!(count(&is_it)))
            })
            .collect();
        json!({
            "target": self.target,
            "server": self.server,
            "transport": self.transport.as_str(),
            "revisions": self.revisions,
            "profile": self.profile.as_str(),
            "conclusion": self.conclusion().as_str(),
            "summary": {
                "checks": checks.len(),
                "passed": count(&|_, it| it == Verdict::Passed),
                "skipped": count(&|_, it| it == Verdict::Skipped),
                "failed": count(&|_, it| it == Verdict::Failed),
                "warned": count(&|_, it| it == Verdict::Warned),
                "problems": problems,
            },
            "results": self.findings.iter().map(|it| finding(it, all)).collect::<Vec<_>>(),
        })
    }
}

fn finding(finding: &Finding, all: bool) -> Value {
    let Finding { rule, revision, verdict, said, evidence } = finding;
    let mut value = json!({
        "id": rule.id,
        "severity": rule.severity.as_str(),
        "revision": revision,
        "outcome": verdict.as_str(),
        "says": rule.says,
        "spec": rule.link(*revision),
    });
    let member = match verdict {
        Verdict::Passed => "notes",
        Verdict::Skipped => "reasons",
        Verdict::Failed | Verdict::Warned => "problems",
    };
    if !said.is_empty() {
        value[member] = json!(said);
    }
    if verdict.is_problem() {
        value["remedy"] = json!(rule.remedy);
    }
    if verdict.is_problem() || all {
        let shown = evidence.len().saturating_sub(EXCHANGES);
        value["evidence"] = evidence[shown..].iter().map(Evidence::to_json).collect();
    }
    value
}
