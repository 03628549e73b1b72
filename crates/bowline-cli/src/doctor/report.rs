//! The report: every step with what it saw, and the cause of the first failure.

use std::time::Duration;

use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use tokio::time::Instant;

pub(crate) use crate::failure::Code;
use crate::redact::HIDDEN;

/// How a step ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Outcome {
    Ok,
    /// It works here, but not for every client or user.
    Warn,
    Fail,
    /// An earlier step failed, or the step does not apply.
    Skipped,
}

impl Outcome {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "fail",
            Self::Skipped => "skipped",
        }
    }
}

/// Why something is wrong, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Diagnosis {
    #[serde(skip)]
    pub(crate) code: Code,
    /// One clause: lower case, no full stop.
    pub(crate) cause: String,
    /// One or two sentences.
    pub(crate) fix: String,
}

impl Diagnosis {
    pub(crate) fn new(code: Code, cause: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { code, cause: cause.into(), fix: fix.into() }
    }

    /// Nothing responds, or not as a server should.
    pub(crate) fn unreachable(cause: impl Into<String>, fix: impl Into<String>) -> Self {
        Self::new(Code::Unreachable, cause, fix)
    }

    /// The server violates the specification.
    pub(crate) fn broken(cause: impl Into<String>, fix: impl Into<String>) -> Self {
        Self::new(Code::Broken, cause, fix)
    }

    /// The server rejects the request.
    pub(crate) fn refused(cause: impl Into<String>, fix: impl Into<String>) -> Self {
        Self::new(Code::Refused, cause, fix)
    }
}

/// One step.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Step {
    #[serde(rename = "step")]
    pub(crate) name: &'static str,
    pub(crate) outcome: Outcome,
    /// What the peer sent, shortened and escaped.
    pub(crate) seen: String,
    #[serde(rename = "millis", serialize_with = "millis")]
    pub(crate) took: Duration,
    #[serde(flatten)]
    pub(crate) diagnosis: Option<Diagnosis>,
}

fn millis<S: Serializer>(took: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_u64(u64::try_from(took.as_millis()).unwrap_or(u64::MAX))
}

impl Step {
    /// A step that succeeded and took until now.
    pub(crate) fn ok(name: &'static str, seen: impl Into<String>, began: Instant) -> Self {
        let (outcome, took) = (Outcome::Ok, began.elapsed());
        Self { name, outcome, seen: seen.into(), took, diagnosis: None }
    }

    pub(crate) fn skipped(name: &'static str, why: impl Into<String>) -> Self {
        let (outcome, took) = (Outcome::Skipped, Duration::ZERO);
        Self { name, outcome, seen: why.into(), took, diagnosis: None }
    }

    pub(crate) fn with_seen(self, seen: impl Into<String>) -> Self {
        Self { seen: seen.into(), ..self }
    }

    /// Warns of a problem, if there is one.
    pub(crate) fn warn(self, problem: impl Into<Option<Diagnosis>>) -> Self {
        self.with_problem(Outcome::Warn, problem.into())
    }

    /// Fails because of a problem, if there is one.
    pub(crate) fn fail(self, problem: impl Into<Option<Diagnosis>>) -> Self {
        self.with_problem(Outcome::Fail, problem.into())
    }

    fn with_problem(self, outcome: Outcome, problem: Option<Diagnosis>) -> Self {
        match problem {
            Some(_) => Self { outcome, diagnosis: problem, ..self },
            None => self,
        }
    }
}

/// All steps, in order. Each is shown as soon as it is done.
pub(crate) struct Report {
    target: Value,
    /// Values that are never shown.
    secrets: Vec<String>,
    steps: Vec<Step>,
    show: Box<dyn FnMut(&Step)>,
}

/// The document that `docs/doctor.md` describes.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document<'a> {
    target: Value,
    outcome: Outcome,
    exit_code: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<&'a str>,
    #[serde(flatten)]
    diagnosis: Option<&'a Diagnosis>,
    steps: &'a [Step],
}

impl Report {
    pub(crate) fn new(
        target: Value,
        mut secrets: Vec<String>,
        show: impl FnMut(&Step) + 'static,
    ) -> Self {
        // Hiding short values such as `1` or `true` would hide unrelated text.
        secrets.retain(|secret| secret.len() > 5);
        Self { target, secrets, steps: Vec::new(), show: Box::new(show) }
    }

    pub(crate) fn push(&mut self, mut step: Step) {
        step.seen = self.hide(step.seen);
        step.diagnosis = step.diagnosis.map(|it| Diagnosis {
            cause: self.hide(it.cause),
            fix: self.hide(it.fix),
            ..it
        });
        (self.show)(&step);
        self.steps.push(step);
    }

    pub(crate) fn skip(&mut self, names: &[&'static str], why: &str) {
        for name in names {
            self.push(Step::skipped(name, why));
        }
    }

    fn hide(&self, text: String) -> String {
        self.secrets.iter().fold(text, |text, secret| text.replace(secret, HIDDEN))
    }

    /// The step that decides: the first failure, or else the first warning.
    pub(crate) fn decisive(&self) -> Option<&Step> {
        let first = |outcome| self.steps.iter().find(|step| step.outcome == outcome);
        first(Outcome::Fail).or_else(|| first(Outcome::Warn))
    }

    /// Steps with a cause that no earlier step, nor the decisive one, has given.
    pub(crate) fn others(&self) -> Vec<&Step> {
        let cause = |step: &Step| step.diagnosis.as_ref().map(|it| it.cause.clone());
        let mut given: Vec<String> = self.decisive().and_then(cause).into_iter().collect();
        let is_new = |step: &&Step| match cause(step) {
            Some(cause) if !given.contains(&cause) => {
                given.push(cause);
                true
            }
            _ => false,
        };
        self.steps.iter().filter(is_new).collect()
    }

    pub(crate) fn outcome(&self) -> Outcome {
        self.decisive().map_or(Outcome::Ok, |step| step.outcome)
    }

    /// The exit code, if a step failed.
    pub(crate) fn code(&self) -> Option<Code> {
        let failed = self.decisive().filter(|step| step.outcome == Outcome::Fail)?;
        failed.diagnosis.as_ref().map(|diagnosis| diagnosis.code)
    }

    pub(crate) fn to_json(&self) -> Value {
        let target = self.hide(self.target.to_string());
        let decisive = self.decisive();
        let document = Document {
            target: serde_json::from_str(&target).unwrap_or_default(),
            outcome: self.outcome(),
            exit_code: self.code().map_or(0, |code| code as u8),
            step: decisive.map(|step| step.name),
            diagnosis: decisive.and_then(|step| step.diagnosis.as_ref()),
            steps: &self.steps,
        };
        json!(document)
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
