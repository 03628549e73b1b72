//! The line that is being typed, and what keys do to it. Draws nothing.

use unicode_width::UnicodeWidthChar;

use super::keys::Key;

/// What a key asks of the session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wish {
    /// To draw the line again.
    Draw,
    /// Nothing.
    Nothing,
    /// The line is finished.
    Submit(String),
    /// Ctrl-C; whether there was something to throw away.
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
    /// Where in the history we look, and the line that was typed before.
    browsing: Option<(usize, String)>,
    search: Option<Search>,
}

/// A search backwards through the history.
#[derive(Debug)]
struct Search {
    wanted: String,
    /// The entry that was found.
    found: Option<usize>,
    before: String,
}

impl Editor {
    /// What was typed.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Where the cursor is, in bytes.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// What is searched for, while it is.
    pub(crate) fn searched(&self) -> Option<&str> {
        self.search.as_ref().map(|search| search.wanted.as_str())
    }

    /// Throws everything away.
    pub(crate) fn clear(&mut self) {
        self.set(String::new());
        self.browsing = None;
        self.search = None;
    }

    /// Puts text in the place of what is between `start` and the cursor.
    pub(crate) fn replace(&mut self, start: usize, text: &str) {
        if self.text.is_char_boundary(start) && start <= self.at {
            self.text.replace_range(start..self.at, text);
            self.at = start + text.len();
        }
    }

    /// Does what a key says.
    pub(crate) fn handle(&mut self, key: Key, history: &[String]) -> Wish {
        if let Some(wish) = self.handle_search(key, history) {
            return wish;
        }
        match key {
            Key::Enter => {
                let line = std::mem::take(&mut self.text);
                self.clear();
                Wish::Submit(line)
            }
            Key::Control('c') => {
                let had_text = !self.text.is_empty();
                self.clear();
                Wish::Interrupt { had_text }
            }
            Key::Control('d') if self.text.is_empty() => Wish::End,
            Key::Tab => Wish::Complete,
            Key::Control('z') => Wish::Suspend,
            Key::Control('l') => Wish::Clear,
            Key::Up | Key::Control('p') => self.browse(history, true),
            Key::Down | Key::Control('n') => self.browse(history, false),
            Key::Control('r') => {
                let before = self.text.clone();
                self.search = Some(Search { wanted: String::new(), found: None, before });
                Wish::Draw
            }
            _ => self.edit(key),
        }
    }

    /// Moves, inserts, deletes.
    fn edit(&mut self, key: Key) -> Wish {
        match key {
            Key::Char(letter) => self.insert(letter),
            Key::Left | Key::Control('b') => self.at = self.before(),
            Key::Right | Key::Control('f') => self.at = self.after(),
            Key::Home | Key::Control('a') => self.at = 0,
            Key::End | Key::Control('e') => self.at = self.text.len(),
            Key::WordLeft | Key::Alt('b') => self.at = self.word_before(),
            Key::WordRight | Key::Alt('f') => self.at = self.word_after(),
            Key::Backspace => self.cut(self.before(), self.at, false),
            Key::Delete | Key::Control('d') => self.cut(self.at, self.after(), false),
            Key::Control('k') => self.cut(self.at, self.text.len(), true),
            Key::Control('u') => self.cut(0, self.at, true),
            Key::Control('w') => self.cut(self.blank_before(), self.at, true),
            Key::Alt('\u{8}') => self.cut(self.word_before(), self.at, true),
            Key::Alt('d') => self.cut(self.at, self.word_after(), true),
            Key::Control('t') => self.swap(),
            Key::Control('y') => {
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

    fn insert(&mut self, letter: char) {
        self.text.insert(self.at, letter);
        self.at += letter.len_utf8();
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

    /// The place before the character on the left, with what belongs to it.
    fn before(&self) -> usize {
        let mut letters = self.text[..self.at].char_indices().rev();
        let is_base = |letter: char| letter.width() != Some(0);
        letters.find(|(_, letter)| is_base(*letter)).map_or(0, |(place, _)| place)
    }

    /// The place after the character on the right, with what belongs to it.
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

    /// What a key does while the history is searched. `None`: the search is over, and the key does
    /// what it does elsewhere.
    fn handle_search(&mut self, key: Key, history: &[String]) -> Option<Wish> {
        let search = self.search.as_mut()?;
        let from = match key {
            Key::Char(letter) => {
                search.wanted.push(letter);
                search.found.map_or(history.len(), |found| found + 1)
            }
            Key::Backspace => {
                search.wanted.pop();
                history.len()
            }
            Key::Control('r') => search.found.unwrap_or(history.len()),
            Key::Control('g' | 'c') => {
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
    use super::super::keys::Decoder;
    use super::*;

    fn type_in(editor: &mut Editor, bytes: &str, history: &[String]) -> Vec<Wish> {
        let keys = Decoder::default().decode(bytes.as_bytes());
        let wishes = keys.into_iter().map(|key| editor.handle(key, history));
        wishes.filter(|wish| !matches!(wish, Wish::Draw | Wish::Nothing)).collect()
    }

    fn check(bytes: &str, expected: &str) {
        let history = ["first".to_owned(), "second one".to_owned()];
        let mut editor = Editor::default();
        type_in(&mut editor, bytes, &history);
        let mut shown = editor.text().to_owned();
        shown.insert(editor.at(), '|');
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
        assert_eq!((editor.text(), editor.at()), ("call echo x", 9));
    }
}
