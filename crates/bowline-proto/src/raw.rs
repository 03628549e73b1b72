//! JSON text that is not parsed yet, and a fast walk over its outermost parts.
//!
//! Serving a call takes a dozen members of its envelope, its parameters and their `_meta`; the rest
//! is passed on. `serde_json` would read every byte of the rest to find its end, again on every
//! level. The walk here checks the same grammar, but skips from one end of a string to the other,
//! and yields slices.
//!
//! It handles only plain text: names without escapes, each name once, limited depth. Anything else
//! is *odd*, which says nothing about its validity: `serde_json` reads it then, and has the last
//! word. So the two differ in speed and in nothing else.

mod cursor;
mod read;
mod stop;
mod write;

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

pub(crate) use self::cursor::Cursor;
pub(crate) use self::read::{from_closed_str, from_str};
pub(crate) use self::write::write_string;
use crate::wire::MAX_DEPTH;

/// A JSON value as text, borrowed from its frame.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Raw<'a>(&'a str);

impl<'a> Raw<'a> {
    /// Parses text that contains exactly one value.
    ///
    /// # Errors
    /// If it is not JSON.
    pub fn parse(text: &'a str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// The text, without surrounding white space.
    pub const fn get(self) -> &'a str {
        self.0
    }

    /// Whether it is an object.
    pub fn is_object(self) -> bool {
        self.0.starts_with('{')
    }

    /// Walks over the members of an object; `walk` must reach the end.
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

/// Not plain, so `serde_json` must read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Odd;

/// A walk over the members of an object, one after another.
#[derive(Debug)]
pub(crate) struct Walk<'c, 'a> {
    cursor: &'c mut Cursor<'a>,
    /// How many more levels a value may nest.
    levels: usize,
    is_first: bool,
}

impl<'c, 'a> Walk<'c, 'a> {
    /// Starts at the next object.
    pub(crate) fn new(cursor: &'c mut Cursor<'a>) -> Result<Self, Odd> {
        cursor.skip_space();
        cursor.expect(b'{')?;
        Ok(Self { cursor, levels: MAX_DEPTH - 1, is_first: true })
    }

    /// Moves to the next member if there is one, otherwise past the end.
    #[inline]
    pub(crate) fn has_next(&mut self) -> Result<bool, Odd> {
        let is_first = std::mem::take(&mut self.is_first);
        // The common case, without white space.
        if self.cursor.peek() == Some(if is_first { b'"' } else { b',' }) {
            if !is_first {
                self.cursor.expect(b',')?;
                self.cursor.skip_space();
            }
            return Ok(true);
        }
        self.has_spaced(is_first)
    }

    /// The same, with white space wherever it is allowed.
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

    /// Whether the member has this name; if so, moves to its value. This only compares and does not
    /// look for the end of the name: trying all expected names is faster than reading the actual
    /// one.
    #[inline(always)]
    pub(crate) fn is(&mut self, name: &'static str) -> Result<bool, Odd> {
        if !self.cursor.accept_string(name) {
            return Ok(false);
        }
        self.cursor.colon()?;
        Ok(true)
    }

    /// Moves to the value of the member, and returns the member's name.
    pub(crate) fn name(&mut self) -> Result<&'a str, Odd> {
        let name = self.cursor.plain_string()?;
        self.cursor.colon()?;
        Ok(name)
    }

    /// The name of the next member, if there is one.
    pub(crate) fn next(&mut self) -> Result<Option<&'a str>, Odd> {
        if self.has_next()? { self.name().map(Some) } else { Ok(None) }
    }

    /// Skips the member.
    pub(crate) fn skip(&mut self) -> Result<(), Odd> {
        self.name()?;
        self.value().map(drop)
    }

    /// Skips the value of the member, which must be this string.
    #[inline]
    pub(crate) fn expect(&mut self, text: &'static str) -> Result<(), Odd> {
        if self.cursor.accept_string(text) { Ok(()) } else { Err(Odd) }
    }

    /// Skips the value of the member, and returns it.
    #[inline]
    pub(crate) fn value(&mut self) -> Result<Raw<'a>, Odd> {
        self.cursor.value(self.levels).map(Raw)
    }

    /// Skips the value of the member if it is an integer of normal length, and returns it.
    pub(crate) fn number(&mut self) -> Option<i64> {
        self.cursor.compact_number()
    }

    /// Skips the value of the member, a string without escapes, and returns its text.
    #[inline]
    pub(crate) fn string(&mut self) -> Result<&'a str, Odd> {
        self.cursor.plain_string()
    }

    /// Skips the value of the member, which may be such a string, and returns it.
    #[inline]
    pub(crate) fn word(&mut self) -> Result<Word<'a>, Odd> {
        let start = self.cursor.position();
        if let Ok(text) = self.cursor.plain_string() {
            return Ok(Word::Plain(text));
        }
        self.cursor.go_back(start);
        self.value().map(Word::Other)
    }

    /// Walks over the value of the member, an object, and returns its text. `walk` must reach the
    /// end.
    pub(crate) fn object(
        &mut self,
        walk: impl FnOnce(&mut Walk<'_, 'a>) -> Result<(), Odd>,
    ) -> Result<Raw<'a>, Odd> {
        let start = self.cursor.position();
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
    /// The text, if it is a string of any kind.
    pub(crate) fn text(self) -> Option<Cow<'a, str>> {
        match self {
            Self::Plain(text) => Some(Cow::Borrowed(text)),
            Self::Other(raw) => serde_json::from_str(raw.get()).ok().map(Cow::Owned),
        }
    }
}

/// Fills a slot with a value that must appear only once.
#[inline]
pub(crate) fn fill<T>(slot: &mut Option<T>, value: T) -> Result<(), Odd> {
    match slot.replace(value) {
        Some(_) => Err(Odd),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
