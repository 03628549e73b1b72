//! Request ids: a string or an integer, returned exactly as the peer sent it.

use std::fmt;

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::raw::{Odd, Walk, Word};

/// The id that ties an answer to its request.
///
/// `1` and `"1"` are different ids. Integers are exact over the whole signed and unsigned 64-bit
/// range. `1.0` is the integer one, as in JSON Schema; `1.5` and `null` are not ids.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id(Repr);

#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Repr {
    Integer(i64),
    /// Too large for an `i64`.
    Large(u64),
    String(Box<str>),
}

impl Id {
    /// The longest string that is read as an id or a progress token, in bytes. Every message that
    /// belongs to a request repeats them.
    pub const LONGEST: usize = 1024;

    /// The id, if it is an integer that fits.
    pub fn as_i64(&self) -> Option<i64> {
        match &self.0 {
            Repr::Integer(number) => Some(*number),
            Repr::Large(_) | Repr::String(_) => None,
        }
    }

    /// The id, if it is a string.
    pub fn as_str(&self) -> Option<&str> {
        match &self.0 {
            Repr::Integer(_) | Repr::Large(_) => None,
            Repr::String(text) => Some(text),
        }
    }

    /// Reads the value of a member.
    #[inline]
    pub(crate) fn walk(members: &mut Walk<'_, '_>) -> Result<Self, Odd> {
        if let Some(number) = members.number() {
            return Ok(Self::from(number));
        }
        match members.word()? {
            Word::Plain(text) if text.len() <= Self::LONGEST => Ok(Self::from(text)),
            Word::Plain(_) => Err(Odd),
            Word::Other(raw) => serde_json::from_str(raw.get()).map_err(|_| Odd),
        }
    }
}

impl From<i64> for Id {
    fn from(number: i64) -> Self {
        Self(Repr::Integer(number))
    }
}

impl From<u64> for Id {
    fn from(number: u64) -> Self {
        Self(i64::try_from(number).map_or(Repr::Large(number), Repr::Integer))
    }
}

impl From<&str> for Id {
    fn from(text: &str) -> Self {
        Self(Repr::String(text.into()))
    }
}

impl From<String> for Id {
    fn from(text: String) -> Self {
        Self(Repr::String(text.into()))
    }
}

/// Strings are quoted, so that `92` and `"92"` differ in a log.
impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Repr::Integer(number) => number.fmt(f),
            Repr::Large(number) => number.fmt(f),
            Repr::String(text) => write!(f, "{text:?}"),
        }
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Id {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Repr::Integer(number) => serializer.serialize_i64(*number),
            Repr::Large(number) => serializer.serialize_u64(*number),
            Repr::String(text) => serializer.serialize_str(text),
        }
    }
}

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(IdVisitor)
    }
}

struct IdVisitor;

/// Integers up to here are exact as floating-point numbers.
const EXACT: f64 = 9_007_199_254_740_992.0;

impl Visitor<'_> for IdVisitor {
    type Value = Id;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string or a 64-bit integer")
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Id, E> {
        Ok(Id::from(number))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Id, E> {
        Ok(Id::from(number))
    }

    #[expect(clippy::cast_possible_truncation, reason = "whole and within the exact range")]
    fn visit_f64<E: de::Error>(self, number: f64) -> Result<Id, E> {
        if number.fract() == 0.0 && number.abs() <= EXACT {
            Ok(Id::from(number as i64))
        } else {
            Err(E::invalid_type(de::Unexpected::Float(number), &self))
        }
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Id, E> {
        if text.len() > Id::LONGEST {
            return Err(E::custom(format_args!("more than {} bytes", Id::LONGEST)));
        }
        Ok(Id::from(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_keep_type_and_value() {
        for text in
            ["1", "-7", "0", r#""1""#, r#""""#, "18446744073709551615", "-9223372036854775808"]
        {
            let id: Id = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&id).unwrap(), text);
            assert_eq!(id.to_string(), text);
        }
        assert_ne!(Id::from(1_i64), Id::from("1"));
        assert_eq!(Id::from(1_i64), Id::from(1_u64));
    }

    #[test]
    fn an_id_has_a_longest_length() {
        let read = |length: usize| {
            let text = format!("\"{}\"", "x".repeat(length));
            serde_json::from_str::<Id>(&text).map_err(|error| error.to_string())
        };
        assert_eq!(read(Id::LONGEST), Ok(Id::from("x".repeat(1024))));
        assert!(read(Id::LONGEST + 1).unwrap_err().starts_with("more than 1024 bytes"));
    }

    #[test]
    fn whole_numbers_are_integers_and_fractions_are_not() {
        assert_eq!(serde_json::from_str::<Id>("1.0").unwrap(), Id::from(1_i64));
        for text in ["1.5", "null", "true", "1e300", "[1]", "{}", "100000000000000000000000000000"]
        {
            assert!(serde_json::from_str::<Id>(text).is_err(), "{text}");
        }
    }
}
