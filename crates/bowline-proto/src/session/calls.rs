//! The calls that wait for an answer.
//!
//! A [`Calls`] belongs to the one loop that reads a connection. It allocates ids, keeps a waiter
//! for each, and returns the waiter when the answer arrives. What a waiter is does not matter: a
//! oneshot sender in the client, a plain number in the tests.
//!
//! Deadlines are kept without an ordered queue: most calls are answered long before theirs, so
//! [`Calls::next_deadline`] is a lower bound that a rare scan corrects.

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::time::{Duration, Instant};

use crate::wire::Id;

/// How long a call may take. `None` means for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeout {
    /// Without an answer and without progress.
    pub idle: Option<Duration>,
    /// In total, whatever progress is reported.
    pub total: Option<Duration>,
}

impl Timeout {
    /// For calls that only end on request, such as `subscriptions/listen`.
    pub const NEVER: Self = Self { idle: None, total: None };

    /// A limit that progress does not extend.
    pub const fn fixed(total: Duration) -> Self {
        Self { idle: None, total: Some(total) }
    }

    fn deadline(self, opened: Instant, heard: Instant) -> Option<Instant> {
        let idle = self.idle.and_then(|idle| heard.checked_add(idle));
        let total = self.total.and_then(|total| opened.checked_add(total));
        idle.into_iter().chain(total).min()
    }
}

/// One minute without progress, one hour in total.
impl Default for Timeout {
    fn default() -> Self {
        Self { idle: Some(Duration::from_secs(60)), total: Some(Duration::from_secs(60 * 60)) }
    }
}

/// Requests that were sent and not yet answered.
///
/// **Invariant:** a waiter leaves exactly once: with its answer, on its timeout, because its caller
/// gave up, or with all others when the connection ends. After that, an answer to its id is late,
/// which is not the same as an answer to an id that was never allocated.
#[derive(Debug)]
pub struct Calls<W> {
    first: i64,
    next: i64,
    waiting: HashMap<i64, Waiting<W>, BuildHasherDefault<Spread>>,
    /// A lower bound of all deadlines in `waiting`.
    earliest: Option<Instant>,
}

#[derive(Debug)]
struct Waiting<W> {
    waiter: W,
    method: Cow<'static, str>,
    opened: Instant,
    timeout: Timeout,
    deadline: Option<Instant>,
}

/// The recipient of an answer.
#[derive(Debug, PartialEq, Eq)]
pub enum Recipient<W> {
    /// This waiter.
    Awaited(W),
    /// None any more: the call was answered, timed out or abandoned. Drop the answer.
    Late,
    /// None ever: no such id was allocated. The peer is confused.
    Unknown,
}

/// A call that timed out.
#[derive(Debug, PartialEq, Eq)]
pub struct Expired<W> {
    /// Its id, for the cancellation.
    pub id: Id,
    /// Its method.
    pub method: Cow<'static, str>,
    /// How long it has waited.
    pub age: Duration,
    /// Its waiter.
    pub waiter: W,
}

/// A pending call, for display.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pending<'a> {
    /// Its id.
    pub id: Id,
    /// Its method.
    pub method: &'a str,
    /// How long it has waited.
    pub age: Duration,
}

impl<W> Calls<W> {
    /// Creates an empty set of calls. The first id is 1.
    pub fn new() -> Self {
        Self::after(0)
    }

    /// Creates an empty set of calls whose ids come after a number.
    pub fn after(number: i64) -> Self {
        let first = number.saturating_add(1);
        Self { first, next: first, waiting: HashMap::default(), earliest: None }
    }

    /// Adds a call and returns its id. Ids are never reused.
    pub fn open(
        &mut self,
        now: Instant,
        method: impl Into<Cow<'static, str>>,
        timeout: Timeout,
        waiter: W,
    ) -> Id {
        let number = self.next;
        self.next += 1;
        let deadline = timeout.deadline(now, now);
        self.earliest = earlier(self.earliest, deadline);
        let waiting = Waiting { waiter, method: method.into(), opened: now, timeout, deadline };
        self.waiting.insert(number, waiting);
        Id::from(number)
    }

    /// Handles an answer. `"1"` does not answer `1`.
    pub fn close(&mut self, id: &Id) -> Recipient<W> {
        let Some(number) = self.number(id) else {
            return Recipient::Unknown;
        };
        match self.waiting.remove(&number) {
            Some(waiting) => Recipient::Awaited(waiting.waiter),
            None => Recipient::Late,
        }
    }

    /// Handles progress, which restarts the idle timeout. Returns whether the call is pending.
    pub fn touch(&mut self, now: Instant, id: &Id) -> bool {
        let waiting = id.as_i64().and_then(|id| self.waiting.get_mut(&id));
        let Some(waiting) = waiting else {
            return false;
        };
        let deadline = waiting.timeout.deadline(waiting.opened, now);
        // `now` may be older than in the last call.
        waiting.deadline = waiting.deadline.max(deadline);
        true
    }

    /// The waiter of a call.
    pub fn waiter(&mut self, id: &Id) -> Option<&mut W> {
        let waiting = self.waiting.get_mut(&id.as_i64()?)?;
        Some(&mut waiting.waiter)
    }

    /// The deadline of a call, which progress extends. `None` if it has none or is not pending.
    pub fn deadline(&self, id: &Id) -> Option<Instant> {
        self.waiting.get(&id.as_i64()?)?.deadline
    }

    /// The method of a pending call.
    pub fn method(&self, id: &Id) -> Option<&str> {
        self.waiting.get(&id.as_i64()?).map(|waiting| &*waiting.method)
    }

    /// The id of the pending call, if there is exactly one.
    pub fn only_pending(&self) -> Option<Id> {
        let mut numbers = self.waiting.keys();
        numbers.next().filter(|_| self.waiting.len() == 1).map(|number| Id::from(*number))
    }

    /// Abandons a call. If this returns a waiter, send a cancellation.
    pub fn abandon(&mut self, id: &Id) -> Option<W> {
        let waiting = self.waiting.remove(&id.as_i64()?)?;
        Some(waiting.waiter)
    }

    /// Removes the calls that have timed out, oldest first.
    pub fn expire(&mut self, now: Instant) -> Vec<Expired<W>> {
        if self.earliest.is_none_or(|earliest| earliest > now) {
            return Vec::new();
        }
        let is_due = |waiting: &mut Waiting<W>| waiting.deadline.is_some_and(|end| end <= now);
        let due = self.waiting.extract_if(|_, waiting| is_due(waiting));
        let mut expired: Vec<Expired<W>> = due
            .map(|(number, waiting)| Expired {
                id: Id::from(number),
                method: waiting.method,
                age: now.saturating_duration_since(waiting.opened),
                waiter: waiting.waiter,
            })
            .collect();
        expired.sort_by(|one, two| one.id.cmp(&two.id));
        let deadlines = self.waiting.values().filter_map(|waiting| waiting.deadline);
        self.earliest = deadlines.min();
        expired
    }

    /// When to call [`Calls::expire`] next. May be too early, never too late.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.earliest.filter(|_| !self.waiting.is_empty())
    }

    /// Removes all calls, oldest first, when the connection has ended.
    pub fn drain(&mut self) -> Vec<(Id, W)> {
        self.earliest = None;
        let mut all: Vec<(i64, W)> = std::mem::take(&mut self.waiting)
            .into_iter()
            .map(|(number, waiting)| (number, waiting.waiter))
            .collect();
        all.sort_by_key(|(number, _)| *number);
        all.into_iter().map(|(number, waiter)| (Id::from(number), waiter)).collect()
    }

    /// The pending calls, oldest first.
    pub fn pending(&self, now: Instant) -> Vec<Pending<'_>> {
        let mut all: Vec<Pending<'_>> = self
            .waiting
            .iter()
            .map(|(number, waiting)| Pending {
                id: Id::from(*number),
                method: &waiting.method,
                age: now.saturating_duration_since(waiting.opened),
            })
            .collect();
        all.sort_by(|one, two| one.id.cmp(&two.id));
        all
    }

    /// The number of pending calls.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether there are no pending calls.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// The number of an id that was allocated here.
    fn number(&self, id: &Id) -> Option<i64> {
        id.as_i64().filter(|id| (self.first..self.next).contains(id))
    }
}

impl<W> Default for Calls<W> {
    fn default() -> Self {
        Self::new()
    }
}

/// Hashes the numbers of calls. The peer does not choose them, so it cannot cause collisions.
#[derive(Debug, Default)]
struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write_i64(&mut self, number: i64) {
        // With an odd factor no two numbers collide, and the high bits, which tables use, differ.
        self.0 = number.cast_unsigned().wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("the numbers of calls are all that is hashed");
    }
}

fn earlier(one: Option<Instant>, two: Option<Instant>) -> Option<Instant> {
    one.into_iter().chain(two).min()
}

#[cfg(test)]
mod tests {
    use super::super::tests::base;
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const TIMEOUT: Timeout =
        Timeout { idle: Some(Duration::from_secs(10)), total: Some(Duration::from_secs(25)) };

    #[test]
    fn a_waiter_leaves_once() {
        type Leave = fn(&mut Calls<&'static str>, &Id) -> bool;
        fn check(how: &str, leave: Leave) {
            let mut calls = Calls::new();
            let id = calls.open(base(), "ping", TIMEOUT, "me");
            assert!(leave(&mut calls, &id), "{how}");
            assert_eq!(calls.close(&id), Recipient::Late, "{how}");
            assert_eq!(calls.abandon(&id), None, "{how}");
            assert!(calls.expire(base() + 100 * SECOND).is_empty(), "{how}");
            assert!(calls.drain().is_empty(), "{how}");
            assert_eq!(calls.next_deadline(), None, "{how}");
        }
        check("answered", |calls, id| calls.close(id) == Recipient::Awaited("me"));
        check("abandoned", |calls, id| calls.abandon(id) == Some("me"));
        check("drained", |calls, id| calls.drain() == [(id.clone(), "me")]);
        check("expired", |calls, _| calls.expire(base() + 10 * SECOND)[0].waiter == "me");
    }

    #[test]
    fn only_ids_that_we_gave_out_can_be_late() {
        let mut calls = Calls::new();
        let id = calls.open(base(), "ping", TIMEOUT, ());
        assert_eq!(id, Id::from(1_i64));
        for never in [Id::from("1"), Id::from(0_i64), Id::from(2_i64), Id::from(u64::MAX)] {
            assert_eq!(calls.close(&never), Recipient::Unknown, "{never}");
        }
        assert_eq!(calls.close(&id), Recipient::Awaited(()));
        assert_eq!(calls.close(&id), Recipient::Late);
        assert_eq!(calls.open(base(), "ping", TIMEOUT, ()), Id::from(2_i64));
    }

    #[test]
    fn progress_moves_the_deadline_up_to_the_total() {
        let mut calls = Calls::new();
        let id = calls.open(base(), "tools/call", TIMEOUT, ());
        // Seconds of progress, and the second at which the call then ends.
        for (progress, end) in [(5, 15), (3, 15), (14, 24), (20, 25), (24, 25)] {
            assert!(calls.touch(base() + progress * SECOND, &id));
            let last = base() + end * SECOND - Duration::from_nanos(1);
            assert!(calls.expire(last).is_empty(), "progress at {progress}");
            assert_eq!(calls.next_deadline(), Some(base() + end * SECOND));
        }
        let expired = calls.expire(base() + 25 * SECOND);
        assert_eq!(expired[0].age, 25 * SECOND);
        assert!(!calls.touch(base() + 26 * SECOND, &id));
    }

    #[test]
    fn the_next_deadline_is_never_too_late() {
        let mut calls = Calls::new();
        let slow = calls.open(base(), "slow", Timeout::fixed(9 * SECOND), 'a');
        let fast = calls.open(base(), "fast", Timeout::fixed(2 * SECOND), 'b');
        calls.open(base(), "listen", Timeout::NEVER, 'c');
        calls.open(base(), "huge", Timeout::fixed(Duration::MAX), 'd');
        assert_eq!(calls.next_deadline(), Some(base() + 2 * SECOND));
        calls.close(&fast);
        assert!(calls.expire(base() + 2 * SECOND).is_empty());
        assert_eq!(calls.next_deadline(), Some(base() + 9 * SECOND));
        calls.close(&slow);
        assert!(calls.expire(base() + 9 * SECOND).is_empty());
        assert_eq!(calls.next_deadline(), None);
        assert_eq!(calls.len(), 2);
    }

    #[test]
    fn pending_shows_what_is_waited_for() {
        let mut calls = Calls::new();
        calls.open(base(), "tools/call", TIMEOUT, ());
        calls.open(base() + SECOND, String::from("x/y"), TIMEOUT, ());
        let pending = calls.pending(base() + 3 * SECOND);
        let shown: Vec<_> = pending.iter().map(|call| (call.method, call.age)).collect();
        assert_eq!(shown, [("tools/call", 3 * SECOND), ("x/y", 2 * SECOND)]);
    }
}
