//! Writes strings as JSON, a run of plain bytes at a time.

use super::stop::find_stop;

/// Appends a string in quotes, exactly as `serde_json` would, which examines each byte.
pub(crate) fn write_string(out: &mut Vec<u8>, text: &str) {
    // What follows a long text is short; it must not make the buffer grow again.
    out.reserve(text.len() + 256);
    out.push(b'"');
    let mut rest = text.as_bytes();
    while let Some(stop) = find_stop(rest) {
        out.extend_from_slice(&rest[..stop]);
        write_escape(out, rest[stop]);
        rest = &rest[stop + 1..];
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}

fn write_escape(out: &mut Vec<u8>, byte: u8) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let short = match byte {
        b'"' | b'\\' => byte,
        b'\n' => b'n',
        b'\t' => b't',
        b'\r' => b'r',
        0x08 => b'b',
        0x0c => b'f',
        _ => {
            let (high, low) = (DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]);
            return out.extend_from_slice(&[b'\\', b'u', b'0', b'0', high, low]);
        }
    };
    out.extend_from_slice(&[b'\\', short]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_written_as_serde_json_writes_them() {
        let all: String = (0..=0x2ff).filter_map(char::from_u32).collect();
        for text in ["", "plain", "\"", "a\\b\n", "déjà vu \u{1F980}\u{7f}\u{2028}", &all] {
            for shift in 0..80 {
                let text = " ".repeat(shift) + text;
                let mut out = Vec::new();
                write_string(&mut out, &text);
                assert_eq!(String::from_utf8(out).unwrap(), serde_json::to_string(&text).unwrap());
            }
        }
    }
}
