//! JSON for people: indented, coloured, every number and string to the letter.

use bowline::Json;

use crate::screen::{Paint, Style};
use crate::text::json_line;

/// JSON over lines, with a line break at the end.
pub(crate) fn pretty(json: &Json, paint: Paint) -> String {
    let mut text = indented(json.as_str(), paint, 0);
    text.push('\n');
    text
}

/// JSON over lines, the first of them where it stands and the others so many columns to the right.
pub(crate) fn indented(text: &str, paint: Paint, indent: usize) -> String {
    let text = json_line(text, true);
    let mut printer = Printer { out: String::new(), paint, depth: 0, indent };
    let mut rest = text.trim();
    while let Some(first) = rest.chars().next() {
        rest = printer.token(first, rest).trim_start_matches([' ', '\t']);
    }
    printer.out
}

struct Printer {
    out: String,
    paint: Paint,
    depth: usize,
    indent: usize,
}

impl Printer {
    /// Writes one token, and gives what follows it.
    fn token<'a>(&mut self, first: char, rest: &'a str) -> &'a str {
        match first {
            '{' | '[' => {
                let close = if first == '{' { '}' } else { ']' };
                let inside = rest[1..].trim_start_matches([' ', '\t']);
                self.out.push(first);
                if let Some(after) = inside.strip_prefix(close) {
                    self.out.push(close);
                    return after;
                }
                self.depth += 1;
                self.new_line();
                inside
            }
            '}' | ']' => {
                self.depth = self.depth.saturating_sub(1);
                self.new_line();
                self.out.push(first);
                &rest[1..]
            }
            ',' => {
                self.out.push(',');
                self.new_line();
                &rest[1..]
            }
            ':' => {
                self.out.push_str(": ");
                &rest[1..]
            }
            '"' => {
                let end = end_of_string(rest);
                let (text, after) = rest.split_at(end);
                let is_key = after.trim_start_matches([' ', '\t']).starts_with(':');
                let style = if is_key { Style::Cyan } else { Style::Green };
                self.out += &self.paint.paint(style, text);
                after
            }
            _ => {
                let end = rest.find([',', '}', ']', ' ', '\t']).unwrap_or(rest.len()).max(1);
                let (text, after) = rest.split_at(end);
                self.out += &self.paint.paint(Style::Yellow, text);
                after
            }
        }
    }

    fn new_line(&mut self) {
        self.out.push('\n');
        self.out.extend(std::iter::repeat_n(' ', self.indent + 2 * self.depth));
    }
}

/// Where the string that begins here ends; the end of the text if it does not.
fn end_of_string(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

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
