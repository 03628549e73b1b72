//! The queue in front of the voice: one speaks, the others wait in order.
//!
//! There is no task behind it. Whoever wants to speak waits for a turn and speaks by itself; who
//! goes away, for whatever reason, leaves the queue by being dropped.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use schemars::JsonSchema;
use serde::Serialize;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// How many may wait.
pub(crate) const MAX_WAITING: usize = 32;

/// How much of a text the queue's status shows, in characters.
const SHOWN: usize = 40;

/// Who speaks, and who waits.
#[derive(Clone)]
pub(crate) struct Queue {
    turn: Arc<Semaphore>,
    entries: Arc<Mutex<Entries>>,
}

#[derive(Default)]
struct Entries {
    last: u64,
    list: Vec<Entry>,
}

struct Entry {
    number: u64,
    text: String,
    is_speaking: bool,
    cleared: Arc<Notify>,
}

/// Something that is spoken or waits to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Queued {
    /// Its number, counted since the server started
    // Clients grumble about formats that JSON Schema does not know, such as uint64.
    #[schemars(with = "i64")]
    number: u64,
    /// How it begins
    text: String,
    /// Whether it is being spoken; else it waits
    is_speaking: bool,
}

/// Why there is no turn.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NoTurn {
    /// Too many wait.
    Full,
    /// The queue was cleared.
    Cleared,
}

impl Default for Queue {
    fn default() -> Self {
        Self { turn: Arc::new(Semaphore::new(1)), entries: Arc::default() }
    }
}

impl Queue {
    /// Gets in line.
    ///
    /// # Errors
    /// When too many wait already.
    pub(crate) fn join(&self, text: &str) -> Result<Place, NoTurn> {
        let mut entries = self.entries();
        if entries.list.len() > MAX_WAITING {
            return Err(NoTurn::Full);
        }
        entries.last += 1;
        let number = entries.last;
        let cleared = Arc::new(Notify::new());
        let mut begin: String = text.chars().take(SHOWN).collect();
        if text.chars().nth(SHOWN).is_some() {
            begin.push('…');
        }
        let entry =
            Entry { number, text: begin, is_speaking: false, cleared: Arc::clone(&cleared) };
        entries.list.push(entry);
        drop(entries);
        Ok(Place { queue: self.clone(), number, cleared, turn: None })
    }

    /// Who speaks and who waits, in order.
    pub(crate) fn list(&self) -> Vec<Queued> {
        let entries = self.entries();
        let shown = entries.list.iter().map(|entry| Queued {
            number: entry.number,
            text: entry.text.clone(),
            is_speaking: entry.is_speaking,
        });
        shown.collect()
    }

    /// Sends away all who wait. Says how many.
    pub(crate) fn clear(&self) -> usize {
        let mut entries = self.entries();
        let before = entries.list.len();
        entries.list.retain(|entry| {
            if !entry.is_speaking {
                entry.cleared.notify_one();
            }
            entry.is_speaking
        });
        before - entries.list.len()
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place in the queue; given up when dropped.
pub(crate) struct Place {
    queue: Queue,
    number: u64,
    cleared: Arc<Notify>,
    turn: Option<OwnedSemaphorePermit>,
}

impl Place {
    /// How many are before this one.
    pub(crate) fn before(&self) -> usize {
        let entries = self.queue.entries();
        entries.list.iter().filter(|entry| entry.number < self.number).count()
    }

    /// Waits for the turn; it lasts until this is dropped.
    ///
    /// # Errors
    /// When the queue is cleared first.
    pub(crate) async fn turn(&mut self) -> Result<(), NoTurn> {
        let turn = tokio::select! {
            biased;
            () = self.cleared.notified() => return Err(NoTurn::Cleared),
            turn = Arc::clone(&self.queue.turn).acquire_owned() => turn,
        };
        let mut entries = self.queue.entries();
        let mine = entries.list.iter_mut().find(|entry| entry.number == self.number);
        // It may have been cleared at this very moment.
        mine.ok_or(NoTurn::Cleared)?.is_speaking = true;
        drop(entries);
        // The semaphore is never closed.
        self.turn = turn.ok();
        Ok(())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.queue.entries().list.retain(|entry| entry.number != self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_speaks_and_the_others_wait_in_order() {
        let queue = Queue::default();
        let mut places = ["a", "b", "c"].map(|text| queue.join(text).unwrap());
        places[0].turn().await.unwrap();
        assert_eq!(places.each_ref().map(Place::before), [0, 1, 2]);
        let [first, mut second, third] = places;
        let waiting = tokio::spawn(async move {
            second.turn().await.unwrap();
            second
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        drop(first);
        let second = waiting.await.unwrap();
        assert_eq!(second.before(), 0);
        let speaking: Vec<_> =
            queue.list().into_iter().map(|it| (it.text, it.is_speaking)).collect();
        assert_eq!(speaking, [("b".to_owned(), true), ("c".to_owned(), false)]);
        drop((second, third));
        assert_eq!(queue.list(), []);
    }

    #[tokio::test]
    async fn clearing_sends_away_all_but_the_one_who_speaks() {
        let queue = Queue::default();
        let mut first = queue.join("a").unwrap();
        let mut second = queue.join("b").unwrap();
        first.turn().await.unwrap();
        let waiting = tokio::spawn(async move { second.turn().await });
        tokio::task::yield_now().await;
        assert_eq!(queue.clear(), 1);
        assert_eq!(waiting.await.unwrap(), Err(NoTurn::Cleared));
        assert_eq!(queue.list().len(), 1);
    }

    #[test]
    fn the_queue_is_bounded() {
        let queue = Queue::default();
        let places: Vec<_> = (0..=MAX_WAITING).map(|_| queue.join("x").unwrap()).collect();
        assert_eq!(queue.join("x").err(), Some(NoTurn::Full));
        drop(places);
        assert!(queue.join(&"x".repeat(100)).is_ok());
    }
}
