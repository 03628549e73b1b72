//! Converts text to the encoding the receiver expects.
//!
//! A syslog message does not declare its encoding, so both sides must agree on it beforehand. Only
//! encodings that leave ASCII unchanged can carry a message.

use std::str::FromStr;

use encoding_rs::{EncoderResult, Encoding, UTF_8};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An encoding for messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Charset(&'static Encoding);

/// The most common encodings.
pub const COMMON: [&str; 12] = [
    "utf-8",
    "shift_jis",
    "cp932",
    "euc-jp",
    "iso-2022-jp",
    "gbk",
    "gb18030",
    "big5",
    "euc-kr",
    "windows-1252",
    "iso-8859-15",
    "koi8-r",
];

/// Names in use that the Encoding Standard's labels lack.
const ALIASES: [(&str, &str); 10] = [
    ("cp932", "shift_jis"),
    ("ms932", "shift_jis"),
    ("s-jis", "shift_jis"),
    ("eucjp", "euc-jp"),
    ("euc_jp", "euc-jp"),
    ("ujis", "euc-jp"),
    ("jis", "iso-2022-jp"),
    ("cp936", "gbk"),
    ("cp949", "euc-kr"),
    ("utf-8-bom", "utf-8"),
];

/// What to do with characters the encoding does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OnUnmappable {
    /// Send nothing.
    #[default]
    Error,
    /// Send a question mark.
    Replace,
    /// Send a similar character if there is one, otherwise a question mark.
    Translit,
}

/// Whether a byte order mark announces UTF-8.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Bom {
    /// Before UTF-8 text that is not plain ASCII, where it makes a difference.
    #[default]
    Auto,
    /// Before every UTF-8 text.
    Always,
    /// Never.
    Never,
}

/// Why an encoding is rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CharsetError {
    /// It is unknown.
    #[error("unknown encoding {0:?}; common ones are {common}", common = COMMON.join(", "))]
    Unknown(String),
    /// It cannot carry syslog messages.
    #[error("encoding {0:?} changes ASCII characters, which syslog does not allow; use utf-8")]
    Unfit(String),
}

/// A character the encoding does not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{character:?} (U+{:04X}) does not exist in {charset}; set on_unmappable to \"translit\" or \
     \"replace\", or use encoding utf-8",
    u32::from(*.character)
)]
pub struct Unmappable {
    character: char,
    charset: &'static str,
}

impl Charset {
    /// The default.
    pub const UTF_8: Self = Self(UTF_8);

    /// Its name in the Encoding Standard, such as `Shift_JIS`.
    pub fn name(self) -> &'static str {
        self.0.name()
    }

    /// The byte order mark to send before this text.
    pub fn bom(self, bom: Bom, text: &str) -> &'static [u8] {
        let is_wanted = match bom {
            Bom::Auto => !text.is_ascii(),
            Bom::Always => true,
            Bom::Never => false,
        };
        if is_wanted && self == Self::UTF_8 { "\u{FEFF}".as_bytes() } else { b"" }
    }

    /// The text as bytes in this encoding.
    ///
    /// # Errors
    /// If the encoding does not have a character and the policy is to fail.
    pub fn encode(self, text: &str, policy: OnUnmappable) -> Result<Vec<u8>, Unmappable> {
        if self == Self::UTF_8 {
            return Ok(text.as_bytes().to_vec());
        }
        let mut encoder = Writing { encoder: self.0.new_encoder(), bytes: Vec::new() };
        let mut rest = text;
        while let Some(character) = encoder.push(&mut rest) {
            if policy == OnUnmappable::Error {
                return Err(Unmappable { character, charset: self.name() });
            }
            let similar = (policy == OnUnmappable::Translit).then(|| similar(character)).flatten();
            // The similar character may be missing too; a question mark never is.
            if similar.is_none_or(|mut text| encoder.push(&mut text).is_some()) {
                encoder.push(&mut "?");
            }
        }
        encoder.finish();
        Ok(encoder.bytes)
    }
}

impl FromStr for Charset {
    type Err = CharsetError;

    fn from_str(text: &str) -> Result<Self, CharsetError> {
        let label = text.trim().to_ascii_lowercase();
        let alias = ALIASES.iter().find(|(alias, _)| *alias == label);
        let label = alias.map_or(label.as_str(), |(_, label)| label);
        let encoding = Encoding::for_label(label.as_bytes())
            .ok_or_else(|| CharsetError::Unknown(text.to_owned()))?;
        // The Encoding Standard encodes UTF-16 and some others as UTF-8, which nobody asked for.
        if encoding.output_encoding() != encoding || !keeps_ascii(encoding) {
            return Err(CharsetError::Unfit(text.to_owned()));
        }
        Ok(Self(encoding))
    }
}

/// ISO-2022-JP is fine: outside its escape sequences it is ASCII, and a text ends outside them.
fn keeps_ascii(encoding: &'static Encoding) -> bool {
    encoding.is_ascii_compatible() || encoding == encoding_rs::ISO_2022_JP
}

/// An encoder and its output so far.
struct Writing {
    encoder: encoding_rs::Encoder,
    bytes: Vec<u8>,
}

impl Writing {
    /// Encodes up to and including the first character that the encoding does not have, and returns
    /// that character.
    fn push(&mut self, text: &mut &str) -> Option<char> {
        self.write(text, false)
    }

    /// Returns to ASCII, if the encoding was in another mode.
    fn finish(&mut self) {
        self.write(&mut "", true);
    }

    fn write(&mut self, text: &mut &str, last: bool) -> Option<char> {
        loop {
            let room = self
                .encoder
                .max_buffer_length_from_utf8_without_replacement(text.len())
                .unwrap_or(text.len() * 4);
            self.bytes.reserve(room + 16);
            let (result, read) = self.encoder.encode_from_utf8_to_vec_without_replacement(
                text,
                &mut self.bytes,
                last,
            );
            *text = &text[read..];
            match result {
                EncoderResult::InputEmpty => return None,
                EncoderResult::OutputFull => {}
                EncoderResult::Unmappable(character) => return Some(character),
            }
        }
    }
}

/// Replacements for characters that systems map differently in Japanese encodings, and for common
/// typographic marks.
fn similar(character: char) -> Option<&'static str> {
    Some(match character {
        '\u{301C}' => "\u{FF5E}",
        '\u{2016}' => "\u{2225}",
        '\u{2212}' => "\u{FF0D}",
        '\u{2014}' => "\u{2015}",
        '¢' => "\u{FFE0}",
        '£' => "\u{FFE1}",
        '¬' => "\u{FFE2}",
        '¦' => "\u{FFE4}",
        '\u{A0}' | '\u{2009}' | '\u{202F}' => " ",
        '\u{2010}' | '\u{2011}' | '\u{2013}' => "-",
        '\u{2018}' | '\u{2019}' => "'",
        '\u{201C}' | '\u{201D}' => "\"",
        '«' => "<<",
        '»' => ">>",
        '…' => "...",
        '•' => "*",
        '€' => "EUR",
        '©' => "(c)",
        '®' => "(R)",
        '™' => "(TM)",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_map_to_standard_names() {
        fn check(label: &str, name: &str) {
            assert_eq!(label.parse::<Charset>().unwrap().name(), name);
        }
        check("utf-8", "UTF-8");
        check("UTF8", "UTF-8");
        check("CP932", "Shift_JIS");
        check("windows-31j", "Shift_JIS");
        check("euc_jp", "EUC-JP");
        check("jis", "ISO-2022-JP");
        check(" latin1 ", "windows-1252");
        for label in COMMON {
            label.parse::<Charset>().unwrap();
        }
        let unknown = "klingon".parse::<Charset>().unwrap_err().to_string();
        assert!(unknown.contains("common ones are utf-8"), "{unknown}");
        for label in ["utf-16", "utf-16le", "utf-16be", "replacement"] {
            let error = label.parse::<Charset>().unwrap_err();
            assert!(matches!(error, CharsetError::Unfit(_)), "{label}");
        }
    }

    #[test]
    fn japanese_is_encoded_as_its_readers_expect() {
        fn check(label: &str, text: &str, bytes: &[u8]) {
            let charset: Charset = label.parse().unwrap();
            assert_eq!(charset.encode(text, OnUnmappable::Error).unwrap(), bytes, "{label}");
        }
        check("utf-8", "表", "表".as_bytes());
        check("shift_jis", "表", b"\x95\x5c");
        check("euc-jp", "表", b"\xc9\xbd");
        check("iso-2022-jp", "a表", b"a\x1b$BI=\x1b(B");
        check("shift_jis", "ｱ ～", b"\xb1 \x81\x60");
    }

    #[test]
    fn missing_characters_are_rejected_or_replaced_as_asked() {
        let charset: Charset = "shift_jis".parse().unwrap();
        let error = charset.encode("10時〜", OnUnmappable::Error).unwrap_err().to_string();
        assert!(error.contains("'〜' (U+301C) does not exist in Shift_JIS"), "{error}");
        let encode = |text, policy| charset.encode(text, policy).unwrap();
        assert_eq!(encode("a〜b", OnUnmappable::Replace), b"a?b");
        assert_eq!(encode("a〜b", OnUnmappable::Translit), b"a\x81\x60b");
        assert_eq!(encode("🎌…", OnUnmappable::Translit), b"?\x81\x63");
        let jis: Charset = "iso-2022-jp".parse().unwrap();
        assert_eq!(jis.encode("表🎌", OnUnmappable::Replace).unwrap(), b"\x1b$BI=\x1b(B?");
    }

    #[test]
    fn a_mark_stands_before_utf_8_only() {
        let mark = "\u{FEFF}".as_bytes();
        assert_eq!(Charset::UTF_8.bom(Bom::Auto, "plain"), b"");
        assert_eq!(Charset::UTF_8.bom(Bom::Auto, "é"), mark);
        assert_eq!(Charset::UTF_8.bom(Bom::Always, "plain"), mark);
        assert_eq!(Charset::UTF_8.bom(Bom::Never, "é"), b"");
        let sjis: Charset = "sjis".parse().unwrap();
        assert_eq!(sjis.bom(Bom::Always, "é"), b"");
    }
}
