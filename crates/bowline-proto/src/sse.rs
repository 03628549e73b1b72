//! Server-sent events: the framing of streamed HTTP responses.
//!
//! [`Parser`] follows the WHATWG rules (HTML, "Server-sent events", 9.2.6) with these exceptions:
//!
//! | in the stream | outcome |
//! |---|---|
//! | an event without data | yielded: MCP sends ids and retry times this way |
//! | data that is not UTF-8 | yielded as it is: nothing is executed from repaired bytes |
//! | an id that is not UTF-8 or longer than [`MAX_FIELD`] | ignored, like an id with a NUL in the rules |
//! | such an event name | replaced by U+FFFD, which nobody listens to |
//! | an event longer than the limit | rejected once and skipped; the stream goes on |
//! | a comment of any length | counted, not kept |
//!
//! The data of an event is borrowed from its chunk if the event lies entirely within it and has its
//! data on one line, as MCP servers write it. The caller keeps the chunk and a cursor into it, as
//! with [`line`](crate::line).

mod encode;
mod field;

use std::{fmt, mem};

use memchr::memchr2;

pub use self::encode::{EncodeError, KEEP_ALIVE, encode_comment};
use self::field::{Fields, split};
use crate::buffer;

/// The default maximum length of an event: 16 MiB.
pub const DEFAULT_LIMIT: usize = 16 * 1024 * 1024;

/// The maximum length of an id or an event name. An id must fit into the header that resumes a
/// stream.
pub const MAX_FIELD: usize = 1024;

/// How much of a rejected event's data is kept: enough to find the id of most messages.
pub const PREFIX: usize = 1024;

/// One event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Event<'a> {
    /// Its id. An empty id clears the last event id.
    pub id: Option<&'a str>,
    /// Its name; `message` if absent.
    pub event: Option<&'a str>,
    /// How many milliseconds to wait before reconnecting.
    pub retry: Option<u64>,
    /// Its data. An event without data carries only an id or `retry`.
    pub data: Option<&'a [u8]>,
}

/// An event was longer than allowed. What follows it is read as usual.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventTooLong {
    /// The maximum number of bytes in the lines of an event, without comments and line ends.
    pub limit: usize,
    /// The first bytes of its data, at most [`PREFIX`], to find the call that waits for it.
    pub prefix: Vec<u8>,
}

/// Splits a byte stream into events.
#[derive(Debug)]
pub struct Parser {
    limit: usize,
    state: ParserState,
    /// How many bytes of a byte order mark have arrived; its full length once anything else has.
    mark: usize,
    /// Whether a line feed that comes next belongs to the preceding line end.
    after_return: bool,
    /// The data of the event so far, with a line feed after each line, followed by the open line.
    ///
    /// **Invariant:** not longer than `limit`, except for a broken byte order mark.
    buffer: Vec<u8>,
    /// Where in `buffer` the open line starts.
    line_start: usize,
    /// The total length of the event's closed lines.
    size: usize,
    fields: Fields,
    last_event_id: String,
    comments: u64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum ParserState {
    /// Waits for more of an event.
    Field,
    /// Waits for the end of a comment line.
    CommentEnd,
    /// Waits for the blank line that ends a rejected event, at the start of a line.
    RejectedEventEnd,
    /// The same, inside a line.
    RejectedLineEnd,
    /// The event was returned; the next call may clear it.
    Delivered,
}

const MARK: &[u8] = b"\xEF\xBB\xBF";

impl Parser {
    /// A parser for events of at most `limit` bytes: all their lines, without comments and line
    /// ends.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            state: ParserState::Field,
            mark: 0,
            after_return: false,
            buffer: Vec::new(),
            line_start: 0,
            size: 0,
            fields: Fields::default(),
            last_event_id: String::new(),
            comments: 0,
        }
    }

    /// Takes the next event from `rest`, and advances `rest` past it.
    ///
    /// `None` means that `rest` is consumed: read more, and pass the next chunk. Until then, call
    /// again with the same `rest`. An event that is cut off by the end of the stream is never
    /// returned.
    ///
    /// # Errors
    /// If an event is too long: once per event, as soon as that is known. The rest of the event is
    /// skipped and not kept.
    pub fn next_event<'a, 'chunk: 'a>(
        &'a mut self,
        rest: &mut &'chunk [u8],
    ) -> Option<Result<Event<'a>, EventTooLong>> {
        if self.state == ParserState::Delivered {
            self.forget_event();
            self.state = ParserState::Field;
        }
        self.skip_mark(rest);
        let mut lent = None;
        match self.read_lines(rest, &mut lent)? {
            Ok(()) => Some(Ok(self.event(lent))),
            Err(error) => Some(Err(error)),
        }
    }

    /// The id to resume after: that of the last event with an id, or none if that id was empty.
    ///
    /// A rejected event counts if its id came before the rejection; otherwise the stream would
    /// resume right before it forever.
    pub fn last_event_id(&self) -> Option<&str> {
        Some(self.last_event_id.as_str()).filter(|id| !id.is_empty())
    }

    /// How many comments have arrived: servers send them to keep the connection alive.
    pub fn comments(&self) -> u64 {
        self.comments
    }

    /// How many bytes are buffered between calls: never more than the limit and a few times
    /// [`MAX_FIELD`].
    pub fn buffered(&self) -> usize {
        self.buffer.len() + self.fields.len() + self.last_event_id.len()
    }

    /// Prepares for another stream that continues where this one ended.
    ///
    /// Discards an incomplete event, and keeps the last event id.
    pub fn restart(&mut self) {
        self.forget_event();
        self.state = ParserState::Field;
        self.mark = 0;
        self.after_return = false;
    }

    fn skip_mark(&mut self, rest: &mut &[u8]) {
        while self.mark < MARK.len() {
            let Some((byte, behind)) = rest.split_first() else {
                return;
            };
            if *byte != MARK[self.mark] {
                self.buffer.extend_from_slice(&MARK[..self.mark]);
                self.mark = MARK.len();
                return;
            }
            self.mark += 1;
            *rest = behind;
        }
    }

    /// Reads up to the end of an event. `lent` is data that does not need to be copied.
    fn read_lines<'chunk>(
        &mut self,
        rest: &mut &'chunk [u8],
        lent: &mut Option<&'chunk [u8]>,
    ) -> Option<Result<(), EventTooLong>> {
        while let Some(first) = rest.first() {
            if mem::take(&mut self.after_return) && *first == b'\n' {
                *rest = &rest[1..];
                continue;
            }
            let outcome = match memchr2(b'\r', b'\n', rest) {
                Some(end) => {
                    let piece = &rest[..end];
                    self.after_return = rest[end] == b'\r';
                    *rest = &rest[end + 1..];
                    self.close_line(piece, lent)
                }
                None => self.open_line(mem::take(rest), lent).map(Err),
            };
            if outcome.is_some() {
                return outcome;
            }
        }
        self.keep_lent(lent);
        None
    }

    /// Takes a piece of a line that continues after it. Never empty.
    fn open_line(&mut self, piece: &[u8], lent: &mut Option<&[u8]>) -> Option<EventTooLong> {
        match self.state {
            ParserState::CommentEnd | ParserState::RejectedLineEnd => return None,
            ParserState::RejectedEventEnd => {
                self.state = ParserState::RejectedLineEnd;
                return None;
            }
            ParserState::Field | ParserState::Delivered => {}
        }
        if self.starts_comment(piece) {
            self.state = ParserState::CommentEnd;
            return None;
        }
        self.keep_lent(lent);
        if self.exceeds(piece) {
            self.state = ParserState::RejectedLineEnd;
            return Some(self.reject(piece));
        }
        buffer::append(&mut self.buffer, piece, self.limit);
        None
    }

    /// Takes the last piece of a line.
    fn close_line<'chunk>(
        &mut self,
        piece: &'chunk [u8],
        lent: &mut Option<&'chunk [u8]>,
    ) -> Option<Result<(), EventTooLong>> {
        match self.state {
            ParserState::CommentEnd => {
                self.state = ParserState::Field;
                return None;
            }
            ParserState::RejectedLineEnd => {
                self.state = ParserState::RejectedEventEnd;
                return None;
            }
            ParserState::RejectedEventEnd => {
                if piece.is_empty() {
                    self.state = ParserState::Field;
                }
                return None;
            }
            ParserState::Field | ParserState::Delivered => {}
        }
        if self.starts_comment(piece) {
            return None;
        }
        if self.exceeds(piece) {
            self.keep_lent(lent);
            self.state = ParserState::RejectedEventEnd;
            return Some(Err(self.reject(piece)));
        }
        let length = self.open_length() + piece.len();
        if length == 0 {
            return self.close_event(lent.is_some()).then_some(Ok(()));
        }
        self.size += length;
        self.read_field(piece, lent);
        None
    }

    fn read_field<'chunk>(&mut self, piece: &'chunk [u8], lent: &mut Option<&'chunk [u8]>) {
        if self.open_length() == 0 {
            match split(piece) {
                (b"data", value) if self.line_start == 0 && lent.is_none() => *lent = Some(value),
                (b"data", value) => {
                    self.keep_lent(lent);
                    self.keep_data(value);
                }
                (name, value) => self.fields.set(name, value),
            }
            return;
        }
        buffer::append(&mut self.buffer, piece, self.limit);
        let (name, value) = split(&self.buffer[self.line_start..]);
        if name == b"data" {
            // In place: a copy would double the memory.
            let value_start = self.buffer.len() - value.len();
            self.buffer.drain(self.line_start..value_start);
            self.buffer.push(b'\n');
            self.line_start = self.buffer.len();
        } else {
            self.fields.set(name, value);
            self.buffer.truncate(self.line_start);
        }
    }

    /// Ends an event, and returns whether there was one.
    fn close_event(&mut self, lent: bool) -> bool {
        if !lent && self.line_start == 0 && self.fields.is_empty() {
            self.size = 0;
            return false;
        }
        self.fields.take_id(&mut self.last_event_id);
        self.state = ParserState::Delivered;
        true
    }

    fn event<'a>(&'a self, lent: Option<&'a [u8]>) -> Event<'a> {
        let kept = || self.buffer[..self.line_start].strip_suffix(b"\n");
        Event {
            id: self.fields.has_id().then_some(self.last_event_id.as_str()),
            event: self.fields.event(),
            retry: self.fields.retry(),
            data: lent.or_else(kept),
        }
    }

    fn reject(&mut self, piece: &[u8]) -> EventTooLong {
        // Only what fits the limit: how much more has arrived depends on the chunks.
        let room = (self.limit - self.size).min(PREFIX + b"data: ".len());
        let open = self.buffer[self.line_start..].iter().chain(piece);
        let line: Vec<u8> = open.copied().take(room).collect();
        let mut prefix = self.buffer[..self.line_start.min(PREFIX)].to_vec();
        if let (b"data", value) = split(&line) {
            prefix.extend_from_slice(value);
            prefix.truncate(PREFIX);
        }
        self.fields.take_id(&mut self.last_event_id);
        self.forget_event();
        EventTooLong { limit: self.limit, prefix }
    }

    fn starts_comment(&mut self, piece: &[u8]) -> bool {
        let starts = self.open_length() == 0 && piece.first() == Some(&b':');
        self.comments += u64::from(starts);
        starts
    }

    fn exceeds(&self, piece: &[u8]) -> bool {
        self.size + self.open_length() + piece.len() > self.limit
    }

    fn open_length(&self) -> usize {
        self.buffer.len() - self.line_start
    }

    /// Copies lent data, because another line follows or its chunk ends.
    fn keep_lent(&mut self, lent: &mut Option<&[u8]>) {
        if let Some(value) = lent.take() {
            self.keep_data(value);
        }
    }

    fn keep_data(&mut self, value: &[u8]) {
        buffer::append(&mut self.buffer, value, self.limit);
        buffer::append(&mut self.buffer, b"\n", self.limit);
        self.line_start = self.buffer.len();
    }

    fn forget_event(&mut self) {
        buffer::clear(&mut self.buffer, buffer::KEPT);
        self.line_start = 0;
        self.size = 0;
        self.fields.clear();
    }
}

impl Default for Parser {
    fn default() -> Self {
        Self::new(DEFAULT_LIMIT)
    }
}

impl fmt::Display for EventTooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an event is longer than {} bytes", self.limit)
    }
}

impl std::error::Error for EventTooLong {}

#[cfg(test)]
mod tests;
