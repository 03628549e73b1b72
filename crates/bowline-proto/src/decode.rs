//! Raw JSON to types, with errors that name the member.
//!
//! Plain JSON takes a fast path; everything else goes to `serde_json`, which has the last word.
//! Only if that fails is the text scanned once more, to turn a byte offset into a path:
//! `tools/call: params.name is missing`.

use std::fmt;

use serde::Deserialize;

use crate::error::ErrorObject;
use crate::raw::{self, Raw};

/// JSON that does not have the expected type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecodeError {
    /// What was being decoded: a method, or a name such as `result`.
    what: String,
    /// Which member is wrong, and how.
    message: String,
}

impl DecodeError {
    /// An error whose message names the member.
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

/// Decodes the parameters of `method`. Absent parameters are an empty object.
///
/// # Errors
/// If they do not have the type that the method takes.
pub fn decode_params<'a, T: Deserialize<'a>>(
    method: &str,
    params: Option<Raw<'a>>,
) -> Result<T, DecodeError> {
    decode(method, "params", params.map_or("{}", Raw::get))
}

/// Decodes the result of `method`.
///
/// # Errors
/// If it does not have the type that the method returns.
pub fn decode_result<'a, T: Deserialize<'a>>(
    method: &str,
    result: Raw<'a>,
) -> Result<T, DecodeError> {
    decode(method, "result", result.get())
}

/// Decodes any JSON text; `root` is its name in error messages.
///
/// # Errors
/// If it is not a `T`.
pub fn decode<'a, T: Deserialize<'a>>(
    what: &str,
    root: &str,
    text: &'a str,
) -> Result<T, DecodeError> {
    raw::from_str(text)
        .or_else(|raw::Odd| serde_json::from_str(text))
        .map_err(|error| DecodeError::new(what, describe(root, text, &error)))
}

/// Decodes an object that has only members of `T`, if its text is plain. `None` says that it needs
/// a closer look: it may have further members, be of another type, or merely be spelled unusually.
pub fn decode_closed<'a, T: Deserialize<'a>>(text: &'a str) -> Option<T> {
    raw::from_closed_str(text).ok()
}

/// Describes the error in terms of the JSON: a path, and what is wrong there.
fn describe(root: &str, text: &str, error: &serde_json::Error) -> String {
    let message = error.to_string();
    let message = without_position(&message);
    let path = path_at(root, text, position(text, error));
    if let Some(name) = quoted(message, "missing field ") {
        return format!("{path}.{name} is missing");
    }
    if let Some(name) = quoted(message, "duplicate field ") {
        let parent = path.strip_suffix(&format!(".{name}")).unwrap_or(&path);
        return format!("{parent}.{name} appears twice");
    }
    if let Some((length, expected)) =
        message.strip_prefix("invalid length ").and_then(|wrong| wrong.split_once(", expected "))
    {
        // It stops behind the last item.
        let list = path.strip_suffix(']').and_then(|path| path.rsplit_once('['));
        let path = list.map_or(path.as_str(), |(list, _)| list);
        return format!("{path} has the length {length}; expected {}", in_words(expected));
    }
    let wrong = ["invalid type: ", "invalid value: "]
        .iter()
        .find_map(|prefix| message.strip_prefix(prefix));
    if let Some((found, expected)) = wrong.and_then(|wrong| wrong.split_once(", expected ")) {
        return format!("{path} is {}, not {}", found_in_words(found), in_words(expected));
    }
    if let Some((found, expected)) =
        message.strip_prefix("unknown variant ").and_then(|wrong| wrong.split_once(", expected "))
    {
        let expected = expected.replace('`', "\"");
        return format!("{path} is {}, not {expected}", found.replace('`', "\""));
    }
    if let Some((name, expected)) =
        message.strip_prefix("unknown field ").and_then(|wrong| wrong.split_once(", expected "))
    {
        let name = name.trim_matches('`');
        let parent = path.strip_suffix(&format!(".{name}")).unwrap_or(&path);
        return format!("{parent}.{name} is unknown; expected {}", expected.replace('`', ""));
    }
    format!("{path}: {message}")
}

/// A value that serde found, as JSON spells it.
fn found_in_words(found: &str) -> &str {
    let value = ["integer `", "floating point `", "boolean `", "character `"]
        .iter()
        .find_map(|kind| found.strip_prefix(kind)?.strip_suffix('`'));
    match found {
        "sequence" => "an array",
        "map" => "an object",
        "unit value" => "null",
        _ => value.or_else(|| found.strip_prefix("string ")).unwrap_or(found),
    }
}

/// What serde expected, in words of JSON: the name of a Rust type means nothing to a peer.
fn in_words(expected: &str) -> &str {
    match expected {
        "u8" => "an integer from 0 to 255",
        "u16" => "an integer from 0 to 65535",
        "u32" => "an integer from 0 to 4294967295",
        "u64" | "u128" | "usize" => "an integer of at least 0",
        "i8" => "an integer from -128 to 127",
        "i16" => "an integer from -32768 to 32767",
        "i32" => "an integer from -2147483648 to 2147483647",
        "i64" | "i128" | "isize" => "an integer",
        "f32" | "f64" => "a number",
        "a sequence" => "an array",
        "a map" => "an object",
        "unit" => "null",
        "a borrowed string" => "a string without escapes",
        _ if expected.starts_with("struct ") => "an object",
        _ if expected.starts_with("a tuple ") || expected.starts_with("tuple ") => {
            "an array of fixed length"
        }
        _ => expected,
    }
}

/// The message of `serde_json`, without the line and column at its end.
pub(crate) fn without_position(message: &str) -> &str {
    message.rfind(" at line ").map_or(message, |end| &message[..end])
}

fn quoted<'a>(message: &'a str, prefix: &str) -> Option<&'a str> {
    message.strip_prefix(prefix)?.strip_prefix('`')?.strip_suffix('`')
}

/// The offset at which `serde_json` stopped. Its columns count bytes, starting from one.
fn position(text: &str, error: &serde_json::Error) -> usize {
    let start: usize =
        text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum();
    (start + error.column()).min(text.len())
}

/// The path of the member or item that contains the byte before `end`.
///
/// `serde_json` stops after a value of the wrong type, and on the closing brace of an object that
/// lacks a member; that brace still belongs to the object.
fn path_at(root: &str, text: &str, end: usize) -> String {
    let mut walk = Walk { open: Vec::new(), string: None };
    for (at, byte) in text.bytes().enumerate().take(end) {
        walk.step(text, at, byte, at + 1 == end);
    }
    let mut path = root.to_owned();
    for step in &walk.open {
        match step {
            PathStep::Member(Some(key)) => {
                path.push('.');
                path.push_str(key);
            }
            PathStep::Member(None) => {}
            PathStep::Item(number) => path.push_str(&format!("[{number}]")),
        }
    }
    path
}

enum PathStep<'a> {
    /// Inside an object, at this key.
    Member(Option<&'a str>),
    /// Inside an array, at this index.
    Item(usize),
}

struct Walk<'a> {
    open: Vec<PathStep<'a>>,
    /// The start of the string we are inside, and whether the next byte is escaped.
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
            b'{' => self.open.push(PathStep::Member(None)),
            b'[' => self.open.push(PathStep::Item(0)),
            b'}' | b']' if last => self.forget_key(),
            b'}' | b']' => {
                self.open.pop();
            }
            b',' => match self.open.last_mut() {
                Some(PathStep::Item(number)) => *number += 1,
                _ => self.forget_key(),
            },
            _ => {}
        }
    }

    /// A string is a key if its object has no current key.
    fn close_string(&mut self, text: &'a str, start: usize, end: usize) {
        if let Some(PathStep::Member(key @ None)) = self.open.last_mut() {
            *key = Some(&text[start..end]);
        }
    }

    fn forget_key(&mut self) {
        if let Some(PathStep::Member(key)) = self.open.last_mut() {
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
    fn errors_name_the_member() {
        check("{}", "params.name is missing");
        check(r#"{"name":3}"#, "params.name is 3, not a string");
        check(r#"{"item":{},"name":"a"}"#, "params.item.size is missing");
        check(
            r#"{"name":"a","item":{"size":"x"}}"#,
            r#"params.item.size is "x", not an integer from 0 to 255"#,
        );
        check(r#"{"name":"a","list":[{"size":1},{}]}"#, "params.list[1].size is missing");
        check(
            r#"{"name":"a","list":[{"size":1},{"size":"q"}]}"#,
            r#"params.list[1].size is "q", not an integer from 0 to 255"#,
        );
        check("{\n \"name\": \"},{\\\"\",\n \"list\": 7}", "params.list is 7, not an array");
        check(r#"{"name":"a","name":"b"}"#, "params.name appears twice");
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only read by serde")]
    struct Words {
        #[serde(default)]
        pair: (u8, u8),
        #[serde(default)]
        size: Option<Size>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Size {
        Small,
        Large,
    }

    #[test]
    fn the_words_of_serde_are_not_repeated() {
        let check = |text: &str, expected: &str| {
            let error = decode::<Words>("m", "params", text).unwrap_err();
            assert_eq!(error.to_string(), format!("m: {expected}"), "{text}");
        };
        let found = r#"params.size is "huge", not "small" or "large""#;
        check(r#"{"size":"huge"}"#, found);
        check(r#"{"pair":[1]}"#, "params.pair has the length 1; expected an array of fixed length");
        check(r#"{"pair":[1,1.5]}"#, "params.pair[1] is 1.5, not an integer from 0 to 255");
        check(r#"{"pair":[1,-1]}"#, "params.pair[1] is -1, not an integer from 0 to 255");
        check(r#"{"pair":{}}"#, "params.pair is an object, not an array of fixed length");
        check(r#"{"more":1}"#, "params.more is unknown; expected pair or size");
    }
}
