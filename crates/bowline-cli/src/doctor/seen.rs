//! Bytes and times as people read them: shortened, with nothing that moves the cursor.

use std::time::Duration;

use bowline_check::text::marked;

use crate::text::{cut, line};

/// Longest excerpt, in characters.
const LONGEST: usize = 160;

/// The beginning of some bytes, in quotes; control characters and invalid UTF-8 are escaped.
pub(crate) fn quoted(bytes: &[u8]) -> String {
    let pieces = bytes.utf8_chunks().flat_map(|chunk| {
        let valid = marked(chunk.valid());
        let valid = valid.map(|(letter, is_hidden)| (letter.len_utf8(), escape(letter, is_hidden)));
        valid.chain(chunk.invalid().iter().map(|byte| (1, format!("\\x{byte:02x}"))))
    });
    let mut taken = 0;
    let mut text = String::new();
    for (length, piece) in pieces.take(LONGEST) {
        taken += length;
        text.push_str(&piece);
    }
    let rest =
        if taken < bytes.len() { format!("… ({} bytes)", bytes.len()) } else { String::new() };
    format!("\"{text}\"{rest}")
}

/// A peer's text within a sentence: one line, escaped and shortened, without quotes.
pub(crate) fn plain(text: &str) -> String {
    cut(&line(text), LONGEST).into_owned()
}

pub(crate) fn seconds(time: Duration) -> String {
    match time.as_millis() {
        millis @ 0..1000 => format!("{millis} ms"),
        _ => format!("{:.1} s", time.as_secs_f64()),
    }
}

fn escape(letter: char, is_hidden: bool) -> String {
    match letter {
        '\n' | '\r' | '\t' => letter.escape_default().to_string(),
        letter if letter.is_control() => format!("\\x{:02x}", u32::from(letter)),
        letter if is_hidden => letter.escape_unicode().to_string(),
        letter => letter.to_string(),
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
