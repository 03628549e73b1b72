//! Frames on a byte stream, one per line: the framing of stdio.
//!
//! A [`Parser`] takes chunks as they arrive from a pipe and yields frames. A line that lies
//! entirely within its chunk is borrowed from it; only a line that spans chunks is copied, once.
//! The caller keeps the chunk and a cursor into it, so stopping halfway loses nothing:
//!
//! ```
//! # let chunks: [&[u8]; 2] = [b"{}\n{\"a\"", b":1}\n"];
//! let mut parser = bowline_proto::line::Parser::default();
//! let mut frames = 0;
//! for chunk in chunks {
//!     let mut rest = chunk;
//!     while let Some(frame) = parser.next_frame(&mut rest) {
//!         frames += usize::from(frame.is_ok());
//!     }
//! }
//! assert_eq!(frames, 2);
//! ```
//!
//! The contents of a frame are not inspected. Lines end with a line feed, with or without a
//! carriage return before it; blank lines are skipped.

use std::{fmt, mem};

use memchr::{memchr, memchr2};

use crate::buffer;

/// The default maximum length of a line: 16 MiB.
pub const DEFAULT_LIMIT: usize = 16 * 1024 * 1024;

/// How much of a rejected line is kept: enough to find the id of most messages.
pub const PREFIX: usize = 1024;

/// From this length on, the rest of a line is read directly into the line's buffer.
const LONG: usize = 64 << 10;

/// Splits a byte stream into frames.
#[derive(Debug)]
pub struct Parser {
    limit: usize,
    /// The start of a line whose end has not arrived. **Invariant:** never longer than `limit`.
    partial: Vec<u8>,
    state: ParserState,
    /// The capacity that `partial` may keep from line to line.
    kept: usize,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum ParserState {
    /// Waits for the end of the line that starts in `partial`.
    LineEnd,
    /// The same, but the line is rejected and not kept.
    RejectedLineEnd,
    /// `partial` is a complete line, and the next frame.
    Whole,
    /// `partial` was returned as a frame; the next call may clear it.
    Delivered,
}

/// A line was longer than allowed. What follows it is read as usual.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineTooLong {
    /// The maximum number of bytes before the line feed.
    pub limit: usize,
    /// The first bytes of the line, at most [`PREFIX`], to find the id to answer.
    pub prefix: Vec<u8>,
}

impl Parser {
    /// A parser for lines of at most `limit` bytes, not counting the line feed.
    pub fn new(limit: usize) -> Self {
        Self { limit, partial: Vec::new(), state: ParserState::LineEnd, kept: buffer::KEPT }
    }

    /// Keeps a buffer of at most this capacity from line to line, instead of 2 MiB: for servers of
    /// many streams.
    #[must_use]
    pub fn keeping(self, kept: usize) -> Self {
        Self { kept, ..self }
    }

    /// Takes the next frame from `rest`, and advances `rest` past it.
    ///
    /// `None` means that `rest` is consumed: read more, and pass the next chunk. Until then, call
    /// again with the same `rest`.
    ///
    /// # Errors
    /// If a line is too long: once per line, as soon as that is known. The rest of the line is
    /// skipped and not kept.
    pub fn next_frame<'a, 'chunk: 'a>(
        &'a mut self,
        rest: &mut &'chunk [u8],
    ) -> Option<Result<&'a [u8], LineTooLong>> {
        self.forget_delivered();
        if self.state == ParserState::Whole {
            self.state = ParserState::Delivered;
            return Some(Ok(without_return(&self.partial)));
        }
        match self.find(rest)? {
            Ok(FrameBytes::Chunk(line)) => Some(Ok(line)),
            Ok(FrameBytes::Partial) => Some(Ok(without_return(&self.partial))),
            Err(error) => Some(Err(error)),
        }
    }

    /// The last frame, if the stream ended without a line feed.
    ///
    /// Resets the parser.
    pub fn finish(&mut self) -> Option<&[u8]> {
        self.forget_delivered();
        let state = mem::replace(&mut self.state, ParserState::Delivered);
        let line = without_return(&self.partial);
        (state == ParserState::LineEnd && !is_blank(line)).then_some(line)
    }

    /// The buffer of a long line whose end has not arrived. Reading directly into it, then calling
    /// [`Parser::take_appended`], avoids a copy. `None` if there is no such line: read a chunk
    /// instead.
    ///
    /// The buffer has spare capacity.
    pub fn long_line(&mut self) -> Option<&mut Vec<u8>> {
        if self.state != ParserState::LineEnd || self.partial.len() < LONG {
            return None;
        }
        // A read may pass the limit by `LONG`: room for that comes with the last step, because an
        // allocator that cannot grow in place would copy all of a line at its limit.
        buffer::reserve(&mut self.partial, LONG, self.limit + LONG);
        Some(&mut self.partial)
    }

    /// Accepts what was appended to [`Parser::long_line`], which was `before` bytes long. If the
    /// line ends there, it is the next frame, and what follows it is moved to `rest`.
    ///
    /// # Errors
    /// If the line is too long.
    pub fn take_appended(&mut self, before: usize, rest: &mut Vec<u8>) -> Result<(), LineTooLong> {
        rest.clear();
        let end = memchr(b'\n', &self.partial[before..]).map(|end| before + end);
        if let Some(end) = end {
            rest.extend_from_slice(&self.partial[end + 1..]);
            self.partial.truncate(end);
            self.state = ParserState::Whole;
        }
        if self.partial.len() <= self.limit {
            if end.is_some() && is_blank(&self.partial) {
                self.state = ParserState::Delivered;
            }
            return Ok(());
        }
        let error = self.reject(&[]);
        self.state =
            if end.is_some() { ParserState::LineEnd } else { ParserState::RejectedLineEnd };
        Err(error)
    }

    /// Whether the next frame is complete already.
    pub fn has_frame(&self) -> bool {
        self.state == ParserState::Whole
    }

    /// How many bytes are buffered between calls: never more than the limit.
    pub fn buffered(&self) -> usize {
        self.partial.len()
    }

    fn find<'chunk>(
        &mut self,
        rest: &mut &'chunk [u8],
    ) -> Option<Result<FrameBytes<'chunk>, LineTooLong>> {
        while !rest.is_empty() {
            let Some(end) = memchr(b'\n', rest) else {
                return self.keep(mem::take(rest)).map(Err);
            };
            let piece = &rest[..end];
            *rest = &rest[end + 1..];
            if self.state == ParserState::RejectedLineEnd {
                self.state = ParserState::LineEnd;
                continue;
            }
            if self.exceeds(piece) {
                return Some(Err(self.reject(piece)));
            }
            if let Some(frame) = self.close(piece) {
                return Some(Ok(frame));
            }
        }
        None
    }

    /// Ends a line with its last piece, which is the whole line if nothing was kept.
    fn close<'chunk>(&mut self, piece: &'chunk [u8]) -> Option<FrameBytes<'chunk>> {
        if self.partial.is_empty() {
            return (!is_blank(piece)).then(|| FrameBytes::Chunk(without_return(piece)));
        }
        buffer::append(&mut self.partial, piece, self.limit);
        if is_blank(&self.partial) {
            buffer::clear(&mut self.partial, self.kept);
            return None;
        }
        self.state = ParserState::Delivered;
        Some(FrameBytes::Partial)
    }

    fn keep(&mut self, piece: &[u8]) -> Option<LineTooLong> {
        if self.state == ParserState::RejectedLineEnd {
            return None;
        }
        if self.exceeds(piece) {
            let error = self.reject(piece);
            self.state = ParserState::RejectedLineEnd;
            return Some(error);
        }
        buffer::append(&mut self.partial, piece, self.limit);
        None
    }

    fn exceeds(&self, piece: &[u8]) -> bool {
        self.partial.len() + piece.len() > self.limit
    }

    fn reject(&mut self, piece: &[u8]) -> LineTooLong {
        // Not longer than the limit: how much more has arrived depends on the chunks.
        let prefix = self.partial.iter().chain(piece).copied();
        let prefix = prefix.take(PREFIX.min(self.limit)).collect();
        buffer::clear(&mut self.partial, self.kept);
        LineTooLong { limit: self.limit, prefix }
    }

    fn forget_delivered(&mut self) {
        if self.state == ParserState::Delivered {
            buffer::clear(&mut self.partial, self.kept);
            self.state = ParserState::LineEnd;
        }
    }
}

impl Default for Parser {
    fn default() -> Self {
        Self::new(DEFAULT_LIMIT)
    }
}

impl fmt::Display for LineTooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a line is longer than {} bytes", self.limit)
    }
}

impl std::error::Error for LineTooLong {}

/// Turns the JSON in `out` from `start` on into one line, and ends it.
///
/// JSON kept verbatim, such as the body of an HTTP request, may contain line breaks. Outside
/// strings they are white space, and inside strings they must be escaped, so a space means the
/// same.
///
/// # Panics
/// If `start` is beyond the end of `out`.
pub fn finish_frame(out: &mut Vec<u8>, start: usize) {
    let mut frame = &mut out[start..];
    while let Some(at) = memchr2(b'\n', b'\r', frame) {
        frame[at] = b' ';
        frame = &mut frame[at + 1..];
    }
    out.push(b'\n');
}

/// Where the bytes of a frame are. Determined first and borrowed later, because the borrow checker
/// rejects a loop that returns a borrow only sometimes.
enum FrameBytes<'chunk> {
    Chunk(&'chunk [u8]),
    Partial,
}

fn without_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

fn is_blank(line: &[u8]) -> bool {
    line.iter().all(u8::is_ascii_whitespace)
}

#[cfg(test)]
mod tests;
