//! Raw JSON to types, with errors that say what was wrong with what.
//!
//! What is plain is read quickly, and all else by `serde_json`, which has the last word. Only when
//! that fails is the text walked once more, to turn a byte position into a path:
//! `tools/call: params.name is missing`.

use std::fmt;

use crate::raw::{self, Raw};
use serde::Deserialize;

use crate::error::ErrorObject;

/// JSON that is not of the type it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecodeError {
    /// What was being read: a method, or a name such as `result`.
    what: String,
    /// Which part of it is wrong, and how.
    message: String,
}

impl DecodeError {
    /// An error that names its part itself.
    pub fn new(what: impl Into<String>, message: impl Into<String>) -> Self {
        Self { what: what.into(), message: message.into() }
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.message)
    }
}

impl std::error::Error for DecodeError {}

impl From<DecodeError> for ErrorObject {
    fn from(error: DecodeError) -> Self {
        Self::invalid_params(error.to_string())
    }
}

/// Reads the parameters of `method`. Absent parameters are an empty object.
///
/// # Errors
/// When they are not what the method takes.
pub fn decode_params<'a, T: Deserialize<'a>>(
    method: &str,
    params: Option<Raw<'a>>,
) -> Result<T, DecodeError> {
    decode(method, "params", params.map_or("{}", Raw::get))
}

/// Reads the result of `method`.
///
/// # Errors
/// When it is not what the method answers.
pub fn decode_result<'a, T: Deserialize<'a>>(
    method: &str,
    result: Raw<'a>,
) -> Result<T, DecodeError> {
    decode(method, "result", result.get())
}

/// Reads any JSON text; `root` names it in messages.
///
/// # Errors
/// When it is not a `T`.
pub fn decode<'a, T: Deserialize<'a>>(
    what: &str,
    root: &str,
    text: &'a str,
) -> Result<T, DecodeError> {
    raw::from_str(text)
        .or_else(|raw::Odd| serde_json::from_str(text))
        .map_err(|error| DecodeError::new(what, describe(root, text, &error)))
}

/// The problem in terms of the JSON: a path, and what is wrong there.
fn describe(root: &str, text: &str, error: &serde_json::Error) -> String {
    let said = error.to_string();
    let said = without_position(&said);
    let path = path_at(root, text, position(text, error));
    if let Some(name) = quoted(said, "missing field ") {
        return format!("{path}.{name} is missing");
    }
    if let Some(name) = quoted(said, "duplicate field ") {
        let parent = path.strip_suffix(&format!(".{name}")).unwrap_or(&path);
        return format!("{parent}.{name} is there twice");
    }
    if let Some(wrong) = said.strip_prefix("invalid type: ") {
        let (found, expected) = wrong.split_once(", expected ").unwrap_or((wrong, "that"));
        // Names of Rust types tell a peer nothing.
        let expected = if expected.starts_with("struct ") { "an object" } else { expected };
        return format!("{path} is {found}, not {expected}");
    }
    format!("{path}: {said}")
}

/// What `serde_json` says, less the line and column at its end.
pub(crate) fn without_position(said: &str) -> &str {
    said.rfind(" at line ").map_or(said, |end| &said[..end])
}

fn quoted<'a>(said: &'a str, prefix: &str) -> Option<&'a str> {
    said.strip_prefix(prefix)?.strip_prefix('`')?.strip_suffix('`')
}

/// The byte at which `serde_json` stopped. Its columns count bytes, from one.
fn position(text: &str, error: &serde_json::Error) -> usize {
    let start: usize =
        text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum();
    (start + error.column()).min(text.len())
}

/// Which member or item the byte before `end` belongs to.
///
/// `serde_json` stops behind a value of the wrong type, and on the closing brace of an object that
/// lacks a member: the brace still belongs to the object itself.
fn path_at(root: &str, text: &str, end: usize) -> String {
    let mut walk = Walk { open: Vec::new(), string: None };
    for (at, byte) in text.bytes().enumerate().take(end) {
        walk.step(text, at, byte, at + 1 == end);
    }
    let mut path = root.to_owned();
    for place in &walk.open {
        match place {
            Place::Member(Some(key)) => {
                path.push('.');
                path.push_str(key);
            }
            Place::Member(None) => {}
            Place::Item(number) => path.push_str(&format!("[{number}]")),
        }
    }
    path
}

enum Place<'a> {
    /// In an object, at this key.
    Member(Option<&'a str>),
    /// In an array, at this index.
    Item(usize),
}

struct Walk<'a> {
    open: Vec<Place<'a>>,
    /// Where the string that we are in began, and whether the next byte is escaped.
    string: Option<(usize, bool)>,
}

impl<'a> Walk<'a> {
    fn step(&mut self, text: &'a str, at: usize, byte: u8, last: bool) {
        if let Some((start, escaped)) = self.string {
            match byte {
                b'"' if !escaped => {
                    self.string = None;
                    self.close_string(text, start, at);
                }
                _ => self.string = Some((start, !escaped && byte == b'\\')),
            }
            return;
        }
        match byte {
            b'"' => self.string = Some((at + 1, false)),
            b'{' => self.open.push(Place::Member(None)),
            b'[' => self.open.push(Place::Item(0)),
            b'}' | b']' if last => self.forget_key(),
            b'}' | b']' => {
                self.open.pop();
            }
            b',' => match self.open.last_mut() {
                Some(Place::Item(number)) => *number += 1,
                _ => self.forget_key(),
            },
            _ => {}
        }
    }

    /// A string is a key if its object has none yet.
    fn close_string(&mut self, text: &'a str, start: usize, end: usize) {
        if let Some(Place::Member(key @ None)) = self.open.last_mut() {
            *key = Some(&text[start..end]);
        }
    }

    fn forget_key(&mut self) {
        if let Some(Place::Member(key)) = self.open.last_mut() {
            *key = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "only read by serde")]
    struct Params {
        name: String,
        #[serde(default)]
        list: Vec<Item>,
        #[serde(default)]
        item: Option<Item>,
    }

    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "only read by serde")]
    struct Item {
        size: u8,
    }

    fn check(text: &str, expected: &str) {
        let error = decode::<Params>("tools/call", "params", text).unwrap_err();
        assert_eq!(error.to_string(), format!("tools/call: {expected}"), "{text}");
    }

    #[test]
    fn errors_name_the_place() {
        check("{}", "params.name is missing");
        check(r#"{"name":3}"#, "params.name is integer `3`, not a string");
        check(r#"{"item":{},"name":"a"}"#, "params.item.size is missing");
        check(r#"{"name":"a","item":{"size":"x"}}"#, r#"params.item.size is string "x", not u8"#);
        check(r#"{"name":"a","list":[{"size":1},{}]}"#, "params.list[1].size is missing");
        check(
            r#"{"name":"a","list":[{"size":1},{"size":"q"}]}"#,
            r#"params.list[1].size is string "q", not u8"#,
        );
        check(
            "{\n \"name\": \"},{\\\"\",\n \"list\": 7}",
            "params.list is integer `7`, not a sequence",
        );
        check(r#"{"name":"a","name":"b"}"#, "params.name is there twice");
    }
}
