//! Bytes of a terminal in raw mode, as keys.

/// Bytes of an escape sequence before it is given up: 32.
const LONGEST_SEQUENCE: usize = 32;

/// A key, or the edge of a paste.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Key {
    Char(char),
    /// With the control key; lower case.
    Control(char),
    /// With the alt key, or after escape.
    Alt(char),
    Enter,
    Tab,
    BackTab,
    Backspace,
    Delete,
    Left,
    Right,
    Up,
    Down,
    Home,
    End,
    WordLeft,
    WordRight,
    PasteBegins,
    PasteEnds,
    /// One that means nothing here.
    Other,
}

/// Makes keys of bytes, which come in any pieces.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    waiting: Vec<u8>,
}

impl Decoder {
    /// The keys that are complete with these bytes.
    pub(crate) fn decode(&mut self, bytes: &[u8]) -> Vec<Key> {
        self.waiting.extend_from_slice(bytes);
        let mut keys = Vec::new();
        let mut used = 0;
        while let Some((key, length)) = first(&self.waiting[used..]) {
            keys.push(key);
            used += length;
        }
        self.waiting.drain(..used);
        keys
    }
}

/// The first key and its length. `None` while it is not complete.
fn first(bytes: &[u8]) -> Option<(Key, usize)> {
    match *bytes.first()? {
        0x1b => escape(bytes),
        b'\r' | b'\n' => Some((Key::Enter, 1)),
        b'\t' => Some((Key::Tab, 1)),
        0x7f | 0x08 => Some((Key::Backspace, 1)),
        byte @ 0x01..=0x1a => Some((Key::Control(char::from(byte - 1 + b'a')), 1)),
        byte if byte < 0x20 => Some((Key::Other, 1)),
        _ => letter(bytes),
    }
}

/// A character in UTF-8. What is none is passed over byte by byte.
fn letter(bytes: &[u8]) -> Option<(Key, usize)> {
    let length = match bytes[0] {
        0x00..=0x7f => 1,
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => return Some((Key::Other, 1)),
    };
    let start = &bytes[..bytes.len().min(length)];
    match std::str::from_utf8(start) {
        Ok(text) => text.chars().next().map(|letter| (Key::Char(letter), length)),
        Err(error) if error.error_len().is_none() && start.len() < length => None,
        Err(_) => Some((Key::Other, 1)),
    }
}

fn escape(bytes: &[u8]) -> Option<(Key, usize)> {
    match *bytes.get(1)? {
        b'[' => sequence(bytes),
        b'O' => Some((cursor(*bytes.get(2)?), 3)),
        b'\r' | b'\n' => Some((Key::Alt('\n'), 2)),
        0x7f => Some((Key::Alt('\u{8}'), 2)),
        0x1b => Some((Key::Other, 1)),
        _ => {
            let (key, length) = letter(&bytes[1..])?;
            match key {
                Key::Char(letter) if !letter.is_control() => Some((Key::Alt(letter), length + 1)),
                _ => Some((Key::Other, length + 1)),
            }
        }
    }
}

/// `ESC [`, parameters, a final byte.
fn sequence(bytes: &[u8]) -> Option<(Key, usize)> {
    let end = bytes[2..].iter().position(|byte| (0x40..=0x7e).contains(byte));
    let Some(end) = end.map(|end| end + 2) else {
        return (bytes.len() > LONGEST_SEQUENCE).then_some((Key::Other, bytes.len()));
    };
    let parameters = std::str::from_utf8(&bytes[2..end]).unwrap_or_default();
    let key = match (bytes[end], parameters) {
        (b'~', "1" | "7") => Key::Home,
        (b'~', "4" | "8") => Key::End,
        (b'~', "3") => Key::Delete,
        (b'~', "200") => Key::PasteBegins,
        (b'~', "201") => Key::PasteEnds,
        (b'Z', _) => Key::BackTab,
        (b'C', "1;5" | "1;3") => Key::WordRight,
        (b'D', "1;5" | "1;3") => Key::WordLeft,
        (last, "" | "1;2") => cursor(last),
        _ => Key::Other,
    };
    Some((key, end + 1))
}

fn cursor(last: u8) -> Key {
    match last {
        b'A' => Key::Up,
        b'B' => Key::Down,
        b'C' => Key::Right,
        b'D' => Key::Left,
        b'H' => Key::Home,
        b'F' => Key::End,
        _ => Key::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bytes: &[u8], expected: &[Key]) {
        assert_eq!(Decoder::default().decode(bytes), expected, "{bytes:?}");
        // In pieces it is the same.
        let mut decoder = Decoder::default();
        let pieces = bytes.iter().flat_map(|byte| decoder.decode(&[*byte]));
        assert_eq!(pieces.collect::<Vec<_>>(), expected, "{bytes:?}");
    }

    #[test]
    fn bytes_become_keys() {
        check(b"ab\r", &[Key::Char('a'), Key::Char('b'), Key::Enter]);
        check("é漢😀".as_bytes(), &[Key::Char('é'), Key::Char('漢'), Key::Char('😀')]);
        check(b"\x03\x04\x1a", &[Key::Control('c'), Key::Control('d'), Key::Control('z')]);
        check(b"\x1b[A\x1bOB\x1b[1;5C", &[Key::Up, Key::Down, Key::WordRight]);
        check(b"\x1b[3~\x1b[H\x1b[4~\t\x1b[Z", {
            &[Key::Delete, Key::Home, Key::End, Key::Tab, Key::BackTab]
        });
        check(b"\x1b[200~x\x1b[201~", &[Key::PasteBegins, Key::Char('x'), Key::PasteEnds]);
        check(b"\x1bb\x7f", &[Key::Alt('b'), Key::Backspace]);
        check(b"\x1b[99;99R.", &[Key::Other, Key::Char('.')]);
        check(b"\xff\xc3.", &[Key::Other, Key::Other, Key::Char('.')]);
    }

    #[test]
    fn a_sequence_without_end_is_given_up() {
        let mut decoder = Decoder::default();
        let mut bytes = b"\x1b[".to_vec();
        bytes.extend([b'1'; 100]);
        assert_eq!(decoder.decode(&bytes), [Key::Other]);
        assert_eq!(decoder.decode(b"a"), [Key::Char('a')]);
    }
}
