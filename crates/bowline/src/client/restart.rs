//! When and how fast a connection is reopened.

use std::time::Duration;

use crate::random;

/// What to do when the server's process exits unexpectedly.
#[derive(Debug, Clone)]
pub enum Restart {
    /// Close the client.
    Never,
    /// Restart the process.
    OnExit {
        /// How many starts in a row may fail, or last less than [`stable`](Self::OnExit::stable),
        /// before the client gives up: 10.
        attempts: u32,
        /// After how long a process counts as running well: 30 seconds.
        stable: Duration,
    },
}

impl Default for Restart {
    fn default() -> Self {
        Self::OnExit { attempts: 10, stable: Duration::from_secs(30) }
    }
}

/// How long to wait before the next attempt: longer each time, and randomized.
#[derive(Debug, Clone, Default)]
pub(super) struct Backoff {
    failures: u32,
}

const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(30);

impl Backoff {
    pub(super) fn new() -> Self {
        Self::default()
    }

    /// How many attempts failed in a row.
    pub(super) fn failures(&self) -> u32 {
        self.failures
    }

    /// Counts a failure and returns the next wait: one second doubled up to thirty, plus up to half
    /// as much at random.
    pub(super) fn next(&mut self) -> Duration {
        let base = FIRST.saturating_mul(1 << self.failures.min(6)).min(LONGEST);
        self.failures = self.failures.saturating_add(1);
        base + base.mul_f64(random::fraction() / 2.0)
    }

    /// Counts a success.
    pub(super) fn reset(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_and_stay_within_bounds() {
        let mut backoff = Backoff::new();
        for expected in [1, 2, 4, 8, 16, 30, 30, 30] {
            let base = Duration::from_secs(expected);
            let wait = backoff.next();
            assert!(wait >= base && wait <= base.mul_f64(1.5), "{wait:?} for {base:?}");
        }
        backoff.reset();
        assert!(backoff.next() < Duration::from_secs(2));
    }
}
