//! The line that is being typed, and what keys do to it. Draws nothing.

use crossterm::event::{KeyCode as Code, KeyEvent, KeyModifiers as Modifiers};
use unicode_width::UnicodeWidthChar;

const PLAIN: Modifiers = Modifiers::NONE;
const CONTROL: Modifiers = Modifiers::CONTROL;
const ALT: Modifiers = Modifiers::ALT;
/// How Windows reports `AltGr`, which types characters.
const ALT_GR: Modifiers = Modifiers::CONTROL.union(Modifiers::ALT);

/// What a key asks of the session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wish {
    /// Draw the line again.
    Draw,
    /// The key means nothing here.
    Nothing,
    /// Enter.
    Submit(String),
    /// Ctrl-C.
    Interrupt { had_text: bool },
    /// Ctrl-D on an empty line.
    End,
    /// Tab.
    Complete,
    /// Ctrl-Z.
    Suspend,
    /// Ctrl-L.
    Clear,
}

/// The line that is being typed.
#[derive(Debug, Default)]
pub(crate) struct Editor {
    text: String,
    /// A byte position, always at a character.
    at: usize,
    killed: String,
    /// Where in the history we are, and the line that was typed before.
    browsing: Option<(usize, String)>,
    search: Option<Search>,
}

/// A search backwards through the history.
#[derive(Debug)]
struct Search {
    wanted: String,
    found: Option<usize>,
    before: String,
}

impl Editor {
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The text before the cursor.
    pub(crate) fn typed(&self) -> &str {
        &self.text[..self.at]
    }

    /// What is searched for, during a search.
    pub(crate) fn searched(&self) -> Option<&str> {
        self.search.as_ref().map(|search| search.wanted.as_str())
    }

    fn clear(&mut self) {
        self.set(String::new());
        self.browsing = None;
        self.search = None;
    }

    /// Replaces the text between `start` and the cursor.
    pub(crate) fn replace(&mut self, start: usize, text: &str) {
        if self.text.is_char_boundary(start) && start <= self.at {
            self.text.replace_range(start..self.at, text);
            self.at = start + text.len();
        }
    }

    pub(crate) fn handle(&mut self, key: KeyEvent, history: &[String]) -> Wish {
        let (held, code) = (key.modifiers - Modifiers::SHIFT, key.code);
        if let Some(wish) = self.handle_search(held, code, history) {
            return wish;
        }
        match (held, code) {
            (_, Code::Enter) | (CONTROL, Code::Char('j')) => {
                let line = std::mem::take(&mut self.text);
                self.clear();
                Wish::Submit(line)
            }
            (CONTROL, Code::Char('c')) => {
                let had_text = !self.text.is_empty();
                self.clear();
                Wish::Interrupt { had_text }
            }
            (CONTROL, Code::Char('d')) if self.text.is_empty() => Wish::End,
            (PLAIN, Code::Tab) => Wish::Complete,
            (CONTROL, Code::Char('z')) => Wish::Suspend,
            (CONTROL, Code::Char('l')) => Wish::Clear,
            (PLAIN, Code::Up) | (CONTROL, Code::Char('p')) => self.browse(history, true),
            (PLAIN, Code::Down) | (CONTROL, Code::Char('n')) => self.browse(history, false),
            (CONTROL, Code::Char('r')) => {
                let before = self.text.clone();
                self.search = Some(Search { wanted: String::new(), found: None, before });
                Wish::Draw
            }
            _ => self.edit(held, code),
        }
    }

    /// Moves, inserts, deletes.
    fn edit(&mut self, held: Modifiers, code: Code) -> Wish {
        match (held, code) {
            (PLAIN | ALT_GR, Code::Char(letter)) => {
                self.text.insert(self.at, letter);
                self.at += letter.len_utf8();
            }
            (PLAIN, Code::Left) | (CONTROL, Code::Char('b')) => self.at = self.before(),
            (PLAIN, Code::Right) | (CONTROL, Code::Char('f')) => self.at = self.after(),
            (PLAIN, Code::Home) | (CONTROL, Code::Char('a')) => self.at = 0,
            (PLAIN, Code::End) | (CONTROL, Code::Char('e')) => self.at = self.text.len(),
            (CONTROL | ALT, Code::Left) | (ALT, Code::Char('b')) => self.at = self.word_before(),
            (CONTROL | ALT, Code::Right) | (ALT, Code::Char('f')) => self.at = self.word_after(),
            (PLAIN, Code::Backspace) | (CONTROL, Code::Char('h')) => {
                self.cut(self.before(), self.at, false);
            }
            (PLAIN, Code::Delete) | (CONTROL, Code::Char('d')) => {
                self.cut(self.at, self.after(), false);
            }
            (CONTROL, Code::Char('k')) => self.cut(self.at, self.text.len(), true),
            (CONTROL, Code::Char('u')) => self.cut(0, self.at, true),
            (CONTROL, Code::Char('w')) => self.cut(self.blank_before(), self.at, true),
            (ALT, Code::Backspace) => self.cut(self.word_before(), self.at, true),
            (ALT, Code::Char('d')) => self.cut(self.at, self.word_after(), true),
            (CONTROL, Code::Char('t')) => self.swap(),
            (CONTROL, Code::Char('y')) => {
                self.text.insert_str(self.at, &self.killed);
                self.at += self.killed.len();
            }
            _ => return Wish::Nothing,
        }
        Wish::Draw
    }

    fn set(&mut self, text: String) {
        self.at = text.len();
        self.text = text;
    }

    fn cut(&mut self, start: usize, end: usize, keeps: bool) {
        let cut = self.text.drain(start..end).collect();
        if keeps {
            self.killed = cut;
        }
        self.at = start;
    }

    fn swap(&mut self) {
        let (before, after) = (self.before(), self.after());
        if before < self.at && self.at < after {
            let second: String = self.text.drain(self.at..after).collect();
            self.text.insert_str(before, &second);
            self.at = after;
        }
    }

    /// Before the character on the left and its combining marks.
    fn before(&self) -> usize {
        let mut letters = self.text[..self.at].char_indices().rev();
        let is_base = |letter: char| letter.width() != Some(0);
        letters.find(|(_, letter)| is_base(*letter)).map_or(0, |(place, _)| place)
    }

    /// After the character on the right and its combining marks.
    fn after(&self) -> usize {
        let mut letters = self.text[self.at..].char_indices().skip(1);
        let next = letters.find(|(_, letter)| letter.width() != Some(0));
        next.map_or(self.text.len(), |(place, _)| self.at + place)
    }

    fn word_before(&self) -> usize {
        let text = self.text[..self.at].trim_end_matches(|it: char| !it.is_alphanumeric());
        text.trim_end_matches(char::is_alphanumeric).len()
    }

    fn word_after(&self) -> usize {
        let text = self.text[self.at..].trim_start_matches(|it: char| !it.is_alphanumeric());
        self.text.len() - text.trim_start_matches(char::is_alphanumeric).len()
    }

    fn blank_before(&self) -> usize {
        let text = self.text[..self.at].trim_end();
        text.trim_end_matches(|it: char| !it.is_whitespace()).len()
    }

    fn browse(&mut self, history: &[String], is_back: bool) -> Wish {
        let (place, typed) =
            self.browsing.take().unwrap_or_else(|| (history.len(), self.text.clone()));
        let next = if is_back { place.checked_sub(1) } else { Some(place + 1) };
        match next {
            Some(next) if next < history.len() => {
                self.set(history[next].clone());
                self.browsing = Some((next, typed));
            }
            Some(_) => self.set(typed),
            None => {
                self.browsing = (place < history.len()).then_some((place, typed));
                return Wish::Nothing;
            }
        }
        Wish::Draw
    }

    /// Handles a key during a search. `None`: the search is over, and the key means what it means
    /// elsewhere.
    fn handle_search(&mut self, held: Modifiers, code: Code, history: &[String]) -> Option<Wish> {
        let search = self.search.as_mut()?;
        let from = match (held, code) {
            (PLAIN | ALT_GR, Code::Char(letter)) => {
                search.wanted.push(letter);
                search.found.map_or(history.len(), |found| found + 1)
            }
            (PLAIN, Code::Backspace) | (CONTROL, Code::Char('h')) => {
                search.wanted.pop();
                history.len()
            }
            (CONTROL, Code::Char('r')) => search.found.unwrap_or(history.len()),
            (CONTROL, Code::Char('g' | 'c')) => {
                let before = std::mem::take(&mut search.before);
                self.search = None;
                self.set(before);
                return Some(Wish::Draw);
            }
            _ => {
                self.search = None;
                return None;
            }
        };
        let from = from.min(history.len());
        let found = history[..from].iter().rposition(|line| line.contains(&search.wanted));
        if let Some(found) = found.filter(|_| !search.wanted.is_empty()) {
            search.found = Some(found);
            let line = history[found].clone();
            let place = line.find(&search.wanted).unwrap_or(line.len());
            self.set(line);
            self.at = place;
        }
        Some(Wish::Draw)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keys as a terminal sends them, as far as these tests press them.
    fn keys(mut text: &str) -> Vec<KeyEvent> {
        let mut keys = Vec::new();
        while let Some(letter) = text.chars().next() {
            let sequences = [
                ("\x1b[A", PLAIN, Code::Up),
                ("\x1b[B", PLAIN, Code::Down),
                ("\x1b[D", PLAIN, Code::Left),
                ("\x1b[H", PLAIN, Code::Home),
                ("\x1b[3~", PLAIN, Code::Delete),
                ("\x1b[1;5C", CONTROL, Code::Right),
                ("\x1bb", ALT, Code::Char('b')),
                ("\x1bd", ALT, Code::Char('d')),
                ("\x1b\x7f", ALT, Code::Backspace),
                ("\x7f", PLAIN, Code::Backspace),
                ("\r", PLAIN, Code::Enter),
                ("\t", PLAIN, Code::Tab),
            ];
            let found = sequences.iter().find(|(start, ..)| text.starts_with(start));
            let (length, held, code) = match found {
                Some((start, held, code)) => (start.len(), *held, *code),
                None if letter.is_ascii_control() => {
                    let letter = char::from(u8::try_from(letter).unwrap() + b'a' - 1);
                    (1, CONTROL, Code::Char(letter))
                }
                None => (letter.len_utf8(), PLAIN, Code::Char(letter)),
            };
            keys.push(KeyEvent::new(code, held));
            text = &text[length..];
        }
        keys
    }

    fn type_in(editor: &mut Editor, bytes: &str, history: &[String]) -> Vec<Wish> {
        let wishes = keys(bytes).into_iter().map(|key| editor.handle(key, history));
        wishes.filter(|wish| !matches!(wish, Wish::Draw | Wish::Nothing)).collect()
    }

    fn check(bytes: &str, expected: &str) {
        let history = ["first".to_owned(), "second one".to_owned()];
        let mut editor = Editor::default();
        type_in(&mut editor, bytes, &history);
        let mut shown = editor.text().to_owned();
        shown.insert(editor.at, '|');
        assert_eq!(shown, expected, "{bytes:?}");
    }

    #[test]
    fn keys_edit_the_line() {
        check("abc", "abc|");
        check("abc\x1b[D\x1b[DX", "aX|bc");
        check("abc\x01X\x05Y", "XabcY|");
        check("aé漢\x7f", "aé|");
        check("e\u{301}x\x02\x7f", "|x");
        check("abc\x1b[H\x1b[3~", "|bc");
        check("one two-three\x17", "one |");
        check("one two-three\x1b\x7f", "one two-|");
        check("one two\x1bb\x0b\x01\x19 ", "two |one ");
        check("one two\x1bb\x15", "|two");
        check("one two\x01\x1b[1;5C\x1bd", "one|");
        check("ab\x02\x14", "ba|");
    }

    #[test]
    fn the_history_is_walked_and_searched() {
        check("x\x1b[A", "second one|");
        check("x\x1b[A\x1b[A\x1b[A", "first|");
        check("x\x1b[A\x1b[A\x1b[B", "second one|");
        check("x\x1b[A\x1b[B", "x|");
        check("\x12s", "|second one");
        check("\x12s\x12", "fir|st");
        check("\x12on\x7f\x7ffi\x05!", "first!|");
        check("x\x12on\x07", "x|");
        check("x\x12nowhere", "seco|nd one");
    }

    #[test]
    fn some_keys_are_for_the_session() {
        let mut editor = Editor::default();
        let found = type_in(&mut editor, "ab\r\x03x\x03\x04\t\x1a\x0c", &[]);
        let expected = [
            Wish::Submit("ab".to_owned()),
            Wish::Interrupt { had_text: false },
            Wish::Interrupt { had_text: true },
            Wish::End,
            Wish::Complete,
            Wish::Suspend,
            Wish::Clear,
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn completions_replace_what_was_typed() {
        let mut editor = Editor::default();
        type_in(&mut editor, "call ec x\x1b[D\x1b[D", &[]);
        editor.replace(5, "echo");
        assert_eq!((editor.text(), editor.at), ("call echo x", 9));
    }
}
