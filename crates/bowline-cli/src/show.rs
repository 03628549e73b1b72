//! `bowline show`: displays a session file.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde_json::Value;

use crate::failure::Failure;
use crate::record::{FORMAT, Line, LineKind, Way};
use crate::render::wire::{render, time};
use crate::screen::{OutputArgs, Screen, Style};
use crate::text::line as one_line;

/// Show a session recorded with --record
#[derive(Args)]
pub(crate) struct Show {
    /// The session file
    file: PathBuf,

    /// Show only lines of this kind; may be repeated
    #[arg(long, value_enum, value_name = "KIND")]
    only: Vec<Only>,

    /// Show only requests of this method and their answers
    #[arg(long, value_name = "METHOD")]
    method: Option<String>,

    #[command(flatten)]
    output: OutputArgs,
}

/// A kind of line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Only {
    /// Messages sent
    Sent,
    /// Messages received
    Received,
    /// Heads of HTTP messages
    Http,
    /// The server's standard error
    Stderr,
    /// Faults of the server
    Faults,
}

impl Show {
    pub(crate) fn run(self, root: &OutputArgs) -> Result<(), Failure> {
        let screen = Screen::new(&self.output.clone().or(root));
        let wrong = |problem: &dyn std::fmt::Display| {
            Failure::usage(format!("{}: {problem}", self.file.display()))
        };
        let file = File::open(&self.file).map_err(|error| wrong(&error))?;
        let mut tally = Tally::default();
        for (number, text) in BufReader::new(file).lines().enumerate() {
            let text = text.map_err(|error| wrong(&error))?;
            let line = match serde_json::from_str::<Line>(&text) {
                Err(error) if number > 0 => {
                    screen.warn(&format!("cannot read line {}: {error}", number + 1));
                    continue;
                }
                read => read.ok().filter(|line| number > 0 || line.session.is_some()),
            };
            let line = line.ok_or_else(|| wrong(&"not a session file"))?;
            if line.session.as_ref().is_some_and(|session| session.format > FORMAT) {
                screen.warn("the file comes from a later version; some of it may not be shown");
            }
            let is_method = tally.count(&line, self.method.as_deref());
            if screen.is_lost() || !self.is_wanted(&line) || !is_method {
                continue;
            }
            if screen.is_json() {
                screen.print_line(&text);
            } else {
                screen.print(&shown(&line, &screen));
            }
        }
        if !screen.is_json() {
            screen.print(&tally.summary(&screen));
        }
        screen.finish()
    }

    fn is_wanted(&self, line: &Line) -> bool {
        let kind = match (line.kind, line.direction) {
            (LineKind::Http, _) => Only::Http,
            (LineKind::Stderr, _) => Only::Stderr,
            (LineKind::Fault, _) => Only::Faults,
            (LineKind::Message, Some(Way::Sent)) => Only::Sent,
            (LineKind::Message, _) => Only::Received,
            _ => return self.only.is_empty(),
        };
        self.only.is_empty() || self.only.contains(&kind)
    }
}

fn shown(line: &Line, screen: &Screen) -> String {
    let Some(session) = &line.session else { return render(line, screen.out) };
    let text = one_line(&format!("{}, {}, {}", session.server(), session.started, session.program));
    format!("{}\n", screen.out.paint(Style::Bold, &text))
}

/// Totals, by method.
#[derive(Default)]
struct Tally {
    messages: u64,
    faults: u64,
    /// Methods of unanswered requests, by id.
    asked: BTreeMap<String, String>,
    /// How long answers took, by method.
    took: BTreeMap<String, Vec<f64>>,
}

impl Tally {
    /// Counts a line. Returns whether it belongs to the wanted method.
    fn count(&mut self, line: &Line, wanted: Option<&str>) -> bool {
        if line.kind == LineKind::Fault {
            self.faults += 1;
        }
        let Some(message) = &line.message else { return wanted.is_none() };
        self.messages += 1;
        let message = message.to_value();
        let method = message.get("method").and_then(Value::as_str);
        let id = message.get("id").map(Value::to_string);
        let method = match (method.map(str::to_owned), id, line.direction) {
            (Some(method), Some(id), Some(Way::Sent)) => {
                self.asked.insert(id, method.clone());
                Some(method)
            }
            (None, Some(id), Some(Way::Received)) => {
                let method = self.asked.remove(&id);
                if let (Some(method), Some(took)) = (&method, line.took) {
                    self.took.entry(method.clone()).or_default().push(took);
                }
                method
            }
            (method, _, _) => method,
        };
        wanted.is_none() || wanted == method.as_deref()
    }

    fn summary(&self, screen: &Screen) -> String {
        let mut text = format!("\n{} messages", self.messages);
        if self.faults > 0 {
            text += &format!(", {} faults", self.faults);
        }
        if !self.asked.is_empty() {
            text += &format!(", {} unanswered requests", self.asked.len());
        }
        for (method, times) in &self.took {
            let mut times = times.clone();
            times.sort_by(f64::total_cmp);
            let (median, last) = (times[times.len() / 2], times[times.len() - 1]);
            let (median, slowest) = (time(median), time(last));
            let method = one_line(method);
            text += &format!("\n{} × {method}: median {median}, slowest {slowest}", times.len());
        }
        format!("{}\n", screen.out.paint(Style::Dim, &text))
    }
}
