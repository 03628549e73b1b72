//! A position in JSON text that advances value by value.

use std::borrow::Cow;

use super::Odd;
use super::stop::find_stop;

/// A position in JSON text.
#[derive(Debug)]
pub(crate) struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    #[inline]
    pub(super) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    #[inline]
    pub(super) fn skip_space(&mut self) {
        while let Some(b' ' | b'\n' | b'\t' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    /// Skips one byte, if it is this one.
    #[inline]
    pub(super) fn accept(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    /// Skips one byte, which must be this one.
    #[inline]
    pub(super) fn expect(&mut self, byte: u8) -> Result<(), Odd> {
        if self.accept(byte) { Ok(()) } else { Err(Odd) }
    }

    /// Whether only white space follows.
    pub(crate) fn is_at_end(&mut self) -> bool {
        self.skip_space();
        self.at == self.text.len()
    }

    /// Skips a string, if it is this one, written without escapes.
    #[inline(always)]
    pub(super) fn accept_string(&mut self, text: &'static str) -> bool {
        let Some([b'"', rest @ ..]) = self.text.as_bytes().get(self.at..) else { return false };
        let Some([b'"', ..]) = rest.strip_prefix(text.as_bytes()) else { return false };
        self.at += text.len() + 2;
        true
    }

    /// Skips the colon between a name and its value.
    #[inline]
    pub(super) fn colon(&mut self) -> Result<(), Odd> {
        if let Some([b':', 0x21..=0xff, ..]) = self.text.as_bytes().get(self.at..) {
            self.at += 1;
            return Ok(());
        }
        self.spaced_colon()
    }

    #[inline(never)]
    fn spaced_colon(&mut self) -> Result<(), Odd> {
        self.skip_space();
        self.expect(b':')?;
        self.skip_space();
        Ok(())
    }

    /// Skips an integer of normal length that is the value of a member, if it is one, and returns
    /// it.
    pub(super) fn compact_number(&mut self) -> Option<i64> {
        let rest = self.text.as_bytes().get(self.at..)?;
        let (mut number, mut length) = (0, 0);
        while let Some(digit @ b'0'..=b'9') = rest.get(length) {
            // A longer one may not fit.
            if length == 18 {
                return None;
            }
            number = number * 10 + i64::from(digit - b'0');
            length += 1;
        }
        // Only zero itself begins with a zero.
        let is_plain = rest.first() != Some(&b'0') || length == 1;
        let (true, true, Some(b',' | b'}')) = (length > 0, is_plain, rest.get(length)) else {
            return None;
        };
        self.at += length;
        Some(number)
    }

    /// Skips a string without escapes, and returns the text between its quotes.
    #[inline]
    pub(super) fn plain_string(&mut self) -> Result<&'a str, Odd> {
        self.expect(b'"')?;
        let start = self.at;
        match self.find_stop()? {
            b'"' => self.text.get(start..self.at - 1).ok_or(Odd),
            _ => Err(Odd),
        }
    }

    /// Skips a string and returns its value, copied if it has escapes.
    pub(super) fn string(&mut self) -> Result<Cow<'a, str>, Odd> {
        self.expect(b'"')?;
        let mut start = self.at;
        let mut copy = String::new();
        loop {
            let stop = self.find_stop()?;
            let piece = self.text.get(start..self.at - 1).ok_or(Odd)?;
            if stop == b'"' && copy.is_empty() {
                return Ok(Cow::Borrowed(piece));
            }
            copy.push_str(piece);
            if stop == b'"' {
                return Ok(Cow::Owned(copy));
            }
            copy.push(self.escape()?);
            start = self.at;
        }
    }

    /// Skips the rest of an escape sequence after its backslash, and returns the character.
    fn escape(&mut self) -> Result<char, Odd> {
        let byte = self.peek().ok_or(Odd)?;
        self.at += 1;
        Ok(match byte {
            b'"' | b'\\' | b'/' => char::from(byte),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let first = self.hex()?;
                // A high surrogate; the low one follows.
                let second = if matches!(first, 0xD800..0xDC00) {
                    self.expect(b'\\')?;
                    self.expect(b'u')?;
                    Some(self.hex()?)
                } else {
                    None
                };
                let mut units = char::decode_utf16([first].into_iter().chain(second));
                units.next().and_then(Result::ok).ok_or(Odd)?
            }
            _ => return Err(Odd),
        })
    }

    /// Skips four hexadecimal digits, and returns their value.
    fn hex(&mut self) -> Result<u16, Odd> {
        let digits = self.text.get(self.at..self.at + 4).ok_or(Odd)?;
        if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(Odd);
        }
        self.at += 4;
        u16::from_str_radix(digits, 16).map_err(|_| Odd)
    }

    /// Skips any value, which may nest this deep, and returns its text.
    #[inline]
    pub(super) fn value(&mut self, levels: usize) -> Result<&'a str, Odd> {
        let start = self.at;
        self.skip_value(levels)?;
        self.text.get(start..self.at).ok_or(Odd)
    }

    pub(super) fn position(&self) -> usize {
        self.at
    }

    /// Moves back to an earlier position.
    pub(super) fn go_back(&mut self, position: usize) {
        self.at = position;
    }

    /// The text skipped since an earlier position.
    pub(super) fn since(&self, position: usize) -> &'a str {
        &self.text[position..self.at]
    }

    /// `levels` is how many more levels it may nest.
    fn skip_value(&mut self, levels: usize) -> Result<(), Odd> {
        match self.peek().ok_or(Odd)? {
            b'"' => self.skip_string(),
            b'{' => self.skip_object(levels.checked_sub(1).ok_or(Odd)?),
            b'[' => self.skip_array(levels.checked_sub(1).ok_or(Odd)?),
            b'-' | b'0'..=b'9' => self.skip_number(),
            b't' => self.skip_word("true"),
            b'f' => self.skip_word("false"),
            b'n' => self.skip_word("null"),
            _ => Err(Odd),
        }
    }

    fn skip_object(&mut self, levels: usize) -> Result<(), Odd> {
        self.at += 1;
        self.skip_space();
        if self.accept(b'}') {
            return Ok(());
        }
        loop {
            self.skip_string()?;
            self.skip_space();
            self.expect(b':')?;
            self.skip_space();
            self.skip_value(levels)?;
            if !self.is_next(b'}')? {
                return Ok(());
            }
        }
    }

    fn skip_array(&mut self, levels: usize) -> Result<(), Odd> {
        self.at += 1;
        self.skip_space();
        if self.accept(b']') {
            return Ok(());
        }
        loop {
            self.skip_value(levels)?;
            if !self.is_next(b']')? {
                return Ok(());
            }
        }
    }

    /// Moves to the next item, or past the end.
    fn is_next(&mut self, end: u8) -> Result<bool, Odd> {
        self.skip_space();
        let is_next = match self.peek() {
            Some(b',') => true,
            Some(byte) if byte == end => false,
            _ => return Err(Odd),
        };
        self.at += 1;
        if is_next {
            self.skip_space();
        }
        Ok(is_next)
    }

    fn skip_word(&mut self, word: &str) -> Result<(), Odd> {
        if !self.text.as_bytes()[self.at..].starts_with(word.as_bytes()) {
            return Err(Odd);
        }
        self.at += word.len();
        Ok(())
    }

    fn skip_number(&mut self) -> Result<(), Odd> {
        self.accept(b'-');
        if !self.accept(b'0') {
            self.skip_digits()?;
        }
        if self.accept(b'.') {
            self.skip_digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            let _ = self.accept(b'+') || self.accept(b'-');
            self.skip_digits()?;
        }
        Ok(())
    }

    /// Skips digits, at least one.
    fn skip_digits(&mut self) -> Result<(), Odd> {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        if self.at == start { Err(Odd) } else { Ok(()) }
    }

    fn skip_string(&mut self) -> Result<(), Odd> {
        self.expect(b'"')?;
        while self.find_stop()? == b'\\' {
            match self.peek().ok_or(Odd)? {
                b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => self.at += 1,
                b'u' => {
                    self.at += 1;
                    self.hex()?;
                }
                _ => return Err(Odd),
            }
        }
        Ok(())
    }

    /// Skips to just after the next quote or backslash of a string, and returns which it was.
    #[inline]
    fn find_stop(&mut self) -> Result<u8, Odd> {
        let rest = self.text.as_bytes().get(self.at..).ok_or(Odd)?;
        let stop = find_stop(rest).ok_or(Odd)?;
        self.at += stop + 1;
        // A string must not contain control characters.
        Some(rest[stop]).filter(|byte| *byte >= 0x20).ok_or(Odd)
    }
}
