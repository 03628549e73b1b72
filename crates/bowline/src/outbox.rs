//! The bounded queue of bytes in front of a writer.
//!
//! Producers append whole frames; the one task that owns the writer takes all of them at once and
//! writes them together. Only that task touches the stream, so a handler that is dropped halfway
//! can never leave half a line.

use std::future::poll_fn;
use std::mem;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bowline_proto::line;
use tokio::sync::Notify;

/// The queue in front of a writer.
pub(crate) struct Outbox {
    limit: usize,
    waiting: Mutex<Waiting>,
    /// The number of queued bytes, readable without the lock.
    length: AtomicUsize,
    /// Whether the reader waits to be woken. It is set with the lock held, and may be cleared
    /// without.
    is_asleep: AtomicBool,
    /// Whether only answers are still welcome.
    is_quiet: AtomicBool,
    /// Wakes producers that wait for room.
    drained: Notify,
}

#[derive(Default)]
struct Waiting {
    bytes: Vec<u8>,
    is_closed: bool,
    /// The task that takes what is added.
    reader: Option<Waker>,
    /// Whether a producer waits for room.
    is_room_wanted: bool,
}

/// The stream has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Closed;

impl Outbox {
    pub(crate) fn new(limit: usize) -> Self {
        // With no room at all, nothing would ever be read or sent.
        let limit = limit.max(1);
        Self {
            limit,
            waiting: Mutex::default(),
            length: AtomicUsize::new(0),
            is_asleep: AtomicBool::new(false),
            is_quiet: AtomicBool::new(false),
            drained: Notify::new(),
        }
    }

    /// Appends one frame, written by `fill`, even if there is no room. For answers: the number of
    /// requests is bounded, and so is that of answers.
    pub(crate) fn push(&self, fill: impl FnOnce(&mut Vec<u8>)) -> Result<(), Closed> {
        let mut waiting = self.lock();
        if waiting.is_closed {
            return Err(Closed);
        }
        let start = waiting.bytes.len();
        fill(&mut waiting.bytes);
        if waiting.bytes.len() > start {
            line::finish_frame(&mut waiting.bytes, start);
        }
        self.length.store(waiting.bytes.len(), Ordering::Release);
        self.wake_reader(waiting);
        Ok(())
    }

    /// Asks producers for answers only: the client has closed its side, and some fail on anything
    /// that they do not wait for.
    pub(crate) fn quieten(&self) {
        self.is_quiet.store(true, Ordering::Release);
    }

    /// Whether only answers are still welcome.
    pub(crate) fn is_quiet(&self) -> bool {
        self.is_quiet.load(Ordering::Acquire)
    }

    /// Takes everything that is queued into `taken`, or waits for something. `false` means that the
    /// outbox is closed and empty.
    #[cfg(feature = "http")]
    pub(crate) fn poll_take(&self, cx: &mut Context<'_>, taken: &mut Vec<u8>) -> Poll<bool> {
        let mut waiting = self.lock();
        if waiting.bytes.is_empty() {
            if waiting.is_closed {
                return Poll::Ready(false);
            }
            self.wake_later(&mut waiting, cx);
            return Poll::Pending;
        }
        taken.append(&mut waiting.bytes);
        self.make_room(waiting);
        Poll::Ready(true)
    }

    /// Appends one frame if there is room.
    pub(crate) fn try_push(&self, fill: impl FnOnce(&mut Vec<u8>)) -> bool {
        self.has_room() && self.push(fill).is_ok()
    }

    /// Appends bytes that are already framed, if there is room.
    #[cfg(feature = "http")]
    pub(crate) fn try_push_bytes(&self, bytes: &[u8]) -> bool {
        let mut waiting = self.lock();
        if waiting.is_closed || waiting.bytes.len() >= self.limit {
            return false;
        }
        waiting.bytes.extend_from_slice(bytes);
        self.length.store(waiting.bytes.len(), Ordering::Release);
        self.wake_reader(waiting);
        true
    }

    /// Waits for room, then appends one frame.
    pub(crate) async fn send(&self, fill: impl FnOnce(&mut Vec<u8>)) -> Result<(), Closed> {
        self.room().await?;
        self.push(fill)
    }

    /// Waits until there is room.
    pub(crate) async fn room(&self) -> Result<(), Closed> {
        loop {
            let drained = self.drained.notified();
            {
                let mut waiting = self.lock();
                if waiting.is_closed {
                    return Err(Closed);
                }
                if waiting.bytes.len() < self.limit {
                    return Ok(());
                }
                waiting.is_room_wanted = true;
            }
            drained.await;
        }
    }

    #[cfg(feature = "http")]
    pub(crate) fn is_empty(&self) -> bool {
        self.lock().bytes.is_empty()
    }

    #[cfg(feature = "client")]
    pub(crate) fn is_closed(&self) -> bool {
        self.lock().is_closed
    }

    /// The number of queued bytes.
    pub(crate) fn length(&self) -> usize {
        self.length.load(Ordering::Acquire)
    }

    pub(crate) fn has_room(&self) -> bool {
        self.length.load(Ordering::Acquire) < self.limit
    }

    /// Takes everything that is queued into `taken`, which must be empty. Returns whether there was
    /// anything.
    pub(crate) fn take(&self, taken: &mut Vec<u8>) -> bool {
        debug_assert!(taken.is_empty());
        if self.length.load(Ordering::Acquire) == 0 {
            return false;
        }
        let mut waiting = self.lock();
        mem::swap(&mut waiting.bytes, taken);
        self.make_room(waiting);
        true
    }

    /// Records that everything was taken.
    fn make_room(&self, mut waiting: MutexGuard<'_, Waiting>) {
        self.length.store(0, Ordering::Release);
        let is_wanted = mem::take(&mut waiting.is_room_wanted);
        drop(waiting);
        if is_wanted {
            self.drained.notify_waiters();
        }
    }

    /// Waits until there is something to take.
    pub(crate) async fn filled(&self) {
        poll_fn(|cx| self.poll_filled(cx)).await;
    }

    /// Tells producers that the reader is awake: it checks for new frames before it waits again.
    pub(crate) fn stay_awake(&self) {
        self.is_asleep.store(false, Ordering::Relaxed);
    }

    /// Ready when there is something to take.
    pub(crate) fn poll_filled(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut waiting = self.lock();
        if waiting.bytes.is_empty() && !waiting.is_closed {
            self.wake_later(&mut waiting, cx);
            return Poll::Pending;
        }
        Poll::Ready(())
    }

    /// Rejects further frames. What is queued can still be taken.
    pub(crate) fn close(&self) {
        let mut waiting = self.lock();
        waiting.is_closed = true;
        self.wake_reader(waiting);
        self.drained.notify_waiters();
    }

    fn wake_later(&self, waiting: &mut Waiting, cx: &Context<'_>) {
        self.is_asleep.store(true, Ordering::Relaxed);
        match &mut waiting.reader {
            Some(reader) => reader.clone_from(cx.waker()),
            reader => *reader = Some(cx.waker().clone()),
        }
    }

    /// Wakes the reader if it waits, after the lock is released.
    fn wake_reader(&self, waiting: MutexGuard<'_, Waiting>) {
        if !self.is_asleep.load(Ordering::Relaxed) {
            return;
        }
        self.is_asleep.store(false, Ordering::Relaxed);
        let reader = waiting.reader.clone();
        drop(waiting);
        if let Some(reader) = reader {
            reader.wake();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
