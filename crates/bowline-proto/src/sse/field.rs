//! The fields of an event other than its data.
//!
//! Their memory is reused from event to event, and bounded by [`MAX_FIELD`] each.

use memchr::memchr;

use super::MAX_FIELD;

/// Splits a line into name and value, without the optional leading space of the value.
pub(super) fn split(line: &[u8]) -> (&[u8], &[u8]) {
    let Some(colon) = memchr(b':', line) else {
        return (line, b"");
    };
    let value = &line[colon + 1..];
    (&line[..colon], value.strip_prefix(b" ").unwrap_or(value))
}

#[derive(Debug, Default)]
pub(super) struct Fields {
    id: Slot,
    event: Slot,
    retry: Option<u64>,
}

/// An `Option<String>` that keeps its memory when it is empty.
#[derive(Debug, Default)]
struct Slot {
    text: String,
    filled: bool,
}

impl Fields {
    /// Sets a field. Unknown ones are ignored, and the last of several counts.
    pub(super) fn set(&mut self, name: &[u8], value: &[u8]) {
        match name {
            b"id" => {
                if let Some(id) = short_text(value).filter(|id| !id.contains('\0')) {
                    self.id.fill(id);
                }
            }
            b"event" => self.event.fill(short_text(value).unwrap_or("\u{FFFD}")),
            b"retry" => self.retry = milliseconds(value).or(self.retry),
            _ => {}
        }
    }

    pub(super) fn has_id(&self) -> bool {
        self.id.filled
    }

    pub(super) fn event(&self) -> Option<&str> {
        self.event.filled.then_some(self.event.text.as_str())
    }

    pub(super) fn retry(&self) -> Option<u64> {
        self.retry
    }

    /// Moves the id, if there is one, to `last`.
    pub(super) fn take_id(&mut self, last: &mut String) {
        if self.id.filled {
            std::mem::swap(last, &mut self.id.text);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        !self.id.filled && !self.event.filled && self.retry.is_none()
    }

    /// How many bytes are buffered.
    pub(super) fn len(&self) -> usize {
        self.id.text.len() + self.event.text.len()
    }

    pub(super) fn clear(&mut self) {
        self.id.clear();
        self.event.clear();
        self.retry = None;
    }
}

impl Slot {
    fn fill(&mut self, text: &str) {
        self.text.clear();
        self.text.push_str(text);
        self.filled = true;
    }

    fn clear(&mut self) {
        self.text.clear();
        self.filled = false;
    }
}

fn short_text(value: &[u8]) -> Option<&str> {
    let short = value.len() <= MAX_FIELD;
    short.then(|| std::str::from_utf8(value).ok()).flatten()
}

fn milliseconds(value: &[u8]) -> Option<u64> {
    // Checked first, because the number parser accepts a sign.
    let digits = value.iter().all(u8::is_ascii_digit);
    digits.then(|| std::str::from_utf8(value).ok()?.parse().ok()).flatten()
}
