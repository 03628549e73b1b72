//! Events to bytes.
//!
//! Each function appends one whole block, blank line included, to a buffer that the caller reuses.
//! An event that cannot be written leaves the buffer as it was.

use std::fmt;

use memchr::memchr2;

use super::{Event, MAX_FIELD};

/// A comment without text, to be sent when nothing else was for a while.
///
/// With its blank line, for readers that wait for one before they look at anything.
pub const KEEP_ALIVE: &[u8] = b":\n\n";

/// Why an event cannot be written: it would read back as something else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EncodeError {
    /// The id has a line break or a NUL, or is longer than [`MAX_FIELD`].
    Id,
    /// The event name has a line break, or is longer than [`MAX_FIELD`].
    Event,
}

impl Event<'_> {
    /// Appends the event; nothing if it has no fields.
    ///
    /// A line break within `data` is read back as a line feed, whatever it was. To JSON all of them
    /// are the same white space.
    ///
    /// # Errors
    /// When the id or the name cannot be written.
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
            Self::Id => write!(f, "id: has a line break or a NUL, or more than {MAX_FIELD} bytes"),
            Self::Event => write!(f, "event: has a line break, or more than {MAX_FIELD} bytes"),
        }
    }
}

impl std::error::Error for EncodeError {}

fn fits(text: &str) -> bool {
    text.len() <= MAX_FIELD && memchr2(b'\r', b'\n', text.as_bytes()).is_none()
}

/// Writes text of any number of lines, each behind `start`.
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
