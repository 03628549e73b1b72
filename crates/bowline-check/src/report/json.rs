//! The report for programs: one JSON object.

use serde_json::{Value, json};

use super::{Finding, Report, Verdict};
use crate::evidence::Evidence;
use crate::rule::Severity;

/// How many exchanges of a check are kept.
const EXCHANGES: usize = 8;

impl Report {
    /// As JSON. The exchanges of checks that passed are left out unless `all` is set.
    pub fn to_json(&self, all: bool) -> Value {
        let problems: serde_json::Map<String, Value> = Severity::ALL
            .iter()
            .map(|severity| (severity.as_str().to_owned(), json!(self.count_problems(*severity))))
            .collect();
        json!({
            "target": self.target,
            "server": self.server,
            "transport": self.transport.as_str(),
            "revisions": self.revisions,
            "conclusion": self.conclusion().as_str(),
            "summary": {
                "checks": self.findings.len(),
                "passed": self.count(Verdict::Passed),
                "skipped": self.count(Verdict::Skipped),
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
        "spec": format!("{revision}/{}", rule.page_of(*revision)),
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
