//! A count of what a proxy could not pass on.

use std::sync::atomic::{AtomicU64, Ordering};

/// How often something could not be passed on.
///
/// [The module](crate::proxy) says why.
#[derive(Debug, Default)]
pub struct Losses {
    outside: AtomicU64,
    ambiguous: AtomicU64,
    logs: AtomicU64,
    expired: AtomicU64,
}

impl Losses {
    /// Questions that were refused because no call was in flight.
    pub fn questions_outside_calls(&self) -> u64 {
        self.outside.load(Ordering::Relaxed)
    }

    /// Questions that were refused because calls of several callers were in flight.
    pub fn ambiguous_questions(&self) -> u64 {
        self.ambiguous.load(Ordering::Relaxed)
    }

    /// Log messages that were dropped because they belong to no single call.
    pub fn logs_outside_calls(&self) -> u64 {
        self.logs.load(Ordering::Relaxed)
    }

    /// Calls that were cancelled because their callers did not come back with answers in time.
    pub fn expired_calls(&self) -> u64 {
        self.expired.load(Ordering::Relaxed)
    }

    pub(super) fn count_outside(&self) {
        self.outside.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_ambiguous(&self) {
        self.ambiguous.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_log(&self) {
        self.logs.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_expired(&self) {
        self.expired.fetch_add(1, Ordering::Relaxed);
    }
}
