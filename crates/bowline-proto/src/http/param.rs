//! Arguments of a tool that its calls repeat as `Mcp-Param-*` headers.
//!
//! A tool declares them with `x-mcp-header` in its input schema. [`ParamHeaders`] reads that once;
//! after that a client encodes and a server checks with one pass over the raw arguments.
//!
//! The type of an argument, not that in the schema, decides how it is compared: a string in place
//! of an integer is left to the validator, whose message helps the model.
//!
//! | argument | a client sends | a server expects |
//! |---|---|---|
//! | absent, `null` | nothing | nothing |
//! | string | it, encoded where needed | the same |
//! | `true`, `false` | the word | the same |
//! | an integer within ±(2^53 - 1) | its digits | the same number; `42.0` is `42` |
//! | any other number | nothing | nothing, or the same text |
//! | object, array | nothing | nothing |
//!
//! Headers that the tool does not declare are ignored.

mod schema;

use std::borrow::Cow;
use std::fmt;

use crate::raw::Raw;
use ::http::{HeaderMap, HeaderName, HeaderValue};
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;

pub use self::schema::AnnotationError;
use super::mismatch::{HeaderMismatch, HeaderProblem, malformed, only, same};
use super::quote;
use super::sentinel::{decode_value, encode_value};
use crate::wire::Text;

/// The arguments of a tool that its calls repeat as headers.
#[derive(Debug, Clone, Default)]
pub struct ParamHeaders {
    headers: Vec<ParamHeader>,
    root: Node,
}

#[derive(Debug, Clone)]
struct ParamHeader {
    name: HeaderName,
    /// The name as the tool spells it.
    shown: String,
    /// The names that lead to the argument, joined by dots.
    argument: String,
}

/// The part of a schema that contains annotations.
#[derive(Debug, Clone, Default)]
struct Node {
    /// The header of the argument itself, as an index.
    header: Option<usize>,
    properties: Vec<(String, Self)>,
}

impl ParamHeaders {
    /// Reads the annotations of an input schema.
    ///
    /// # Errors
    /// When one of them is invalid. A client then ignores the tool; a server does not start.
    pub fn parse(schema: &Value) -> Result<Self, AnnotationError> {
        schema::read(schema)
    }

    /// Whether the tool declares no headers.
    pub fn is_empty(&self) -> bool {
        self.headers.is_empty()
    }

    /// The headers of a call with these arguments.
    ///
    /// # Errors
    /// When an argument is repeated or malformed, so that the call is ambiguous.
    pub fn encode(
        &self,
        arguments: Option<Raw<'_>>,
    ) -> Result<Vec<(HeaderName, HeaderValue)>, ArgumentsError> {
        let mut encoded = Vec::with_capacity(self.headers.len());
        for (header, argument) in self.headers.iter().zip(self.find(arguments)?) {
            let value = match Argument::read(header, argument)? {
                Argument::Text(text) => encode_value(&text),
                Argument::Integer(number) => HeaderValue::from(number),
                Argument::Absent | Argument::OtherNumber(_) | Argument::Structure => continue,
            };
            encoded.push((header.name.clone(), value));
        }
        Ok(encoded)
    }

    /// Checks that the headers of a call agree with its arguments.
    ///
    /// # Errors
    /// When one is missing, repeated, malformed or different, or its argument is absent.
    pub fn check(
        &self,
        headers: &HeaderMap,
        arguments: Option<Raw<'_>>,
    ) -> Result<(), HeaderMismatch> {
        let found = self.find(arguments).map_err(|error| {
            HeaderMismatch::new(error.header.clone(), HeaderProblem::Unclear(error))
        })?;
        for (header, argument) in self.headers.iter().zip(found) {
            check_one(header, headers, argument)
                .map_err(|problem| HeaderMismatch::new(header.shown.clone(), problem))?;
        }
        Ok(())
    }

    /// The argument of each header, in order.
    fn find<'a>(&self, arguments: Option<Raw<'a>>) -> Result<Vec<Option<Raw<'a>>>, ArgumentsError> {
        let mut found = vec![None; self.headers.len()];
        if let Some(arguments) = arguments.filter(|_| !self.is_empty()) {
            self.find_below(&self.root, "", arguments, &mut found)?;
        }
        Ok(found)
    }

    fn find_below<'a>(
        &self,
        node: &Node,
        name: &str,
        raw: Raw<'a>,
        found: &mut [Option<Raw<'a>>],
    ) -> Result<(), ArgumentsError> {
        if let Some(header) = node.header {
            found[header] = Some(raw);
        }
        if node.properties.is_empty() || !raw.get().starts_with('{') {
            return Ok(());
        }
        let mut deserializer = serde_json::Deserializer::from_str(raw.get());
        let members = Members(&node.properties).deserialize(&mut deserializer);
        let members =
            members.map_err(|error| self.error(node, name, format!("cannot be read: {error}")))?;
        for ((name, node), member) in node.properties.iter().zip(members) {
            match member {
                Member::Absent => {}
                Member::Once(member) => self.find_below(node, name, member, found)?,
                Member::Twice => return Err(self.error(node, name, "appears twice".to_owned())),
            }
        }
        Ok(())
    }

    fn error(&self, node: &Node, argument: &str, problem: String) -> ArgumentsError {
        let header = node.first_header().and_then(|index| self.headers.get(index));
        let header = header.map(|header| header.shown.clone()).unwrap_or_default();
        ArgumentsError { header, argument: argument.to_owned(), problem }
    }
}

fn check_one(
    header: &ParamHeader,
    headers: &HeaderMap,
    argument: Option<Raw<'_>>,
) -> Result<(), HeaderProblem> {
    let argument = Argument::read(header, argument).map_err(HeaderProblem::Unclear)?;
    let Some(value) = only(headers, &header.name)? else {
        return match argument {
            Argument::Absent | Argument::OtherNumber(_) | Argument::Structure => Ok(()),
            Argument::Text(text) => Err(HeaderProblem::Missing { body: text.into_owned() }),
            Argument::Integer(number) => Err(HeaderProblem::Missing { body: number.to_string() }),
        };
    };
    let said = decode_value(value).map_err(|reason| malformed(value, reason))?;
    match argument {
        Argument::Absent | Argument::Structure => {
            Err(HeaderProblem::Unexpected { said: said.into_owned() })
        }
        Argument::Text(text) => same(&said, &text),
        Argument::OtherNumber(text) => same(&said, text),
        Argument::Integer(number) if read_integer(&said) == Some(number) => Ok(()),
        Argument::Integer(number) => same(&said, &number.to_string()),
    }
}

/// An argument, as headers can express it.
enum Argument<'a> {
    Absent,
    Text(Cow<'a, str>),
    Integer(i64),
    /// A fraction, or an integer too large for some peers to represent exactly.
    OtherNumber(&'a str),
    Structure,
}

impl<'a> Argument<'a> {
    fn read(header: &ParamHeader, raw: Option<Raw<'a>>) -> Result<Self, ArgumentsError> {
        let unreadable = |error: serde_json::Error| ArgumentsError {
            header: header.shown.clone(),
            argument: header.argument.clone(),
            problem: format!("cannot be read: {error}"),
        };
        let Some(raw) = raw.map(Raw::get) else {
            return Ok(Self::Absent);
        };
        Ok(match raw.as_bytes() {
            [b'n', ..] => Self::Absent,
            [b't' | b'f', ..] => Self::Text(Cow::Borrowed(raw)),
            [b'"', ..] => Self::Text(serde_json::from_str::<Text<'_>>(raw).map_err(unreadable)?.0),
            [b'{' | b'[', ..] => Self::Structure,
            _ => read_json_integer(raw).map_or(Self::OtherNumber(raw), Self::Integer),
        })
    }
}

/// The integers that every peer represents exactly, including JavaScript.
const SAFE: i64 = 9_007_199_254_740_991;

/// An integer as in JSON Schema: `42`, `42.0` and `4.2e1` are the same.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "whole and within the exact range"
)]
fn read_json_integer(text: &str) -> Option<i64> {
    let number = text.parse().ok().or_else(|| {
        let number: f64 = text.parse().ok()?;
        let is_integer = number.fract() == 0.0 && number.abs() <= SAFE as f64;
        is_integer.then_some(number as i64)
    });
    number.filter(|number: &i64| number.unsigned_abs() <= SAFE.unsigned_abs())
}

/// An integer as in headers: digits, possibly followed by a point and zeros.
fn read_integer(text: &str) -> Option<i64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let is_whole = !fraction.is_empty() && fraction.bytes().all(|digit| digit == b'0');
    whole.parse().ok().filter(|_| is_whole)
}

impl Node {
    fn first_header(&self) -> Option<usize> {
        self.header.or_else(|| self.properties.iter().find_map(|(_, node)| node.first_header()))
    }
}

/// Reads the members of an object that have annotations, each at most once.
struct Members<'n>(&'n [(String, Node)]);

/// A member of an object. One that appears twice is not read: some readers take the first, some
/// the last, and a header could only agree with one of them.
#[derive(Clone, Copy)]
enum Member<'a> {
    Absent,
    Once(Raw<'a>),
    Twice,
}

impl<'de> DeserializeSeed<'de> for Members<'_> {
    type Value = Vec<Member<'de>>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Members<'_> {
    type Value = Vec<Member<'de>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = vec![Member::Absent; self.0.len()];
        while let Some(Text(key)) = map.next_key()? {
            let Some(index) = self.0.iter().position(|(name, _)| *name == key) else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            let value = map.next_value()?;
            members[index] = match members[index] {
                Member::Absent => Member::Once(value),
                Member::Once(_) | Member::Twice => Member::Twice,
            };
        }
        Ok(members)
    }
}

/// An argument of a call that no header can repeat, because it is ambiguous or unreadable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArgumentsError {
    /// The header that would repeat it.
    pub header: String,
    /// The argument; names that lead to a nested one are joined by dots.
    pub argument: String,
    /// What is wrong with it.
    pub problem: String,
}

impl fmt::Display for ArgumentsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.argument.as_str() {
            "" => write!(f, "the arguments: {}", self.problem),
            argument => write!(f, "argument {} {}", quote(argument), self.problem),
        }
    }
}

impl std::error::Error for ArgumentsError {}

#[cfg(test)]
mod tests;
