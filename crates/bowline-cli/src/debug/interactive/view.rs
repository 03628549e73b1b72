//! The look of a session: the bottom of the screen, and what is printed above it.

use std::io::{self, IsTerminal};

use super::super::paint::Bottom;
use super::super::terminal::{Terminal, write};
use super::Interactive;
use crate::commands::info::era;
use crate::screen::{Screen, Style};
use crate::text::{cut, line};

/// The longest name of a server in the prompt, in columns.
const LONGEST_NAME: usize = 24;

impl Interactive {
    /// What stands at the bottom now. `None` when a call has just begun.
    fn bottom(&self) -> Option<Bottom> {
        let (text, at) = (self.editor.text().to_owned(), self.editor.typed().len());
        if let Some(asking) = &self.asking {
            return Some(Bottom { prompt: asking.ask.prompt.clone(), text, at });
        }
        if let Some(job) = self.talk.jobs.values().find(|job| job.waits) {
            let how = self.waits.as_ref()?;
            let prompt = format!("{} {} s {how}", line(&job.title), job.age().as_secs());
            let room = self.size.columns.saturating_sub(2);
            let prompt = format!("{} ", cut(prompt.trim_end(), room));
            return Some(Bottom { prompt, ..Bottom::default() });
        }
        let prompt = match (self.editor.searched(), self.collected.is_empty()) {
            (Some(wanted), _) => format!("(search {wanted:?}) "),
            (None, false) => "… ".to_owned(),
            (None, true) => format!("{}> ", self.name()),
        };
        Some(Bottom { prompt, text, at })
    }

    /// The name of the server, for the prompt.
    fn name(&self) -> String {
        let client = self.talk.link.client();
        let Some(peer) = client.and_then(bowline::Client::peer) else {
            return "(not connected)".to_owned();
        };
        let name = peer.info.as_ref().map_or("server", |info| info.name.as_str());
        cut(&line(name), LONGEST_NAME).into_owned()
    }

    pub(super) fn greeting(&self) -> String {
        let client = self.talk.link.client();
        let Some(peer) = client.and_then(bowline::Client::peer) else { return String::new() };
        let era = era(peer.revision);
        let tools = self.talk.catalog.tools.len();
        let version = peer.info.as_ref().map(|info| format!(" {}", line(&info.version)));
        format!(
            "connected to {}{}, {} ({era} era), {tools} tools; `help` shows what you can type",
            self.name(),
            version.unwrap_or_default(),
            peer.revision,
        )
    }

    /// Draws the bottom again.
    pub(super) fn redraw(&mut self) {
        self.say("");
    }

    /// Prints text above the bottom. It must be safe already.
    pub(super) fn say(&mut self, text: &str) {
        let mut out = String::new();
        self.painter.erase(&mut out);
        out.push_str(text);
        if !text.ends_with('\n') && !text.is_empty() {
            out.push('\n');
        }
        if let Some(bottom) = self.bottom() {
            self.painter.draw(&bottom, self.size, &mut out);
        }
        write(&out);
    }

    /// Erases the bottom.
    pub(super) fn hide(&mut self) {
        let mut out = String::new();
        self.painter.erase(&mut out);
        write(&out);
    }

    /// Prints a problem above the bottom.
    pub(super) fn complain(&mut self, problem: &str) {
        let problem = self.screen.err.paint(Style::Red, &line(problem));
        self.say(&problem);
    }

    /// Prints a result above the bottom. It must be safe already.
    pub(super) fn print(&mut self, text: &str) {
        self.hide();
        // In raw mode a line feed does not return to the first column.
        if io::stdout().is_terminal() {
            self.screen.print(&text.replace('\n', "\r\n"));
        } else {
            self.screen.print(text);
        }
        self.redraw();
    }

    /// Leaves the line that was typed on the screen.
    pub(super) fn leave(&mut self, text: &str) {
        let Some(bottom) = self.bottom() else { return };
        let mut out = String::new();
        let bottom = Bottom { text: text.to_owned(), at: text.len(), ..bottom };
        self.painter.leave(&bottom, self.size, &mut out);
        write(&out);
    }

    pub(super) fn clear(&mut self) {
        write("\x1b[H\x1b[2J");
        self.painter.forget();
        self.redraw();
    }

    /// Takes the size of the terminal, for the prompt and for results.
    pub(super) fn fit(&mut self) {
        self.size = Terminal::size();
        self.screen = Screen::new(&self.output);
        // The variable COLUMNS was true when the shell started.
        self.screen.columns = Some(self.size.columns);
    }

    /// Shows how long a call has been running.
    pub(super) fn tick(&mut self) {
        self.waits
            .get_or_insert_with(|| "… Ctrl-C cancels, Ctrl-Z runs it in the background".to_owned());
        self.redraw();
    }
}
