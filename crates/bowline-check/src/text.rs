//! Text from elsewhere, made safe for a terminal and for a report: what a reader cannot see, or a
//! terminal obeys, becomes a visible escape. The program and all reports use these functions.

use std::borrow::Cow;

/// Text that a terminal displays and does not obey. Control, bidi and invisible characters become
/// escapes such as `\u{202e}`; line breaks and tabs stay.
pub fn plain(text: &str) -> Cow<'_, str> {
    let is_bad = |letter: char, is_hidden: bool| is_hidden && !matches!(letter, '\n' | '\t');
    if !marked(text).any(|(letter, is_hidden)| is_bad(letter, is_hidden)) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 8);
    for (letter, is_hidden) in marked(&text.replace("\r\n", "\n")) {
        if is_bad(letter, is_hidden) {
            safe.extend(letter.escape_default());
        } else {
            safe.push(letter);
        }
    }
    Cow::Owned(safe)
}

/// The same on one line: line breaks and tabs become spaces.
pub fn line(text: &str) -> String {
    plain(text.replace("\r\n", " ").replace(['\n', '\r', '\t'], " ").trim()).into_owned()
}

/// The same, and at most this many characters of the text.
pub fn shorten(text: &str, most: usize) -> String {
    let end = text.char_indices().nth(most).map_or(text.len(), |(at, _)| at);
    let mut short = line(&text[..end]);
    let left = text[end..].chars().count();
    if left > 0 {
        short.push_str(&format!("… ({left} more)"));
    }
    short
}

/// Each character, and whether it must be escaped: a terminal obeys it, or nobody sees it.
///
/// Joiners and variation selectors stay where writing needs them: inside emoji, and between the
/// letters of scripts other than Latin.
pub fn marked(text: &str) -> impl Iterator<Item = (char, bool)> {
    let mut letters = text.chars().peekable();
    let mut before = None;
    std::iter::from_fn(move || {
        let letter = letters.next()?;
        let is_hidden = match letter {
            '\u{200c}' | '\u{200d}' => {
                let after = letters.peek().copied();
                !before.is_some_and(|it| is_joined(it) || is_selector(it))
                    || !after.is_some_and(is_joined)
            }
            _ if is_selector(letter) => !before.is_some_and(|it| takes_selector(it, letter)),
            _ => is_command(letter) || is_invisible(letter),
        };
        before = Some(letter).filter(|_| !is_hidden);
        Some((letter, is_hidden))
    })
}

/// Whether a terminal obeys a character, or breaks or reorders lines because of it.
fn is_command(letter: char) -> bool {
    letter.is_control()
        || matches!(letter,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Whether nothing is drawn for a character: `Default_Ignorable_Code_Point` of Unicode, without
/// joiners and selectors, and the anchors of interlinear notes.
fn is_invisible(letter: char) -> bool {
    matches!(letter,
        '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}'
        | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

fn is_selector(letter: char) -> bool {
    matches!(letter, '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}')
}

/// Whether a joiner may stand beside it.
fn is_joined(letter: char) -> bool {
    let is_joiner = matches!(letter, '\u{200c}' | '\u{200d}');
    !letter.is_ascii()
        && !letter.is_whitespace()
        && !is_joiner
        && !is_selector(letter)
        && !is_command(letter)
        && !is_invisible(letter)
}

/// Whether a selector may follow it: one, not a row of them that carries a message.
fn takes_selector(letter: char, selector: char) -> bool {
    match selector {
        '\u{fe00}'..='\u{fe0f}' => {
            is_joined(letter) || letter.is_ascii_digit() || matches!(letter, '#' | '*')
        }
        _ => {
            matches!(letter, '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_obeyed_or_unseen_is_escaped() {
        for (text, shown) in [
            ("a\r\nb", "a\nb"),
            ("a\rb", "a\\rb"),
            ("\u{1b}[2J", "\\u{1b}[2J"),
            ("\u{9b}31m\u{7f}\u{0}", "\\u{9b}31m\\u{7f}\\u{0}"),
            ("\u{202e}cod", "\\u{202e}cod"),
            ("a\u{200b}b\u{61c}c", "a\\u{200b}b\\u{61c}c"),
            ("a\u{2028}b\u{2029}c", "a\\u{2028}b\\u{2029}c"),
            ("x\u{e0041}\u{e007f}", "x\\u{e0041}\\u{e007f}"),
            ("pass\u{ad}word\u{2060}\u{feff}", "pass\\u{ad}word\\u{2060}\\u{feff}"),
            // Joiners between Latin letters, and selectors that carry a message.
            ("ad\u{200d}min\u{200c}", "ad\\u{200d}min\\u{200c}"),
            ("a\u{fe01}", "a\\u{fe01}"),
            ("😀\u{fe0f}\u{fe01}\u{fe02}", "😀\u{fe0f}\\u{fe01}\\u{fe02}"),
            ("😀\u{e0101}", "😀\\u{e0101}"),
        ] {
            assert_eq!(plain(text), shown, "{text:?}");
        }
    }

    #[test]
    fn what_people_write_stays() {
        for text in [
            "plain ü 表",
            "a\nb\tc",
            "日本語のテキスト、葛\u{e0100}飾区",
            "مرحبا بالعالم",
            "می\u{200c}خواهم",
            "क्\u{200d}ष",
            "👩\u{200d}👩\u{200d}👧 🏳\u{fe0f}\u{200d}🌈 👍🏽 1\u{fe0f}\u{20e3} ❤\u{fe0f}",
        ] {
            assert_eq!(plain(text), text);
        }
    }

    #[test]
    fn lines_are_single_and_short() {
        assert_eq!(line("  a\n b\tc\r\nd "), "a  b c d");
        assert_eq!(shorten("plain", 10), "plain");
        assert_eq!(shorten("a\nb\x1b[2J", 10), "a b\\u{1b}[2J");
        assert_eq!(shorten("äöüß", 2), "äö… (2 more)");
    }
}
