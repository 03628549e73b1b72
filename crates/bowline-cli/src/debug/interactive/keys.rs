//! What keys do in a session.

use std::collections::VecDeque;

use crossterm::event::{Event as Input, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use tokio::sync::mpsc;

use super::super::complete::{common_start, offer};
use super::super::editor::Wish;
use super::super::terminal::Terminal;
use super::{Interactive, Turn};
use crate::text::line;

/// Candidates that are shown: 100.
const MOST_SHOWN: usize = 100;

/// The keys of an input. Pasted text counts as typed, but a tab in it completes nothing.
pub(super) fn keys_of(input: &Input) -> Vec<KeyEvent> {
    match input {
        Input::Key(key) if key.kind != KeyEventKind::Release => vec![*key],
        Input::Paste(text) => {
            let text = text.replace("\r\n", "\n");
            let keys = text.chars().map(|letter| match letter {
                '\n' | '\r' => KeyCode::Enter,
                '\t' => KeyCode::Char(' '),
                other => KeyCode::Char(other),
            });
            keys.map(KeyEvent::from).collect()
        }
        _ => Vec::new(),
    }
}

fn is_control(key: &KeyEvent, letters: &[char]) -> bool {
    let is_wanted = |code| matches!(code, KeyCode::Char(letter) if letters.contains(&letter));
    key.modifiers == KeyModifiers::CONTROL && is_wanted(key.code)
}

/// Waits for Ctrl-C; other keys are kept.
pub(super) async fn pressed_ctrl_c(
    inputs: &mut mpsc::Receiver<Input>,
    ahead: &mut VecDeque<KeyEvent>,
) {
    while let Some(input) = inputs.recv().await {
        for key in keys_of(&input) {
            if is_control(&key, &['c']) {
                return;
            }
            ahead.push_back(key);
        }
    }
}

impl Interactive {
    /// Handles waiting keys, as long as there is a prompt for them.
    pub(super) fn replay_keys(&mut self) {
        while self.next == Turn::Wait {
            if self.talk.foreground().is_empty() || self.asking.is_some() {
                let Some(key) = self.typed_ahead.pop_front() else { return };
                self.handle_key(key);
                continue;
            }
            // Two keys need no prompt, and do not wait for those before them.
            let held = self.typed_ahead.iter().position(|key| is_control(key, &['c', 'z']));
            let Some(key) = held.and_then(|held| self.typed_ahead.remove(held)) else { return };
            self.handle_held(key);
        }
    }

    /// Ctrl-C and Ctrl-Z while the prompt waits for a call.
    fn handle_held(&mut self, key: KeyEvent) {
        self.waits = None;
        for number in self.talk.foreground() {
            if !is_control(&key, &['z']) {
                let title = self.talk.cancel(number).map(|job| line(&job.title));
                self.say(&format!("cancelled {}", title.unwrap_or_default()));
            } else if let Some(job) = self.talk.jobs.get_mut(&number) {
                job.waits = false;
                self.say(&format!("[{number}] goes on in the background"));
            }
        }
    }

    fn handle_key(&mut self, key: KeyEvent) {
        let history = if self.asking.is_some() { &[][..] } else { self.history.lines() };
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
                Terminal::suspend();
                self.painter.forget();
                self.fit();
                self.redraw();
            }
            Wish::Clear => self.clear(),
        }
    }

    fn submit(&mut self, text: &str) {
        // A change of the size that comes together with keys is not always reported.
        self.fit();
        self.leave(text);
        if self.asking.is_some() {
            return self.answer(text);
        }
        if let Some(text) = self.collected.add(text) {
            self.run_line(&text);
        }
        self.redraw();
    }

    fn interrupt(&mut self, had_text: bool) {
        self.leave("^C");
        if self.asking.is_some() {
            return self.end_dialog();
        }
        if !had_text && self.collected.is_empty() {
            self.interrupts += 1;
        }
        self.collected.take();
        match self.interrupts {
            0 | 1 => self.redraw(),
            _ => self.say("Ctrl-C cancels requests; `quit` or Ctrl-D ends the session"),
        }
    }

    /// Ctrl-D on an empty line.
    fn end(&mut self) {
        if self.asking.is_some() {
            self.end_dialog();
        } else if self.collected.is_empty() {
            self.leave("");
            self.next = Turn::Quit;
        } else {
            self.collected.take();
            self.say("dropped");
        }
    }

    fn complete(&mut self) {
        let typed = self.editor.typed().to_owned();
        if let Some(asking) = &self.asking {
            let choices = asking.ask.choices.iter().filter(|choice| choice.starts_with(&typed));
            let choices: Vec<String> = choices.cloned().collect();
            return self.offer(0, &choices);
        }
        let Some(found) = offer(&typed, &self.talk.catalog) else { return };
        if let Some((start, candidates)) = self.talk.complete(&typed, found) {
            self.offer(start, &candidates);
        }
    }

    /// Inserts what all candidates begin with, or shows them.
    pub(super) fn offer(&mut self, start: usize, candidates: &[String]) {
        let typed = self.editor.typed().len().saturating_sub(start);
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
