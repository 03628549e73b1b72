//! Any text as a header value: plain if that is safe, otherwise `=?base64?…?=`.
//!
//! Used by `Mcp-Name` and `Mcp-Param-*` (2026-07-28, basic/transports/streamable-http, "Value
//! Encoding"), and by no other header. The page allows a plain tab inside a value; it is written in
//! base64 all the same, because the official conformance suite expects that and some proxies turn
//! tabs into spaces. A plain tab is accepted when reading.

use std::borrow::Cow;
use std::fmt;

use ::http::HeaderValue;

use crate::base64::STANDARD;

const PREFIX: &str = "=?base64?";
const SUFFIX: &str = "?=";

/// Writes `text` as a header value that [`decode_value`] reads back.
pub fn encode_value(text: &str) -> HeaderValue {
    let value = if is_plain(text) {
        HeaderValue::from_str(text)
    } else {
        HeaderValue::from_maybe_shared(format!(
            "{PREFIX}{}{SUFFIX}",
            STANDARD.encode(text.as_bytes())
        ))
    };
    value.expect("visible ASCII and inner spaces make a header value")
}

/// Reads a header value that may be encoded. Surrounding blanks are ignored.
///
/// # Errors
/// When it contains bytes other than visible ASCII, or is marked as base64 but is not.
pub fn decode_value(value: &HeaderValue) -> Result<Cow<'_, str>, DecodeError> {
    let text = read_plain(value)?;
    // In `=?base64?=` the prefix and the suffix would overlap, so that is plain text.
    let encoded = text.strip_prefix(PREFIX).and_then(|rest| rest.strip_suffix(SUFFIX));
    let Some(encoded) = encoded else {
        return Ok(Cow::Borrowed(text));
    };
    let bytes = STANDARD.decode(encoded).ok_or(DecodeError::Base64)?;
    let text = String::from_utf8(bytes).map_err(|_| DecodeError::Utf8)?;
    Ok(Cow::Owned(text))
}

/// The text of a header value that is never encoded, without surrounding blanks.
pub(super) fn read_plain(value: &HeaderValue) -> Result<&str, DecodeError> {
    let text = value.to_str().map_err(|_| DecodeError::NotAscii)?;
    Ok(text.trim_ascii())
}

/// Whether `text` can be written in a header as it is.
pub(super) fn is_plain(text: &str) -> bool {
    let is_ascii = text.bytes().all(|byte| matches!(byte, 0x20..=0x7E));
    let is_padded = text.starts_with(' ') || text.ends_with(' ');
    let is_marked = text.starts_with(PREFIX) && text.ends_with(SUFFIX);
    is_ascii && !is_padded && !is_marked
}

/// Why a header value is malformed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecodeError {
    /// It contains control characters or bytes beyond ASCII.
    NotAscii,
    /// It is marked as base64, but has a wrong alphabet, padding or length.
    Base64,
    /// The base64 is not the encoding of UTF-8 text.
    Utf8,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotAscii => "contains characters other than visible ASCII",
            Self::Base64 => "marked as base64, but not padded standard base64",
            Self::Utf8 => "base64 of text that is not UTF-8",
        })
    }
}

impl std::error::Error for DecodeError {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn values_and_their_headers() {
        for (text, header) in [
            ("us-west1", "us-west1"),
            ("", ""),
            ("us west 1", "us west 1"),
            ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
            (" padded ", "=?base64?IHBhZGRlZCA=?="),
            (" us-west1", "=?base64?IHVzLXdlc3Qx?="),
            ("us-west1 ", "=?base64?dXMtd2VzdDEg?="),
            ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
            ("line1\r\nline2", "=?base64?bGluZTENCmxpbmUy?="),
            ("\tindented", "=?base64?CWluZGVudGVk?="),
            ("a\tb", "=?base64?YQli?="),
            ("\u{7f}", "=?base64?fw==?="),
            ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
            ("=?base64?=", "=?base64?PT9iYXNlNjQ/PQ==?="),
            ("=?base64?SGVsbG8=", "=?base64?SGVsbG8="),
            ("SGVsbG8=?=", "SGVsbG8=?="),
            ("=?BASE64?SGVsbG8=?=", "=?BASE64?SGVsbG8=?="),
        ] {
            let value = encode_value(text);
            assert_eq!(value, header, "{text:?}");
            assert_eq!(decode_value(&value).unwrap(), text);
        }
    }

    #[test]
    fn other_headers_that_can_be_read() {
        for (header, text) in [
            ("  spaced\t", "spaced"),
            ("a\tb", "a\tb"),
            ("=?base64??=", ""),
            ("=?base64?SGVsbG8=?=", "Hello"),
            ("=?base64?=", "=?base64?="),
            ("=?Base64?SGVsbG8=?=", "=?Base64?SGVsbG8=?="),
            ("x=?base64?SGVsbG8=?=", "x=?base64?SGVsbG8=?="),
        ] {
            let value = HeaderValue::from_str(header).unwrap();
            assert_eq!(decode_value(&value).unwrap(), text);
        }
    }

    #[test]
    fn headers_that_cannot_be_read() {
        for (header, error) in [
            ("=?base64?SGVsbG8?=", DecodeError::Base64),
            ("=?base64?SGVsbG8==?=", DecodeError::Base64),
            ("=?base64?SGVs!!!bG8=?=", DecodeError::Base64),
            ("=?base64?SGVsb G8=?=", DecodeError::Base64),
            ("=?base64?_-8=?=", DecodeError::Base64),
            ("=?base64?/w==?=", DecodeError::Utf8),
            ("caf\u{e9}", DecodeError::NotAscii),
        ] {
            let value = HeaderValue::from_bytes(header.as_bytes()).unwrap();
            assert_eq!(decode_value(&value), Err(error), "{header:?}");
        }
    }

    proptest! {
        #[test]
        fn every_text_survives(text: String) {
            let value = encode_value(&text);
            prop_assert!(value.to_str().is_ok());
            prop_assert_eq!(decode_value(&value).unwrap(), text);
        }

        #[test]
        fn every_text_near_the_mark_survives(
            text in r"[ \t]?(=\?base64\?)?[a ?=\t\r\n]{0,4}(\?=)?[ \t]?",
        ) {
            let value = encode_value(&text);
            prop_assert_eq!(decode_value(&value).unwrap(), text);
        }

        #[test]
        fn no_header_panics(bytes: Vec<u8>) {
            if let Ok(value) = HeaderValue::from_bytes(&bytes) {
                let _ = decode_value(&value);
            }
        }
    }
}
