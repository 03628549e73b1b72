//! When to ask for a task again, and when to stop.
//!
//! The server says how long to wait between polls; the client stays within its own bounds, and adds
//! a random part, so that many clients do not ask at once. While the server reports changes by
//! itself, polls are only a safeguard.

use std::time::Duration;

use tokio::time::Instant;

use super::state::TaskState;
use crate::client::limits::ClientLimits;
use crate::random;

/// How long to wait where the server does not say.
const USUAL: Duration = Duration::from_secs(1);

/// When to ask for one task again.
pub(super) struct Pace {
    shortest: Duration,
    longest: Duration,
    /// When the client first heard of the task.
    since: Instant,
    /// When the client last asked, or heard of it otherwise.
    last: Instant,
    /// How long to wait from then on.
    wait: Duration,
    /// What the server wants.
    wanted: Duration,
    ttl: Option<Duration>,
    is_pushed: bool,
}

impl Pace {
    /// The first poll is due at once, unless the server says otherwise.
    pub(super) fn new(limits: &ClientLimits, since: Instant, now: Instant) -> Self {
        let (shortest, longest) = (limits.task_poll_shortest, limits.task_poll_longest);
        Self {
            shortest,
            longest: longest.max(shortest),
            since,
            last: now,
            wait: Duration::ZERO,
            wanted: USUAL,
            ttl: None,
            is_pushed: false,
        }
    }

    /// The server has described the task.
    pub(super) fn heard(&mut self, now: Instant, state: &TaskState) {
        self.ttl = state.ttl;
        self.wanted = state.poll_interval.unwrap_or(USUAL);
        self.begin(now);
    }

    /// The server reports changes by itself from now on, or no longer does. What changed before is
    /// not reported, so the next poll comes soon.
    pub(super) fn set_pushed(&mut self, now: Instant, is_pushed: bool) {
        if is_pushed != self.is_pushed {
            self.is_pushed = is_pushed;
            self.begin(now);
            if is_pushed {
                self.wait = Duration::ZERO;
            }
        }
    }

    /// Asks again soon, though not sooner than allowed.
    pub(super) fn hurry(&mut self) {
        self.wait = self.shortest;
    }

    /// Asks again after a while, because asking failed.
    pub(super) fn pause(&mut self, now: Instant, wait: Duration) {
        self.last = now;
        self.wait = wait;
    }

    fn begin(&mut self, now: Instant) {
        let wanted = if self.is_pushed { self.longest } else { self.wanted };
        let base = wanted.clamp(self.shortest, self.longest);
        self.last = now;
        self.wait = base + base.mul_f64(random::fraction() / 4.0);
    }

    /// When the next poll is due: at the end of the time to live at the latest, because that is
    /// when the result may vanish.
    pub(super) fn due(&self) -> Instant {
        let due = self.last + self.wait;
        match self.expiry() {
            Some(expiry) => due.min(expiry.max(self.last + self.shortest.min(self.wait))),
            None => due,
        }
    }

    /// The time to live, if it is over.
    pub(super) fn expired(&self, now: Instant) -> Option<Duration> {
        self.ttl.filter(|_| self.expiry().is_some_and(|expiry| expiry <= now))
    }

    fn expiry(&self) -> Option<Instant> {
        // A time that no clock can express never comes.
        self.ttl.and_then(|ttl| self.since.checked_add(ttl))
    }
}

#[cfg(test)]
mod tests {
    use bowline_proto::model::task_extension::Task;

    use super::*;
    use crate::clock;

    fn state(poll: Option<u64>, ttl: Option<u64>) -> TaskState {
        Task { poll_interval_ms: poll, ttl_ms: ttl, ..Task::default() }.into()
    }

    #[test]
    fn polls_are_as_far_apart_as_both_sides_allow() {
        let now = clock::now();
        for (wanted, expected) in [
            (None, 1_000),
            (Some(0), 100),
            (Some(1), 100),
            (Some(5_000), 5_000),
            (Some(u64::MAX), 60_000),
        ] {
            let mut pace = Pace::new(&ClientLimits::default(), now, now);
            assert_eq!(pace.due(), now);
            pace.heard(now, &state(wanted, None));
            let wait = pace.due() - now;
            let least = Duration::from_millis(expected);
            assert!(wait >= least && wait <= least.mul_f64(1.25), "{wanted:?}: {wait:?}");
        }
    }

    #[test]
    fn what_is_pushed_is_hardly_polled() {
        let now = clock::now();
        let mut pace = Pace::new(&ClientLimits::default(), now, now);
        pace.heard(now, &state(Some(100), None));
        pace.set_pushed(now, true);
        assert_eq!(pace.due(), now);
        pace.heard(now, &state(Some(100), None));
        assert!(pace.due() - now >= Duration::from_secs(60));
        pace.set_pushed(now, false);
        assert!(pace.due() - now <= Duration::from_millis(125));
    }

    #[test]
    fn the_last_poll_is_at_the_end_of_the_time_to_live() {
        let now = clock::now();
        let mut pace = Pace::new(&ClientLimits::default(), now, now);
        pace.heard(now, &state(Some(10_000), Some(3_000)));
        let end = now + Duration::from_secs(3);
        assert_eq!(pace.due(), end);
        assert_eq!(pace.expired(now), None);
        assert_eq!(pace.expired(end), Some(Duration::from_secs(3)));
        // The server may raise it, and a client must not ask in a tight loop.
        pace.heard(end, &state(Some(10_000), Some(3_000)));
        assert!(pace.due() >= end + Duration::from_millis(100));
        pace.heard(end, &state(Some(10_000), Some(u64::MAX)));
        assert_eq!(pace.expired(end), None);
    }
}
