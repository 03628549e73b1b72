//! Steps, and the report on them.
//!
//! Every step runs, whatever became of the ones before it. A step that passes is one line; one that
//! fails shows everything its programs said. The last line is the sum.

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Instant;

use crate::need::Need;
use crate::options::Options;
use crate::process::Ran;
use crate::room;

/// One thing that can pass or fail.
#[derive(Clone, Copy)]
pub(crate) struct Step {
    pub(crate) name: &'static str,
    /// What must be installed first.
    pub(crate) needs: &'static [Need],
    pub(crate) run: fn(&Options) -> Outcome,
}

/// What became of a step.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// Tests, or one for a step that has none.
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    /// A few words beside the verdict.
    pub(crate) note: String,
    /// Shown when something failed.
    pub(crate) output: String,
    /// Shown in any case.
    pub(crate) table: String,
}

impl Outcome {
    /// A step that counts as one.
    pub(crate) fn one(ok: bool, output: String) -> Self {
        Self { passed: ok.into(), failed: (!ok).into(), output, ..Self::default() }
    }

    /// The same, with a few words beside the verdict.
    pub(crate) fn with_note(mut self, note: String) -> Self {
        self.note = note;
        self
    }
}

impl From<Ran> for Outcome {
    fn from(ran: Ran) -> Self {
        Self::one(ran.ok, ran.output)
    }
}

/// Runs the steps and reports on them.
pub(crate) fn run_all(steps: &[Step], options: &Options) -> ExitCode {
    let (mut passed, mut failed) = (0, 0);
    let mut failures = Vec::new();
    for step in steps {
        let outcome = step.run_and_report(options);
        passed += outcome.passed;
        failed += outcome.failed;
        if outcome.failed > 0 {
            failures.push(step.name);
        }
    }
    println!();
    if !failures.is_empty() {
        println!("failed: {}", failures.join(", "));
        if let Some(hint) = room::hint() {
            println!("{hint}");
        }
    }
    println!("{passed} passed, {failed} failed");
    ExitCode::from(u8::from(failed > 0))
}

impl Step {
    #[expect(clippy::disallowed_methods, reason = "tells a person how long a step took")]
    fn run_and_report(&self, options: &Options) -> Outcome {
        let start = Instant::now();
        let met = self.needs.iter().try_for_each(|need| need.meet());
        print!("{:11} ", self.name);
        // The name shows while the step runs. That it may not show must not stop the step.
        io::stdout().flush().ok();
        let outcome = match met {
            Ok(()) => (self.run)(options),
            Err(why) => Outcome::one(false, why),
        };
        let verdict = if outcome.failed == 0 { "ok" } else { "FAILED" };
        let seconds = start.elapsed().as_secs_f64();
        let line = format!("{verdict:6} {seconds:7.1} s   {}", outcome.note);
        println!("{}", line.trim_end());
        print!("{}", outcome.table);
        if outcome.failed > 0 {
            println!("\n{}\n", outcome.output.trim_end());
        }
        outcome
    }
}
