//! JSON as it occurs in config files: with comments and trailing commas.

use serde_json::Value;

/// Reads JSON with comments and trailing commas.
pub(super) fn parse(text: &str) -> Result<Value, serde_json::Error> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.trim().is_empty() {
        return Ok(Value::Object(serde_json::Map::new()));
    }
    serde_json::from_str(&without_extras(text))
}

/// Replaces what JSON does not have with spaces, so that errors name the right line and column.
fn without_extras(text: &str) -> String {
    let mut bytes = text.as_bytes().to_vec();
    let mut at = 0;
    // A comma followed only by spaces and comments so far.
    let mut comma = None;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => {
                comma = None;
                at += 1;
                while at < bytes.len() && bytes[at] != b'"' {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
            }
            b'/' if bytes.get(at + 1) == Some(&b'/') => {
                while at < bytes.len() && bytes[at] != b'\n' {
                    bytes[at] = b' ';
                    at += 1;
                }
            }
            b'/' if bytes.get(at + 1) == Some(&b'*') => {
                let end = bytes[at + 2..].windows(2).position(|pair| pair == b"*/");
                let end = end.map_or(bytes.len(), |end| at + end + 4);
                for byte in bytes[at..end].iter_mut().filter(|byte| **byte != b'\n') {
                    *byte = b' ';
                }
                at = end - 1;
            }
            b',' => comma = Some(at),
            b'}' | b']' => {
                if let Some(comma) = comma.take() {
                    bytes[comma] = b' ';
                }
            }
            byte if byte.is_ascii_whitespace() => {}
            _ => comma = None,
        }
        at += 1;
    }
    // Only whole characters in comments were replaced, byte by byte.
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn comments_and_commas_are_forgiven() {
        for (text, value) in [
            ("\u{feff}{ // ü\n \"a\": 1, }", json!({ "a": 1 })),
            ("{ /* \" */ \"a\": [1, 2, /* x */ ], }", json!({ "a": [1, 2] })),
            (r#"{ "u": "http://x//y", "q": "\"//" }"#, json!({ "u": "http://x//y", "q": "\"//" })),
            ("{ \"a\": \"/* no */\" } // end", json!({ "a": "/* no */" })),
            ("", json!({})),
        ] {
            assert_eq!(parse(text).unwrap(), value, "{text}");
        }
        for text in ["{ /* ", "{ \"a", "{,}x", "\"\\", "/"] {
            assert!(parse(text).is_err(), "{text}");
        }
        let told = parse("{\n  // c\n  \"a\" 1\n}").unwrap_err();
        assert_eq!(told.line(), 3);
    }
}
