//! The report for people: a line a step, as it is done, and the cause at the end.

use std::fmt::Write;

use super::ending::seconds;
use super::report::{Outcome, Report, Step, word};
use crate::screen::{Paint, Style};
use crate::text::{cut, line, width};

/// How wide the column of names is.
const NAMES: usize = 20;

/// How it is written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Look {
    pub(crate) paint: Paint,
    /// How wide lines may be, if that matters.
    pub(crate) columns: Option<usize>,
}

impl Look {
    /// One step.
    pub(crate) fn line(self, step: &Step) -> String {
        let outcome = self.paint.paint(style(step.outcome), &format!("{:<7}", word(step.outcome)));
        let took = match step.took.as_millis() {
            0 => String::new(),
            _ => format!("  {}", seconds(step.took)),
        };
        let room =
            self.columns.map(|columns| columns.saturating_sub(10 + NAMES + width(&took)).max(20));
        // The whole text is in the JSON, and where it matters at the end.
        let seen = line(&step.seen);
        let seen = room.map_or_else(|| seen.as_str().into(), |room| cut(&seen, room));
        let took = self.paint.paint(Style::Dim, &took);
        let name = format!("{} ", step.name);
        format!("  {outcome} {name:<NAMES$}{seen}{took}").trim_end().to_owned()
    }

    /// The verdict.
    pub(crate) fn verdict(self, report: &Report) -> String {
        let mut out = String::from("\n");
        let Some(first) = report.first() else {
            out.push_str(&self.paint.paint(Style::Green, "All is well."));
            return out;
        };
        let title = match first.outcome {
            Outcome::Fail => self.paint.paint(Style::Red, &format!("Failed at: {}", first.name)),
            _ => self.paint.paint(Style::Yellow, "It works, and could be better."),
        };
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{title}");
        tell(&mut out, first);
        for (index, step) in report.others().into_iter().enumerate() {
            let _ = writeln!(out, "{}", if index == 0 { "\nBesides:" } else { "" });
            tell(&mut out, step);
        }
        out.trim_end().to_owned()
    }
}

fn tell(out: &mut String, step: &Step) {
    let Some(diagnosis) = &step.diagnosis else { return };
    let _ = writeln!(out, "  Seen:  {}: {}", step.name, line(&step.seen));
    let _ = writeln!(out, "  Cause: {}", line(&diagnosis.cause));
    let _ = writeln!(out, "  Fix:   {}", line(&diagnosis.fix));
}

fn style(outcome: Outcome) -> Style {
    match outcome {
        Outcome::Ok => Style::Green,
        Outcome::Warn => Style::Yellow,
        Outcome::Fail => Style::Red,
        Outcome::Skipped => Style::Dim,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;
    use tokio::time::Instant;

    use super::super::report::Diagnosis;
    use super::*;

    #[test]
    fn lines_are_aligned_and_fit() {
        let look = Look { paint: Paint(false), columns: None };
        let mut step = Step::ok("program", "/bin/sh", Instant::now());
        step.took = Duration::from_millis(12);
        assert_eq!(look.line(&step), "  ok      program             /bin/sh  12 ms");
        step.took = Duration::ZERO;
        step.seen = "x".repeat(200);
        let narrow = Look { columns: Some(60), ..look };
        assert_eq!(narrow.line(&step).chars().count(), 60);
        let colour = Look { paint: Paint(true), columns: None };
        assert!(colour.line(&step).starts_with("  \x1b[32mok     \x1b[0m"));
    }

    #[test]
    fn the_cause_comes_last() {
        let look = Look { paint: Paint(false), columns: None };
        let mut report = Report::new(json!({}), Vec::new(), |_| {});
        assert_eq!(look.verdict(&report), "\nAll is well.");
        let step = Step::ok("output", "hello", Instant::now());
        report.push(step.clone().warn(Diagnosis::broken("noise", "be silent")));
        assert!(look.verdict(&report).starts_with("\nIt works"));
        report.push(Step { name: "tools", ..step }.fail(Diagnosis::refused("no", "ask")));
        let expected = "\nFailed at: tools\n  Seen:  tools: hello\n  Cause: no\n  Fix:   ask\n\n\
                        Besides:\n  Seen:  output: hello\n  Cause: noise\n  Fix:   be silent";
        assert_eq!(look.verdict(&report), expected);
    }
}
