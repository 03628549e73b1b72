//! Values as people type them: JSON, and what is close to it. Names and strings need no quotes, or
//! may have single ones; a comma may end a list.
//!
//! Config files are read more strictly (`target/config/jsonc.rs`): what other clients reject there
//! must not pass here.

use serde_json::{Number, Value};

/// The deepest nesting that is read: 64.
const DEEPEST: usize = 64;

/// A value as it was typed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Typed {
    /// Without quotes or brackets: its meaning depends on the schema.
    Bare(String),
    Exact(Value),
}

impl Typed {
    /// What it means without a schema: a number, a word of JSON, or text.
    pub(crate) fn into_value(self) -> Value {
        match self {
            Self::Exact(value) => value,
            Self::Bare(text) => match text.as_str() {
                "true" => Value::Bool(true),
                "false" => Value::Bool(false),
                "null" => Value::Null,
                _ => number(&text).map_or_else(|| Value::String(text), Value::Number),
            },
        }
    }
}

fn number(text: &str) -> Option<Number> {
    let starts = text.starts_with(|letter: char| letter.is_ascii_digit() || letter == '-');
    starts.then(|| serde_json::from_str(text).ok()).flatten()
}

/// Reads the members of an object, with or without its braces: `a: 1, b: two`.
pub(crate) fn parse_members(text: &str) -> Result<Vec<(String, Typed)>, String> {
    let mut reader = Reader { text, rest: text };
    let end = if reader.skip('{') { Some('}') } else { None };
    let members = reader.members(end, DEEPEST)?;
    reader.end(members)
}

/// Reads a value that takes up the whole text. Strict JSON comes first, so that its meaning never
/// changes.
pub(crate) fn parse_value(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).or_else(|_| {
        let mut reader = Reader { text, rest: text };
        let value = reader.value(&[], DEEPEST)?;
        reader.end(value.into_value())
    })
}

struct Reader<'a> {
    text: &'a str,
    rest: &'a str,
}

impl Reader<'_> {
    fn wrong(&self, problem: impl std::fmt::Display) -> String {
        let before = &self.text[..self.text.len() - self.rest.len()];
        format!("{problem} at character {}", before.chars().count() + 1)
    }

    /// The next character that is not a blank.
    fn peek(&mut self) -> Option<char> {
        self.rest = self.rest.trim_start();
        self.rest.chars().next()
    }

    fn skip(&mut self, wanted: char) -> bool {
        let is_there = self.peek() == Some(wanted);
        self.rest = if is_there { &self.rest[wanted.len_utf8()..] } else { self.rest };
        is_there
    }

    fn end<T>(mut self, read: T) -> Result<T, String> {
        match self.peek() {
            None => Ok(read),
            Some(letter) => Err(self.wrong(format!("unexpected {letter:?} after the end"))),
        }
    }

    /// Whether there is something before `end`, which is passed over, as commas are.
    fn has_more(&mut self, end: Option<char>, is_first: bool) -> Result<bool, String> {
        while !is_first && self.skip(',') {}
        match (self.peek(), end) {
            (None, None) => Ok(false),
            (None, Some(end)) => Err(self.wrong(format!("missing closing {end:?}"))),
            (Some(_), Some(end)) => Ok(!self.skip(end)),
            (Some(_), None) => Ok(true),
        }
    }

    /// Members up to `end`, or to the end of the text.
    fn members(&mut self, end: Option<char>, depth: usize) -> Result<Vec<(String, Typed)>, String> {
        let mut members: Vec<(String, Typed)> = Vec::new();
        let ends: &[char] = if end.is_some() { &[',', '}'] } else { &[','] };
        while self.has_more(end, members.is_empty())? {
            let name = match self.peek() {
                Some(quote @ ('"' | '\'')) => self.quoted(quote)?,
                _ => self.bare(&[':', '=', ',', '}', ']', '{', '[', '"', '\'']),
            };
            if name.is_empty() {
                return Err(self.wrong("missing name"));
            }
            if !self.skip(':') && !self.skip('=') {
                return Err(self.wrong(format!("{name:?} has no value: write {name}: value")));
            }
            if members.iter().any(|(known, _)| *known == name) {
                return Err(self.wrong(format!("{name:?} is given twice")));
            }
            let value = self.value(ends, depth)?;
            members.push((name, value));
        }
        Ok(members)
    }

    /// A value; without quotes or brackets, up to one of `ends`.
    fn value(&mut self, ends: &[char], depth: usize) -> Result<Typed, String> {
        let Some(depth) = depth.checked_sub(1) else {
            return Err(self.wrong(format!("nested more than {DEEPEST} levels deep")));
        };
        if let Some(quote @ ('"' | '\'')) = self.peek() {
            return Ok(Typed::Exact(Value::String(self.quoted(quote)?)));
        }
        if self.skip('{') {
            let members = self.members(Some('}'), depth)?.into_iter();
            let members = members.map(|(name, value)| (name, value.into_value()));
            return Ok(Typed::Exact(Value::Object(members.collect())));
        }
        if self.skip('[') {
            let mut items = Vec::new();
            while self.has_more(Some(']'), items.is_empty())? {
                items.push(self.value(&[',', ']'], depth)?.into_value());
            }
            return Ok(Typed::Exact(Value::Array(items)));
        }
        match self.bare(ends) {
            text if text.is_empty() => Err(self.wrong("missing value")),
            text => Ok(Typed::Bare(text)),
        }
    }

    /// Text up to one of `ends`, without the blanks around it.
    fn bare(&mut self, ends: &[char]) -> String {
        let (text, rest) = self.rest.split_at(self.rest.find(ends).unwrap_or(self.rest.len()));
        self.rest = rest;
        text.trim().to_owned()
    }

    /// A quoted string. It is rewritten with JSON's quotes, and `serde_json` reads the escapes.
    fn quoted(&mut self, quote: char) -> Result<String, String> {
        let mut json = String::from('"');
        let mut letters = self.rest[1..].chars();
        loop {
            match letters.next() {
                None => return Err(self.wrong("unclosed quote")),
                Some(letter) if letter == quote => break,
                Some('\\') => match letters.next() {
                    Some('\'') => json.push('\''),
                    escaped => json.extend(['\\'].into_iter().chain(escaped)),
                },
                Some('"') => json.push_str("\\\""),
                Some(letter) if letter.is_control() => {
                    json.push_str(&format!("\\u{:04x}", u32::from(letter)));
                }
                Some(letter) => json.push(letter),
            }
        }
        json.push('"');
        let text = serde_json::from_str(&json).map_err(|error| {
            let error = error.to_string();
            let problem = error.split(" at line").next().unwrap_or_default();
            self.wrong(format!("invalid string: {problem}"))
        })?;
        self.rest = letters.as_str();
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(text: &str, expected: Result<Value, &str>) {
        match (parse_value(text), expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{text}"),
            (Err(found), Err(part)) => assert!(found.contains(part), "{text}: {found}"),
            (found, expected) => panic!("{text}: {found:?}, expected {expected:?}"),
        }
    }

    #[test]
    fn values_are_read_as_people_type_them() {
        check(r#"{"a": [1, 2.5, null]}"#, Ok(json!({ "a": [1, 2.5, null] })));
        check("{a: 1, 'b': two words, c: [x, 'y z',],}", {
            Ok(json!({ "a": 1, "b": "two words", "c": ["x", "y z"] }))
        });
        check("{a = true, b: -1e3}", Ok(json!({ "a": true, "b": -1e3 })));
        check(r#"'it\'s \u00e9 \ud83d\ude00'"#, Ok(json!("it's é 😀")));
        check("hello", Ok(json!("hello")));
        check("{a: 1", Err("missing closing '}'"));
        check("[1, 2", Err("missing closing ']'"));
        check("{a}", Err("has no value"));
        check("{: 1}", Err("missing name"));
        check("{a: }", Err("missing value"));
        check("{a: 1, a: 2}", Err("twice"));
        check("'abc", Err("unclosed quote at character 1"));
        check(r"'\q'", Err("invalid escape at character 1"));
        check(r"'\ud800'", Err("hex escape"));
        check(r"'\ud800\u0041'", Err("hex escape"));
        check(r"'\ud800\ud800'", Err("hex escape"));
        check(r"'\udc00'", Err("hex escape"));
        check(r"'\u12'", Err("invalid string"));
        check("'\\", Err("unclosed quote"));
        check("'say \"a\nb\"'", Ok(json!("say \"a\nb\"")));
        check("{} x", Err("after the end"));
        check(&"[".repeat(100_000), Err("levels deep"));
    }

    #[test]
    fn members_go_with_and_without_braces() {
        let bare = |text: &str| Typed::Bare(text.to_owned());
        let expected = [("message".to_owned(), bare("hello, no")), ("count".to_owned(), bare("2"))];
        assert_eq!(
            parse_members("message: 'hello, no', count: 2").unwrap(),
            vec![("message".to_owned(), Typed::Exact(json!("hello, no"))), expected[1].clone()]
        );
        assert_eq!(parse_members("{count = 2}").unwrap(), expected[1..]);
        assert_eq!(parse_members("  ").unwrap(), []);
        assert!(parse_members("just text").unwrap_err().contains("has no value"));
    }

    #[test]
    fn a_value_without_quotes_holds_everything_up_to_a_comma() {
        let members = parse_members("url: https://example.com/?a=b, x: a}b").unwrap();
        let bare = |text: &str| Typed::Bare(text.to_owned());
        assert_eq!(members[0].1, bare("https://example.com/?a=b"));
        assert_eq!(members[1].1, bare("a}b"));
    }
}
