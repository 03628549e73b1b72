//! Events to bytes.
//!
//! Each function appends one whole block, including its blank line, to a buffer that the caller
//! reuses. If an event cannot be encoded, the buffer is left as it was.

use std::fmt;

use memchr::memchr2;

use super::{Event, MAX_FIELD};

/// A comment without text, to send when the stream has been idle for a while.
///
/// It includes a blank line, for clients that process nothing before they see one.
pub const KEEP_ALIVE: &[u8] = b":\n\n";

/// Why an event cannot be encoded: it would read back as something else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EncodeError {
    /// The id contains a line break or a NUL, or is longer than [`MAX_FIELD`].
    Id,
    /// The event name contains a line break, or is longer than [`MAX_FIELD`].
    Event,
}

impl Event<'_> {
    /// Appends the event, or nothing if it has no fields.
    ///
    /// Every line break in `data` reads back as a line feed. To JSON they are all the same white
    /// space.
    ///
    /// # Errors
    /// If the id or the name cannot be encoded.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        if self.id.is_some_and(|id| !fits(id) || id.contains('\0')) {
            return Err(EncodeError::Id);
        }
        if self.event.is_some_and(|event| !fits(event)) {
            return Err(EncodeError::Event);
        }
        if *self == Event::default() {
            return Ok(());
        }
        if let Some(event) = self.event {
            write_line(out, "event: ", event.as_bytes());
        }
        if let Some(id) = self.id {
            write_line(out, "id: ", id.as_bytes());
        }
        if let Some(retry) = self.retry {
            write_line(out, "retry: ", retry.to_string().as_bytes());
        }
        if let Some(data) = self.data {
            write_lines(out, "data: ", data);
        }
        out.push(b'\n');
        Ok(())
    }
}

/// Appends a comment, which readers skip.
pub fn encode_comment(out: &mut Vec<u8>, text: &str) {
    write_lines(out, ": ", text.as_bytes());
    out.push(b'\n');
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id => {
                write!(f, "the id contains a line break or NUL, or is over {MAX_FIELD} bytes")
            }
            Self::Event => {
                write!(f, "the event name contains a line break or is over {MAX_FIELD} bytes")
            }
        }
    }
}

impl std::error::Error for EncodeError {}

fn fits(text: &str) -> bool {
    text.len() <= MAX_FIELD && memchr2(b'\r', b'\n', text.as_bytes()).is_none()
}

/// Writes text of any number of lines, each prefixed with `start`.
fn write_lines(out: &mut Vec<u8>, start: &str, mut text: &[u8]) {
    out.reserve(text.len() + start.len() + 2);
    while let Some(end) = memchr2(b'\r', b'\n', text) {
        write_line(out, start, &text[..end]);
        let ending = if text[end..].starts_with(b"\r\n") { 2 } else { 1 };
        text = &text[end + ending..];
    }
    write_line(out, start, text);
}

fn write_line(out: &mut Vec<u8>, start: &str, value: &[u8]) {
    out.extend_from_slice(start.as_bytes());
    out.extend_from_slice(value);
    out.push(b'\n');
}
