//! Sees what passes without being in its way: a bounded queue, and a thread that writes what is in
//! it to the session file and to viewers.
//!
//! **Invariant:** nothing here makes the session wait. What comes faster than it can be written is
//! dropped and counted; a full disk ends the recording, a stalled viewer loses lines.

mod assemble;
mod encode;
mod queue;
mod viewers;
mod watch;
mod watched;

use std::collections::VecDeque;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use self::assemble::{Assembler, Frame};
pub use self::assemble::{Channel, Framing};
use self::encode::Encoder;
use self::queue::{Event, Queue};
use self::viewers::Viewers;
pub use self::watch::Watch;
pub use self::watched::Watched;
use crate::redact::Redactor;
use crate::session_file::{Line, LineKind, Opening, Recorder};

/// The most bytes of past frames that are kept for viewers that come later.
const HISTORY: usize = 1 << 20;
/// How long the end of a session waits for the last lines while none of them gets written.
const LAST: Duration = Duration::from_secs(3);

/// A connection to a viewer: a stream whose writes do not block.
pub type ViewerStream = Box<dyn Write + Send>;

/// What an observer does with what it sees.
pub struct Observing {
    /// How the session begins.
    pub opening: Opening,
    /// Removes secrets from everything that leaves the process.
    pub redactor: Redactor,
    /// Writes the session file.
    pub recorder: Option<Recorder>,
    /// Receives a sentence when the recording fails.
    pub warn: Box<dyn Fn(&str) + Send>,
}

/// Takes what passes. Cheap to clone; clones share their queue.
#[derive(Clone)]
pub struct Observer {
    queue: Arc<Queue>,
}

impl Observer {
    /// Starts to observe, in a thread of its own.
    ///
    /// # Errors
    /// When the system has no thread to spare.
    pub fn start(observing: Observing) -> std::io::Result<Self> {
        let queue = Arc::new(Queue::new());
        let observer = Self { queue: Arc::clone(&queue) };
        let thread = std::thread::Builder::new().name("observer".to_owned());
        thread.spawn(move || Worker::new(observing).run(&queue))?;
        Ok(observer)
    }

    /// Begins to watch a channel, until what is returned is dropped.
    pub fn watch(&self, channel: Channel) -> Watch {
        Watch::new(self, channel)
    }

    /// Takes a line that is ready but for its time.
    pub fn note(&self, line: Line) {
        self.queue.push(line.weight(), || self.ready(line), None);
    }

    /// Takes something that went wrong, or was broken on purpose.
    pub fn fault(&self, what: impl Into<String>) {
        let text = Some(what.into());
        self.note(Line { kind: LineKind::Fault, text, ..Line::default() });
    }

    fn ready(&self, line: Line) -> Event {
        Event::Ready(Box::new(Line { at: self.queue.at().as_secs_f64(), ..line }))
    }

    /// Takes a viewer, which receives everything from now on, and what is left of the past.
    pub fn admit(&self, viewer: ViewerStream) {
        self.queue.push(0, || Event::Viewer(viewer), None);
    }

    /// Ends the session, and waits until everything is written, as long as that goes on.
    pub fn end(&self, reason: Option<String>) {
        let line = Line { kind: LineKind::End, text: reason, ..Line::default() };
        self.queue.push_always(self.ready(line));
        self.queue.finish(LAST);
    }
}

/// The thread behind the queue.
struct Worker {
    opening: Line,
    redactor: Arc<Redactor>,
    recorder: Option<Recorder>,
    warn: Box<dyn Fn(&str) + Send>,
    assembler: Assembler,
    /// `None` while nobody reads: frames are only kept then, which costs nearly nothing.
    encoder: Option<Encoder>,
    viewers: Viewers,
    history: VecDeque<Frame>,
    history_bytes: usize,
}

impl Worker {
    fn new(observing: Observing) -> Self {
        let redactor = Arc::new(observing.redactor);
        let opening =
            Line { kind: LineKind::Session, session: Some(observing.opening), ..Line::default() };
        let encoder = observing.recorder.is_some().then(|| Encoder::new(&redactor));
        let mut worker = Self {
            opening,
            redactor,
            recorder: observing.recorder,
            warn: observing.warn,
            assembler: Assembler::default(),
            encoder,
            viewers: Viewers::default(),
            history: VecDeque::new(),
            history_bytes: 0,
        };
        let text = worker.opening.encode().unwrap_or_default();
        worker.record(&text, true);
        worker
    }

    fn run(mut self, queue: &Queue) {
        while let Some(batch) = queue.take(self.viewers.are_behind()) {
            for event in batch {
                self.handle(event);
                queue.advance();
            }
            self.count_missed();
            self.viewers.flush();
            if self.recorder.is_none() && self.viewers.is_empty() {
                self.encoder = None;
            }
            queue.rest();
        }
        self.viewers.flush();
        queue.finished();
    }

    fn handle(&mut self, event: Event) {
        let mut frames = Vec::new();
        match event {
            Event::Bytes { at, channel, bytes } => {
                self.assembler.bytes(at, channel, bytes, &mut frames);
            }
            Event::Opened { channel } => self.assembler.open(channel),
            Event::Closed { at, channel } => self.assembler.close(at, channel, &mut frames),
            Event::Lost { at, count, channels } => {
                for channel in channels {
                    self.assembler.gap(channel);
                }
                frames.push(Frame::lost(at, count));
            }
            Event::Ready(line) => frames.push(Frame::Ready(line)),
            Event::Viewer(viewer) => self.welcome(viewer),
        }
        for frame in frames {
            self.pass(frame);
        }
    }

    /// Reports what there was no room for.
    fn count_missed(&mut self) {
        if let Some((at, count)) = self.assembler.take_missed() {
            self.pass(Frame::lost(at, count));
        }
    }

    /// Shows a new viewer the past.
    fn welcome(&mut self, viewer: ViewerStream) {
        let mut text = self.opening.encode().unwrap_or_default();
        let mut encoder = Encoder::new(&self.redactor);
        for frame in &self.history {
            text.extend(encoder.encode(frame));
        }
        self.encoder.get_or_insert(encoder);
        self.viewers.add(viewer, text);
    }

    /// Writes a frame to wherever it is wanted, and remembers it.
    fn pass(&mut self, frame: Frame) {
        if let Some(encoder) = &mut self.encoder {
            let text = encoder.encode(&frame);
            self.record(&text, false);
            self.viewers.push(&text);
        }
        self.history_bytes += frame.weight();
        self.history.push_back(frame);
        while self.history_bytes > HISTORY
            && let Some(oldest) = self.history.pop_front()
        {
            self.history_bytes -= oldest.weight();
        }
    }

    fn record(&mut self, text: &[u8], is_opening: bool) {
        if let Some(recorder) = &self.recorder
            && let Err(error) = recorder.write_text(text, is_opening)
        {
            self.recorder = None;
            (self.warn)(&format!("the recording stops here, the session goes on: {error}"));
        }
    }
}
