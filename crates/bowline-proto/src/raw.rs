//! JSON text that is not read yet, and a quick walk over its outermost parts.
//!
//! Who serves a call looks at a dozen members of its envelope, its parameters and their `_meta`,
//! and hands the rest on. `serde_json` reads every byte of the rest to find its end, on every
//! level again. The walk here checks the same grammar, but jumps from one end of a string to the
//! other, and gives out slices.
//!
//! It only knows plain text: names without escapes, each name once, not too deep. Whatever is not
//! plain is odd, which says nothing about what it is: `serde_json` reads it then, and has the
//! last word. So the two can differ in speed and in nothing else.

mod cursor;
mod read;
mod stop;
mod write;

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

pub(crate) use self::cursor::Cursor;
pub(crate) use self::read::from_str;
pub(crate) use self::write::write_string;
use crate::wire::MAX_DEPTH;

/// One JSON value as text, borrowed from the frame it came in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Raw<'a>(&'a str);

impl<'a> Raw<'a> {
    /// Reads one value out of text that holds nothing else.
    ///
    /// # Errors
    /// When it is not JSON.
    pub fn parse(text: &'a str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// The text, without anything around it.
    pub const fn get(self) -> &'a str {
        self.0
    }

    /// Whether it is an object.
    pub fn is_object(self) -> bool {
        self.0.starts_with('{')
    }

    /// Walks over the members of an object; `walk` must go to the end.
    pub(crate) fn walk(
        self,
        walk: impl FnOnce(&mut Walk<'_, 'a>) -> Result<(), Odd>,
    ) -> Result<(), Odd> {
        let mut cursor = Cursor::new(self.0);
        walk(&mut Walk::new(&mut cursor)?)
    }
}

impl fmt::Debug for Raw<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl<'a> From<&'a RawValue> for Raw<'a> {
    fn from(raw: &'a RawValue) -> Self {
        Self(raw.get())
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Raw<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <&RawValue>::deserialize(deserializer).map(Self::from)
    }
}

impl Serialize for Raw<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_str(self.0).map_err(serde::ser::Error::custom)?;
        raw.serialize(serializer)
    }
}

/// Not plain: for `serde_json` to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Odd;

/// The members of an object, one after the other: a name, and what becomes of its value.
#[derive(Debug)]
pub(crate) struct Walk<'c, 'a> {
    cursor: &'c mut Cursor<'a>,
    /// How much deeper a value may go.
    levels: usize,
    is_first: bool,
}

impl<'c, 'a> Walk<'c, 'a> {
    /// Begins with the object that comes next.
    pub(crate) fn new(cursor: &'c mut Cursor<'a>) -> Result<Self, Odd> {
        cursor.skip_space();
        cursor.expect(b'{')?;
        Ok(Self { cursor, levels: MAX_DEPTH - 1, is_first: true })
    }

    /// Moves to the next member, if there is one; if not, over the end.
    #[inline]
    pub(crate) fn has_next(&mut self) -> Result<bool, Odd> {
        let is_first = std::mem::take(&mut self.is_first);
        // As most write them, without white space.
        if self.cursor.peek() == Some(if is_first { b'"' } else { b',' }) {
            if !is_first {
                self.cursor.expect(b',')?;
                self.cursor.skip_space();
            }
            return Ok(true);
        }
        self.has_spaced(is_first)
    }

    /// The same, with white space wherever it may be.
    fn has_spaced(&mut self, is_first: bool) -> Result<bool, Odd> {
        let cursor = &mut *self.cursor;
        cursor.skip_space();
        if cursor.accept(b'}') {
            return Ok(false);
        }
        if !is_first {
            cursor.expect(b',')?;
            cursor.skip_space();
        }
        Ok(true)
    }

    /// Whether the member is called that; if so, moves on to its value. Compares, and looks for no
    /// end: asking for all names that there may be is quicker than reading the one that there is.
    #[inline(always)]
    pub(crate) fn is(&mut self, name: &'static str) -> Result<bool, Odd> {
        if !self.cursor.accept_string(name) {
            return Ok(false);
        }
        self.cursor.colon()?;
        Ok(true)
    }

    /// Moves on to the value of the member, whatever it is called, and gives the name.
    pub(crate) fn name(&mut self) -> Result<&'a str, Odd> {
        let name = self.cursor.plain_string()?;
        self.cursor.colon()?;
        Ok(name)
    }

    /// The name of the next member, if there is one.
    pub(crate) fn next(&mut self) -> Result<Option<&'a str>, Odd> {
        if self.has_next()? { self.name().map(Some) } else { Ok(None) }
    }

    /// Moves over the member.
    pub(crate) fn skip(&mut self) -> Result<(), Odd> {
        self.name()?;
        self.value().map(drop)
    }

    /// Moves over the value of the member, which must be this string.
    #[inline]
    pub(crate) fn expect(&mut self, text: &'static str) -> Result<(), Odd> {
        if self.cursor.accept_string(text) { Ok(()) } else { Err(Odd) }
    }

    /// Moves over the value of the member.
    #[inline]
    pub(crate) fn value(&mut self) -> Result<Raw<'a>, Odd> {
        self.cursor.value(self.levels).map(Raw)
    }

    /// Moves over the value of the member, if it is a whole number of usual length.
    pub(crate) fn number(&mut self) -> Option<i64> {
        self.cursor.compact_number()
    }

    /// Moves over the value of the member, which is a string without escapes; gives its text.
    #[inline]
    pub(crate) fn string(&mut self) -> Result<&'a str, Odd> {
        self.cursor.plain_string()
    }

    /// Moves over the value of the member, which may be such a string.
    #[inline]
    pub(crate) fn word(&mut self) -> Result<Word<'a>, Odd> {
        let start = self.cursor.place();
        if let Ok(text) = self.cursor.plain_string() {
            return Ok(Word::Plain(text));
        }
        self.cursor.go_back(start);
        self.value().map(Word::Other)
    }

    /// Walks over the value of the member, which is an object, and gives its text. `walk` must go
    /// to the end.
    pub(crate) fn object(
        &mut self,
        walk: impl FnOnce(&mut Walk<'_, 'a>) -> Result<(), Odd>,
    ) -> Result<Raw<'a>, Odd> {
        let start = self.cursor.place();
        let levels = self.levels.checked_sub(1).ok_or(Odd)?;
        self.cursor.expect(b'{')?;
        walk(&mut Walk { cursor: self.cursor, levels, is_first: true })?;
        Ok(Raw(self.cursor.since(start)))
    }
}

/// A value where a string is expected.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Word<'a> {
    /// A string without escapes.
    Plain(&'a str),
    /// Anything else.
    Other(Raw<'a>),
}

impl<'a> Word<'a> {
    /// The text of a string, of whatever kind; nothing, if it is none.
    pub(crate) fn text(self) -> Option<Cow<'a, str>> {
        match self {
            Self::Plain(text) => Some(Cow::Borrowed(text)),
            Self::Other(raw) => serde_json::from_str(raw.get()).ok().map(Cow::Owned),
        }
    }
}

/// Fills a slot with a value that must come once.
#[inline]
pub(crate) fn fill<T>(slot: &mut Option<T>, value: T) -> Result<(), Odd> {
    match slot.replace(value) {
        Some(_) => Err(Odd),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
