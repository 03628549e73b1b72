//! Server-sent events: whatever the chunks, the events are those that a naive reader finds in the
//! whole stream; and what is written reads back.
//!
//! An input is the limit, the lengths of chunks, and the stream.

#![no_main]

use bowline_fuzz::{Bytes, cut};
use bowline_proto::sse::{Event, EventTooLong, MAX_FIELD, PREFIX, Parser, encode_comment};
use libfuzzer_sys::fuzz_target;

const MARK: &[u8] = b"\xEF\xBB\xBF";

/// An owned event.
#[derive(Debug, Clone, PartialEq, Default)]
struct Seen {
    id: Option<String>,
    event: Option<String>,
    retry: Option<u64>,
    data: Option<Vec<u8>>,
}

/// Everything that a parser yields for a stream.
#[derive(Debug, Clone, PartialEq, Default)]
struct Parsed {
    events: Vec<Result<Seen, EventTooLong>>,
    last_event_id: String,
    comments: u64,
}

fuzz_target!(|input: &[u8]| {
    let mut bytes = Bytes::new(input);
    // Long enough for several fields and short enough to be exceeded, or practically unlimited.
    let limit = match bytes.byte() {
        255 => 1 << 20,
        limit => usize::from(limit),
    };
    let lengths = bytes.lengths();
    let stream = bytes.rest();
    let expected = naive(stream, limit);
    let mut parser = Parser::new(limit);
    assert_eq!(feed(&mut parser, &cut(stream, &lengths), limit), expected);
    assert_eq!(feed(&mut Parser::new(limit), &[stream], limit), expected);
    restarted(&mut parser, stream, &expected, limit);
    written(&expected, &lengths);
    made_up(stream);
});

fn feed(parser: &mut Parser, chunks: &[&[u8]], limit: usize) -> Parsed {
    let mut parsed = Parsed::default();
    for chunk in chunks {
        let mut rest = *chunk;
        while let Some(event) = parser.next_event(&mut rest) {
            parsed.events.push(event.map(|event| Seen::of(&event)));
            assert!(parser.buffered() <= limit + 3 * MAX_FIELD);
        }
        assert!(rest.is_empty(), "bytes are left but no event");
        assert!(parser.buffered() <= limit + 3 * MAX_FIELD);
    }
    parsed.last_event_id = parser.last_event_id().unwrap_or_default().to_owned();
    parsed.comments = parser.comments();
    parsed
}

/// Another stream is read like the first, except that the last event id is kept.
fn restarted(parser: &mut Parser, stream: &[u8], expected: &Parsed, limit: usize) {
    parser.restart();
    let again = feed(parser, &[stream], limit);
    assert_eq!(again.events, expected.events);
    assert_eq!(again.last_event_id, expected.last_event_id);
    assert_eq!(again.comments, 2 * expected.comments);
}

/// What was read can be written, and reads back the same.
fn written(parsed: &Parsed, lengths: &[usize]) {
    let mut out = Vec::new();
    let seen: Vec<&Seen> = parsed.events.iter().flatten().collect();
    for event in &seen {
        event.as_event().encode(&mut out).expect("what was read can be written");
        encode_comment(&mut out, "between");
    }
    let again = feed(&mut Parser::default(), &cut(&out, lengths), out.len());
    let again: Vec<Seen> = again.events.into_iter().flatten().collect();
    assert!(seen.into_iter().eq(&again), "{again:?}");
}

/// Arbitrary values are written so that they read back the same, or not at all.
fn made_up(stream: &[u8]) {
    let mut parts = stream.splitn(3, |byte| *byte == b'|');
    let mut text = || Some(String::from_utf8_lossy(parts.next()?).into_owned());
    let (id, event) = (text(), text());
    let data = parts.next().map(<[u8]>::to_vec);
    let mut seen = Seen { id, event, retry: None, data };
    let mut out = Vec::new();
    if seen.as_event().encode(&mut out).is_err() {
        assert!(out.is_empty());
        return;
    }
    // Readers see all line ends as line feeds.
    seen.data = seen.data.map(|data| lines(&data).join(&b'\n'));
    let parsed = feed(&mut Parser::default(), &[&out], out.len());
    assert_eq!(parsed.events, [Ok(seen)]);
}

impl Seen {
    fn of(event: &Event<'_>) -> Self {
        Self {
            id: event.id.map(str::to_owned),
            event: event.event.map(str::to_owned),
            retry: event.retry,
            data: event.data.map(<[u8]>::to_vec),
        }
    }

    fn as_event(&self) -> Event<'_> {
        Event {
            id: self.id.as_deref(),
            event: self.event.as_deref(),
            retry: self.retry,
            data: self.data.as_deref(),
        }
    }

    /// Adds a line that is neither blank nor a comment.
    fn read(&mut self, line: &[u8]) {
        let (name, value) = field(line);
        let text = std::str::from_utf8(value).ok().filter(|text| text.len() <= MAX_FIELD);
        match name {
            b"data" => match &mut self.data {
                Some(data) => data.extend([b"\n", value].concat()),
                None => self.data = Some(value.to_vec()),
            },
            b"id" => {
                let text = text.filter(|text| !text.contains('\0'));
                self.id = text.map(str::to_owned).or(self.id.take());
            }
            b"event" => self.event = Some(text.unwrap_or("\u{FFFD}").to_owned()),
            b"retry" if value.iter().all(u8::is_ascii_digit) => {
                self.retry = text.and_then(|text| text.parse().ok()).or(self.retry);
            }
            _ => {}
        }
    }
}

/// The contents of a stream that is available as a whole.
fn naive(stream: &[u8], limit: usize) -> Parsed {
    let mut parsed = Parsed::default();
    if MARK.starts_with(stream) {
        return parsed;
    }
    let stream = stream.strip_prefix(MARK).unwrap_or(stream);
    let mut lines = lines(stream);
    let open = lines.pop().expect("even nothing has a line");
    let closed = lines.len();
    lines.push(open);
    let mut event = Seen::default();
    let mut size = 0;
    let mut is_refused = false;
    for (index, line) in lines.into_iter().enumerate() {
        if index < closed && line.is_empty() {
            size = 0;
            let seen = std::mem::take(&mut event);
            if !std::mem::take(&mut is_refused) && seen != Seen::default() {
                parsed.last_event_id = seen.id.clone().unwrap_or(parsed.last_event_id);
                parsed.events.push(Ok(seen));
            }
        } else if is_refused {
        } else if line.starts_with(b":") {
            parsed.comments += 1;
        } else if size + line.len() > limit {
            let refused = std::mem::take(&mut event);
            let prefix = prefix(&refused, &line[..limit - size]);
            parsed.last_event_id = refused.id.unwrap_or(parsed.last_event_id);
            parsed.events.push(Err(EventTooLong { limit, prefix }));
            is_refused = true;
        } else if index < closed {
            size += line.len();
            event.read(line);
        }
    }
    parsed
}

/// What is kept of an event that was rejected at the end of `line`.
fn prefix(event: &Seen, line: &[u8]) -> Vec<u8> {
    let mut prefix = event.data.clone().map_or(Vec::new(), |data| [&data[..], b"\n"].concat());
    if let (b"data", value) = field(line) {
        prefix.extend_from_slice(value);
    }
    prefix.truncate(PREFIX);
    prefix
}

fn field(line: &[u8]) -> (&[u8], &[u8]) {
    let colon = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
    let value = line.get(colon + 1..).unwrap_or_default();
    (&line[..colon], value.strip_prefix(b" ").unwrap_or(value))
}

/// The lines between any of the three kinds of line end; the last one is open.
fn lines(mut stream: &[u8]) -> Vec<&[u8]> {
    let mut lines = Vec::new();
    while let Some(end) = stream.iter().position(|byte| b"\r\n".contains(byte)) {
        lines.push(&stream[..end]);
        let skip = if stream[end..].starts_with(b"\r\n") { 2 } else { 1 };
        stream = &stream[end + skip..];
    }
    lines.push(stream);
    lines
}
