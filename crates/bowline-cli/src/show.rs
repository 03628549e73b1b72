//! `bowline show`: a session file for people.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde_json::Value;

use crate::failure::Failure;
use crate::record::{FORMAT, Kind, Line, Way};
use crate::render::wire::{render, time};
use crate::screen::{OutputArgs, Screen, Style};
use crate::text::line as one_line;

/// Show a session that --record wrote
#[derive(Args)]
pub(crate) struct Show {
    /// The session file
    file: PathBuf,

    /// Show only lines of this kind; may be repeated
    #[arg(long, value_enum, value_name = "KIND")]
    only: Vec<Only>,

    /// Show only requests of this method and the answers to them
    #[arg(long, value_name = "METHOD")]
    method: Option<String>,

    #[command(flatten)]
    output: OutputArgs,
}

/// A kind of line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Only {
    /// Messages that were sent
    Sent,
    /// Messages that were received
    Received,
    /// Heads of HTTP messages
    Http,
    /// The server's standard error
    Stderr,
    /// What the server did wrong
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
                Ok(line) => line,
                Err(_) if number == 0 => return Err(wrong(&"this is no session file")),
                Err(error) => {
                    screen.warn(&format!("line {} makes no sense: {error}", number + 1));
                    continue;
                }
            };
            if number == 0 {
                let format = line.session.as_ref().map(|session| session.format);
                match format {
                    None => return Err(wrong(&"this is no session file")),
                    Some(format) if format > FORMAT => {
                        screen.warn("the file is of a later version; some may be missing");
                    }
                    Some(_) => {}
                }
            }
            let is_method = tally.note(&line, self.method.as_deref());
            if screen.is_lost() || !self.is_wanted(&line) || !is_method {
                continue;
            }
            match screen.is_json() {
                true => screen.print(&format!("{text}\n")),
                false => screen.print(&shown(&line, &screen)),
            }
        }
        if !screen.is_json() {
            screen.print(&tally.text(&screen));
        }
        screen.finish()
    }

    fn is_wanted(&self, line: &Line) -> bool {
        let kind = match (line.kind, line.direction) {
            (Kind::Http, _) => Only::Http,
            (Kind::Stderr, _) => Only::Stderr,
            (Kind::Fault, _) => Only::Faults,
            (Kind::Message, Some(Way::Sent)) => Only::Sent,
            (Kind::Message, _) => Only::Received,
            _ => return self.only.is_empty(),
        };
        self.only.is_empty() || self.only.contains(&kind)
    }
}

fn shown(line: &Line, screen: &Screen) -> String {
    let Some(session) = &line.session else { return render(line, screen.out) };
    let of = match session.target.get("url").and_then(Value::as_str) {
        Some(url) => url.to_owned(),
        None => {
            let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let args = session.target.get("args").and_then(Value::as_array);
            let command = session.target.get("command").map(word).unwrap_or_default();
            std::iter::once(command)
                .chain(args.into_iter().flatten().map(word))
                .collect::<Vec<_>>()
                .join(" ")
        }
    };
    let text = one_line(&format!("{of}, {}, {}", session.started, session.program));
    format!("{}\n", screen.out.paint(Style::Bold, &text))
}

/// What there was, by method.
#[derive(Default)]
struct Tally {
    messages: u64,
    faults: u64,
    /// The method of a request that has no answer yet, by its id.
    asked: BTreeMap<String, String>,
    /// How long answers took, by method.
    took: BTreeMap<String, Vec<f64>>,
}

impl Tally {
    /// Counts a line. Says whether it is of this method.
    fn note(&mut self, line: &Line, wanted: Option<&str>) -> bool {
        if line.kind == Kind::Fault {
            self.faults += 1;
        }
        let Some(message) = &line.message else { return wanted.is_none() };
        self.messages += 1;
        let message = message.to_value();
        let method = message.get("method").and_then(Value::as_str);
        let id = message.get("id").map(Value::to_string);
        let method = match (method, id, line.direction) {
            (Some(method), Some(id), Some(Way::Sent)) => {
                self.asked.insert(id, method.to_owned());
                Some(method.to_owned())
            }
            (Some(method), _, _) => Some(method.to_owned()),
            (None, Some(id), Some(Way::Received)) => {
                let method = self.asked.remove(&id);
                if let (Some(method), Some(took)) = (&method, line.took) {
                    self.took.entry(method.clone()).or_default().push(took);
                }
                method
            }
            _ => None,
        };
        wanted.is_none() || wanted == method.as_deref()
    }

    fn text(&self, screen: &Screen) -> String {
        let mut text = format!("\n{} messages", self.messages);
        if self.faults > 0 {
            text += &format!(", {} faults", self.faults);
        }
        if !self.asked.is_empty() {
            text += &format!(", {} requests without an answer", self.asked.len());
        }
        for (method, times) in &self.took {
            let mut times = times.clone();
            times.sort_by(f64::total_cmp);
            let (median, last) = (times[times.len() / 2], times[times.len() - 1]);
            text += &format!(
                "\n{} × {}: median {}, slowest {}",
                times.len(),
                one_line(method),
                time(median),
                time(last)
            );
        }
        format!("{}\n", screen.out.paint(Style::Dim, &text))
    }
}
