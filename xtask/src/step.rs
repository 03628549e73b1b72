//! Steps, and the report on them.
//!
//! Every step runs, whether those before it passed or not. A step that passes is one line, and its
//! table when it runs alone; a step that fails shows everything its programs printed. The last
//! lines say once more what failed, and the sum.

use std::process::ExitCode;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use crate::need::Need;
use crate::options::Options;
use crate::process::{self, Ran};
use crate::room;

/// One thing that can pass or fail.
#[derive(Clone, Copy)]
pub(crate) struct Step {
    pub(crate) name: &'static str,
    /// What must be installed first.
    pub(crate) needs: &'static [Need],
    pub(crate) run: fn(&Options) -> Outcome,
}

/// How a step ended.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// Tests, or one for a step that has none.
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    /// A few words beside the verdict.
    pub(crate) note: String,
    /// Shown when something failed.
    pub(crate) output: String,
    /// Shown if the step runs alone, or fails.
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

/// A step that has run.
struct Done {
    name: &'static str,
    outcome: Outcome,
    took: Duration,
}

/// Runs the lanes side by side, the steps of a lane one after the other, and reports on them.
#[expect(clippy::disallowed_methods, reason = "reports how long the run took")]
pub(crate) fn run_all(lanes: &'static [&'static [Step]], options: &Options) -> ExitCode {
    let start = Instant::now();
    let is_alone = lanes.iter().map(|lane| lane.len()).sum::<usize>() == 1;
    let done = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for lane in lanes {
            scope.spawn(|| {
                for step in *lane {
                    let ran = step.run(options);
                    // The lock also keeps the reports of two lanes apart.
                    let mut done = done.lock().expect("no lane panics");
                    ran.report(is_alone);
                    done.push(ran);
                }
            });
        }
    });
    let done = done.into_inner().expect("no lane panics");
    println!();
    if done.len() > 1 {
        println!("{}\n", where_time_went(&done, start.elapsed()));
    }
    let sum = |count: fn(&Outcome) -> u64| done.iter().map(|it| count(&it.outcome)).sum::<u64>();
    let (passed, failed) = (sum(|outcome| outcome.passed), sum(|outcome| outcome.failed));
    if failed > 0 {
        for Done { name, outcome, .. } in done.iter().filter(|it| it.outcome.failed > 0) {
            println!("failed: {name}");
            for line in gist(&outcome.output) {
                println!("    {line}");
            }
        }
        if let Some(hint) = room::hint() {
            println!("{hint}");
        }
    }
    println!("{passed} passed, {failed} failed");
    ExitCode::from(u8::from(failed > 0))
}

impl Step {
    #[expect(clippy::disallowed_methods, reason = "reports how long a step took")]
    fn run(&self, options: &Options) -> Done {
        let start = Instant::now();
        let outcome = match self.needs.iter().try_for_each(|need| need.meet()) {
            Ok(()) => (self.run)(options),
            Err(why) => Outcome::one(false, why),
        };
        Done { name: self.name, outcome, took: start.elapsed() }
    }
}

impl Done {
    fn report(&self, is_alone: bool) {
        let Self { name, outcome, took } = self;
        let verdict = if outcome.failed == 0 { "ok" } else { "FAILED" };
        let line = format!("{name:11} {verdict:6} {:7.1} s   {}", took.as_secs_f64(), outcome.note);
        println!("{}", line.trim_end());
        if is_alone || outcome.failed > 0 {
            print!("{}", outcome.table);
        }
        if outcome.failed > 0 {
            println!("\n{}\n", outcome.output.trim_end());
        }
    }
}

/// The lines that say what failed, of all that a step printed; its last ones if there are none.
fn gist(output: &str) -> Vec<&str> {
    const MOST: usize = 30;
    let is_telling = |line: &&str| {
        line.ends_with("FAILED") && line.starts_with("test ")
            || ["error", "not ok", "FAIL"].iter().any(|start| line.trim_start().starts_with(start))
            || line.contains(" panicked at ")
    };
    let telling: Vec<_> = output.lines().filter(is_telling).take(MOST).collect();
    if !telling.is_empty() {
        return telling;
    }
    let lines: Vec<_> = output.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(10)..].to_vec()
}

/// One line: the whole, then the steps that took longest.
fn where_time_went(done: &[Done], whole: Duration) -> String {
    let mut slowest: Vec<_> = done.iter().map(|it| (it.took, it.name)).collect();
    slowest.sort_by(|one, two| two.cmp(one));
    let minutes = |time: Duration| format!("{:.1} min", time.as_secs_f64() / 60.0);
    let steps: Vec<_> =
        slowest.iter().map(|(took, name)| format!("{name} {}", minutes(*took))).collect();
    let cpu = process::cpu_time().map(|time| format!(" ({} of CPU)", minutes(time)));
    format!("time: {}{}; {}", minutes(whole), cpu.unwrap_or_default(), steps.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_failed_is_found_in_what_was_printed() {
        let output = "running 2 tests\ntest a::b ... ok\ntest a::c ... FAILED\nnote: x\n\
                      thread 'a::c' panicked at src/a.rs:1:1:\nerror: test failed\n";
        let expected = [
            "test a::c ... FAILED",
            "thread 'a::c' panicked at src/a.rs:1:1:",
            "error: test failed",
        ];
        assert_eq!(gist(output), expected);
        assert_eq!(gist("it said\n\nno\n"), ["it said", "no"]);
    }

    #[test]
    fn the_slowest_step_is_named_first() {
        let done = |name, seconds| Done {
            name,
            outcome: Outcome::default(),
            took: Duration::from_secs(seconds),
        };
        let line = where_time_went(&[done("fmt", 3), done("unit", 90)], Duration::from_secs(120));
        assert!(line.starts_with("time: 2.0 min"), "{line}");
        assert!(line.ends_with("; unit 1.5 min, fmt 0.1 min"), "{line}");
    }
}
