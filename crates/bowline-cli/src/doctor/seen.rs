//! Bytes of a peer as a person may see them: shortened, and with nothing that moves a cursor.

use std::fmt::Write;

use crate::text::{cut, line};

/// Most characters that are shown of one thing.
const MOST: usize = 160;

/// The beginning of some bytes, in quotes; control characters and what is not UTF-8 are escaped.
pub(crate) fn quoted(bytes: &[u8]) -> String {
    let mut out = String::from("\"");
    let (mut shown, mut taken) = (0, 0);
    'all: for chunk in bytes.utf8_chunks() {
        for letter in chunk.valid().chars() {
            if shown == MOST {
                break 'all;
            }
            escape(&mut out, letter);
            shown += 1;
            taken += letter.len_utf8();
        }
        for byte in chunk.invalid() {
            if shown == MOST {
                break 'all;
            }
            // Writing to a string cannot fail.
            let _ = write!(out, "\\x{byte:02x}");
            shown += 1;
            taken += 1;
        }
    }
    out.push('"');
    if taken < bytes.len() {
        let _ = write!(out, "… ({} bytes)", bytes.len());
    }
    out
}

/// Text of a peer within a sentence: one line, escaped and shortened, without quotes.
pub(crate) fn plain(text: &str) -> String {
    cut(&line(text), MOST).into_owned()
}

fn escape(out: &mut String, letter: char) {
    match letter {
        '"' | '\\' => out.push(letter),
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}' => {
            out.extend(letter.escape_unicode());
        }
        letter if letter.is_control() => match u8::try_from(letter) {
            Ok(byte) if !matches!(byte, b'\n' | b'\r' | b'\t') => {
                let _ = write!(out, "\\x{byte:02x}");
            }
            _ => out.extend(letter.escape_default()),
        },
        letter => out.push(letter),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_moves_the_cursor() {
        for (bytes, expected) in [
            (&b"plain"[..], "\"plain\""),
            (b"a\tb\r\n", r#""a\tb\r\n""#),
            (b"\x1b[31mred", r#""\x1b[31mred""#),
            (b"\xff\xfe", r#""\xff\xfe""#),
            (b"{\"a\":1}", "\"{\"a\":1}\""),
            ("\u{202e}x\u{feff}".as_bytes(), r#""\u{202e}x\u{feff}""#),
            (b"", "\"\""),
        ] {
            assert_eq!(quoted(bytes), expected);
        }
        let long = quoted(&[b'x'; 1000]);
        assert!(long.ends_with("x\"… (1000 bytes)") && long.len() < 200, "{long}");
        assert!(plain(&"y".repeat(500)).ends_with("y…"));
    }
}
