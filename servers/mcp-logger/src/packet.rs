//! Turns a header and a text into the bytes of one message, or of several if it is too long.
//!
//! Texts are cut before they are escaped and encoded, always between two characters: no receiver
//! sees half of one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::encoding::{Bom, Charset, OnUnmappable, Unmappable};
use crate::escape::ControlCharacters;

/// What to do with a message that is too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Oversize {
    /// Send nothing.
    #[default]
    Error,
    /// Cut it, and append `[...]`.
    Truncate,
    /// Send several messages that begin with `[1/3]` and so on.
    Split,
}

/// How a text becomes bytes.
#[derive(Debug, Clone, Copy)]
pub struct Rendering {
    /// The encoding.
    pub charset: Charset,
    /// What to do with characters it does not have.
    pub on_unmappable: OnUnmappable,
    /// What to do with control characters.
    pub control_characters: ControlCharacters,
    /// Whether a byte order mark announces UTF-8.
    pub bom: Bom,
    /// The maximum size of a message in bytes, header included.
    pub max_size: usize,
    /// What to do with a longer one.
    pub oversize: Oversize,
}

/// The messages that a text became.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packets {
    /// The bytes of each message.
    pub packets: Vec<Vec<u8>>,
    /// Whether the text was truncated.
    pub truncated: bool,
}

/// Why a text cannot be sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PacketError {
    /// It is too long and must not be cut.
    #[error(
        "the message takes {size} bytes, more than max_size {max}; shorten it, raise max_size, or \
         set oversize to \"truncate\" or \"split\""
    )]
    TooLong {
        /// Its size.
        size: usize,
        /// The maximum.
        max: usize,
    },
    /// Not even one character fits.
    #[error("max_size {max} leaves no room for text after a header of {header} bytes")]
    NoRoom {
        /// The size of the header.
        header: usize,
        /// The maximum.
        max: usize,
    },
    /// It would have to be split into too many messages.
    #[error("the message would be split into more than {MAX_PARTS} parts; raise max_size")]
    TooManyParts,
    /// The encoding does not have one of its characters.
    #[error(transparent)]
    Unmappable(#[from] Unmappable),
}

/// The most messages that one text may be split into.
pub const MAX_PARTS: usize = 999;

/// Marks a truncated text.
const CUT: &str = "[...]";

impl Rendering {
    /// The messages for a text.
    ///
    /// # Errors
    /// If the text is too long and must not be cut, or cannot be encoded.
    pub fn pack(&self, header: &str, text: &str) -> Result<Packets, PacketError> {
        // `bom` decides about the mark; a second one would be text.
        let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
        let whole = self.packet(header, ["", text, ""])?;
        if whole.len() <= self.max_size {
            return Ok(Packets { packets: vec![whole], truncated: false });
        }
        match self.oversize {
            Oversize::Error => Err(PacketError::TooLong { size: whole.len(), max: self.max_size }),
            Oversize::Truncate => {
                let kept = self.fit(header, text, ("", CUT))?;
                let packet = self.packet(header, ["", &text[..kept], CUT])?;
                Ok(Packets { packets: vec![packet], truncated: true })
            }
            Oversize::Split => self.split(header, text),
        }
    }

    /// Tries with room for few parts first, then for more: the marks get wider.
    fn split(&self, header: &str, text: &str) -> Result<Packets, PacketError> {
        for most in [9, 99, MAX_PARTS] {
            // The widest mark.
            let mark = format!("[{most}/{most}] ");
            let Some(parts) = self.parts(header, text, &mark, most)? else { continue };
            let packets = parts.iter().enumerate().map(|(index, part)| {
                let mark = format!("[{}/{}] ", index + 1, parts.len());
                self.packet(header, [&mark, part, ""])
            });
            return Ok(Packets { packets: packets.collect::<Result<_, _>>()?, truncated: false });
        }
        Err(PacketError::TooManyParts)
    }

    fn parts<'a>(
        &self,
        header: &str,
        text: &'a str,
        mark: &str,
        most: usize,
    ) -> Result<Option<Vec<&'a str>>, PacketError> {
        let mut parts = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            if parts.len() == most {
                return Ok(None);
            }
            let (part, after) = rest.split_at(self.fit(header, rest, (mark, ""))?);
            parts.push(part);
            rest = after;
        }
        Ok(Some(parts))
    }

    /// How many bytes of the text fit between two marks.
    fn fit(&self, header: &str, text: &str, marks: (&str, &str)) -> Result<usize, PacketError> {
        // Every character takes at least one byte in every encoding.
        let window = text.char_indices().take(self.max_size).map(|(at, it)| at + it.len_utf8());
        let ends: Vec<usize> = window.collect();
        let (mut fits, mut beyond) = (0, ends.len() + 1);
        while fits + 1 < beyond {
            let middle = fits.midpoint(beyond);
            let packet = self.packet(header, [marks.0, &text[..ends[middle - 1]], marks.1])?;
            *(if packet.len() <= self.max_size { &mut fits } else { &mut beyond }) = middle;
        }
        match fits {
            0 => Err(PacketError::NoRoom { header: header.len(), max: self.max_size }),
            fits => Ok(ends[fits - 1]),
        }
    }

    /// One message, whatever its size.
    fn packet(&self, header: &str, [mark, text, cut]: [&str; 3]) -> Result<Vec<u8>, PacketError> {
        let text = self.control_characters.apply(text);
        let text = if mark.is_empty() && cut.is_empty() {
            text
        } else {
            [mark, &text, cut].concat().into()
        };
        // The header ends with a separating space, which an empty text does not need.
        let header = if text.is_empty() { header.trim_end() } else { header };
        let encoded = self.charset.encode(&text, self.on_unmappable)?;
        Ok([header.as_bytes(), self.charset.bom(self.bom, &text), &encoded].concat())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendering(max_size: usize, oversize: Oversize) -> Rendering {
        Rendering {
            charset: Charset::UTF_8,
            on_unmappable: OnUnmappable::Error,
            control_characters: ControlCharacters::Escape,
            bom: Bom::Never,
            max_size,
            oversize,
        }
    }

    fn texts(packets: &Packets) -> Vec<&str> {
        packets.packets.iter().map(|it| std::str::from_utf8(it).unwrap()).collect()
    }

    #[test]
    fn short_texts_are_one_message() {
        let packets = rendering(20, Oversize::Error).pack("H: ", "text\nmore").unwrap();
        assert_eq!(texts(&packets), ["H: text#012more"]);
        let empty = rendering(20, Oversize::Error).pack("H: ", "").unwrap();
        assert_eq!(texts(&empty), ["H:"]);
    }

    #[test]
    fn long_texts_are_rejected_cut_or_split() {
        let pack = |max, oversize| rendering(max, oversize).pack("H: ", "日本語\nabcdef");
        let error = pack(18, Oversize::Error).unwrap_err();
        assert_eq!(error, PacketError::TooLong { size: 22, max: 18 });
        let cut = pack(18, Oversize::Truncate).unwrap();
        assert_eq!(texts(&cut), ["H: 日本語[...]"]);
        assert!(cut.truncated);
        let split = pack(18, Oversize::Split).unwrap();
        assert_eq!(texts(&split), ["H: [1/3] 日本語", "H: [2/3] #012abcde", "H: [3/3] f"]);
        assert!(!split.truncated);
    }

    #[test]
    fn a_max_size_that_is_too_small_is_an_error() {
        let pack = |max, oversize| rendering(max, oversize).pack("H: ", "some text").unwrap_err();
        assert_eq!(pack(8, Oversize::Truncate), PacketError::NoRoom { header: 3, max: 8 });
        assert_eq!(pack(9, Oversize::Split), PacketError::NoRoom { header: 3, max: 9 });
        let long = "x".repeat(100_000);
        let error = rendering(30, Oversize::Split).pack("H: ", &long).unwrap_err();
        assert_eq!(error, PacketError::TooManyParts);
    }

    #[test]
    fn a_mark_in_the_text_is_not_sent_twice() {
        let rendering = Rendering { bom: Bom::Always, ..rendering(50, Oversize::Error) };
        let packets = rendering.pack("H: ", "\u{FEFF}é").unwrap();
        assert_eq!(texts(&packets), ["H: \u{FEFF}é"]);
    }
}
