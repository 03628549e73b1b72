//! The front matter of a `SKILL.md`: YAML 1.2 with the core schema, as JSON.
//!
//! Whoever reads a skill compares what the server lists with what the file says, so both sides must
//! read the same. What JSON cannot hold (aliases, tags, keys that are not text, infinity) is an
//! error, and so is a key that occurs twice. None of it can take much memory or stack.

use bowline_proto::json::Extra;
use saphyr_parser::{Event, Parser, ScalarStyle, Span};
use serde_json::{Number, Value};

/// The longest front matter, in bytes.
const LONGEST: usize = 64 << 10;

/// How deep lists and maps may be nested.
const DEEPEST: usize = 16;

/// Reads the front matter of a file.
///
/// # Errors
/// When there is none, or it is malformed; a sentence for its author.
pub(crate) fn read(file: &[u8]) -> Result<Extra, String> {
    let text = std::str::from_utf8(file).map_err(|_| "it is not UTF-8".to_owned())?;
    let yaml = find(text)?;
    if yaml.len() > LONGEST {
        return Err(format!("its front matter is longer than {LONGEST} bytes"));
    }
    match (Reader { events: Parser::new_from_str(yaml) }).document()? {
        Value::Object(members) => Ok(members),
        _ => Err("its front matter must be a map, such as `name: …`".to_owned()),
    }
}

/// The text between the first line, `---`, and the next such line.
fn find(text: &str) -> Result<&str, String> {
    let is_fence = |line: &str| line.trim_end() == "---";
    let mut lines = text.split_inclusive('\n');
    let first = lines.next().unwrap_or_default();
    if !is_fence(first) {
        return Err("it must begin with front matter: a line `---`".to_owned());
    }
    let mut end = first.len();
    for line in lines {
        if is_fence(line) {
            return Ok(&text[first.len()..end]);
        }
        end += line.len();
    }
    Err("its front matter does not end: expected a second line `---`".to_owned())
}

/// Builds a value from the events of the parser.
struct Reader<'a> {
    events: Parser<'a, saphyr_parser::StrInput<'a>>,
}

impl<'a> Reader<'a> {
    fn document(&mut self) -> Result<Value, String> {
        let mut document = None;
        loop {
            match self.next()? {
                (Event::StreamEnd, _) => return Ok(document.unwrap_or_default()),
                (Event::DocumentStart(_), span) if document.is_some() => {
                    return Err(at(span, "begins a second document"));
                }
                (Event::DocumentStart(_), _) => {
                    let (event, span) = self.next()?;
                    document = Some(self.value(event, span, DEEPEST)?);
                }
                _ => {}
            }
        }
    }

    fn next(&mut self) -> Result<(Event<'a>, Span), String> {
        match self.events.next_event() {
            Some(Ok(event)) => Ok(event),
            Some(Err(error)) => {
                // The first line of the file is the fence.
                Err(format!("line {}: {}", error.marker().line() + 1, error.info()))
            }
            None => Ok((Event::StreamEnd, Span::default())),
        }
    }

    fn value(&mut self, event: Event<'a>, span: Span, depth: usize) -> Result<Value, String> {
        if depth == 0 {
            return Err(at(span, format!("is nested deeper than {DEEPEST} levels")));
        }
        match event {
            Event::Scalar(_, _, _, Some(_))
            | Event::SequenceStart(_, Some(_))
            | Event::MappingStart(_, Some(_)) => Err(at(span, "has a tag, which is not allowed")),
            Event::Alias(_) => Err(at(span, "has an alias, which is not allowed")),
            Event::Scalar(text, ScalarStyle::Plain, ..) => plain(&text)
                .ok_or_else(|| at(span, format!("has {text:?}, which JSON cannot hold"))),
            Event::Scalar(text, ..) => Ok(Value::String(text.into_owned())),
            Event::SequenceStart(..) => self.list(depth),
            Event::MappingStart(..) => self.map(depth),
            _ => Ok(Value::Null),
        }
    }

    fn list(&mut self, depth: usize) -> Result<Value, String> {
        let mut items = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => return Ok(Value::Array(items)),
                (event, span) => items.push(self.value(event, span, depth - 1)?),
            }
        }
    }

    fn map(&mut self, depth: usize) -> Result<Value, String> {
        let mut members = Extra::new();
        loop {
            let key = match self.next()? {
                (Event::MappingEnd, _) => return Ok(Value::Object(members)),
                (event, span) => match self.value(event, span, depth - 1)? {
                    Value::String(key) => (key, span),
                    other => {
                        return Err(at(span, format!("has the key {other}, which is not text")));
                    }
                },
            };
            let (event, span) = self.next()?;
            let value = self.value(event, span, depth - 1)?;
            if members.insert(key.0.clone(), value).is_some() {
                return Err(at(key.1, format!("has the key {:?} for the second time", key.0)));
            }
        }
    }
}

/// A sentence about a place. The first line of the file is the fence.
fn at(span: Span, what: impl std::fmt::Display) -> String {
    format!("its front matter, line {} of the file, {what}", span.start.line() + 1)
}

/// YAML 1.2.2, 10.3.2: what a plain scalar means. `None` if JSON has no such value.
fn plain(text: &str) -> Option<Value> {
    Some(match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        _ => return number(text).unwrap_or_else(|| Some(Value::String(text.to_owned()))),
    })
}

/// `None` if it is not a number, `Some(None)` if it is one that JSON does not have.
fn number(text: &str) -> Option<Option<Value>> {
    let digits = |prefix, radix| {
        let digits = text.strip_prefix(prefix)?;
        let is_number = !digits.is_empty() && digits.chars().all(|it| it.is_digit(radix));
        is_number.then(|| u64::from_str_radix(digits, radix).ok().map(Value::from))
    };
    if let Some(number) = digits("0o", 8).or_else(|| digits("0x", 16)) {
        return Some(number);
    }
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN") {
        return Some(None);
    }
    let is_float = unsigned.starts_with(|it: char| it.is_ascii_digit() || it == '.')
        && unsigned.chars().any(|it| it.is_ascii_digit())
        && unsigned.chars().all(|it| it.is_ascii_digit() || "+-.eE".contains(it));
    if !is_float {
        return None;
    }
    if unsigned.bytes().all(|it| it.is_ascii_digit())
        && let Ok(integer) = text.trim_start_matches('+').parse::<i64>()
    {
        return Some(Some(Value::from(integer)));
    }
    // What only looks like a number, such as a date or a version, is text.
    let float: f64 = text.parse().ok()?;
    Some(whole(float).or_else(|| Number::from_f64(float).map(Value::Number)))
}

/// A number without a fraction is the same number with or without a point.
#[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
fn whole(float: f64) -> Option<Value> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    (float.fract() == 0.0 && float.abs() < EXACT).then(|| Value::from(float as i64))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn yaml(text: &str) -> Result<Value, String> {
        read(format!("---\n{text}\n---\n# Title\n").as_bytes()).map(Value::Object)
    }

    #[test]
    fn scalars_follow_the_core_schema() {
        for (text, value) in [
            ("a", json!("a")),
            ("'1'", json!("1")),
            ("\"yes\"", json!("yes")),
            ("yes", json!("yes")),
            ("true", json!(true)),
            ("~", json!(null)),
            ("", json!(null)),
            ("1", json!(1)),
            ("-7", json!(-7)),
            ("+7", json!(7)),
            ("1.0", json!(1)),
            ("1.5", json!(1.5)),
            ("1e3", json!(1000)),
            (".5", json!(0.5)),
            ("0o17", json!(15)),
            ("0xff", json!(255)),
            ("0777", json!(777)),
            ("2026-11-18", json!("2026-11-18")),
            ("1.2.3", json!("1.2.3")),
            ("12e", json!("12e")),
            ("[a, 1, {b: c}]", json!(["a", 1, { "b": "c" }])),
            ("|\n  two\n  lines", json!("two\nlines\n")),
            (">-\n  two\n  lines", json!("two lines")),
        ] {
            assert_eq!(yaml(&format!("key: {text}")), Ok(json!({ "key": value })), "{text}");
        }
    }

    #[test]
    fn what_json_cannot_hold_is_an_error_that_names_the_line() {
        for (text, expected) in [
            ("a: &x 1\nb: *x", "line 3 of the file, has an alias, which is not allowed"),
            ("a: !!str 1", "line 2 of the file, has a tag, which is not allowed"),
            ("a: 1\na: 2", "line 3 of the file, has the key \"a\" for the second time"),
            ("1: a", "line 2 of the file, has the key 1, which is not text"),
            ("a: .inf", "has \".inf\", which JSON cannot hold"),
            ("a: 0xfffffffffffffffff", "which JSON cannot hold"),
            ("- a", "must be a map"),
            ("a: [", "line "),
        ] {
            let error = yaml(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn nesting_and_length_are_bounded() {
        let deep = format!("a: {}{}", "[".repeat(40), "]".repeat(40));
        assert!(yaml(&deep).unwrap_err().contains("nested deeper than 16 levels"));
        let long = format!("a: {}", "x".repeat(LONGEST));
        assert!(yaml(&long).unwrap_err().contains("longer than 65536 bytes"));
    }

    #[test]
    fn fences_may_end_in_any_way_but_must_be_there() {
        assert_eq!(read(b"---\r\nname: a\r\n---\r\nrest"), yaml("name: a").map(object));
        assert_eq!(read(b"---\nname: a\n---"), yaml("name: a").map(object));
        assert!(read(b"# Title").unwrap_err().contains("must begin with front matter"));
        assert!(read(b"").unwrap_err().contains("must begin with front matter"));
        assert!(read(b"---\nname: a\n").unwrap_err().contains("second line `---`"));
        assert!(read(b"---\nname: \xff\n---\n").unwrap_err().contains("not UTF-8"));
    }

    fn object(value: Value) -> Extra {
        match value {
            Value::Object(members) => members,
            other => panic!("{other} is not an object"),
        }
    }
}
