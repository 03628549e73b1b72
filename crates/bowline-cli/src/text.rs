//! Text of others made safe for a terminal, and fitted into it.

use std::borrow::Cow;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Text that a terminal can show and cannot obey: control characters become visible escapes, line
/// breaks and tabs stay.
pub(crate) fn plain(text: &str) -> Cow<'_, str> {
    escaped(text, |letter| matches!(letter, '\n' | '\t'))
}

/// The same on one line: line breaks and tabs become blanks.
pub(crate) fn line(text: &str) -> String {
    let text = text.replace("\r\n", " ");
    let text: String =
        text.chars().map(|it| if matches!(it, '\n' | '\r' | '\t') { ' ' } else { it }).collect();
    plain(text.trim()).into_owned()
}

/// JSON text as one line that a terminal cannot obey, and that means the same.
///
/// Raw line breaks stand only between tokens, so they can go.
pub(crate) fn json_line(text: &str, is_terminal: bool) -> Cow<'_, str> {
    let is_bad = |letter: char| {
        matches!(letter, '\n' | '\r') || is_terminal && letter != '\t' && commands(letter)
    };
    if !text.contains(is_bad) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\n' | '\r' => {}
            _ if is_bad(letter) => {
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

/// Whether a terminal obeys a character, or shows others in another order because of it.
fn commands(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}')
}

fn escaped(text: &str, stays: impl Fn(char) -> bool) -> Cow<'_, str> {
    let is_bad = |letter: char| commands(letter) && !stays(letter);
    if !text.contains(is_bad) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 8);
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            // The line break of other systems.
            '\r' if letters.peek() == Some(&'\n') => {}
            _ if is_bad(letter) => safe.extend(letter.escape_default()),
            _ => safe.push(letter),
        }
    }
    Cow::Owned(safe)
}

/// How many columns a line takes.
pub(crate) fn width(text: &str) -> usize {
    text.width()
}

/// A line cut to so many columns, with a mark where it was cut.
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

/// Text in lines of so many columns at most, broken at blanks; its own line breaks stay.
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

/// Names that look like this one, nearest first; for "did you mean".
pub(crate) fn near<'a>(wanted: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let wanted = wanted.to_lowercase();
    // In very short names everything is near everything.
    let length = wanted.chars().count();
    let allowed = if length < 3 { 0 } else { length / 3 };
    let mut found: Vec<(usize, &str)> = names
        .into_iter()
        .filter_map(|name| {
            let lower = name.to_lowercase();
            let distance = distance(&wanted, &lower);
            let has_part = wanted.len() > 2 && (lower.contains(&wanted) || wanted.contains(&lower));
            (distance <= allowed || has_part).then_some((distance, name))
        })
        .collect();
    found.sort_by_key(|(distance, _)| *distance);
    let nearest = found.first().map_or(0, |(distance, _)| *distance);
    let found = found.into_iter().filter(|(distance, _)| *distance <= nearest + 1);
    found.map(|(_, name)| name).take(3).collect()
}

/// "did you mean a or b?", if there is anything near.
pub(crate) fn did_you_mean<'a>(
    wanted: &str,
    names: impl IntoIterator<Item = &'a str>,
) -> Option<String> {
    let near = near(wanted, names);
    (!near.is_empty()).then(|| format!("did you mean {}?", near.join(" or ")))
}

/// How many letters differ: inserted, taken out, replaced, or swapped with their neighbour.
fn distance(one: &str, two: &str) -> usize {
    let (one, two): (Vec<char>, Vec<char>) = (one.chars().collect(), two.chars().collect());
    // What is this long is no slip of the finger.
    if one.len().max(two.len()) > 64 {
        return if one == two { 0 } else { usize::MAX };
    }
    let mut rows = vec![(0..=two.len()).collect::<Vec<usize>>()];
    for (i, a) in one.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, b) in two.iter().enumerate() {
            let replaced = rows[i][j] + usize::from(a != b);
            let mut best = replaced.min(rows[i][j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *a == two[j - 1] && one[i - 1] == *b {
                best = best.min(rows[i - 1][j - 1] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[one.len()][two.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_obeys_gets_through() {
        for (text, shown) in [
            ("plain ü 表", "plain ü 表"),
            ("a\nb\tc", "a\nb\tc"),
            ("a\r\nb", "a\nb"),
            ("a\rb", "a\\rb"),
            ("\u{1b}[2J", "\\u{1b}[2J"),
            ("\u{9b}31m\u{7f}\u{0}", "\\u{9b}31m\\u{7f}\\u{0}"),
            ("\u{202e}cod", "\\u{202e}cod"),
        ] {
            assert_eq!(plain(text), shown, "{text:?}");
        }
        assert_eq!(line("  a\n b\tc\r\nd "), "a  b c d");
    }

    #[test]
    fn json_stays_the_same_json_on_one_line() {
        let text = "{\n  \"a\": \"\u{9b}x\"\r\n}";
        assert_eq!(json_line(text, false), "{  \"a\": \"\u{9b}x\"}");
        assert_eq!(json_line(text, true), "{  \"a\": \"\\u009bx\"}");
        assert_eq!(json_line("{\"a\":\t1}", true), "{\"a\":\t1}");
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
