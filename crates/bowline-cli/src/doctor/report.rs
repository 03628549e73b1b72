//! What was found out: steps, each with what was seen, and the cause of the first that failed.

use std::time::Duration;

use serde_json::{Value, json};

pub(crate) use crate::failure::Code;
use crate::redact::HIDDEN;
use tokio::time::Instant;

/// What became of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Ok,
    /// It works here, and will not everywhere.
    Warn,
    Fail,
    /// A step before it failed, or it has no meaning here.
    Skipped,
}

/// Why something is as it was seen, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Diagnosis {
    pub(crate) code: Code,
    /// One sentence.
    pub(crate) cause: String,
    /// One or two.
    pub(crate) fix: String,
}

impl Diagnosis {
    pub(crate) fn new(code: Code, cause: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { code, cause: cause.into(), fix: fix.into() }
    }

    /// Nothing answers as it should, or at all.
    pub(crate) fn unreachable(cause: impl Into<String>, fix: impl Into<String>) -> Self {
        Self::new(Code::Unreachable, cause, fix)
    }

    /// The server breaks the specification.
    pub(crate) fn broken(cause: impl Into<String>, fix: impl Into<String>) -> Self {
        Self::new(Code::Broken, cause, fix)
    }

    /// The server says no.
    pub(crate) fn refused(cause: impl Into<String>, fix: impl Into<String>) -> Self {
        Self::new(Code::Refused, cause, fix)
    }
}

/// One step.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    pub(crate) name: &'static str,
    pub(crate) outcome: Outcome,
    /// What came, shortened and escaped.
    pub(crate) seen: String,
    pub(crate) took: Duration,
    pub(crate) diagnosis: Option<Diagnosis>,
}

impl Step {
    /// A step that began then and went well.
    pub(crate) fn ok(name: &'static str, seen: impl Into<String>, began: Instant) -> Self {
        let (outcome, took) = (Outcome::Ok, began.elapsed());
        Self { name, outcome, seen: seen.into(), took, diagnosis: None }
    }

    pub(crate) fn skipped(name: &'static str, why: impl Into<String>) -> Self {
        let (outcome, took) = (Outcome::Skipped, Duration::ZERO);
        Self { name, outcome, seen: why.into(), took, diagnosis: None }
    }

    /// The same, which others may choke on.
    pub(crate) fn warn(self, diagnosis: Diagnosis) -> Self {
        Self { outcome: Outcome::Warn, diagnosis: Some(diagnosis), ..self }
    }

    /// The same, which did not go well.
    pub(crate) fn fail(self, diagnosis: Diagnosis) -> Self {
        Self { outcome: Outcome::Fail, diagnosis: Some(diagnosis), ..self }
    }
}

/// All steps, in order. Each is told as it is done.
pub(crate) struct Report {
    target: Value,
    /// What is never told.
    secrets: Vec<String>,
    steps: Vec<Step>,
    tell: Box<dyn FnMut(&Step)>,
}

impl Report {
    pub(crate) fn new(
        target: Value,
        mut secrets: Vec<String>,
        tell: impl FnMut(&Step) + 'static,
    ) -> Self {
        // A value like `1` or `true` is no secret, and hiding it would hide everything else.
        secrets.retain(|secret| secret.len() > 5);
        Self { target, secrets, steps: Vec::new(), tell: Box::new(tell) }
    }

    pub(crate) fn push(&mut self, mut step: Step) {
        step.seen = self.hide(step.seen);
        step.diagnosis = step.diagnosis.map(|it| Diagnosis {
            cause: self.hide(it.cause),
            fix: self.hide(it.fix),
            ..it
        });
        (self.tell)(&step);
        self.steps.push(step);
    }

    fn hide(&self, text: String) -> String {
        self.secrets.iter().fold(text, |text, secret| text.replace(secret, HIDDEN))
    }

    /// The step that matters: the first that failed, or else the first that warns.
    pub(crate) fn first(&self) -> Option<&Step> {
        let first = |outcome| self.steps.iter().find(|step| step.outcome == outcome);
        first(Outcome::Fail).or_else(|| first(Outcome::Warn))
    }

    /// Others that have something else to say.
    pub(crate) fn others(&self) -> Vec<&Step> {
        let cause = |step: &Step| step.diagnosis.as_ref().map(|it| it.cause.clone());
        let mut told: Vec<String> = self.first().and_then(cause).into_iter().collect();
        let is_new = |step: &&Step| match cause(step) {
            Some(cause) if !told.contains(&cause) => {
                told.push(cause);
                true
            }
            _ => false,
        };
        self.steps.iter().filter(is_new).collect()
    }

    pub(crate) fn outcome(&self) -> Outcome {
        self.first().map_or(Outcome::Ok, |step| step.outcome)
    }

    /// The code to exit with, unless all is well enough.
    pub(crate) fn code(&self) -> Option<Code> {
        let failed = self.first().filter(|step| step.outcome == Outcome::Fail);
        failed.and_then(|step| step.diagnosis.as_ref()).map(|diagnosis| diagnosis.code)
    }

    /// The document that `docs/doctor.md` describes.
    pub(crate) fn to_json(&self) -> Value {
        let steps: Vec<Value> = self.steps.iter().map(step_json).collect();
        let target = self.hide(self.target.to_string());
        let mut document = json!({
            "target": serde_json::from_str::<Value>(&target).unwrap_or_default(),
            "outcome": word(self.outcome()),
            "exitCode": self.code().map_or(0, |code| code as u8),
        });
        if let Some(first) = self.first()
            && let Some(diagnosis) = &first.diagnosis
        {
            document["step"] = first.name.into();
            document["cause"] = diagnosis.cause.as_str().into();
            document["fix"] = diagnosis.fix.as_str().into();
        }
        document["steps"] = steps.into();
        document
    }
}

fn step_json(step: &Step) -> Value {
    let millis = u64::try_from(step.took.as_millis()).unwrap_or(u64::MAX);
    let mut out = json!({
        "step": step.name,
        "outcome": word(step.outcome),
        "seen": step.seen,
        "millis": millis,
    });
    if let Some(diagnosis) = &step.diagnosis {
        out["cause"] = diagnosis.cause.as_str().into();
        out["fix"] = diagnosis.fix.as_str().into();
    }
    out
}

/// What an outcome is called.
pub(crate) fn word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Ok => "ok",
        Outcome::Warn => "warn",
        Outcome::Fail => "fail",
        Outcome::Skipped => "skipped",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_failure_is_the_verdict_and_warnings_cost_nothing() {
        let now = Instant::now();
        let mut report = Report::new(
            json!({ "url": "x?key=sesame" }),
            vec!["sesame".to_owned(), "1".to_owned()],
            |_| {},
        );
        report.push(Step::ok("a", "", now));
        assert_eq!((report.outcome(), report.code()), (Outcome::Ok, None));
        report.push(Step::ok("b", "x", now).warn(Diagnosis::broken("slow", "hurry")));
        assert_eq!((report.outcome(), report.code()), (Outcome::Warn, None));
        report.push(
            Step::ok("c", "y", now).fail(Diagnosis::unreachable("gone with 1 sesame", "find it")),
        );
        report.push(Step::ok("d", "z", now).fail(Diagnosis::refused("no", "ask nicely")));
        report.push(Step::skipped("e", "no connection"));
        assert_eq!((report.outcome(), report.code()), (Outcome::Fail, Some(Code::Unreachable)));
        let document = report.to_json();
        assert_eq!(document["step"], "c");
        assert_eq!(document["cause"], "gone with 1 [redacted]");
        assert_eq!(document["target"]["url"], "x?key=[redacted]");
        assert_eq!(document["steps"][4]["outcome"], "skipped");
        let others: Vec<_> = report.others().iter().map(|step| step.name).collect();
        assert_eq!(others, ["b", "d"]);
    }
}
