//! The clock of the database, as far as it is known here.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// What is known about the clock of the database: what it said, and when. Between readings the
/// monotonic clock of this process counts, so that a step of the wall clock changes nothing.
#[derive(Default)]
pub(crate) struct Clock(Mutex<Option<Reading>>);

#[derive(Clone, Copy)]
struct Reading {
    said: u64,
    at: Instant,
}

impl Clock {
    /// Takes in what the database said, which took this long to arrive.
    pub(crate) fn read(&self, said: u64, asked: Instant) {
        // The earliest that it can have meant: a lease is never believed to last longer than it
        // does by more than the time on the way.
        let reading = Reading { said, at: asked + asked.elapsed() / 2 };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(reading);
    }

    /// Milliseconds since 1970; `None` before the first reading.
    pub(crate) fn now(&self) -> Option<u64> {
        let reading = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Reading { said, at } = reading?;
        let passed = u64::try_from(at.elapsed().as_millis()).unwrap_or(u64::MAX);
        Some(said.saturating_add(passed))
    }

    /// How long ago the database was last heard of.
    pub(crate) fn silence(&self) -> Option<Duration> {
        let reading = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        reading.map(|reading| reading.at.elapsed())
    }
}
