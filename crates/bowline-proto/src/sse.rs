//! Server-sent events: the framing of streamed HTTP answers.
//!
//! [`Parser`] follows the rules of the WHATWG (HTML, "Server-sent events", 9.2.6) but for these:
//!
//! | in the stream | outcome |
//! |---|---|
//! | an event without data | given out: MCP sends ids and waiting times this way |
//! | data that is not UTF-8 | given out as the bytes it is: nothing is executed from repaired bytes |
//! | an id that is not UTF-8 or longer than [`MAX_FIELD`] | ignored, as the rules do with a NUL |
//! | an event name of that kind | read as U+FFFD, which nobody listens to |
//! | an event longer than the limit | refused once, skipped to its end; the stream goes on |
//! | a comment of any length | counted, not kept |
//!
//! An event that lies whole in its chunk with its data on one line, which is how MCP servers write
//! it, lends out its data from there. The caller keeps the chunk and a cursor into it, as with
//! [`line`](crate::line).

mod encode;
mod field;

use std::{fmt, mem};

use memchr::memchr2;

pub use self::encode::{EncodeError, KEEP_ALIVE, encode_comment};
use self::field::{Fields, split};
use crate::buffer;

/// How long an event may be unless the caller says otherwise: 16 MiB.
pub const DEFAULT_LIMIT: usize = 16 * 1024 * 1024;

/// How long an id or an event name may be. An id must fit into the header that resumes a stream.
pub const MAX_FIELD: usize = 1024;

/// How much of a refused event's data is kept: enough to find the id of most messages.
pub const PREFIX: usize = 1024;

/// One event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Event<'a> {
    /// Its own id. Empty means that there is no last event id from here on.
    pub id: Option<&'a str>,
    /// Its name; without one it is a `message`.
    pub event: Option<&'a str>,
    /// How many milliseconds to wait before the stream is opened anew.
    pub retry: Option<u64>,
    /// What it carries. An event without it tells only its id or `retry`.
    pub data: Option<&'a [u8]>,
}

/// An event was longer than allowed. What came after its end is read as usual.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventTooLong {
    /// How many bytes the lines of an event may have, comments and line ends not counted.
    pub limit: usize,
    /// The first bytes of its data, at most [`PREFIX`], to find out who waits for it.
    pub prefix: Vec<u8>,
}

/// Cuts a stream of bytes into events.
#[derive(Debug)]
pub struct Parser {
    limit: usize,
    state: State,
    /// How many bytes of a byte order mark have come; all of them once something else has.
    mark: usize,
    /// Whether a line feed that comes next belongs to the line end before it.
    after_return: bool,
    /// The data of the event so far, a line feed after each line of it, then the open line.
    ///
    /// **Invariant:** not longer than `limit`, save for a broken byte order mark.
    buffer: Vec<u8>,
    /// Where in `buffer` the open line starts.
    line_start: usize,
    /// How long the closed lines of the event are together.
    size: usize,
    fields: Fields,
    last_event_id: String,
    comments: u64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum State {
    /// Waits for more of an event.
    Field,
    /// Waits for the end of a comment line.
    CommentEnd,
    /// Waits for the blank line that ends a refused event; stands at the start of a line.
    RefusedEventEnd,
    /// The same, within a line.
    RefusedLineEnd,
    /// The event was handed out; the next call may forget it.
    Delivered,
}

const MARK: &[u8] = b"\xEF\xBB\xBF";

impl Parser {
    /// Reads events of at most `limit` bytes: all their lines, without comments and line ends.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            state: State::Field,
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

    /// Takes the next event out of `rest` and moves `rest` behind it.
    ///
    /// `None` means that `rest` is used up and empty: read on, and pass the next chunk. Until then
    /// call again with the same `rest`. An event that the end of the stream cuts short is never
    /// given out.
    ///
    /// # Errors
    /// When an event is too long, once per event, as soon as it is known. Its remainder is skipped
    /// without being kept.
    pub fn next_event<'a, 'chunk: 'a>(
        &'a mut self,
        rest: &mut &'chunk [u8],
    ) -> Option<Result<Event<'a>, EventTooLong>> {
        if self.state == State::Delivered {
            self.forget_event();
            self.state = State::Field;
        }
        self.skip_mark(rest);
        let mut lent = None;
        match self.read_lines(rest, &mut lent)? {
            Ok(()) => Some(Ok(self.event(lent))),
            Err(error) => Some(Err(error)),
        }
    }

    /// The id to resume after: that of the last event that had one, and none if that was empty.
    ///
    /// A refused event counts when its id came before the refusal, or the stream would be resumed
    /// right before it for ever.
    pub fn last_event_id(&self) -> Option<&str> {
        Some(self.last_event_id.as_str()).filter(|id| !id.is_empty())
    }

    /// How many comments have come: servers send them to show that they are still there.
    pub fn comments(&self) -> u64 {
        self.comments
    }

    /// How many bytes are held between calls: never more than the limit and a few [`MAX_FIELD`].
    pub fn buffered(&self) -> usize {
        self.buffer.len() + self.fields.len() + self.last_event_id.len()
    }

    /// Gets ready for another stream that goes on where this one ended.
    ///
    /// Forgets what the end cut short; the last event id stays.
    pub fn restart(&mut self) {
        self.forget_event();
        self.state = State::Field;
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

    /// Reads up to the end of an event. What it lends is data that need not be copied.
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

    /// Takes a piece that its line goes on after. Never empty.
    fn open_line(&mut self, piece: &[u8], lent: &mut Option<&[u8]>) -> Option<EventTooLong> {
        match self.state {
            State::CommentEnd | State::RefusedLineEnd => return None,
            State::RefusedEventEnd => {
                self.state = State::RefusedLineEnd;
                return None;
            }
            State::Field | State::Delivered => {}
        }
        if self.starts_comment(piece) {
            self.state = State::CommentEnd;
            return None;
        }
        self.keep_lent(lent);
        if self.exceeds(piece) {
            self.state = State::RefusedLineEnd;
            return Some(self.refuse(piece));
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
            State::CommentEnd => {
                self.state = State::Field;
                return None;
            }
            State::RefusedLineEnd => {
                self.state = State::RefusedEventEnd;
                return None;
            }
            State::RefusedEventEnd => {
                if piece.is_empty() {
                    self.state = State::Field;
                }
                return None;
            }
            State::Field | State::Delivered => {}
        }
        if self.starts_comment(piece) {
            return None;
        }
        if self.exceeds(piece) {
            self.keep_lent(lent);
            self.state = State::RefusedEventEnd;
            return Some(Err(self.refuse(piece)));
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
            // In place: a copy would need as much memory again.
            let value_start = self.buffer.len() - value.len();
            self.buffer.drain(self.line_start..value_start);
            self.buffer.push(b'\n');
            self.line_start = self.buffer.len();
        } else {
            self.fields.set(name, value);
            self.buffer.truncate(self.line_start);
        }
    }

    /// Ends an event; whether there was one.
    fn close_event(&mut self, lent: bool) -> bool {
        if !lent && self.line_start == 0 && self.fields.is_empty() {
            self.size = 0;
            return false;
        }
        self.fields.take_id(&mut self.last_event_id);
        self.state = State::Delivered;
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

    fn refuse(&mut self, piece: &[u8]) -> EventTooLong {
        // Only what fits the limit: how much more is at hand depends on the borders of chunks.
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

    /// Copies lent data, because another line joins it or its chunk ends.
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
        buffer::clear(&mut self.buffer);
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
        write!(f, "an event of more than {} bytes", self.limit)
    }
}

impl std::error::Error for EventTooLong {}

#[cfg(test)]
mod tests;
