//! The report: every step with what it saw, and the cause of the first failure.

use std::collections::HashSet;
use std::time::Duration;

use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::failure::Code;
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
    fn new(code: Code, cause: impl Into<String>) -> Self {
        Self { code, cause: cause.into(), fix: String::new() }
    }

    pub(crate) fn fix(self, fix: impl Into<String>) -> Self {
        Self { fix: fix.into(), ..self }
    }
}

/// Nothing responds, or not as a server should.
pub(crate) fn unreachable(cause: impl Into<String>) -> Diagnosis {
    Diagnosis::new(Code::Unreachable, cause)
}

/// The server violates the specification.
pub(crate) fn broken(cause: impl Into<String>) -> Diagnosis {
    Diagnosis::new(Code::Broken, cause)
}

/// The server rejects the request.
pub(crate) fn refused(cause: impl Into<String>) -> Diagnosis {
    Diagnosis::new(Code::Refused, cause)
}

/// The server rejects the caller.
pub(crate) fn unauthorized(cause: impl Into<String>) -> Diagnosis {
    Diagnosis::new(Code::Unauthorized, cause)
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
        Self { outcome: Outcome::Skipped, ..Self::ok(name, why, Instant::now()) }
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
    /// The last lines that the program wrote to standard error.
    stderr: Vec<String>,
    show: Box<dyn FnMut(&Step)>,
}

impl Report {
    pub(crate) fn new(
        target: Value,
        mut secrets: Vec<String>,
        show: impl FnMut(&Step) + 'static,
    ) -> Self {
        // Hiding short values such as `1` or `true` would hide unrelated text.
        secrets.retain(|secret| secret.len() > 5);
        Self { target, secrets, steps: Vec::new(), stderr: Vec::new(), show: Box::new(show) }
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

    /// Keeps what the program wrote to standard error, without blank lines around it.
    pub(crate) fn keep_stderr(&mut self, lines: &[String]) {
        let is_text = |line: &String| !line.trim().is_empty();
        let first = lines.iter().position(is_text).unwrap_or(lines.len());
        let end = lines.iter().rposition(is_text).map_or(first, |last| last + 1);
        self.stderr = lines[first..end].iter().map(|line| self.hide(line.clone())).collect();
    }

    /// What the program wrote to standard error, if a step failed: it may say why.
    pub(crate) fn stderr(&self) -> &[String] {
        if self.outcome() == Outcome::Fail { &self.stderr } else { &[] }
    }

    /// Adds the step of something that the rest depends on; `None` if it failed.
    pub(crate) fn require<T>(&mut self, taken: Result<(Step, T), Step>) -> Option<T> {
        let (step, value) = match taken {
            Ok((step, value)) => (step, Some(value)),
            Err(step) => (step, None),
        };
        self.push(step);
        value
    }

    /// Adds the steps of a list that were not reached.
    pub(crate) fn skip_rest(&mut self, list: &'static str) {
        let is_taken = |name: &&str| self.steps.iter().any(|step| step.name == *name);
        let rest: Vec<&str> = list.rsplit(' ').take_while(|name| !is_taken(name)).collect();
        for name in rest.into_iter().rev() {
            self.push(Step::skipped(name, "an earlier step failed"));
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
        let mut given = HashSet::new();
        let all = self.decisive().into_iter().chain(&self.steps);
        all.filter(|step| step.diagnosis.as_ref().is_some_and(|it| given.insert(&it.cause)))
            .skip(1)
            .collect()
    }

    pub(crate) fn outcome(&self) -> Outcome {
        self.decisive().map_or(Outcome::Ok, |step| step.outcome)
    }

    /// The exit code, if a step failed.
    pub(crate) fn code(&self) -> Option<Code> {
        let failed = self.decisive().filter(|step| step.outcome == Outcome::Fail)?;
        failed.diagnosis.as_ref().map(|diagnosis| diagnosis.code)
    }

    /// The document that `docs/doctor.md` describes.
    pub(crate) fn to_json(&self) -> Value {
        let target = self.hide(self.target.to_string());
        let mut document = json!({
            "target": serde_json::from_str::<Value>(&target).unwrap_or_default(),
            "outcome": self.outcome(),
            "exitCode": self.code().map_or(0, |code| code as u8),
        });
        if let Some(Step { name, diagnosis: Some(diagnosis), .. }) = self.decisive() {
            document["step"] = json!(name);
            document["cause"] = json!(diagnosis.cause);
            document["fix"] = json!(diagnosis.fix);
        }
        if !self.stderr().is_empty() {
            document["stderr"] = json!(self.stderr());
        }
        document["steps"] = json!(self.steps);
        document
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
        report.push(Step::ok("b", "x", now).warn(broken("slow").fix("hurry")));
        assert_eq!((report.outcome(), report.code()), (Outcome::Warn, None));
        report.push(Step::ok("c", "y", now).fail(unreachable("gone with 1 sesame").fix("find it")));
        report.push(Step::ok("d", "z", now).fail(refused("no").fix("ask nicely")));
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
