//! Control characters, which can make one message look like two or hide a part of it.
//!
//! A line break can forge a record, an escape sequence can repaint a terminal, and a change of
//! writing direction can make text look like something else. They are escaped: ASCII controls as in
//! rsyslogd (`#012`), the others as `<U+2028>`.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What to do with control characters in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ControlCharacters {
    /// Escape them, such as `#012` for a line break.
    #[default]
    Escape,
    /// Send them unchanged. The receiver must be able to handle them.
    Keep,
}

impl ControlCharacters {
    /// The text as it is sent.
    pub fn apply(self, text: &str) -> Cow<'_, str> {
        match self {
            Self::Escape => escape(text),
            Self::Keep => Cow::Borrowed(text),
        }
    }
}

/// Escapes every character for which [`is_control`] is true.
pub fn escape(text: &str) -> Cow<'_, str> {
    if !text.contains(is_control) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        match u32::from(character) {
            _ if !is_control(character) => escaped.push(character),
            code @ 0..=0x7F => escaped += &format!("#{code:03o}"),
            code => escaped += &format!("<U+{code:04X}>"),
        }
    }
    Cow::Owned(escaped)
}

/// ASCII and Latin-1 controls, line and paragraph separators, direction marks, and the byte order
/// mark, which belongs only at the start of a text.
pub fn is_control(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{2028}' | '\u{2029}'
                | '\u{61C}' | '\u{200E}' | '\u{200F}'
                | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}'
                | '\u{FEFF}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deceptive_characters_are_escaped() {
        fn check(text: &str, escaped: &str) {
            assert_eq!(escape(text), escaped);
            assert!(!escape(text).contains(is_control));
        }
        check("plain, with # and <U+>", "plain, with # and <U+>");
        check("日本語 é 🎌", "日本語 é 🎌");
        check("a\r\n<14>forged", "a#015#012<14>forged");
        check("\0\t\u{7}\u{1b}[31m\u{7f}", "#000#011#007#033[31m#177");
        check("a\u{85}b\u{2028}c\u{9b}", "a<U+0085>b<U+2028>c<U+009B>");
        check("\u{202e}txt\u{feff}", "<U+202E>txt<U+FEFF>");
    }
}
