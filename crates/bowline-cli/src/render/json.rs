//! JSON for people: indented and coloured, every number as it came, escaped letters as letters.

use std::borrow::Cow;

use bowline::Json;
use serde_json::Value;

use crate::screen::{Paint, Style};
use crate::text::{end_of_string, json_line};

/// An object whose members are JSON already, and stay to the letter.
pub(crate) fn object<'a>(members: impl IntoIterator<Item = (&'a str, &'a str)>) -> Json {
    let members = members.into_iter().map(|(name, value)| format!("{}:{value}", Value::from(name)));
    let text = format!("{{{}}}", members.collect::<Vec<_>>().join(","));
    Json::from_text(text).unwrap_or_else(|_| Json::null())
}

/// JSON over several lines, with a line break at the end.
pub(crate) fn pretty(json: &Json, paint: Paint) -> String {
    indented(json.as_str(), paint, 0) + "\n"
}

/// JSON over several lines; those after the first are indented by so many columns.
pub(crate) fn indented(text: &str, paint: Paint, indent: usize) -> String {
    let text = json_line(text, true);
    let mut rest = text.trim();
    let mut out = String::new();
    let mut depth = 0_usize;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '"' => end_of_string(rest).unwrap_or(rest.len()),
            '{' | '[' | '}' | ']' | ',' | ':' => 1,
            _ => rest.find([',', '}', ']', ' ', '\t']).unwrap_or(rest.len()).max(1),
        };
        let (token, after) = rest.split_at(length);
        let token = &*if first == '"' { readable(token) } else { Cow::Borrowed(token) };
        rest = after.trim_start_matches([' ', '\t']);
        match first {
            ':' => out.push_str(": "),
            '{' | '[' | '}' | ']' | ',' => out.push_str(token),
            '"' if rest.starts_with(':') => out += &paint.paint(Style::Cyan, token),
            '"' => out += &paint.paint(Style::Green, token),
            _ => out += &paint.paint(Style::Yellow, token),
        }
        let (opens, closes) = (matches!(first, '{' | '['), rest.starts_with(['}', ']']));
        depth = (depth + usize::from(opens)).saturating_sub(usize::from(closes));
        // Empty objects and arrays stay on their line.
        if first == ',' || opens != closes {
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', indent + 2 * depth));
        }
    }
    out
}

/// A JSON string whose escaped letters are letters: `\u65e5` is what a machine writes. What a
/// terminal must not see stays escaped.
fn readable(token: &str) -> Cow<'_, str> {
    if !token.contains("\\u") {
        return Cow::Borrowed(token);
    }
    let Ok(text) = serde_json::from_str::<String>(token) else { return Cow::Borrowed(token) };
    let written = Value::from(text).to_string();
    Cow::Owned(json_line(&written, true).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escaped_letters_are_letters() {
        for (text, shown) in [
            (r#""\u65e5\u672c""#, "\"日本\""),
            (r#""\ud83d\ude00\u0022\n""#, "\"😀\\\"\\n\""),
            (r#""\u001b[2J\u202e""#, r#""\u001b[2J\u202e""#),
            (r#""\ud83d""#, r#""\ud83d""#),
        ] {
            assert_eq!(indented(text, Paint(false), 0), shown);
        }
    }

    #[test]
    fn every_letter_stays() {
        let text = r#"{"a":1.50,"b":[],"c":[true,{"d":"x, \"y\": {"}],"e" : {}}"#;
        let shown = indented(text, Paint(false), 0);
        let expected = "{\n  \"a\": 1.50,\n  \"b\": [],\n  \"c\": [\n    true,\n    {\n      \
            \"d\": \"x, \\\"y\\\": {\"\n    }\n  ],\n  \"e\": {}\n}";
        assert_eq!(shown, expected);
        assert_eq!(indented("\"\u{9b}\"", Paint(false), 0), "\"\\u009b\"");
        assert_eq!(indented("12", Paint(false), 0), "12");
    }
}
