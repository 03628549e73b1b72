//! Frames on a stream of bytes, one to a line: the framing of stdio.
//!
//! A [`Parser`] takes chunks as they come from a pipe and gives out frames. A line that lies whole
//! in its chunk is borrowed from there; only a line that crosses chunks is copied, once. The caller
//! keeps the chunk and a cursor into it, so stopping halfway loses nothing:
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
//! What a frame holds is not looked at. Lines end with a line feed, with or without a carriage
//! return before it; blank lines are skipped.

use std::{fmt, mem};

use memchr::{memchr, memchr2};

use crate::buffer;

/// How long a line may be unless the caller says otherwise: 16 MiB.
pub const DEFAULT_LIMIT: usize = 16 * 1024 * 1024;

/// How much of a refused line is kept: enough to find the id of most messages.
pub const PREFIX: usize = 1024;

/// From this length on, the rest of a line is worth being read to where the line is.
const LONG: usize = 64 << 10;

/// Cuts a stream of bytes into frames.
#[derive(Debug)]
pub struct Parser {
    limit: usize,
    /// The start of a line whose end has not come. **Invariant:** never longer than `limit`.
    partial: Vec<u8>,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum State {
    /// Waits for the end of the line that `partial` begins.
    LineEnd,
    /// The same, but the line is refused and not kept.
    RefusedLineEnd,
    /// `partial` is a whole line, and the next frame.
    Whole,
    /// `partial` was handed out as a frame; the next call may forget it.
    Delivered,
}

/// A line was longer than allowed. What came after its end is read as usual.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineTooLong {
    /// How many bytes were allowed before the line feed.
    pub limit: usize,
    /// The first bytes of the line, at most [`PREFIX`], to find out who waits for an answer.
    pub prefix: Vec<u8>,
}

impl Parser {
    /// Reads lines of at most `limit` bytes, not counting the line feed.
    pub fn new(limit: usize) -> Self {
        Self { limit, partial: Vec::new(), state: State::LineEnd }
    }

    /// Takes the next frame out of `rest` and moves `rest` behind it.
    ///
    /// `None` means that `rest` is used up and empty: read on, and pass the next chunk. Until then
    /// call again with the same `rest`.
    ///
    /// # Errors
    /// When a line is too long, once per line, as soon as it is known. Its remainder is skipped
    /// without being kept.
    pub fn next_frame<'a, 'chunk: 'a>(
        &'a mut self,
        rest: &mut &'chunk [u8],
    ) -> Option<Result<&'a [u8], LineTooLong>> {
        self.forget_delivered();
        if self.state == State::Whole {
            self.state = State::Delivered;
            return Some(Ok(without_return(&self.partial)));
        }
        match self.find(rest)? {
            Ok(Place::Chunk(line)) => Some(Ok(line)),
            Ok(Place::Partial) => Some(Ok(without_return(&self.partial))),
            Err(error) => Some(Err(error)),
        }
    }

    /// The last frame, when the stream ended without a line feed after it.
    ///
    /// Leaves the parser as new.
    pub fn finish(&mut self) -> Option<&[u8]> {
        self.forget_delivered();
        let state = mem::replace(&mut self.state, State::Delivered);
        let line = without_return(&self.partial);
        (state == State::LineEnd && !is_blank(line)).then_some(line)
    }

    /// A long line whose end has not come. Who appends what comes next spares it from being copied,
    /// and then calls [`Parser::take_appended`]. `None` when there is no such line: read a chunk.
    ///
    /// There is room for a good deal.
    pub fn long_line(&mut self) -> Option<&mut Vec<u8>> {
        if self.state != State::LineEnd || self.partial.len() < LONG {
            return None;
        }
        buffer::reserve(&mut self.partial, LONG, self.limit);
        Some(&mut self.partial)
    }

    /// Takes in what was appended to [`Parser::long_line`], which was `before` bytes long. If that
    /// was its end, the line is the next frame, and what came behind it is moved to `rest`.
    ///
    /// # Errors
    /// When the line is too long.
    pub fn take_appended(&mut self, before: usize, rest: &mut Vec<u8>) -> Result<(), LineTooLong> {
        rest.clear();
        let end = memchr(b'\n', &self.partial[before..]).map(|end| before + end);
        if let Some(end) = end {
            rest.extend_from_slice(&self.partial[end + 1..]);
            self.partial.truncate(end);
            self.state = State::Whole;
        }
        if self.partial.len() <= self.limit {
            if end.is_some() && is_blank(&self.partial) {
                self.state = State::Delivered;
            }
            return Ok(());
        }
        let error = self.refuse(&[]);
        self.state = if end.is_some() { State::LineEnd } else { State::RefusedLineEnd };
        Err(error)
    }

    /// Whether the next frame is there already.
    pub fn has_frame(&self) -> bool {
        self.state == State::Whole
    }

    /// How many bytes are held between calls: never more than the limit.
    pub fn buffered(&self) -> usize {
        self.partial.len()
    }

    fn find<'chunk>(
        &mut self,
        rest: &mut &'chunk [u8],
    ) -> Option<Result<Place<'chunk>, LineTooLong>> {
        while !rest.is_empty() {
            let Some(end) = memchr(b'\n', rest) else {
                return self.keep(mem::take(rest)).map(Err);
            };
            let piece = &rest[..end];
            *rest = &rest[end + 1..];
            if self.state == State::RefusedLineEnd {
                self.state = State::LineEnd;
                continue;
            }
            if self.exceeds(piece) {
                return Some(Err(self.refuse(piece)));
            }
            if let Some(place) = self.close(piece) {
                return Some(Ok(place));
            }
        }
        None
    }

    /// Ends a line with its last piece, which is all of it if none was kept.
    fn close<'chunk>(&mut self, piece: &'chunk [u8]) -> Option<Place<'chunk>> {
        if self.partial.is_empty() {
            return (!is_blank(piece)).then(|| Place::Chunk(without_return(piece)));
        }
        buffer::append(&mut self.partial, piece, self.limit);
        if is_blank(&self.partial) {
            buffer::clear(&mut self.partial);
            return None;
        }
        self.state = State::Delivered;
        Some(Place::Partial)
    }

    fn keep(&mut self, piece: &[u8]) -> Option<LineTooLong> {
        if self.state == State::RefusedLineEnd {
            return None;
        }
        if self.exceeds(piece) {
            let error = self.refuse(piece);
            self.state = State::RefusedLineEnd;
            return Some(error);
        }
        buffer::append(&mut self.partial, piece, self.limit);
        None
    }

    fn exceeds(&self, piece: &[u8]) -> bool {
        self.partial.len() + piece.len() > self.limit
    }

    fn refuse(&mut self, piece: &[u8]) -> LineTooLong {
        // Not longer than the limit: how much more is at hand depends on the borders of chunks.
        let prefix = self.partial.iter().chain(piece).copied();
        let prefix = prefix.take(PREFIX.min(self.limit)).collect();
        buffer::clear(&mut self.partial);
        LineTooLong { limit: self.limit, prefix }
    }

    fn forget_delivered(&mut self) {
        if self.state == State::Delivered {
            buffer::clear(&mut self.partial);
            self.state = State::LineEnd;
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
        write!(f, "a line of more than {} bytes", self.limit)
    }
}

impl std::error::Error for LineTooLong {}

/// Makes one line of the JSON that `out` holds from `start` on, and ends it.
///
/// JSON kept to the letter, such as the body of an HTTP request, may hold line breaks. Outside of
/// strings they are white space and inside they must be escaped, so a space means the same.
///
/// # Panics
/// When `start` lies beyond the end of `out`.
pub fn finish_frame(out: &mut Vec<u8>, start: usize) {
    let mut frame = &mut out[start..];
    while let Some(at) = memchr2(b'\n', b'\r', frame) {
        frame[at] = b' ';
        frame = &mut frame[at + 1..];
    }
    out.push(b'\n');
}

/// Where the bytes of a frame are. Told apart first and borrowed after, because the borrow checker
/// does not follow a loop that returns a borrow only sometimes.
enum Place<'chunk> {
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
