//! The one place that output goes through: results to standard output, everything else to standard
//! error; colour and width as the terminal has them.

mod bar;

use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bowline::Json;
use clap::{Args, ValueEnum};

use self::bar::Bar;
use crate::failure::{Code, Failure};
use crate::text::{json_line, line, plain};

/// What is shown, and how. May stand before or after the command's name.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArgs {
    /// For people, or the server's result as it came: JSON on one line, and nothing else on
    /// standard output [default: human]
    #[arg(long, short = 'o', value_enum, value_name = "FORMAT", hide_possible_values = false)]
    pub(crate) output: Option<Format>,

    /// Colour the output; `NO_COLOR` in the environment means never [default: auto]
    #[arg(long, value_enum, value_name = "WHEN")]
    pub(crate) color: Option<Colour>,

    /// Show every message on the wire, on standard error
    #[arg(long, short)]
    pub(crate) verbose: bool,

    /// Show neither the server's standard error nor its log messages nor progress
    #[arg(long, short)]
    pub(crate) quiet: bool,

    /// Write the session to a file: every message, when and which way, secrets left out; `bowline
    /// show FILE` shows it
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
}

impl OutputArgs {
    /// These, and from `others` what is not said here.
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

/// Whom the output is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// People
    Human,
    /// Programs
    Json,
}

/// When to colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Colour {
    /// In a terminal
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// How a piece of text looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    Bold,
    Dim,
    Red,
    Green,
    Yellow,
    Blue,
    Cyan,
}

impl Style {
    fn code(self) -> &'static str {
        match self {
            Self::Bold => "1",
            Self::Dim => "2",
            Self::Red => "31",
            Self::Green => "32",
            Self::Yellow => "33",
            Self::Blue => "34",
            Self::Cyan => "36",
        }
    }
}

/// Whether text is coloured. What is painted must be safe already.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paint(pub(crate) bool);

impl Paint {
    pub(crate) fn paint(self, style: Style, text: &str) -> String {
        match self.0 && !text.is_empty() {
            true => format!("\u{1b}[{}m{text}\u{1b}[0m", style.code()),
            false => text.to_owned(),
        }
    }
}

/// Standard output and standard error.
#[derive(Debug)]
pub(crate) struct Screen {
    pub(crate) format: Format,
    /// For standard output.
    pub(crate) out: Paint,
    /// For standard error.
    pub(crate) err: Paint,
    /// How wide lines may be, where it matters.
    pub(crate) columns: Option<usize>,
    is_quiet: bool,
    is_out_terminal: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    bar: Bar,
    /// Who draws on the terminal in place of standard error.
    diverted: Option<Sink>,
    lost: Option<io::Error>,
}

/// A function that takes text for people, safe already.
type Sink = Box<dyn Fn(&str) + Send>;

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("State").field("lost", &self.lost).finish_non_exhaustive()
    }
}

/// Where lines are broken when nobody says how wide they may be.
const WIDTH: usize = 100;

impl Screen {
    pub(crate) fn new(args: &OutputArgs) -> Self {
        let is_out_terminal = io::stdout().is_terminal();
        let is_err_terminal = io::stderr().is_terminal();
        let format = args.output.unwrap_or(Format::Human);
        let plain = std::env::var_os("NO_COLOR").is_some_and(|it| !it.is_empty())
            || std::env::var_os("TERM").is_some_and(|it| it == "dumb");
        let colours = |is_terminal: bool| match args.color.unwrap_or(Colour::Auto) {
            Colour::Always => true,
            Colour::Never => false,
            Colour::Auto => is_terminal && !plain,
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
            state: Mutex::new(State { bar, ..State::default() }),
        }
    }

    /// Whether the output is for programs.
    pub(crate) fn is_json(&self) -> bool {
        self.format == Format::Json
    }

    /// How wide lines of prose are.
    pub(crate) fn width(&self) -> usize {
        self.columns.unwrap_or(WIDTH).max(20)
    }

    /// Prints a part of the result. It must be safe already.
    pub(crate) fn print(&self, text: &str) {
        let mut state = self.lock();
        state.bar.clear();
        if state.lost.is_some() {
            return;
        }
        let mut out = io::stdout().lock();
        let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        state.lost = written.err();
    }

    /// Prints the result as it came, on one line.
    pub(crate) fn print_json(&self, json: &Json) {
        let text = json_line(json.as_str(), self.is_out_terminal);
        self.print(&format!("{text}\n"));
    }

    /// Whether nobody reads standard output any more.
    pub(crate) fn is_lost(&self) -> bool {
        self.lock().lost.is_some()
    }

    /// What became of standard output. Whoever stopped reading wanted no more.
    ///
    /// # Errors
    /// When it could not be written for another reason.
    pub(crate) fn finish(&self) -> Result<(), Failure> {
        let mut state = self.lock();
        state.bar.clear();
        match state.lost.take() {
            Some(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                let what = format!("standard output cannot be written: {error}");
                Err(Failure::new(Code::Usage, what))
            }
            _ => Ok(()),
        }
    }

    /// Gives what would go to standard error to whoever draws on the terminal.
    pub(crate) fn divert(&self, sink: impl Fn(&str) + Send + 'static) {
        self.lock().diverted = Some(Box::new(sink));
    }

    /// Says something beside the result. It must be safe already.
    pub(crate) fn say(&self, text: &str) {
        let mut state = self.lock();
        if let Some(sink) = &state.diverted {
            return sink(text);
        }
        state.bar.clear();
        // If nobody watches, there is nobody else to tell.
        let _ = io::stderr().write_all(text.as_bytes());
    }

    /// Warns.
    pub(crate) fn warn(&self, text: &str) {
        let word = self.err.paint(Style::Yellow, "warning:");
        self.say(&format!("bowline: {word} {}\n", plain(text)));
    }

    /// A line that the server wrote to its standard error.
    pub(crate) fn server_line(&self, text: &str) {
        self.aside("stderr", Style::Dim, text);
    }

    /// A log message of the server.
    pub(crate) fn server_log(&self, style: Style, text: &str) {
        self.aside("log", style, text);
    }

    /// A question of the server, and what it was answered.
    pub(crate) fn server_asks(&self, style: Style, text: &str) {
        self.aside("asked", style, text);
    }

    fn aside(&self, word: &str, style: Style, text: &str) {
        if self.is_quiet {
            return;
        }
        let word = self.err.paint(Style::Dim, &format!("{word} │"));
        self.say(&format!("{word} {}\n", self.err.paint(style, &line(text))));
    }

    /// Shows how far a call is, where there is a terminal to show it.
    pub(crate) fn progress(&self, done: f64, total: Option<f64>, message: &str) {
        if self.is_quiet {
            return;
        }
        let width = self.width();
        self.lock().bar.show(done, total, &line(message), width);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How wide the terminal is; `COLUMNS` says it for others.
fn columns(is_terminal: bool) -> Option<usize> {
    let told = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    let found = told.or_else(|| if is_terminal { terminal_width() } else { None });
    found.filter(|columns| *columns > 0)
}

#[cfg(unix)]
fn terminal_width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    Some(usize::from(size.ws_col))
}

#[cfg(not(unix))]
fn terminal_width() -> Option<usize> {
    None
}
