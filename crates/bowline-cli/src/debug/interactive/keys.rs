//! What keys do in a session.

use super::super::collect;
use super::super::complete::{common_start, offer};
use super::super::editor::Wish;
use super::super::keys::Key;
use super::{Interactive, Turn};
use crate::text::line;

/// Candidates that are shown: 100.
const MOST_SHOWN: usize = 100;

impl Interactive {
    /// Takes in what was typed.
    pub(super) fn handle_bytes(&mut self, bytes: &[u8]) {
        for key in self.decoder.decode(bytes) {
            self.typed_ahead.push_back(key);
        }
        self.replay_keys();
    }

    /// Does what waiting keys say, as long as there is a prompt for them.
    pub(super) fn replay_keys(&mut self) {
        while self.next == Turn::Wait {
            let holds = !self.foreground.is_empty() && self.dialog.is_none();
            let place = match holds {
                false => 0,
                // Two keys need no prompt, and do not wait for those before them.
                true => {
                    let wanted = |key: &Key| matches!(key, Key::Control('c' | 'z'));
                    let Some(place) = self.typed_ahead.iter().position(wanted) else { return };
                    place
                }
            };
            let Some(key) = self.typed_ahead.remove(place) else { return };
            match holds {
                true => self.handle_held(key),
                false => self.handle_key(key),
            }
        }
    }

    /// Ctrl-C and Ctrl-Z while the prompt waits for a call.
    fn handle_held(&mut self, key: Key) {
        let jobs = std::mem::take(&mut self.foreground);
        self.waits = None;
        for number in jobs {
            let text = match key {
                Key::Control('c') => match self.talk.cancel(number) {
                    Some(job) => format!("cancelled {}", line(&job.title)),
                    None => continue,
                },
                _ => format!("[{number}] goes on in the background"),
            };
            self.say(&text);
        }
    }

    fn handle_key(&mut self, key: Key) {
        let key = match key {
            Key::PasteBegins => {
                self.is_pasting = true;
                return;
            }
            Key::PasteEnds => {
                self.is_pasting = false;
                return;
            }
            // What is pasted is text.
            Key::Tab if self.is_pasting => Key::Char(' '),
            other => other,
        };
        let history = if self.dialog.is_some() { &[][..] } else { self.history.lines() };
        let wish = self.editor.handle(key, history);
        if !matches!(wish, Wish::Interrupt { had_text: false }) {
            self.interrupts = 0;
        }
        match wish {
            Wish::Draw => self.redraw(),
            Wish::Nothing => {}
            Wish::Submit(text) => self.submit(&text),
            Wish::Interrupt { had_text } => self.interrupt(had_text),
            Wish::End => self.end(),
            Wish::Complete => self.complete(),
            Wish::Suspend => {
                self.hide();
                self.terminal.suspend();
                self.refit();
            }
            Wish::Clear => self.clear(),
        }
    }

    fn submit(&mut self, text: &str) {
        self.leave(text);
        if self.dialog.is_some() {
            return self.answer(text);
        }
        let is_first = self.collected.is_empty();
        if !is_first {
            self.collected.push('\n');
        }
        self.collected.push_str(text);
        let is_open = collect::is_open(&self.collected);
        if is_open && self.collected.len() > collect::LONGEST {
            self.collected.clear();
            return self.complain("more than 16 MiB without an end; dropped");
        }
        if is_open && (is_first || !text.trim().is_empty()) {
            return self.redraw();
        }
        let text = std::mem::take(&mut self.collected);
        self.run_line(&text);
        self.redraw();
    }

    fn interrupt(&mut self, had_text: bool) {
        self.leave("^C");
        if self.dialog.is_some() {
            return self.end_dialog();
        }
        let had_text = had_text || !self.collected.is_empty();
        self.collected.clear();
        if !had_text {
            self.interrupts += 1;
        }
        match self.interrupts {
            0 | 1 => self.redraw(),
            _ => self.say("Ctrl-C cancels requests; `quit` or Ctrl-D ends the session"),
        }
    }

    /// Ctrl-D on an empty line.
    fn end(&mut self) {
        if self.dialog.is_some() {
            return self.end_dialog();
        }
        if self.collected.is_empty() {
            self.leave("");
            self.next = Turn::Quit;
        } else {
            self.collected.clear();
            self.say("dropped");
        }
    }

    fn complete(&mut self) {
        let typed = self.editor.text()[..self.editor.at()].to_owned();
        if let Some((_, ask, _)) = &self.dialog {
            let known = ask.choices.iter().filter(|choice| choice.starts_with(&typed));
            let known: Vec<String> = known.cloned().collect();
            return self.offer(0, &known);
        }
        let Some(found) = offer(&typed, &self.talk.catalog) else { return };
        if let Some((start, candidates)) = self.talk.complete(&typed, found) {
            self.offer(start, &candidates);
        }
    }

    /// Puts in what all candidates have in common, or shows them.
    pub(super) fn offer(&mut self, start: usize, candidates: &[String]) {
        let typed = self.editor.at().saturating_sub(start);
        let common = common_start(candidates);
        if common.len() > typed && !common.contains(char::is_control) {
            self.editor.replace(start, common);
            return self.redraw();
        }
        if candidates.len() > 1 {
            let shown: Vec<String> =
                candidates.iter().take(MOST_SHOWN).map(|it| line(it)).collect();
            let more = candidates.len() - shown.len();
            let more = if more > 0 { format!("  and {more} more") } else { String::new() };
            self.say(&format!("{}{more}", shown.join("  ")));
        }
    }
}
