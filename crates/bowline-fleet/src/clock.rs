//! The clock of the database, as far as it is known here.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// How much two clocks may drift apart: half a millisecond each second.
const DRIFT: u32 = 2_000;

/// What is known about the clock of the database: what it said, and when. Between readings the
/// monotonic clock of this process counts, so that a step of the wall clock changes nothing.
#[derive(Default)]
pub(crate) struct Clock(Mutex<State>);

#[derive(Default, Clone, Copy)]
struct State {
    /// The most exact reading.
    best: Option<Reading>,
    /// When the latest heartbeat that came through began.
    beat: Option<Instant>,
}

#[derive(Clone, Copy)]
struct Reading {
    said: u64,
    at: Instant,
    /// How far off it may be.
    error: Duration,
}

impl Reading {
    /// What the clock says now, and how far off that may be.
    fn now(&self, now: Instant) -> (u64, Duration) {
        let passed = now.saturating_duration_since(self.at);
        let said = self.said.saturating_add(u64::try_from(passed.as_millis()).unwrap_or(u64::MAX));
        (said, self.error + passed / DRIFT)
    }
}

impl Clock {
    /// Takes in what the database said, which was asked then.
    pub(crate) fn read(&self, said: u64, asked: Instant) {
        self.read_at(said, asked, Instant::now());
    }

    fn read_at(&self, said: u64, asked: Instant, now: Instant) {
        // It was said at some time while the answer was on its way.
        let error = now.saturating_duration_since(asked) / 2;
        let reading = Reading { said, at: asked + error, error };
        let mut state = self.lock();
        let is_better = state.best.is_none_or(|best| {
            let ((ours, off), (said, _)) = (best.now(now), reading.now(now));
            let apart = Duration::from_millis(ours.abs_diff(said));
            // A slow answer says less than an exact one of a while ago, unless the clock was set.
            error <= off || apart > off + error + Duration::from_millis(1)
        });
        if is_better {
            state.best = Some(reading);
        }
    }

    /// Milliseconds since 1970; `None` before the first reading.
    pub(crate) fn now(&self) -> Option<u64> {
        self.lock().best.map(|best| best.now(Instant::now()).0)
    }

    /// Takes in that everything which a heartbeat reads was read after that.
    pub(crate) fn beaten(&self, began: Instant) {
        self.lock().beat = Some(began);
    }

    /// How long ago everything was read that a heartbeat reads.
    pub(crate) fn silence(&self) -> Option<Duration> {
        self.lock().beat.map(|beat| beat.elapsed())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a clock as often as there are pairs: what it said, and how long that took. Returns
    /// what it says a second after the last one.
    fn check(readings: &[(u64, u64)]) -> u64 {
        let clock = Clock::default();
        let mut now = Instant::now();
        for (said, took) in readings {
            let asked = now;
            now += Duration::from_millis(*took);
            clock.read_at(*said, asked, now);
            now += Duration::from_secs(1);
        }
        clock.lock().best.unwrap().now(now).0
    }

    #[test]
    fn a_slow_answer_does_not_spoil_an_exact_one() {
        assert_eq!(check(&[(5_000, 0)]), 6_000);
        assert_eq!(check(&[(5_000, 0), (6_000, 400)]), 7_400, "said at once, and long on its way");
        assert_eq!(check(&[(5_000, 400), (6_400, 0)]), 7_400);
    }

    #[test]
    fn a_clock_that_was_set_is_believed() {
        assert_eq!(check(&[(5_000, 0), (905_000, 100)]), 906_050);
        assert_eq!(check(&[(905_000, 0), (5_000, 100)]), 6_050);
    }
}
