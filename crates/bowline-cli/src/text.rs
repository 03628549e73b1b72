//! Fits text to the terminal's width, and JSON to a line; `bowline_check::text` makes it safe.

use std::borrow::Cow;

use bowline_check::text::marked;
pub(crate) use bowline_check::text::{line, plain};
pub(crate) use bowline_gateway::redact::end_of_string;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The same JSON on one line; if `is_terminal`, safe for it.
///
/// Raw line breaks occur only between tokens, so they can go.
pub(crate) fn json_line(text: &str, is_terminal: bool) -> Cow<'_, str> {
    let is_bad = |(letter, is_hidden): (char, bool)| {
        matches!(letter, '\n' | '\r') || is_terminal && is_hidden && letter != '\t'
    };
    if !marked(text).any(is_bad) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len());
    for (letter, is_hidden) in marked(text) {
        match letter {
            '\n' | '\r' => {}
            _ if is_bad((letter, is_hidden)) => {
                let mut units = [0; 2];
                for unit in letter.encode_utf16(&mut units) {
                    safe.push_str(&format!("\\u{unit:04x}"));
                }
            }
            _ => safe.push(letter),
        }
    }
    Cow::Owned(safe)
}

pub(crate) fn width(text: &str) -> usize {
    text.width()
}

/// A line cut to so many columns, with an ellipsis where it was cut.
pub(crate) fn cut(text: &str, columns: usize) -> Cow<'_, str> {
    if width(text) <= columns {
        return Cow::Borrowed(text);
    }
    let mut taken = 0;
    let mut end = 0;
    for (at, letter) in text.char_indices() {
        let wide = letter.width().unwrap_or(0);
        if taken + wide + 1 > columns {
            break;
        }
        taken += wide;
        end = at + letter.len_utf8();
    }
    Cow::Owned(format!("{}…", text[..end].trim_end()))
}

/// Text broken at spaces into lines of at most so many columns; its own line breaks stay.
pub(crate) fn wrap(text: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(10);
    let mut lines = Vec::new();
    for paragraph in text.lines() {
        let mut current = String::new();
        for word in paragraph.split_whitespace() {
            if !current.is_empty() && width(&current) + 1 + width(word) > columns {
                lines.push(std::mem::take(&mut current));
            }
            if !current.is_empty() {
                current.push(' ');
            }
            current.push_str(word);
        }
        lines.push(current);
    }
    lines
}

/// Text made safe, wrapped and indented by two columns.
pub(crate) fn paragraphs(text: &str, columns: usize) -> String {
    let lines = wrap(&plain(text), columns - 2);
    lines.iter().map(|line| format!("{}\n", format!("  {line}").trim_end())).collect()
}

/// Similar names, the most similar first; for "did you mean".
pub(crate) fn near<'a>(wanted: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let wanted = wanted.to_lowercase();
    // Very short names are all similar.
    let length = wanted.chars().count();
    let allowed = if length < 3 { 0 } else { length / 3 };
    let mut found: Vec<(usize, &str)> = names
        .into_iter()
        .filter_map(|name| {
            let lower = name.to_lowercase();
            let distance = strsim::osa_distance(&wanted, &lower);
            let has_part = wanted.len() > 2 && (lower.contains(&wanted) || wanted.contains(&lower));
            (distance <= allowed || has_part).then_some((distance, name))
        })
        .collect();
    found.sort_by_key(|(distance, _)| *distance);
    let nearest = found.first().map_or(0, |(distance, _)| *distance);
    let found = found.into_iter().filter(|(distance, _)| *distance <= nearest + 1);
    found.map(|(_, name)| name).take(3).collect()
}

/// "did you mean a or b?", if there are similar names.
pub(crate) fn did_you_mean<'a>(
    wanted: &str,
    names: impl IntoIterator<Item = &'a str>,
) -> Option<String> {
    let near = near(wanted, names);
    (!near.is_empty()).then(|| format!("did you mean {}?", near.join(" or ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_stays_the_same_json_on_one_line() {
        let text = "{\n  \"a\": \"\u{9b}x\"\r\n}";
        assert_eq!(json_line(text, false), "{  \"a\": \"\u{9b}x\"}");
        assert_eq!(json_line(text, true), "{  \"a\": \"\\u009bx\"}");
        assert_eq!(json_line("{\"a\":\t1}", true), "{\"a\":\t1}");
        assert_eq!(json_line("\"\u{e0041}👍🏽\"", true), "\"\\udb40\\udc41👍🏽\"");
    }

    #[test]
    fn lines_fit() {
        assert_eq!(cut("abcdef", 6), "abcdef");
        assert_eq!(cut("abcdefg", 6), "abcde…");
        assert_eq!(cut("表表表表", 6), "表表…");
        assert_eq!(wrap("one two three\n\nfour", 10), ["one two", "three", "", "four"]);
    }

    #[test]
    fn near_names_are_found() {
        let names = ["increment", "decrement", "get_value"];
        assert_eq!(near("incremnet", names), ["increment"]);
        assert_eq!(near("value", names), ["get_value"]);
        assert!(near("zebra", names).is_empty());
        assert!(near("c", ["a", "b"]).is_empty());
        let asked = did_you_mean("tool_x", ["tool_a", "tool_b", "other"]);
        assert_eq!(asked.as_deref(), Some("did you mean tool_a or tool_b?"));
    }
}
