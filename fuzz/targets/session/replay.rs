//! What a session has sent: within its limits, and resuming yields exactly the rest of a stream.

use std::time::Duration;

use bowline_fuzz::Bytes;
use bowline_proto::session::{EventId, Missed, Replay, ReplayLimits, ResumeError, StreamId};

use crate::at;

/// A stream in the model: everything that was ever sent, and which of it is kept.
struct Stream {
    id: StreamId,
    frames: Vec<Vec<u8>>,
    /// How many frames have been dropped; the oldest go first.
    gone: usize,
    closed: Option<u64>,
    is_forgotten: bool,
}

struct Model {
    replay: Replay<Vec<u8>>,
    limits: ReplayLimits,
    streams: Vec<Stream>,
    /// The streams of the kept frames, in the order in which they were sent.
    order: Vec<usize>,
    now: u64,
}

pub(crate) fn drive(bytes: &mut Bytes<'_>) {
    let keep = Duration::from_secs(bytes.below(32) as u64);
    let limits = ReplayLimits { events: bytes.below(10), bytes: bytes.below(64), keep };
    let replay = Replay::new(limits);
    let mut model = Model { replay, limits, streams: Vec::new(), order: Vec::new(), now: 0 };
    while !bytes.is_empty() {
        match bytes.below(10) {
            0 => model.open(),
            1..=4 => model.push(bytes),
            5 => model.close(bytes),
            6 => model.expire(),
            7 => model.now += u64::from(bytes.byte() % 16),
            8 => model.resume(bytes),
            _ => odd(&model.replay, bytes),
        }
        model.check();
    }
}

impl Model {
    fn open(&mut self) {
        let id = self.replay.open();
        assert!(self.streams.iter().all(|stream| stream.id < id), "a name issued twice");
        let stream = Stream { id, frames: Vec::new(), gone: 0, closed: None, is_forgotten: false };
        self.streams.push(stream);
    }

    fn push(&mut self, bytes: &mut Bytes<'_>) {
        let Some(index) = self.stream(bytes) else { return };
        let length = bytes.below(24);
        let frame = bytes.take(length).to_vec();
        let stream = &mut self.streams[index];
        let pushed = self.replay.push(stream.id, frame.clone());
        if stream.closed.is_some() {
            assert_eq!(pushed, None);
            return;
        }
        stream.frames.push(frame);
        let number = stream.frames.len() as u64;
        assert_eq!(pushed, Some(EventId { stream: stream.id, number }));
        self.order.push(index);
        while self.order.len() > self.limits.events || self.kept_bytes() > self.limits.bytes {
            let oldest = &mut self.streams[self.order.remove(0)];
            oldest.gone += 1;
            oldest.forget_if_over();
        }
    }

    fn close(&mut self, bytes: &mut Bytes<'_>) {
        let Some(index) = self.stream(bytes) else { return };
        let stream = &mut self.streams[index];
        self.replay.close(at(self.now), stream.id);
        stream.closed.get_or_insert(self.now);
        stream.forget_if_over();
    }

    fn expire(&mut self) {
        self.replay.expire(at(self.now));
        for (index, stream) in self.streams.iter_mut().enumerate() {
            let age = stream.closed.map(|closed| Duration::from_secs(self.now - closed));
            if age.is_some_and(|age| age >= self.limits.keep) {
                stream.is_forgotten = true;
                stream.gone = stream.frames.len();
                self.order.retain(|of| *of != index);
            }
        }
    }

    fn resume(&self, bytes: &mut Bytes<'_>) {
        let Some(index) = self.stream(bytes) else { return };
        let stream = &self.streams[index];
        let number = bytes.below(stream.frames.len() + 2);
        let after = EventId { stream: stream.id, number: number as u64 };
        assert_eq!(after.to_string().parse(), Ok(after));
        let expected = if stream.is_forgotten {
            Err(ResumeError::Ended)
        } else if number < stream.gone {
            Err(ResumeError::Evicted)
        } else if number > stream.frames.len() {
            Err(ResumeError::Unknown)
        } else {
            let frames = stream.frames.iter().zip(1..).skip(number);
            let event = |(frame, number): (&Vec<u8>, u64)| {
                (EventId { stream: stream.id, number }, frame.clone())
            };
            Ok(Missed {
                stream: stream.id,
                events: frames.map(event).collect(),
                is_closed: stream.closed.is_some(),
            })
        };
        assert_eq!(self.replay.resume(&after.to_string()), expected, "{after}");
    }

    fn check(&self) {
        assert_eq!(self.replay.bytes(), self.kept_bytes());
        assert!(self.replay.bytes() <= self.limits.bytes);
        // Every stream yields at most what is kept, all together no more than the limit.
        let back = self.streams.iter().map(|stream| {
            let after = EventId { stream: stream.id, number: stream.gone as u64 };
            let missed = self.replay.resume(&after.to_string());
            missed.map_or(0, |missed| missed.events.len())
        });
        assert_eq!(back.sum::<usize>(), self.order.len());
        assert!(self.order.len() <= self.limits.events);
    }

    fn kept_bytes(&self) -> usize {
        let kept = self.streams.iter().flat_map(|stream| &stream.frames[stream.gone..]);
        kept.map(Vec::len).sum()
    }

    fn stream(&self, bytes: &mut Bytes<'_>) -> Option<usize> {
        let index = bytes.below(self.streams.len().max(1));
        (!self.streams.is_empty()).then_some(index)
    }
}

impl Stream {
    fn forget_if_over(&mut self) {
        self.is_forgotten |= self.closed.is_some() && self.gone == self.frames.len();
    }
}

/// An id that a peer makes up names an event in our own notation, or nothing.
fn odd(replay: &Replay<Vec<u8>>, bytes: &mut Bytes<'_>) {
    let count = bytes.below(24);
    let text = String::from_utf8_lossy(bytes.take(count)).into_owned();
    match text.parse::<EventId>() {
        Ok(id) => assert_eq!(id.to_string(), text),
        Err(error) => {
            assert_eq!(error, ResumeError::Unknown);
            assert_eq!(replay.resume(&text), Err(ResumeError::Unknown));
        }
    }
}
