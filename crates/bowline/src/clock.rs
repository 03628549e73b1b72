//! The two clocks, read in one place.

use std::time::{SystemTime, UNIX_EPOCH};

use tokio::time::Instant;

/// The clock for deadlines and ages. Tests can pause it.
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Seconds since 1970, for values that other processes read.
#[expect(clippy::disallowed_methods, reason = "the one place that reads the wall clock")]
pub(crate) fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_secs())
}
