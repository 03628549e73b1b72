//! Values as people type them: JSON, and what is close to it. Names and strings may go without
//! quotes or have single ones, commas may be left at the end.

use serde_json::{Map, Number, Value};

/// The deepest nesting that is read: 64.
const DEEPEST: usize = 64;

/// A value as it was typed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Typed {
    /// Without quotes and brackets: what it means depends on what is wanted.
    Bare(String),
    /// A value that means itself.
    Exact(Value),
}

/// What is wrong with a text, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Misread {
    /// After so many characters.
    pub(crate) at: usize,
    /// What is wrong.
    pub(crate) problem: String,
}

impl std::fmt::Display for Misread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} at character {}", self.problem, self.at + 1)
    }
}

/// Reads an object; braces may be left away where `end` closes it: `a: 1, b: two`.
pub(crate) fn parse_members(text: &str) -> Result<Vec<(String, Typed)>, Misread> {
    let mut reader = Reader::new(text);
    reader.skip_blanks();
    let has_braces = reader.peek() == Some('{');
    if has_braces {
        reader.next();
    }
    let members = reader.members(if has_braces { Some('}') } else { None }, DEEPEST)?;
    reader.skip_blanks();
    match reader.peek() {
        None => Ok(members),
        Some(letter) => Err(reader.misread(format!("{letter:?} after the end"))),
    }
}

/// Reads a value that must be all of the text. Strict JSON first, so that nothing changes it.
pub(crate) fn parse_value(text: &str) -> Result<Value, Misread> {
    if let Ok(value) = serde_json::from_str(text) {
        return Ok(value);
    }
    let mut reader = Reader::new(text);
    let value = reader.value(&[], DEEPEST)?;
    reader.skip_blanks();
    match reader.peek() {
        None => Ok(value.into_value()),
        Some(letter) => Err(reader.misread(format!("{letter:?} after the end"))),
    }
}

impl Typed {
    /// What it means where nothing special is wanted: a number, a word of JSON, or text.
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

/// Text that is a number of JSON.
pub(crate) fn number(text: &str) -> Option<Number> {
    let starts = text.starts_with(|letter: char| letter.is_ascii_digit() || letter == '-');
    starts.then(|| serde_json::from_str(text).ok()).flatten()
}

struct Reader {
    letters: Vec<char>,
    at: usize,
}

impl Reader {
    fn new(text: &str) -> Self {
        Self { letters: text.chars().collect(), at: 0 }
    }

    fn peek(&self) -> Option<char> {
        self.letters.get(self.at).copied()
    }

    fn next(&mut self) -> Option<char> {
        let letter = self.peek();
        self.at += usize::from(letter.is_some());
        letter
    }

    fn skip_blanks(&mut self) {
        while self.peek().is_some_and(char::is_whitespace) {
            self.at += 1;
        }
    }

    fn misread(&self, problem: impl Into<String>) -> Misread {
        Misread { at: self.at, problem: problem.into() }
    }

    /// Members up to `end`, or to the end of the text.
    fn members(
        &mut self,
        end: Option<char>,
        depth: usize,
    ) -> Result<Vec<(String, Typed)>, Misread> {
        let mut members: Vec<(String, Typed)> = Vec::new();
        loop {
            self.skip_blanks();
            match self.peek() {
                None if end.is_none() => return Ok(members),
                None => return Err(self.misread("a closing brace is missing")),
                found if found == end => {
                    self.next();
                    return Ok(members);
                }
                Some(',') if !members.is_empty() => {
                    self.next();
                }
                Some(_) => {
                    let member = self.member(end, depth)?;
                    if members.iter().any(|(name, _)| *name == member.0) {
                        return Err(self.misread(format!("{:?} is there twice", member.0)));
                    }
                    members.push(member);
                }
            }
        }
    }

    fn member(&mut self, end: Option<char>, depth: usize) -> Result<(String, Typed), Misread> {
        let name = match self.peek() {
            Some(quote @ ('"' | '\'')) => self.quoted(quote)?,
            _ => self.bare(&[':', '=', ',', '}', ']', '{', '[', '"', '\'']),
        };
        self.skip_blanks();
        match self.peek() {
            Some(':' | '=') if !name.is_empty() => {
                self.next();
            }
            _ if name.is_empty() => return Err(self.misread("a name is missing")),
            _ => {
                let problem = format!("{name:?} has no value: write {name}: value");
                return Err(self.misread(problem));
            }
        }
        let ends: &[char] = if end.is_some() { &[',', '}'] } else { &[','] };
        Ok((name, self.value(ends, depth)?))
    }

    /// A value; one without quotes goes up to one of `ends`.
    fn value(&mut self, ends: &[char], depth: usize) -> Result<Typed, Misread> {
        self.skip_blanks();
        let Some(deeper) = depth.checked_sub(1) else {
            return Err(self.misread(format!("nested deeper than {DEEPEST}")));
        };
        match self.peek() {
            Some(quote @ ('"' | '\'')) => Ok(Typed::Exact(Value::String(self.quoted(quote)?))),
            Some('{') => {
                self.next();
                let members = self.members(Some('}'), deeper)?;
                let members = members.into_iter().map(|(name, value)| (name, value.into_value()));
                Ok(Typed::Exact(Value::Object(members.collect::<Map<_, _>>())))
            }
            Some('[') => {
                self.next();
                self.items(deeper).map(|items| Typed::Exact(Value::Array(items)))
            }
            _ => {
                let text = self.bare(ends);
                match text.is_empty() {
                    true => Err(self.misread("a value is missing")),
                    false => Ok(Typed::Bare(text)),
                }
            }
        }
    }

    fn items(&mut self, depth: usize) -> Result<Vec<Value>, Misread> {
        let mut items = Vec::new();
        loop {
            self.skip_blanks();
            match self.peek() {
                None => return Err(self.misread("a closing bracket is missing")),
                Some(']') => {
                    self.next();
                    return Ok(items);
                }
                Some(',') if !items.is_empty() => {
                    self.next();
                }
                Some(_) => items.push(self.value(&[',', ']'], depth)?.into_value()),
            }
        }
    }

    /// Text up to one of `ends`, without the blanks around it.
    fn bare(&mut self, ends: &[char]) -> String {
        let start = self.at;
        while self.peek().is_some_and(|letter| !ends.contains(&letter)) {
            self.at += 1;
        }
        let text: String = self.letters[start..self.at].iter().collect();
        text.trim().to_owned()
    }

    fn quoted(&mut self, quote: char) -> Result<String, Misread> {
        let start = self.at;
        self.next();
        let mut text = String::new();
        loop {
            match self.next() {
                None => {
                    return Err(Misread { at: start, problem: "a quote is not closed".to_owned() });
                }
                Some(letter) if letter == quote => return Ok(text),
                Some('\\') => text.push(self.escape()?),
                Some(letter) => text.push(letter),
            }
        }
    }

    fn escape(&mut self) -> Result<char, Misread> {
        match self.next() {
            Some('n') => Ok('\n'),
            Some('t') => Ok('\t'),
            Some('r') => Ok('\r'),
            Some('b') => Ok('\u{8}'),
            Some('f') => Ok('\u{c}'),
            Some('u') => self.escaped_code(),
            Some(letter @ ('"' | '\'' | '\\' | '/')) => Ok(letter),
            _ => Err(self.misread("an unknown escape after a backslash")),
        }
    }

    fn escaped_code(&mut self) -> Result<char, Misread> {
        let first = self.four_digits()?;
        let is_high = (0xd800..0xdc00).contains(&first);
        if is_high && self.next() == Some('\\') && self.next() == Some('u') {
            let second = self.four_digits()?;
            let code = 0x1_0000 + ((first - 0xd800) << 10) + second.wrapping_sub(0xdc00);
            return char::from_u32(code).ok_or_else(|| self.misread("half a character"));
        }
        char::from_u32(first).ok_or_else(|| self.misread("half a character"))
    }

    fn four_digits(&mut self) -> Result<u32, Misread> {
        let digits: String = (0..4).filter_map(|_| self.next()).collect();
        let code = u32::from_str_radix(&digits, 16).ok().filter(|_| digits.len() == 4);
        code.ok_or_else(|| self.misread("\\u wants four hexadecimal digits"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(text: &str, expected: Result<Value, &str>) {
        match (parse_value(text), expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{text}"),
            (Err(found), Err(part)) => assert!(found.to_string().contains(part), "{text}: {found}"),
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
        check("{a: 1", Err("closing brace"));
        check("[1, 2", Err("closing bracket"));
        check("{a}", Err("has no value"));
        check("{: 1}", Err("a name is missing"));
        check("{a: }", Err("a value is missing"));
        check("{a: 1, a: 2}", Err("twice"));
        check("'abc", Err("not closed at character 1"));
        check(r"'\q'", Err("unknown escape"));
        check(r"'\ud800'", Err("half a character"));
        check("{} x", Err("after the end"));
        check(&"[".repeat(100_000), Err("nested deeper"));
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
        assert!(parse_members("just text").unwrap_err().to_string().contains("has no value"));
    }

    #[test]
    fn a_value_without_quotes_holds_everything_up_to_a_comma() {
        let members = parse_members("url: https://example.com/?a=b, x: a}b").unwrap();
        let bare = |text: &str| Typed::Bare(text.to_owned());
        assert_eq!(members[0].1, bare("https://example.com/?a=b"));
        assert_eq!(members[1].1, bare("a}b"));
    }
}
