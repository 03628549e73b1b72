//! The bounded queue between a session and its observer.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::ViewerStream;
use super::assemble::Channel;
use crate::session_file::Line;

/// The most bytes that wait: what comes while they do is lost.
const MOST: usize = 2 << 20;
/// What an event takes beside its bytes.
const OVERHEAD: usize = 96;
/// How long the observer rests after a batch, so that a busy session does not wake it every time.
const REST: Duration = Duration::from_millis(10);

/// What the observer is told.
pub(super) enum Event {
    Opened {
        channel: Channel,
    },
    Bytes {
        at: Duration,
        channel: Channel,
        bytes: Vec<u8>,
    },
    Closed {
        at: Duration,
        channel: Channel,
    },
    Ready(Box<Line>),
    Viewer(ViewerStream),
    /// So many events are missing, some of them bytes of these channels.
    Lost {
        at: Duration,
        count: u64,
        channels: Vec<Channel>,
    },
}

pub(super) struct Queue {
    /// When the session began: what all times are counted from.
    begun: Instant,
    state: Mutex<State>,
    /// Something happened that the observer waits for.
    changed: Condvar,
    /// The observer has ended.
    over: Condvar,
    /// How many events the observer has handled.
    handled: AtomicU64,
}

#[derive(Default)]
struct State {
    events: VecDeque<Event>,
    weight: usize,
    lost: u64,
    /// Channels that have lost bytes.
    gaps: Vec<Channel>,
    /// Whether the observer has nothing to do, and must be woken.
    is_idle: bool,
    /// Whether no more events come.
    is_ending: bool,
    is_over: bool,
}

impl Queue {
    pub(super) fn new() -> Self {
        Self {
            begun: Instant::now(),
            state: Mutex::default(),
            changed: Condvar::new(),
            over: Condvar::new(),
            handled: AtomicU64::new(0),
        }
    }

    /// How long the session has lasted.
    pub(super) fn at(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Adds an event with so many bytes, unless the queue is full. Never waits for the observer.
    /// Whether there was room.
    pub(super) fn push(
        &self,
        bytes: usize,
        event: impl FnOnce() -> Event,
        of: Option<Channel>,
    ) -> bool {
        let mut state = self.lock();
        if state.weight + bytes + OVERHEAD > MOST {
            state.lost += 1;
            if let Some(channel) = of.filter(|channel| !state.gaps.contains(channel)) {
                state.gaps.push(channel);
            }
            return false;
        }
        self.add(&mut state, bytes, event());
        true
    }

    /// Adds an event even if the queue is full. Only for the end of the session, and for that of a
    /// channel whose beginning was taken, so that there are never more of these than there was room
    /// for.
    pub(super) fn push_always(&self, event: Event) {
        self.add(&mut self.lock(), 0, event);
    }

    /// Counts an event that nobody could make sense of.
    pub(super) fn lose(&self) {
        self.lock().lost += 1;
    }

    fn add(&self, state: &mut State, bytes: usize, event: Event) {
        if state.lost > 0 {
            let at = self.at();
            let (count, channels) =
                (std::mem::take(&mut state.lost), std::mem::take(&mut state.gaps));
            state.events.push_back(Event::Lost { at, count, channels });
        }
        state.events.push_back(event);
        state.weight += bytes + OVERHEAD;
        if state.is_idle || state.weight > MOST / 2 {
            state.is_idle = false;
            self.changed.notify_one();
        }
    }

    /// Everything that waits, once there is something; `None` at the end. If `is_behind`, returns
    /// soon even if there is nothing.
    pub(super) fn take(&self, is_behind: bool) -> Option<VecDeque<Event>> {
        let mut state = self.lock();
        while state.events.is_empty() && !is_behind {
            if state.is_ending {
                return None;
            }
            state.is_idle = true;
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.is_ending && state.events.is_empty() {
            return None;
        }
        state.weight = 0;
        Some(std::mem::take(&mut state.events))
    }

    /// Waits a little, unless the queue fills up or the session ends.
    pub(super) fn rest(&self) {
        let state = self.lock();
        if state.is_ending || state.weight > MOST / 2 {
            return;
        }
        drop(self.changed.wait_timeout(state, REST));
    }

    /// Notes that an event has been handled.
    pub(super) fn advance(&self) {
        self.handled.fetch_add(1, Ordering::Relaxed);
    }

    /// Ends the session, and waits until the observer has written everything, or nothing for as
    /// long as `patience`.
    pub(super) fn finish(&self, patience: Duration) {
        self.lock().is_ending = true;
        self.changed.notify_one();
        loop {
            let before = self.handled.load(Ordering::Relaxed);
            let waited = self.over.wait_timeout_while(self.lock(), patience, |it| !it.is_over);
            let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
            if state.is_over || self.handled.load(Ordering::Relaxed) == before {
                return;
            }
        }
    }

    pub(super) fn finished(&self) {
        self.lock().is_over = true;
        self.over.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::Framing;
    use crate::session_file::Way;

    #[test]
    fn a_full_queue_drops_and_counts() {
        let queue = Queue::new();
        let channel = Channel { way: Some(Way::Sent), exchange: 0, framing: Framing::Lines };
        let push = |length: usize| {
            let event = || Event::Bytes { at: Duration::ZERO, channel, bytes: vec![0; length] };
            queue.push(length, event, Some(channel))
        };
        let lengths = [MOST - 2 * OVERHEAD, 1 << 10, 1 << 10];
        assert_eq!(lengths.map(push), [true, false, false]);
        assert_eq!(queue.take(false).unwrap().len(), 1);
        assert!(push(1));
        let batch: Vec<Event> = queue.take(false).unwrap().into();
        let [Event::Lost { count: 2, channels, .. }, Event::Bytes { .. }] = batch.as_slice() else {
            panic!("{}", batch.len());
        };
        assert_eq!(channels, &[channel]);
    }
}
