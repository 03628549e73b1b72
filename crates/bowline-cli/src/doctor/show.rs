//! The report on a terminal: one line per step as it is done, then the verdict.

use std::fmt::Write;

use super::report::{Outcome, Report, Step};
use super::seen::seconds;
use crate::screen::{Paint, Style};
use crate::text::{cut, line, plain, width};

/// Width of the column of step names.
const NAMES: usize = 20;

/// Colours and width of the terminal.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Look {
    pub(crate) paint: Paint,
    /// Longest line, if that matters.
    pub(crate) columns: Option<usize>,
}

impl Look {
    pub(crate) fn line(self, step: &Step) -> String {
        let outcome = format!("{:<7}", step.outcome.as_str());
        let outcome = self.paint.paint(style(step.outcome), &outcome);
        let took = match step.took.as_millis() {
            0 => String::new(),
            _ => format!("  {}", seconds(step.took)),
        };
        let room =
            self.columns.map(|columns| columns.saturating_sub(10 + NAMES + width(&took)).max(20));
        // The JSON has the whole text, and so does the verdict where it matters.
        let seen = line(&step.seen);
        let seen = room.map_or_else(|| seen.as_str().into(), |room| cut(&seen, room));
        let took = self.paint.paint(Style::Dim, &took);
        let name = format!("{} ", step.name);
        format!("  {outcome} {name:<NAMES$}{seen}{took}").trim_end().to_owned()
    }

    pub(crate) fn verdict(self, report: &Report) -> String {
        let Some(decisive) = report.decisive() else {
            return format!("\n{}", self.paint.paint(Style::Green, "Everything works."));
        };
        let title = match decisive.outcome {
            Outcome::Fail => format!("Failed at: {}", decisive.name),
            _ => "It works, but could be better.".to_owned(),
        };
        let mut out = format!("\n{}\n", self.paint.paint(style(decisive.outcome), &title));
        explain(&mut out, decisive);
        for (index, step) in report.others().into_iter().enumerate() {
            out.push_str(if index == 0 { "\nAlso:\n" } else { "\n" });
            explain(&mut out, step);
        }
        if !report.stderr().is_empty() {
            out.push_str("\nStandard error:\n");
            for said in report.stderr() {
                let _ = writeln!(out, "{}", format!("  {}", plain(said)).trim_end());
            }
        }
        out.trim_end().to_owned()
    }
}

fn explain(out: &mut String, step: &Step) {
    let Some(diagnosis) = &step.diagnosis else { return };
    // Writing to a string cannot fail.
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

    use super::super::report::{broken, refused};
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
        assert_eq!(look.verdict(&report), "\nEverything works.");
        let step = Step::ok("output", "hello", Instant::now());
        report.push(step.clone().warn(broken("noise").fix("be silent")));
        assert!(look.verdict(&report).starts_with("\nIt works"));
        report.push(Step { name: "tools", ..step }.fail(refused("no").fix("ask")));
        let expected = "\nFailed at: tools\n  Seen:  tools: hello\n  Cause: no\n  Fix:   ask\n\n\
                        Also:\n  Seen:  output: hello\n  Cause: noise\n  Fix:   be silent";
        assert_eq!(look.verdict(&report), expected);
        let said = ["", "Traceback:", "    at \u{1b}[2Jx", "", "Error: y", " "];
        report.keep_stderr(&said.map(str::to_owned));
        let whole = "\n\nStandard error:\n  Traceback:\n      at \\u{1b}[2Jx\n\n  Error: y";
        assert_eq!(look.verdict(&report), format!("{expected}{whole}"));
    }
}
