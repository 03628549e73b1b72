//! The events that a legacy HTTP session has sent, for clients that lost the connection.
//!
//! A session has several streams: one for each POST that is answered with events, and one for the
//! standing GET. A client that lost one asks for the events after the last one it saw, and gets the
//! rest of that stream only (2025-11-25, basic/transports). Event ids have the form
//! `<stream>-<number>`. They need not be hard to guess: they are looked up within a session, whose
//! id is.
//!
//! The buffer is limited in number, bytes and time; the oldest events go first, of whichever
//! stream. Empty buffers take no memory, because most sessions are idle most of the time.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::str::FromStr;
use std::time::{Duration, Instant};

/// How much a session keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplayLimits {
    /// Events. 256 by default.
    pub events: usize,
    /// Bytes of all events. 1 MiB by default.
    pub bytes: usize,
    /// How long the events of a stream that has ended are kept. 5 minutes by default.
    pub keep: Duration,
}

impl Default for ReplayLimits {
    fn default() -> Self {
        Self { events: 256, bytes: 1 << 20, keep: Duration::from_secs(5 * 60) }
    }
}

/// The id of a stream within its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StreamId(u64);

impl StreamId {
    /// Its number.
    pub const fn number(self) -> u64 {
        self.0
    }
}

/// The id of an event within its session. Number 0 is the start of a stream: the event with an id
/// and no data that 2025-11-25 sends first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EventId {
    /// The stream.
    pub stream: StreamId,
    /// The number of the event.
    pub number: u64,
}

impl EventId {
    /// The position before all events of a stream.
    pub const fn start_of(stream: StreamId) -> Self {
        Self { stream, number: 0 }
    }
}

/// The streams of one session. `F` is a frame that is cheap to clone.
#[derive(Debug)]
pub struct Replay<F> {
    limits: ReplayLimits,
    before: u64,
    opened: u64,
    streams: HashMap<StreamId, Stream>,
    events: VecDeque<(EventId, F)>,
    bytes: usize,
}

/// **Invariant:** the events of a stream that are kept are those after `evicted` up to `last`.
#[derive(Debug, Clone, Copy)]
struct Stream {
    last: u64,
    evicted: u64,
    closed: Option<Instant>,
}

/// The events that a client missed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missed<F> {
    /// The stream that it resumes.
    pub stream: StreamId,
    /// The events that it has not seen, in order.
    pub events: Vec<(EventId, F)>,
    /// Whether the stream has ended.
    pub is_closed: bool,
}

/// Why a stream cannot be resumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResumeError {
    /// This session never sent such an event.
    Unknown,
    /// Some of the later events are no longer available.
    Evicted,
    /// The stream has ended, and none of it is kept any more.
    Ended,
}

impl<F: AsRef<[u8]> + Clone> Replay<F> {
    /// Creates an empty buffer.
    pub fn new(limits: ReplayLimits) -> Self {
        Self::after(0, limits)
    }

    /// Creates an empty buffer whose streams are numbered after a number.
    pub fn after(before: u64, limits: ReplayLimits) -> Self {
        let (streams, events) = (HashMap::new(), VecDeque::new());
        Self { limits, before, opened: before, streams, events, bytes: 0 }
    }

    /// Opens a stream.
    pub fn open(&mut self) -> StreamId {
        self.opened += 1;
        let id = StreamId(self.opened);
        let stream = Stream { last: 0, evicted: 0, closed: None };
        self.streams.insert(id, stream);
        id
    }

    /// Stores a frame that is sent on a stream, and returns its event id, or `None` if the stream
    /// is closed.
    pub fn push(&mut self, stream: StreamId, frame: F) -> Option<EventId> {
        let state = self.streams.get_mut(&stream)?;
        if state.closed.is_some() {
            return None;
        }
        state.last += 1;
        let id = EventId { stream, number: state.last };
        self.bytes += frame.as_ref().len();
        self.events.push_back((id, frame));
        while self.events.len() > self.limits.events || self.bytes > self.limits.bytes {
            self.evict();
        }
        Some(id)
    }

    /// The last event of a stream so far, which a new client resumes from.
    pub fn last(&self, stream: StreamId) -> EventId {
        let number = self.streams.get(&stream).map_or(0, |stream| stream.last);
        EventId { stream, number }
    }

    /// Closes a stream. Its events are kept for a while.
    pub fn close(&mut self, now: Instant, stream: StreamId) {
        let Some(state) = self.streams.get_mut(&stream) else {
            return;
        };
        if state.evicted == state.last {
            self.streams.remove(&stream);
        } else {
            state.closed.get_or_insert(now);
        }
    }

    /// Returns the events after the one in `Last-Event-ID`.
    ///
    /// # Errors
    /// When there was no such event, a later one is no longer available, or the stream has ended
    /// and is forgotten.
    pub fn resume(&self, last_event_id: &str) -> Result<Missed<F>, ResumeError> {
        let after: EventId = last_event_id.parse()?;
        let StreamId(number) = after.stream;
        if number <= self.before || number > self.opened {
            return Err(ResumeError::Unknown);
        }
        let Some(stream) = self.streams.get(&after.stream) else {
            return Err(ResumeError::Ended);
        };
        if after.number > stream.last {
            return Err(ResumeError::Unknown);
        }
        if after.number < stream.evicted {
            return Err(ResumeError::Evicted);
        }
        let missed = |id: &EventId| id.stream == after.stream && id.number > after.number;
        let events = self.events.iter().filter(|(id, _)| missed(id));
        Ok(Missed {
            stream: after.stream,
            events: events.cloned().collect(),
            is_closed: stream.closed.is_some(),
        })
    }

    /// Removes streams that ended long ago.
    pub fn expire(&mut self, now: Instant) {
        let keep = self.limits.keep;
        let is_old = |closed: Instant| now.saturating_duration_since(closed) >= keep;
        let count = self.streams.len();
        self.streams.retain(|_, stream| !stream.closed.is_some_and(is_old));
        if self.streams.len() == count {
            return;
        }
        self.events.retain(|(id, _)| self.streams.contains_key(&id.stream));
        let frames = self.events.iter();
        self.bytes = frames.map(|(_, frame)| frame.as_ref().len()).sum();
        self.events.shrink_to_fit();
        self.streams.shrink_to_fit();
    }

    /// Removes the oldest event. Returns whether there was one.
    pub fn forget_oldest(&mut self) -> bool {
        let had_some = !self.events.is_empty();
        self.evict();
        had_some
    }

    /// The number of bytes in all stored frames.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    fn evict(&mut self) {
        let Some((id, frame)) = self.events.pop_front() else {
            return;
        };
        self.bytes -= frame.as_ref().len();
        let Some(stream) = self.streams.get_mut(&id.stream) else {
            return;
        };
        stream.evicted = id.number;
        if stream.closed.is_some() && stream.evicted == stream.last {
            self.streams.remove(&id.stream);
        }
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.stream.0, self.number)
    }
}

impl FromStr for EventId {
    type Err = ResumeError;

    fn from_str(text: &str) -> Result<Self, ResumeError> {
        let (stream, number) = text.split_once('-').ok_or(ResumeError::Unknown)?;
        Ok(Self { stream: StreamId(digits(stream)?), number: digits(number)? })
    }
}

/// Parses exactly the spelling that we write.
fn digits(text: &str) -> Result<u64, ResumeError> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_plain || (text.len() > 1 && text.starts_with('0')) {
        return Err(ResumeError::Unknown);
    }
    text.parse().map_err(|_| ResumeError::Unknown)
}

impl fmt::Display for ResumeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unknown => "Last-Event-ID: unknown event in this session",
            Self::Evicted => "Last-Event-ID: the later events are no longer available",
            Self::Ended => "Last-Event-ID: the stream has ended",
        })
    }
}

impl std::error::Error for ResumeError {}

#[cfg(test)]
mod tests {
    use super::super::tests::base;
    use super::*;

    /// Streams 1 and 2, with frames `a` to `e` on the first and `A` to `C` on the second, mixed.
    fn two_streams(limits: ReplayLimits) -> Replay<&'static str> {
        let mut replay = Replay::new(limits);
        let (one, two) = (replay.open(), replay.open());
        for frame in ["a", "A", "b", "c", "B", "d", "C", "e"] {
            let is_second = frame.starts_with(char::is_uppercase);
            replay.push(if is_second { two } else { one }, frame);
        }
        replay
    }

    fn check(replay: &Replay<&str>, last: &str, expected: Result<&str, ResumeError>) {
        let missed = replay.resume(last).map(|missed| {
            let frames = missed.events.iter().map(|(_, frame)| *frame);
            frames.collect::<String>()
        });
        assert_eq!(missed, expected.map(str::to_owned), "after {last:?}");
    }

    const UNKNOWN: Result<&str, ResumeError> = Err(ResumeError::Unknown);
    const EVICTED: Result<&str, ResumeError> = Err(ResumeError::Evicted);

    #[test]
    fn a_client_gets_the_rest_of_its_stream() {
        let replay = two_streams(ReplayLimits::default());
        check(&replay, "1-0", Ok("abcde"));
        check(&replay, "1-2", Ok("cde"));
        check(&replay, "1-5", Ok(""));
        check(&replay, "2-0", Ok("ABC"));
        check(&replay, "2-1", Ok("BC"));
        for never in ["1-6", "2-4", "3-0", "3-1", "0-0", "0-1"] {
            check(&replay, never, UNKNOWN);
        }
        for odd in [
            "",
            "-",
            "1",
            "1-",
            "-1",
            "01-1",
            "1-+1",
            "1-1-1",
            " 1-1",
            "x-1",
            "1-99999999999999999999",
        ] {
            check(&replay, odd, UNKNOWN);
        }
    }

    #[test]
    fn the_oldest_go_first() {
        let limits = ReplayLimits::default();
        let mut replay = two_streams(ReplayLimits { events: 4, ..limits });
        check(&replay, "1-0", EVICTED);
        check(&replay, "1-2", EVICTED);
        check(&replay, "1-3", Ok("de"));
        check(&replay, "2-0", EVICTED);
        check(&replay, "2-1", Ok("BC"));
        replay.push(StreamId(2), "a frame of its own");
        assert_eq!(replay.bytes(), 3 + 18);
        let replay = two_streams(ReplayLimits { bytes: 2, ..limits });
        check(&replay, "2-2", Ok("C"));
        let nothing = two_streams(ReplayLimits { bytes: 0, ..limits });
        check(&nothing, "1-5", Ok(""));
        check(&nothing, "1-4", EVICTED);
        assert_eq!(nothing.bytes(), 0);
    }

    #[test]
    fn ended_streams_are_kept_for_a_while() {
        let mut replay = two_streams(ReplayLimits::default());
        let (one, two) = (StreamId(1), StreamId(2));
        replay.close(base(), one);
        assert_eq!(replay.push(one, "f"), None);
        assert!(replay.resume("1-0").unwrap().is_closed);
        assert!(!replay.resume("2-0").unwrap().is_closed);
        replay.expire(base() + Duration::from_secs(299));
        check(&replay, "1-4", Ok("e"));
        replay.expire(base() + Duration::from_secs(300));
        check(&replay, "1-4", Err(ResumeError::Ended));
        check(&replay, "2-0", Ok("ABC"));
        assert_eq!(replay.bytes(), 3);
        replay.close(base(), two);
        replay.expire(base() + Duration::from_secs(600));
        assert_eq!(replay.open(), StreamId(3));
    }

    #[test]
    fn an_idle_session_owns_next_to_nothing() {
        let mut replay = two_streams(ReplayLimits::default());
        let empty = replay.open();
        for stream in [StreamId(1), StreamId(2), empty] {
            replay.close(base(), stream);
        }
        replay.expire(base() + ReplayLimits::default().keep);
        assert_eq!(replay.events.capacity() + replay.streams.capacity(), 0);
        assert!(size_of::<Replay<&str>>() <= 200, "{}", size_of::<Replay<&str>>());
        // A stream without events that ends is forgotten at once, however many there are.
        for _ in 0..1000 {
            let stream = replay.open();
            replay.close(base(), stream);
        }
        assert!(replay.streams.is_empty());
    }
}
