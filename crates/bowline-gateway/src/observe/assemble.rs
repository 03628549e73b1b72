//! Bytes become frames: lines of a stream, whole bodies, events.

use std::collections::HashMap;
use std::time::Duration;

use bowline_proto::sse;

use crate::session_file::{Line, LineKind, Way};

/// The longest frame that is kept whole.
const LONGEST: usize = 1 << 20;
/// How much is kept of a longer one.
const BEGINNING: usize = 16 << 10;
/// The most channels at a time; what passes in further ones counts as lost.
const CHANNELS: usize = 4096;
/// The most bytes of unfinished frames; a frame that needs more counts as lost.
const UNFINISHED: usize = 32 << 20;

/// Where bytes pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Channel {
    /// Which way they go; `None` for standard error.
    pub way: Option<Way>,
    /// The number of the HTTP exchange, 0 on stdio.
    pub exchange: u64,
    /// How they are framed.
    pub framing: Framing,
}

/// How frames are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Framing {
    /// One frame per line.
    Lines,
    /// All of it is one frame.
    Whole,
    /// Server-sent events.
    Events,
}

/// Something to record.
pub(super) enum Frame {
    /// Bytes that should be a message.
    Raw { at: Duration, channel: Channel, bytes: Vec<u8>, length: Option<u64> },
    /// A line that says everything.
    Ready(Box<Line>),
}

impl Frame {
    /// So much is missing here.
    pub(super) fn lost(at: Duration, count: u64) -> Self {
        let (kind, at, length) = (LineKind::Lost, at.as_secs_f64(), Some(count));
        Self::Ready(Box::new(Line { kind, at, length, ..Line::default() }))
    }

    /// What it takes, roughly.
    pub(super) fn weight(&self) -> usize {
        match self {
            Self::Raw { bytes, .. } => bytes.capacity() + size_of::<Self>(),
            Self::Ready(line) => line.weight(),
        }
    }
}

#[derive(Default)]
pub(super) struct Assembler {
    parts: HashMap<Channel, Part>,
    /// The bytes of all unfinished frames.
    unfinished: usize,
    /// How much there was no room for, and when the last of it came.
    missed: u64,
    missed_at: Duration,
}

/// An unfinished frame.
#[derive(Default)]
struct Part {
    bytes: Vec<u8>,
    /// The length of a frame that is too long; only its beginning is kept.
    length: Option<u64>,
    /// Whether everything up to the next frame is worthless, because something is missing.
    is_skipping: bool,
    parser: Option<Box<sse::Parser>>,
}

impl Assembler {
    /// A channel begins, if there is room for one.
    pub(super) fn open(&mut self, channel: Channel) {
        if self.parts.len() < CHANNELS {
            self.parts.insert(channel, Part::default());
        }
    }

    pub(super) fn bytes(
        &mut self,
        at: Duration,
        channel: Channel,
        bytes: Vec<u8>,
        frames: &mut Vec<Frame>,
    ) {
        let Some(part) = self.parts.get_mut(&channel) else { return self.miss(at) };
        let before = part.held();
        match channel.framing {
            Framing::Lines => part.lines(at, channel, bytes, frames),
            Framing::Whole => part.add(&bytes),
            Framing::Events => part.events(at, channel, &bytes, frames),
        }
        self.unfinished = self.unfinished + part.held() - before;
        if self.unfinished > UNFINISHED {
            self.gap(channel);
            self.miss(at);
        }
    }

    /// Bytes of a channel are missing here.
    pub(super) fn gap(&mut self, channel: Channel) {
        if let Some(part) = self.parts.get_mut(&channel) {
            self.unfinished -= part.held();
            *part = Part { is_skipping: true, ..Part::default() };
        }
    }

    pub(super) fn close(&mut self, at: Duration, channel: Channel, frames: &mut Vec<Frame>) {
        let Some(mut part) = self.parts.remove(&channel) else { return };
        self.unfinished -= part.held();
        if channel.framing != Framing::Events && !part.is_skipping {
            part.finish(at, channel, frames);
        }
    }

    /// How much there was no room for since this was asked last, and when.
    pub(super) fn take_missed(&mut self) -> Option<(Duration, u64)> {
        let count = std::mem::take(&mut self.missed);
        (count > 0).then_some((self.missed_at, count))
    }

    fn miss(&mut self, at: Duration) {
        self.missed += 1;
        self.missed_at = at;
    }
}

impl Part {
    /// The bytes that it holds.
    fn held(&self) -> usize {
        self.bytes.len() + self.parser.as_ref().map_or(0, |parser| parser.buffered())
    }

    fn lines(&mut self, at: Duration, channel: Channel, bytes: Vec<u8>, frames: &mut Vec<Frame>) {
        // Most often a chunk is exactly one line.
        let newline = bytes.iter().position(|byte| *byte == b'\n');
        let is_line = newline.is_some_and(|at| at + 1 == bytes.len());
        if is_line && self.bytes.is_empty() && !self.is_skipping && bytes.len() <= LONGEST {
            self.bytes = bytes;
            self.bytes.pop();
            return self.finish(at, channel, frames);
        }
        let mut rest = bytes.as_slice();
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let line = &rest[..end];
            rest = &rest[end + 1..];
            if std::mem::take(&mut self.is_skipping) {
                continue;
            }
            self.add(line);
            self.finish(at, channel, frames);
        }
        self.add(rest);
    }

    fn events(&mut self, at: Duration, channel: Channel, bytes: &[u8], frames: &mut Vec<Frame>) {
        let parser = self.parser.get_or_insert_with(|| Box::new(sse::Parser::new(LONGEST)));
        let mut rest = bytes;
        while let Some(event) = parser.next_event(&mut rest) {
            let (bytes, length) = match event {
                // After a gap, the first event may be made of two.
                Ok(_) if std::mem::take(&mut self.is_skipping) => continue,
                Ok(event) => (event.data.unwrap_or_default().to_vec(), None),
                Err(long) => (long.prefix, Some(LONGEST as u64)),
            };
            if !bytes.is_empty() {
                frames.push(Frame::Raw { at, channel, bytes, length });
            }
        }
    }

    fn add(&mut self, bytes: &[u8]) {
        if self.is_skipping {
            return;
        }
        if let Some(length) = &mut self.length {
            *length += bytes.len() as u64;
        } else if self.bytes.len() + bytes.len() > LONGEST {
            self.length = Some((self.bytes.len() + bytes.len()) as u64);
            let room = BEGINNING.saturating_sub(self.bytes.len()).min(bytes.len());
            self.bytes.extend_from_slice(&bytes[..room]);
            self.bytes.truncate(BEGINNING);
            self.bytes.shrink_to_fit();
        } else {
            self.bytes.extend_from_slice(bytes);
        }
    }

    fn finish(&mut self, at: Duration, channel: Channel, frames: &mut Vec<Frame>) {
        let (mut bytes, length) = (std::mem::take(&mut self.bytes), self.length.take());
        if bytes.last() == Some(&b'\r') {
            bytes.pop();
        }
        if !bytes.is_empty() {
            frames.push(Frame::Raw { at, channel, bytes, length });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The frames of chunks, as text, with the length of those that are cut.
    fn frames(framing: Framing, chunks: &[&[u8]]) -> Vec<(String, Option<u64>)> {
        let channel = Channel { way: Some(Way::Sent), exchange: 0, framing };
        let (mut assembler, mut found) = (Assembler::default(), Vec::new());
        assembler.open(channel);
        for chunk in chunks {
            if chunk.is_empty() {
                assembler.gap(channel);
            } else {
                assembler.bytes(Duration::ZERO, channel, chunk.to_vec(), &mut found);
            }
        }
        assembler.close(Duration::ZERO, channel, &mut found);
        let text = |frame: Frame| match frame {
            Frame::Raw { bytes, length, .. } => (String::from_utf8(bytes).unwrap(), length),
            Frame::Ready(_) => panic!("nothing is ready"),
        };
        found.into_iter().map(text).collect()
    }

    #[test]
    fn frames_are_found_however_bytes_arrive() {
        let whole = |texts: &[&str]| -> Vec<_> {
            texts.iter().map(|text| ((*text).to_owned(), None)).collect()
        };
        assert_eq!(frames(Framing::Lines, &[b"a\n"]), whole(&["a"]));
        assert_eq!(frames(Framing::Lines, &[b"a", b"b\r\n\nc", b"\nd"]), whole(&["ab", "c", "d"]));
        assert_eq!(frames(Framing::Whole, &[b"a\n", b"b"]), whole(&["a\nb"]));
        assert_eq!(
            frames(Framing::Events, &[b"data: a", b"\n\n:x\n\ndata: b\n\n"]),
            whole(&["a", "b"])
        );
    }

    #[test]
    fn what_is_torn_by_a_gap_is_left_out() {
        let found = frames(Framing::Lines, &[b"a\nb", b"", b"c\nd\n"]);
        assert_eq!(found, [("a".to_owned(), None), ("d".to_owned(), None)]);
    }

    #[test]
    fn of_a_long_frame_the_beginning_is_kept() {
        let long = vec![b'x'; LONGEST];
        let found = frames(Framing::Lines, &[&long, &long, b"\nshort\n"]);
        assert_eq!((found[0].0.len(), found[0].1), (BEGINNING, Some(2 * LONGEST as u64)));
        assert_eq!(found[1], ("short".to_owned(), None));
    }

    fn whole(exchange: u64) -> Channel {
        Channel { way: Some(Way::Sent), exchange, framing: Framing::Whole }
    }

    #[test]
    fn what_passes_in_too_many_channels_is_counted() {
        let (mut assembler, mut frames) = (Assembler::default(), Vec::new());
        let count = CHANNELS as u64;
        for exchange in 0..count + 1 {
            assembler.open(whole(exchange));
            assembler.bytes(Duration::ZERO, whole(exchange), b"{}".to_vec(), &mut frames);
        }
        assert_eq!(assembler.take_missed(), Some((Duration::ZERO, 1)));
        // A place is free, but the frame of the last channel has lost its beginning.
        assembler.close(Duration::ZERO, whole(0), &mut frames);
        assembler.bytes(Duration::ZERO, whole(count), b"{}".to_vec(), &mut frames);
        assembler.close(Duration::ZERO, whole(count), &mut frames);
        assert_eq!((assembler.take_missed(), frames.len()), (Some((Duration::ZERO, 1)), 1));
    }

    #[test]
    fn unfinished_frames_hold_so_many_bytes_at_most() {
        let (mut assembler, mut frames) = (Assembler::default(), Vec::new());
        let count = (UNFINISHED / LONGEST) as u64;
        for exchange in 0..count + 1 {
            assembler.open(whole(exchange));
            assembler.bytes(Duration::ZERO, whole(exchange), vec![b'x'; LONGEST], &mut frames);
        }
        assert_eq!(assembler.take_missed(), Some((Duration::ZERO, 1)));
        assert_eq!(assembler.unfinished, UNFINISHED);
        for exchange in 0..count + 1 {
            assembler.close(Duration::ZERO, whole(exchange), &mut frames);
        }
        assert_eq!((assembler.unfinished, frames.len() as u64), (0, count));
    }
}
