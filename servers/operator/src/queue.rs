//! The queue in front of the voice: one caller speaks, the others wait in order.
//!
//! No task runs it. Each caller waits for its turn and then speaks itself; a caller that goes away
//! leaves the queue when its [`Ticket`] is dropped.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use schemars::JsonSchema;
use serde::Serialize;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// How many callers may wait.
pub(crate) const MAX_WAITING: usize = 32;

/// How much of a text the queue's status shows, in characters.
const SHOWN: usize = 40;

/// The callers that speak or wait.
#[derive(Clone)]
pub(crate) struct Queue {
    turn: Arc<Semaphore>,
    entries: Arc<Mutex<Entries>>,
}

#[derive(Default)]
struct Entries {
    last: u64,
    list: Vec<QueueEntry>,
}

struct QueueEntry {
    number: u64,
    text: String,
    is_speaking: bool,
    cleared: Arc<Notify>,
}

/// A text that is being spoken or is waiting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Queued {
    /// Its number, counted from the start of the server
    // Some clients warn about formats that JSON Schema does not define, such as uint64.
    #[schemars(with = "i64")]
    number: u64,
    /// How it begins
    text: String,
    /// Whether it is being spoken; otherwise it is waiting
    is_speaking: bool,
}

/// Why a caller cannot speak.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NoTurn {
    /// Too many are waiting.
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
    /// Joins the queue.
    ///
    /// # Errors
    /// If too many are waiting already.
    pub(crate) fn join(&self, text: &str) -> Result<Ticket, NoTurn> {
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
            QueueEntry { number, text: begin, is_speaking: false, cleared: Arc::clone(&cleared) };
        entries.list.push(entry);
        drop(entries);
        Ok(Ticket { queue: self.clone(), number, cleared, turn: None })
    }

    /// All entries, in order.
    pub(crate) fn list(&self) -> Vec<Queued> {
        let entries = self.entries();
        let shown = entries.list.iter().map(|entry| Queued {
            number: entry.number,
            text: entry.text.clone(),
            is_speaking: entry.is_speaking,
        });
        shown.collect()
    }

    /// Drops all that are waiting, and returns how many.
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

/// A place in the queue, given up on drop.
pub(crate) struct Ticket {
    queue: Queue,
    number: u64,
    cleared: Arc<Notify>,
    turn: Option<OwnedSemaphorePermit>,
}

impl Ticket {
    /// How many are ahead of this one.
    pub(crate) fn before(&self) -> usize {
        let entries = self.queue.entries();
        entries.list.iter().filter(|entry| entry.number < self.number).count()
    }

    /// Waits for its turn, which lasts until the ticket is dropped.
    ///
    /// # Errors
    /// If the queue is cleared first.
    pub(crate) async fn turn(&mut self) -> Result<(), NoTurn> {
        let turn = tokio::select! {
            biased;
            () = self.cleared.notified() => return Err(NoTurn::Cleared),
            turn = Arc::clone(&self.queue.turn).acquire_owned() => turn,
        };
        let mut entries = self.queue.entries();
        let mine = entries.list.iter_mut().find(|entry| entry.number == self.number);
        // The queue may have been cleared in the meantime.
        mine.ok_or(NoTurn::Cleared)?.is_speaking = true;
        drop(entries);
        // The semaphore is never closed.
        self.turn = turn.ok();
        Ok(())
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.queue.entries().list.retain(|entry| entry.number != self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_speaks_while_the_others_wait_in_order() {
        let queue = Queue::default();
        let mut tickets = ["a", "b", "c"].map(|text| queue.join(text).unwrap());
        tickets[0].turn().await.unwrap();
        assert_eq!(tickets.each_ref().map(Ticket::before), [0, 1, 2]);
        let [first, mut second, third] = tickets;
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
    async fn clearing_drops_all_but_the_one_that_speaks() {
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
        let tickets: Vec<_> = (0..=MAX_WAITING).map(|_| queue.join("x").unwrap()).collect();
        assert_eq!(queue.join("x").err(), Some(NoTurn::Full));
        drop(tickets);
        assert!(queue.join(&"x".repeat(100)).is_ok());
    }
}
