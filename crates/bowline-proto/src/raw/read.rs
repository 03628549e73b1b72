//! A serde deserializer for plain JSON.
//!
//! It visits what `serde_json` would visit, but skips over strings instead of examining each byte,
//! and gives up on anything odd. Numbers and rare types are left to `serde_json`.

use std::borrow::Cow;

use serde::de::value::BorrowedStrDeserializer;
use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Deserializer as Book;
use serde_json::de::StrRead;

use super::{Cursor, Odd, Walk};
use crate::wire::MAX_DEPTH;

/// Deserializes a value, if it is plain. An odd one may still be valid.
pub(crate) fn from_str<'a, T: de::Deserialize<'a>>(text: &'a str) -> Result<T, Odd> {
    // There are never that many levels.
    read(text, usize::MAX - 1)
}

/// The same, but an object with a member that `T` ignores is odd, and so is one whose members `T`
/// does not name, because it collects them first. Objects inside it may have any.
pub(crate) fn from_closed_str<'a, T: de::Deserialize<'a>>(text: &'a str) -> Result<T, Odd> {
    read(text, MAX_DEPTH - 1)
}

fn read<'a, T: de::Deserialize<'a>>(text: &'a str, closed_at: usize) -> Result<T, Odd> {
    let mut reader = Reader { cursor: Cursor::new(text), levels: MAX_DEPTH, closed_at };
    reader.cursor.skip_space();
    let value = T::deserialize(&mut reader)?;
    if reader.cursor.is_at_end() { Ok(value) } else { Err(Odd) }
}

/// The deserializer: a position in the text.
struct Reader<'a> {
    cursor: Cursor<'a>,
    /// How many more levels a value may nest.
    levels: usize,
    /// The value of `levels` at which nothing may be ignored.
    closed_at: usize,
}

impl<'de> Reader<'de> {
    /// Refuses a type that does not name the members of an object where all must be known.
    fn unnamed(&self) -> Result<(), Odd> {
        if self.levels == self.closed_at + 1 { Err(Odd) } else { Ok(()) }
    }

    fn peek(&self) -> Result<u8, Odd> {
        self.cursor.peek().ok_or(Odd)
    }

    /// Lets `serde_json` read the next value.
    fn by_the_book<T>(
        &mut self,
        read: impl FnOnce(&mut Book<StrRead<'de>>) -> serde_json::Result<T>,
    ) -> Result<T, Odd> {
        let mut book = Book::from_str(self.cursor.value(self.levels)?);
        let value = read(&mut book).map_err(|_| Odd)?;
        book.end().map_err(|_| Odd)?;
        Ok(value)
    }

    fn string<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, Odd> {
        match self.cursor.string()? {
            Cow::Borrowed(text) => visitor.visit_borrowed_str(text),
            Cow::Owned(text) => visitor.visit_string(text),
        }
    }

    // A visitor that leaves parts unread got more than it expects: that is odd too.

    fn object<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, Odd> {
        let mut parts = self.enter(b'{')?;
        let value = visitor.visit_map(&mut parts)?;
        if !parts.is_over && parts.name()?.is_some() {
            return Err(Odd);
        }
        self.levels += 1;
        Ok(value)
    }

    fn array<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, Odd> {
        let mut parts = self.enter(b'[')?;
        let value = visitor.visit_seq(&mut parts)?;
        if !parts.is_over && parts.has_item()? {
            return Err(Odd);
        }
        self.levels += 1;
        Ok(value)
    }

    fn enter(&mut self, start: u8) -> Result<Parts<'_, 'de>, Odd> {
        self.cursor.expect(start)?;
        self.levels = self.levels.checked_sub(1).ok_or(Odd)?;
        Ok(Parts { reader: self, is_first: true, is_over: false })
    }
}

/// The members of an object, or the items of an array.
struct Parts<'r, 'de> {
    reader: &'r mut Reader<'de>,
    is_first: bool,
    is_over: bool,
}

impl<'de> Parts<'_, 'de> {
    /// The name of the next member.
    fn name(&mut self) -> Result<Option<&'de str>, Odd> {
        let Reader { cursor, levels, .. } = &mut *self.reader;
        let is_first = std::mem::take(&mut self.is_first);
        let name = Walk { cursor, levels: *levels, is_first }.next()?;
        self.is_over = name.is_none();
        Ok(name)
    }

    /// Moves to the next item, if there is one.
    fn has_item(&mut self) -> Result<bool, Odd> {
        let cursor = &mut self.reader.cursor;
        cursor.skip_space();
        self.is_over = cursor.accept(b']');
        if !self.is_over && !std::mem::take(&mut self.is_first) {
            cursor.expect(b',')?;
            cursor.skip_space();
        }
        Ok(!self.is_over)
    }
}

impl<'de> MapAccess<'de> for &mut Parts<'_, 'de> {
    type Error = Odd;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Odd> {
        match self.name()? {
            Some(name) => seed.deserialize(BorrowedStrDeserializer::new(name)).map(Some),
            None => Ok(None),
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Odd> {
        seed.deserialize(&mut *self.reader)
    }
}

impl<'de> SeqAccess<'de> for &mut Parts<'_, 'de> {
    type Error = Odd;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Odd> {
        if self.is_over || !self.has_item()? {
            return Ok(None);
        }
        seed.deserialize(&mut *self.reader).map(Some)
    }
}

/// `serde_json`, which reads it next, gives the reason.
impl de::Error for Odd {
    fn custom<T: std::fmt::Display>(_: T) -> Self {
        Self
    }
}

impl std::error::Error for Odd {}

impl std::fmt::Display for Odd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("not plain JSON")
    }
}

/// Methods that delegate to `serde_json`.
macro_rules! by_the_book {
    ($($method:ident($($name:ident: $kind:ty),*)),* $(,)?) => {$(
        fn $method<V: Visitor<'de>>(self, $($name: $kind,)* visitor: V) -> Result<V::Value, Odd> {
            self.by_the_book(|book| book.$method($($name,)* visitor))
        }
    )*};
}

impl<'de> Deserializer<'de> for &mut Reader<'de> {
    type Error = Odd;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Odd> {
        self.unnamed()?;
        match self.peek()? {
            b'"' => self.string(visitor),
            b'{' => self.object(visitor),
            b'[' => self.array(visitor),
            _ => self.by_the_book(|book| book.deserialize_any(visitor)),
        }
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Odd> {
        self.string(visitor)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Odd> {
        self.string(visitor)
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Odd> {
        self.string(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Odd> {
        match self.peek()? {
            b'n' => self.by_the_book(|book| book.deserialize_option(visitor)),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Odd> {
        // With such a name, `serde_json` asks for the text of a value.
        if name.starts_with('$') {
            return self.by_the_book(|book| book.deserialize_newtype_struct(name, visitor));
        }
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Odd> {
        self.array(visitor)
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Odd> {
        self.array(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Odd> {
        self.unnamed()?;
        self.object(visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Odd> {
        self.object(visitor)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Odd> {
        if self.levels == self.closed_at {
            return Err(Odd);
        }
        self.cursor.value(self.levels)?;
        visitor.visit_unit()
    }

    by_the_book! {
        deserialize_bool(),
        deserialize_i8(), deserialize_i16(), deserialize_i32(), deserialize_i64(),
        deserialize_i128(),
        deserialize_u8(), deserialize_u16(), deserialize_u32(), deserialize_u64(),
        deserialize_u128(),
        deserialize_f32(), deserialize_f64(),
        deserialize_char(),
        deserialize_bytes(), deserialize_byte_buf(),
        deserialize_unit(), deserialize_unit_struct(name: &'static str),
        deserialize_tuple_struct(name: &'static str, length: usize),
        deserialize_enum(name: &'static str, variants: &'static [&'static str]),
    }
}

#[cfg(test)]
mod tests;
