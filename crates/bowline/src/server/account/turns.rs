//! Fair turns: while several parties are active, one that asks a lot lets the others go first.
//!
//! A runtime polls connections in the order in which they have something to read, so a party with
//! many busy connections would be served as often as it has connections. Here it queues up with
//! itself: of a party that has used up what is free in a moment, one request at a time goes on, and
//! the next one follows when the runtime has looked at everything else that is ready. Its long work
//! is done one at a time, so that it never occupies all threads. While one party is alone, a
//! request pays for a load and a compare.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::clock;

/// How long a party counts as active after its last request.
const ACTIVE: Duration = Duration::from_secs(10);

/// How often a party is noted as active, in milliseconds.
const NOTED: u64 = 1_000;

/// How long a moment is, in milliseconds.
const MOMENT: u64 = 10;

/// The requests of one party that need not queue up, in each moment.
const FREE: u64 = 4;

/// Stands for a party when there are several.
const CROWD: usize = 0;

/// Which parties are active.
pub(crate) struct Turns {
    /// The number of the only active party, or [`CROWD`].
    alone: AtomicUsize,
    /// Until when there are several, as far as is known; in milliseconds since the start.
    crowd_until: AtomicU64,
    /// The two parties that asked last, the latest first, and when, to the second.
    latest: Mutex<[(usize, Instant); 2]>,
    /// The number of the next party.
    next: AtomicUsize,
    start: Instant,
}

impl Turns {
    pub(crate) fn new() -> Self {
        let start = clock::now();
        let nobody = (CROWD, start);
        let (alone, next) = (AtomicUsize::new(CROWD), AtomicUsize::new(CROWD + 1));
        let crowd_until = AtomicU64::new(0);
        Self { alone, crowd_until, latest: Mutex::new([nobody; 2]), next, start }
    }

    /// The turns of one more party.
    pub(crate) fn party(&self) -> Turn {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let noted = AtomicU64::new(u64::MAX);
        Turn { number, noted, used: AtomicU64::new(0), gate: Semaphore::new(1) }
    }

    /// The time in milliseconds.
    fn millis(&self, now: Instant) -> u64 {
        u64::try_from(now.duration_since(self.start).as_millis()).unwrap_or(u64::MAX)
    }

    /// Notes that a party is active. Returns whether another one is, too.
    fn note(&self, number: usize, now: Instant) -> bool {
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        if latest[0].0 != number {
            latest.swap(0, 1);
        }
        // Either it was the second, or that one is forgotten.
        latest[0] = (number, now);
        let (other, at) = latest[1];
        let is_crowd = other != CROWD && now.duration_since(at) < ACTIVE;
        let until = if is_crowd { self.millis(at + ACTIVE) } else { 0 };
        self.crowd_until.store(until, Ordering::Relaxed);
        self.alone.store(if is_crowd { CROWD } else { number }, Ordering::Relaxed);
        is_crowd
    }
}

/// How one party uses its turns.
pub(crate) struct Turn {
    number: usize,
    /// When it was noted last, in milliseconds since the start; `u64::MAX` is never.
    noted: AtomicU64,
    /// The last moment with a request, and the number of requests in it.
    used: AtomicU64,
    gate: Semaphore,
}

impl Turn {
    /// Whether a request must [wait](Self::wait) for the others.
    pub(crate) fn must_wait(&self, turns: &Turns) -> bool {
        if turns.alone.load(Ordering::Relaxed) == self.number {
            return false;
        }
        let now = clock::now();
        self.is_in_crowd(turns, now) && self.is_greedy(turns, now)
    }

    /// The same for what is not a request yet. A party that does little of it does not count as
    /// active: it may be known under another name once it asks.
    pub(crate) fn must_wait_outside(&self, turns: &Turns) -> bool {
        let now = clock::now();
        self.is_greedy(turns, now) && self.is_in_crowd(turns, now)
    }

    /// Whether other parties are active besides this one, which asks now. All parties share what
    /// is noted, so each looks there once a second at most.
    fn is_in_crowd(&self, turns: &Turns, now: Instant) -> bool {
        let at = turns.millis(now);
        let noted = self.noted.load(Ordering::Relaxed);
        if noted <= at && at - noted < NOTED {
            return at < turns.crowd_until.load(Ordering::Relaxed);
        }
        self.noted.store(at, Ordering::Relaxed);
        turns.note(self.number, now)
    }

    /// Counts a use, and returns whether there were too many in this moment.
    fn is_greedy(&self, turns: &Turns, now: Instant) -> bool {
        let moment = turns.millis(now) / MOMENT;
        let mut count = 0;
        // The lowest bits are the count, which does not get far beyond what is free.
        let next = |used: u64| {
            let before = if used >> 8 == moment { used & 0xFF } else { 0 };
            count = before.min(FREE) + 1;
            Some(moment << 8 | count)
        };
        // It never fails.
        let _ = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        count > FREE
    }

    /// Waits until the party's earlier requests have gone on, and everything else that is ready
    /// has been looked at.
    ///
    /// # Cancel safety
    /// A request that is dropped leaves the queue.
    pub(crate) async fn wait(&self) {
        // It is never closed.
        let turn = self.gate.acquire().await;
        tokio::task::yield_now().await;
        drop(turn);
    }

    /// Does work that takes long, up to the first time that it waits for something, while no other
    /// work of the party is done here. With nobody else active, it is done at once.
    ///
    /// # Cancel safety
    /// As that of the work.
    pub(crate) async fn work<F: Future>(&self, turns: &Turns, work: F) -> F::Output {
        let is_alone = turns.alone.load(Ordering::Relaxed) == self.number;
        let mut work = pin!(work);
        if !is_alone && self.is_in_crowd(turns, clock::now()) {
            // It is never closed. A turn is not kept while the work waits: that may be for long.
            let turn = self.gate.acquire().await;
            let begun = poll_fn(|cx| Poll::Ready(work.as_mut().poll(cx))).await;
            drop(turn);
            if let Poll::Ready(output) = begun {
                return output;
            }
        }
        work.await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(turn: &Turn, turns: &Turns, times: u64) -> u64 {
        (0..times).map(|_| u64::from(turn.must_wait(turns))).sum()
    }

    #[tokio::test(start_paused = true)]
    async fn only_a_party_that_asks_a_lot_waits_and_only_for_others() {
        let turns = Turns::new();
        let (greedy, quiet) = (turns.party(), turns.party());
        assert_eq!(waits(&greedy, &turns, 1_000), 0);
        assert_eq!(waits(&quiet, &turns, 1), 0);
        assert_eq!(waits(&greedy, &turns, 1_000), 1_000 - FREE);
        assert_eq!(waits(&quiet, &turns, 1), 0);
        // In each moment some are free.
        tokio::time::advance(Duration::from_millis(MOMENT)).await;
        assert_eq!(waits(&greedy, &turns, 10), 10 - FREE);
        // Nobody waits for a party that has gone.
        tokio::time::advance(ACTIVE).await;
        assert_eq!(waits(&greedy, &turns, 1_000), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn busy_parties_share_a_lock_once_a_second() {
        let turns = Turns::new();
        let (greedy, quiet) = (turns.party(), turns.party());
        assert_eq!(waits(&greedy, &turns, 1), 0);
        assert_eq!(waits(&quiet, &turns, 1), 0);
        assert_eq!(waits(&greedy, &turns, 1), 0);
        let noted = *turns.latest.lock().unwrap();
        let later = Duration::from_millis(NOTED - 1);
        tokio::time::advance(later).await;
        assert_eq!(waits(&greedy, &turns, 1_000), 1_000 - FREE);
        assert_eq!(*turns.latest.lock().unwrap(), noted);
        tokio::time::advance(Duration::from_millis(1)).await;
        assert_eq!(waits(&greedy, &turns, 1_000), 1_000 - FREE);
        assert_ne!(*turns.latest.lock().unwrap(), noted);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_not_a_request_counts_once_there_is_a_lot_of_it() {
        let turns = Turns::new();
        let (address, principal) = (turns.party(), turns.party());
        assert_eq!(waits(&principal, &turns, 1), 0);
        for _ in 0..FREE {
            assert!(!address.must_wait_outside(&turns));
        }
        // The same client by another name is still alone.
        assert_eq!(waits(&principal, &turns, 1_000), 0);
        assert!(address.must_wait_outside(&turns));
        assert!(turns.alone.load(Ordering::Relaxed) == CROWD);
    }
}
