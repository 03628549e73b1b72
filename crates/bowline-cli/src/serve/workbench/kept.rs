//! What the workbench keeps, all of it bounded: long answers, and sessions.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;

use bowline_gateway::recording::Recording;

use crate::failure::Failure;

/// The longest piece of an answer, in bytes: about 4,000 words of a model.
const PIECE: usize = 16_000;
/// How many bytes of long answers are kept, the latest first.
const ANSWERS: usize = 16 << 20;
/// How many bytes of sessions are kept, unless there is a folder for them.
const SESSIONS: usize = 64 << 20;

/// Answers that were cut.
#[derive(Default)]
pub(super) struct Long {
    /// The number of the first one.
    first: u64,
    texts: VecDeque<String>,
}

impl Long {
    /// An answer, cut if it is too long for one piece.
    pub(super) fn cut(&mut self, text: String) -> String {
        if text.len() <= PIECE {
            return text;
        }
        self.texts.push_back(text);
        let held = |texts: &VecDeque<String>| texts.iter().map(String::len).sum::<usize>();
        while self.texts.len() > 1 && held(&self.texts) > ANSWERS {
            self.texts.pop_front();
            self.first += 1;
        }
        let number = self.first + self.texts.len() as u64 - 1;
        self.piece(number, 0).unwrap_or_default()
    }

    /// A piece of an answer that was cut.
    pub(super) fn piece(&self, number: u64, from: u64) -> Result<String, Failure> {
        let at = number.checked_sub(self.first).and_then(|at| usize::try_from(at).ok());
        let Some(text) = at.and_then(|at| self.texts.get(at)) else {
            let failure = Failure::usage(format!("answer {number} is not kept"));
            return Err(failure.with_remedy("only the latest long answers are; ask again"));
        };
        let from = usize::try_from(from).unwrap_or(usize::MAX);
        let Some(rest) = text.get(from..) else {
            let what = format!("from: {from} is not the beginning of a character of the answer");
            return Err(Failure::usage(what));
        };
        let longest = PIECE.min(rest.len());
        let end = (0..=longest).rev().find(|at| rest.is_char_boundary(*at)).unwrap_or_default();
        let (piece, left) = rest.split_at(end);
        if left.is_empty() {
            return Ok(piece.to_owned());
        }
        let next = from + end;
        Ok(format!(
            "{piece}\n[cut at byte {next} of {}; `more` with answer {number} and from {next} goes on]",
            text.len()
        ))
    }
}

/// Recorded sessions, in a folder or in memory.
pub(super) struct Sessions {
    folder: Option<PathBuf>,
    kept: BTreeMap<String, String>,
}

impl Sessions {
    pub(super) fn new(folder: Option<PathBuf>) -> Result<Self, Failure> {
        if let Some(folder) = &folder {
            let made = std::fs::create_dir_all(folder);
            made.map_err(|error| Failure::file("--sessions", folder, error))?;
        }
        Ok(Self { folder, kept: BTreeMap::new() })
    }

    pub(super) fn names(&self) -> Vec<String> {
        let Some(folder) = &self.folder else { return self.kept.keys().cloned().collect() };
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            Some(name.strip_suffix(SUFFIX)?.to_owned())
        });
        let mut names: Vec<_> = names.filter(|name| check(name).is_ok()).collect();
        names.sort();
        names
    }

    pub(super) fn keep(&mut self, name: &str, text: String) -> Result<(), Failure> {
        check(name)?;
        if let Some(folder) = &self.folder {
            let file = folder.join(format!("{name}{SUFFIX}"));
            return std::fs::write(&file, text)
                .map_err(|error| Failure::file("--sessions", &file, error));
        }
        let others = self.kept.iter().filter(|(other, _)| *other != name);
        let held: usize = others.map(|(_, text)| text.len()).sum();
        if held + text.len() > SESSIONS {
            let what = format!("sessions may take {} MiB together", SESSIONS >> 20);
            let failure = Failure::usage(what);
            return Err(failure.with_remedy("--sessions DIR keeps them in files"));
        }
        self.kept.insert(name.to_owned(), text);
        Ok(())
    }

    pub(super) fn read(&self, name: &str) -> Result<Recording, Failure> {
        check(name)?;
        let unknown = || {
            let names = self.names().join(", ");
            let known = if names.is_empty() { "none was recorded".to_owned() } else { names };
            Failure::usage(format!("no session is called {name:?}")).with_remedy(known)
        };
        let read = match &self.folder {
            Some(folder) => {
                let file = folder.join(format!("{name}{SUFFIX}"));
                if !file.is_file() {
                    return Err(unknown());
                }
                Recording::read(&file)
            }
            None => {
                let text = self.kept.get(name).ok_or_else(unknown)?;
                Recording::from_reader(text.as_bytes())
            }
        };
        read.map_err(|why| Failure::usage(format!("{name}: {why}")))
    }
}

/// What ends the names of session files.
const SUFFIX: &str = ".jsonl";

/// Names are parts of file names, and must not lead anywhere else.
fn check(name: &str) -> Result<(), Failure> {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    if (1..=64).contains(&name.len()) && !name.starts_with('.') && name.bytes().all(is_allowed) {
        return Ok(());
    }
    Err(Failure::usage(format!("{name:?} cannot be the name of a session"))
        .with_remedy("use up to 64 letters, digits, `.`, `_` and `-`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_answers_come_in_pieces_and_nothing_is_lost() {
        let mut long = Long::default();
        assert_eq!(long.cut("short".to_owned()), "short");
        let text = "ä".repeat(PIECE);
        let mut whole = String::new();
        let mut piece = long.cut(text.clone());
        while let Some((part, note)) = piece.clone().split_once("\n[cut at byte ") {
            whole += part;
            let from: u64 = note.split(' ').next().unwrap().parse().unwrap();
            piece = long.piece(0, from).unwrap();
        }
        assert_eq!(whole + &piece, text);
        assert!(long.piece(0, 1).unwrap_err().what.contains("beginning of a character"));
        assert!(long.piece(1, 0).unwrap_err().what.contains("answer 1 is not kept"));
    }

    #[test]
    fn old_answers_make_room() {
        let mut long = Long::default();
        for _ in 0..3 {
            long.cut("a".repeat(ANSWERS / 2));
        }
        assert!(long.piece(0, 0).is_err());
        assert!(long.piece(2, 0).is_ok());
    }

    #[test]
    fn names_of_sessions_lead_nowhere_else() {
        for name in ["", ".", "..", "../x", "a/b", "a\\b", "C:x", ".hidden", "ä"] {
            assert!(check(name).is_err(), "{name}");
        }
        assert!(check("before-1.2_x").is_ok());
    }
}
