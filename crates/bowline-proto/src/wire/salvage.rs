//! Recovers what it can from a frame that is not a message.
//!
//! A peer that sent an invalid frame under a readable id waits for an answer to that id. This scan
//! looks for the id and for a method, byte by byte and without trusting anything: the frame may be
//! truncated, nested too deeply, or not UTF-8. Nothing found here is ever executed.

use super::Id;

/// What the envelope of a broken frame seems to contain.
#[derive(Default)]
pub(super) struct Salvage {
    pub(super) id: Option<Id>,
    pub(super) has_method: bool,
}

pub(super) fn envelope(frame: &[u8]) -> Salvage {
    let mut found = Salvage::default();
    let mut scan = Scan { frame, at: 0 };
    scan.skip_to_object();
    let mut ids = 0;
    while let Some(key) = scan.next_key() {
        match key {
            b"id" => {
                ids += 1;
                found.id = scan.value().and_then(|value| serde_json::from_slice(value).ok());
            }
            b"method" => found.has_method = true,
            _ => {}
        }
    }
    // With two ids, either could be the wrong one.
    if ids > 1 {
        found.id = None;
    }
    found
}

struct Scan<'a> {
    frame: &'a [u8],
    at: usize,
}

impl<'a> Scan<'a> {
    fn skip_to_object(&mut self) {
        let open = self.frame.iter().position(|byte| !byte.is_ascii_whitespace());
        self.at = match open {
            Some(at) if self.frame[at] == b'{' => at + 1,
            _ => self.frame.len(),
        };
    }

    /// Moves to the next member of the outermost object and returns its key. The cursor is then at
    /// the value.
    fn next_key(&mut self) -> Option<&'a [u8]> {
        let mut depth = 0_usize;
        while let Some(&byte) = self.frame.get(self.at) {
            match byte {
                b'"' => {
                    let string = self.string()?;
                    if depth == 0 && self.skip_colon() {
                        return Some(string);
                    }
                    continue;
                }
                b'{' | b'[' => depth += 1,
                // The outermost object ends here; what follows is not part of it.
                b'}' | b']' => depth = depth.checked_sub(1)?,
                _ => {}
            }
            self.at += 1;
        }
        None
    }

    /// The bytes between the quotes. The cursor is then after the closing quote.
    fn string(&mut self) -> Option<&'a [u8]> {
        let start = self.at + 1;
        let mut at = start;
        loop {
            match self.frame.get(at)? {
                b'\\' => at += 2,
                b'"' => {
                    self.at = at + 1;
                    return Some(&self.frame[start..at]);
                }
                _ => at += 1,
            }
        }
    }

    fn skip_colon(&mut self) -> bool {
        self.skip_blank();
        let found = self.frame.get(self.at) == Some(&b':');
        if found {
            self.at += 1;
            self.skip_blank();
        }
        found
    }

    fn skip_blank(&mut self) {
        while self.frame.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
    }

    /// A string or a number, without moving past it.
    fn value(&self) -> Option<&'a [u8]> {
        let rest = &self.frame[self.at..];
        if rest.first() == Some(&b'"') {
            let mut inner = Scan { frame: rest, at: 0 };
            inner.string()?;
            return Some(&rest[..inner.at]);
        }
        // A number at the very end may have been cut off.
        let end = rest
            .iter()
            .position(|byte| !matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E'))?;
        Some(&rest[..end])
    }
}
