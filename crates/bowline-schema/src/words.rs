//! Words for values and lists, short enough to be read.

use std::fmt::Write as _;
use std::io;

use serde_json::Value;

/// How many characters of a value, name or text messages repeat.
const MAX_SHOWN: usize = 60;

/// How long a text may be, and how many candidates it is compared with, to guess what was meant.
const MAX_COMPARED: usize = 32;
const MAX_CANDIDATES: usize = 32;

/// How many items of a list messages name.
const MAX_LISTED: usize = 24;

/// The text as a JSON string, cut off with `…` if it is long.
pub(crate) fn shorten(text: &str) -> String {
    Value::from(cut(text, MAX_SHOWN)).to_string()
}

/// At most `most` characters of a text, on one line.
pub(crate) fn cut(text: &str, most: usize) -> String {
    // Reading only the start keeps this cheap for a text of megabytes.
    let mut out: String =
        text.chars().take(most + 1).map(|c| if c < ' ' { ' ' } else { c }).collect();
    if out.chars().count() > most {
        out.pop();
        out.push('…');
    }
    out
}

/// A value in a message: itself if it is flat, its type otherwise.
///
/// Arrays and objects are never written out: they may be huge, and may hold a secret.
pub(crate) fn show(value: &Value) -> String {
    match value {
        Value::String(text) => shorten(text),
        Value::Array(items) => format!("an array of {}", items.len()),
        Value::Object(_) => "an object".to_owned(),
        other => cut(&other.to_string(), MAX_SHOWN),
    }
}

/// A choice that the schema offers. It is public, so it is written out.
pub(crate) fn show_choice(value: &Value) -> String {
    match value {
        Value::Array(_) | Value::Object(_) => {
            let mut out = Beginning(Vec::new());
            // Fails when the text is longer than will be shown.
            let _ = serde_json::to_writer(&mut out, value);
            cut(&String::from_utf8_lossy(&out.0), MAX_SHOWN)
        }
        _ => show(value),
    }
}

/// Keeps the first bytes of a text and rejects the rest.
struct Beginning(Vec<u8>);

impl io::Write for Beginning {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = (4 * MAX_SHOWN + 4).saturating_sub(self.0.len()).min(bytes.len());
        self.0.extend_from_slice(&bytes[..room]);
        Ok(room)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The type of a value, in words.
pub(crate) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// `a, b, c and 7 more`.
pub(crate) fn list<S: AsRef<str>>(items: impl ExactSizeIterator<Item = S>) -> String {
    let more = items.len().saturating_sub(MAX_LISTED);
    let mut out = String::new();
    for item in items.take(MAX_LISTED) {
        if !out.is_empty() {
            out.push_str(", ");
        }
        out.push_str(item.as_ref());
    }
    if more > 0 {
        let _ = write!(out, " and {more} more");
    }
    out
}

/// `a, b or c`, `a, b, c and 7 more`.
pub(crate) fn either<S: AsRef<str>>(
    mut items: impl ExactSizeIterator<Item = S> + DoubleEndedIterator,
) -> String {
    if items.len() < 2 || items.len() > MAX_LISTED {
        return list(items);
    }
    let last = items.next_back().map(|last| format!(" or {}", last.as_ref()));
    list(items) + &last.unwrap_or_default()
}

/// `1 item`, `2 items`.
pub(crate) fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// The candidate closest to `text`, if it is close enough.
pub(crate) fn closest<'a>(
    text: &str,
    candidates: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    if text.len() > MAX_COMPARED {
        return None;
    }
    let allowed = if text.len() < 4 { 1 } else { 2 };
    candidates
        .take(MAX_CANDIDATES)
        .filter(|candidate| candidate.len().abs_diff(text.len()) <= 4 * allowed)
        .map(|candidate| (distance(text, candidate), candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// The edit distance, ignoring case.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().flat_map(char::to_lowercase).collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, l) in left.chars().flat_map(char::to_lowercase).enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, r) in right.iter().enumerate() {
            let changed = diagonal + usize::from(l != *r);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_and_stay_json() {
        assert_eq!(shorten("a\"b"), r#""a\"b""#);
        assert_eq!(cut("héllo wörld", 5), "héllo…");
        assert_eq!(cut("two\nlines", 20), "two lines");
        assert_eq!(shorten(&"x".repeat(1000)).chars().count(), 63);
    }

    #[test]
    fn near_misses_are_found() {
        let units = ["metric", "imperial", "kelvin"];
        let check = |text, expected| assert_eq!(closest(text, units.into_iter()), expected);
        check("metrics", Some("metric"));
        check("Kelvin", Some("kelvin"));
        check("emperial", Some("imperial"));
        check("celsius", None);
    }
}
