//! `bowline export`: a recording for other programs.

use std::path::PathBuf;

use bowline_gateway::export::{har, html, otlp};
use bowline_gateway::recording::Recording;
use clap::{Args, ValueEnum};

use crate::failure::Failure;
use crate::screen::{OutputArgs, Screen};

/// Write a recorded session as HAR, as OpenTelemetry spans, or as a web page
///
/// The page is one file that loads nothing from elsewhere.
#[derive(Args)]
pub(crate) struct Export {
    /// The session file
    file: PathBuf,

    /// What to write
    #[arg(long, value_enum, value_name = "FORMAT")]
    to: To,
}

/// A format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum To {
    /// An HTTP archive (HAR 1.2), for browsers and HTTP tools
    Har,
    /// Spans for a collector (OTLP, JSON)
    Otlp,
    /// A web page
    Html,
}

impl Export {
    pub(crate) fn run(self, root: &OutputArgs) -> Result<(), Failure> {
        let screen = Screen::new(root);
        let recording = read(&self.file, &screen)?;
        let text = match self.to {
            To::Har => format!("{}\n", har(&recording)),
            To::Otlp => format!("{}\n", otlp(&recording)),
            To::Html => html(&recording),
        };
        screen.print(&text);
        screen.finish()
    }
}

/// Reads a recording, and warns of lines that cannot be read.
pub(crate) fn read(file: &std::path::Path, screen: &Screen) -> Result<Recording, Failure> {
    let recording = Recording::read(file)
        .map_err(|problem| Failure::usage(format!("{}: {problem}", file.display())))?;
    for problem in &recording.problems {
        screen.warn(&format!("{}: {problem}", file.display()));
    }
    Ok(recording)
}
