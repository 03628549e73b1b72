//! Strict base64: every value has exactly one encoding.
//!
//! Eighty lines instead of a dependency. A decoder that accepts several encodings of one value
//! would let a proxy and a server disagree about it. [`STANDARD`] is what the protocol uses,
//! [`URL`] what fits in a URL.

/// The standard alphabet, padded.
pub const STANDARD: Base64 = Base64 { last_two: *b"+/", is_padded: true };

/// The URL-safe alphabet, never padded.
pub const URL: Base64 = Base64 { last_two: *b"-_", is_padded: false };

/// A base64 variant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Base64 {
    last_two: [u8; 2],
    is_padded: bool,
}

impl Base64 {
    /// The length of the encoding of this many bytes.
    pub const fn encoded_length(self, bytes: usize) -> usize {
        if self.is_padded { bytes.div_ceil(3) * 4 } else { bytes / 3 * 4 + [0, 2, 3][bytes % 3] }
    }

    /// Encodes bytes.
    pub fn encode(self, bytes: &[u8]) -> String {
        let mut text = String::with_capacity(self.encoded_length(bytes.len()));
        for group in bytes.chunks(3) {
            let mut word = [0; 4];
            word[1..=group.len()].copy_from_slice(group);
            let word = u32::from_be_bytes(word);
            for position in 0..=group.len() {
                text.push(self.letter((word >> (18 - 6 * position)) & 0x3F));
            }
            if self.is_padded {
                text.push_str(&"=="[group.len() - 1..]);
            }
        }
        text
    }

    /// Decodes `text`, or returns `None` if [`Base64::encode`] would not have written it.
    pub fn decode(self, text: &str) -> Option<Vec<u8>> {
        let body = if self.is_padded { without_padding(text)? } else { text };
        let mut bytes = Vec::with_capacity(body.len() / 4 * 3 + 2);
        for group in body.as_bytes().chunks(4) {
            let mut word = 0_u32;
            for position in 0..4 {
                let sextet = group.get(position).map_or(Some(0), |&letter| self.sextet(letter))?;
                word = word << 6 | u32::from(sextet);
            }
            let [_, first, second, third] = word.to_be_bytes();
            // Unused bits must be zero, or one value would have several encodings.
            match group.len() {
                2 if second == 0 && third == 0 => bytes.push(first),
                3 if third == 0 => bytes.extend([first, second]),
                4 => bytes.extend([first, second, third]),
                _ => return None,
            }
        }
        Some(bytes)
    }

    fn letter(self, sextet: u32) -> char {
        // Six bits fit.
        let sextet = u8::try_from(sextet).unwrap_or(63);
        char::from(match sextet {
            0..26 => b'A' + sextet,
            26..52 => b'a' + sextet - 26,
            52..62 => b'0' + sextet - 52,
            62 => self.last_two[0],
            _ => self.last_two[1],
        })
    }

    fn sextet(self, letter: u8) -> Option<u8> {
        match letter {
            b'A'..=b'Z' => Some(letter - b'A'),
            b'a'..=b'z' => Some(letter - b'a' + 26),
            b'0'..=b'9' => Some(letter - b'0' + 52),
            _ if letter == self.last_two[0] => Some(62),
            _ if letter == self.last_two[1] => Some(63),
            _ => None,
        }
    }
}

/// The text without its padding, if its length is right.
fn without_padding(text: &str) -> Option<&str> {
    if !text.len().is_multiple_of(4) {
        return None;
    }
    let body = text.strip_suffix('=').unwrap_or(text);
    Some(body.strip_suffix('=').unwrap_or(body))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn known_texts() {
        for (bytes, standard, url) in [
            (&b""[..], "", ""),
            (b"f", "Zg==", "Zg"),
            (b"fo", "Zm8=", "Zm8"),
            (b"foo", "Zm9v", "Zm9v"),
            (b"foob", "Zm9vYg==", "Zm9vYg"),
            (b"\xFB\xFF\xBF", "+/+/", "-_-_"),
        ] {
            for (base64, text) in [(STANDARD, standard), (URL, url)] {
                assert_eq!(base64.encode(bytes), text);
                assert_eq!(base64.decode(text).as_deref(), Some(bytes));
                assert_eq!(base64.encoded_length(bytes.len()), text.len());
            }
        }
    }

    #[test]
    fn one_value_has_one_encoding() {
        let standard = ["Z", "Zg", "Zg=", "Zg===", "Zh==", "Zm9=", "====", "Zm8-", "Zm 8", "é==="];
        for text in standard {
            assert_eq!(STANDARD.decode(text), None, "{text}");
        }
        let url = ["Z", "Zg=", "Zg==", "Zh", "Zm9", "Zm9vZ", "Zm8+", "Zm8/", "Zm 8", "Zm8\n", "é"];
        for text in url {
            assert_eq!(URL.decode(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn bytes_round_trip(bytes: Vec<u8>) {
            for base64 in [STANDARD, URL] {
                prop_assert_eq!(base64.decode(&base64.encode(&bytes)), Some(bytes.clone()));
            }
        }

        #[test]
        fn accepted_texts_round_trip(text in "[A-Za-z0-9+/=_-]{0,12}") {
            for base64 in [STANDARD, URL] {
                if let Some(bytes) = base64.decode(&text) {
                    prop_assert_eq!(base64.encode(&bytes), text.clone());
                }
            }
        }
    }
}
