//! All output goes through here: results to standard output, everything else to standard error,
//! with the terminal's colours and width.

mod bar;

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bowline::Json;
use clap::{Args, ColorChoice, ValueEnum};
use tokio::time::Instant;

use self::bar::Bar;
pub(crate) use self::bar::words as progress_words;
use crate::failure::Failure;
use crate::text::{json_line, line, plain};

/// What to print, and how. Accepted before and after the command's name.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArgs {
    /// For people, or the server's result unchanged: JSON on one line, and nothing else on standard
    /// output [default: human]
    #[arg(long, short = 'o', value_enum, value_name = "FORMAT", hide_possible_values = false)]
    pub(crate) output: Option<Format>,

    /// Colour the output; `NO_COLOR` in the environment means never [default: auto]
    #[arg(long, value_enum, value_name = "WHEN")]
    pub(crate) color: Option<ColorChoice>,

    /// Show every message on the wire, on standard error
    #[arg(long, short)]
    pub(crate) verbose: bool,

    /// Hide the server's standard error, its log messages and progress
    #[arg(long, short)]
    pub(crate) quiet: bool,

    /// Record the session to a file: every message with its time and direction, without secrets;
    /// `bowline show FILE` displays it
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
}

impl OutputArgs {
    /// These options, completed by `others`.
    pub(crate) fn or(self, others: &Self) -> Self {
        Self {
            output: self.output.or(others.output),
            color: self.color.or(others.color),
            verbose: self.verbose || others.verbose,
            quiet: self.quiet || others.quiet,
            record: self.record.or_else(|| others.record.clone()),
        }
    }
}

/// Who reads the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// People
    Human,
    /// Programs
    Json,
}

/// How text looks: the parameter of the terminal's `SGR` sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    Bold = 1,
    Dim = 2,
    Red = 31,
    Green = 32,
    Yellow = 33,
    Blue = 34,
    Cyan = 36,
}

/// Whether text is coloured. Text must be safe for a terminal before it is painted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paint(pub(crate) bool);

impl Paint {
    pub(crate) fn paint(self, style: Style, text: &str) -> String {
        if self.0 && !text.is_empty() {
            format!("\u{1b}[{}m{text}\u{1b}[0m", style as u8)
        } else {
            text.to_owned()
        }
    }
}

/// Standard output and standard error.
pub(crate) struct Screen {
    pub(crate) format: Format,
    pub(crate) out: Paint,
    pub(crate) err: Paint,
    /// The width of a line, where it is limited.
    pub(crate) columns: Option<usize>,
    /// Whether nothing that comes beside the result is shown.
    pub(crate) is_quiet: bool,
    is_out_terminal: bool,
    streams: Mutex<Streams>,
}

#[derive(Default)]
struct Streams {
    bar: Bar,
    /// Receives what would go to standard error.
    diverted: Option<Sink>,
    /// Whether a person is being asked: no bar is drawn over the question.
    is_held: bool,
    /// When the server last reported progress, or the person last answered.
    heard: Option<Instant>,
    lost: Option<io::Error>,
}

/// A function that takes text that is safe for a terminal.
type Sink = Box<dyn Fn(&str) + Send>;

/// Whether a terminal obeys escape sequences. Old consoles of Windows do so only when asked to.
fn obeys_escapes() -> bool {
    #[cfg(windows)]
    return crossterm::ansi_support::supports_ansi();
    #[cfg(not(windows))]
    true
}

/// The width of prose where lines are not limited.
const WIDTH: usize = 100;

impl Screen {
    pub(crate) fn new(args: &OutputArgs) -> Self {
        let is_out_terminal = io::stdout().is_terminal();
        let is_err_terminal = io::stderr().is_terminal();
        let format = args.output.unwrap_or(Format::Human);
        let plain = std::env::var_os("NO_COLOR").is_some_and(|it| !it.is_empty())
            || std::env::var_os("TERM").is_some_and(|it| it == "dumb")
            || !obeys_escapes();
        let colours = |is_terminal: bool| match args.color.unwrap_or_default() {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => is_terminal && !plain,
        };
        let is_quiet = args.quiet || format == Format::Json && !args.verbose;
        let bar = Bar::new(is_err_terminal && !plain && !is_quiet && !args.verbose);
        Self {
            format,
            out: Paint(colours(is_out_terminal)),
            err: Paint(colours(is_err_terminal)),
            columns: columns(is_out_terminal),
            is_quiet,
            is_out_terminal,
            streams: Mutex::new(Streams { bar, ..Streams::default() }),
        }
    }

    /// Whether programs read the output.
    pub(crate) fn is_json(&self) -> bool {
        self.format == Format::Json
    }

    pub(crate) fn width(&self) -> usize {
        self.columns.unwrap_or(WIDTH).max(20)
    }

    /// Prints a result: unchanged on one line for programs, as `human` renders it for people.
    pub(crate) fn show(
        &self,
        result: &Json,
        human: impl FnOnce() -> Result<String, Failure>,
    ) -> Result<(), Failure> {
        if self.is_json() {
            self.print_json(result);
        } else {
            self.print(&human()?);
        }
        Ok(())
    }

    /// Prints a result unchanged, on one line.
    pub(crate) fn print_json(&self, json: &Json) {
        self.print_line(json.as_str());
    }

    /// Prints JSON text unchanged, on one line.
    pub(crate) fn print_line(&self, json: &str) {
        self.print(&format!("{}\n", json_line(json, self.is_out_terminal)));
    }

    /// Prints text that is safe for a terminal.
    pub(crate) fn print(&self, text: &str) {
        let mut streams = self.lock();
        streams.bar.clear();
        if streams.lost.is_some() {
            return;
        }
        let mut out = io::stdout().lock();
        let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        streams.lost = written.err();
    }

    /// Whether standard output cannot be written any more.
    pub(crate) fn is_lost(&self) -> bool {
        self.lock().lost.is_some()
    }

    /// Ends the output. A reader that has closed the pipe wants no more, which is not an error.
    pub(crate) fn finish(&self) -> Result<(), Failure> {
        let mut streams = self.lock();
        streams.bar.clear();
        match streams.lost.take() {
            Some(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                Err(Failure::usage(format!("cannot write to standard output: {error}")))
            }
            _ => Ok(()),
        }
    }

    /// Sends what would go to standard error to `sink`, which draws on the terminal.
    pub(crate) fn divert(&self, sink: impl Fn(&str) + Send + 'static) {
        self.lock().diverted = Some(Box::new(sink));
    }

    /// Writes text that is safe for a terminal to standard error.
    pub(crate) fn say(&self, text: &str) {
        let mut streams = self.lock();
        if let Some(sink) = &streams.diverted {
            return sink(text);
        }
        streams.bar.clear();
        // If standard error is closed, there is nobody else to tell.
        let _ = io::stderr().write_all(text.as_bytes());
    }

    pub(crate) fn warn(&self, text: &str) {
        let word = self.err.paint(Style::Yellow, "warning:");
        self.say(&format!("bowline: {word} {}\n", plain(text)));
    }

    /// Says something about the command itself.
    pub(crate) fn note(&self, text: &str) {
        if !self.is_quiet {
            self.say(&format!("bowline: {}\n", plain(text)));
        }
    }

    /// Prints lines that come from the server: of its standard error, a log message, a question
    /// with its answer.
    pub(crate) fn aside(&self, source: &str, style: Style, text: &str) {
        if self.is_quiet {
            return;
        }
        let source = self.err.paint(Style::Dim, &format!("{source} │"));
        let mut lines = String::new();
        // Indentation and blank lines carry meaning: in a traceback, for one.
        for said in text.split('\n') {
            let said = plain(said.trim_end()).into_owned();
            lines += format!("{source} {}", self.err.paint(style, &said)).trim_end();
            lines.push('\n');
        }
        self.say(&lines);
    }

    pub(crate) fn progress(&self, done: f64, total: Option<f64>, message: &str) {
        let mut streams = self.lock();
        streams.heard = Some(Instant::now());
        if !self.is_quiet && !streams.is_held {
            streams.bar.show(done, total, &line(message), self.width());
        }
    }

    /// Keeps progress off the screen while a person is asked, until this is dropped.
    pub(crate) fn hold(&self) -> Held<'_> {
        self.lock().is_held = true;
        Held(self)
    }

    /// Waits until nothing was heard for so long, neither from the server nor from a person who is
    /// asked.
    pub(crate) async fn silence(&self, patience: Duration) {
        let begun = Instant::now();
        loop {
            let (is_held, heard) = {
                let streams = self.lock();
                (streams.is_held, streams.heard.unwrap_or(begun).max(begun))
            };
            match patience.saturating_sub(heard.elapsed()) {
                Duration::ZERO if !is_held => return,
                Duration::ZERO => tokio::time::sleep(patience).await,
                left => tokio::time::sleep(left).await,
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Streams> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A person is being asked.
pub(crate) struct Held<'a>(&'a Screen);

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let mut streams = self.0.lock();
        (streams.is_held, streams.heard) = (false, Some(Instant::now()));
    }
}

/// The width of the terminal; `COLUMNS` overrides it.
fn columns(is_terminal: bool) -> Option<usize> {
    let set = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    let width = || Some(crossterm::terminal::size().ok()?.0.into());
    set.or_else(|| if is_terminal { width() } else { None }).filter(|columns| *columns > 0)
}
