//! The two clocks, read in one place.

use std::time::{SystemTime, UNIX_EPOCH};

use tokio::time::Instant;

/// The clock for deadlines and ages. Tests can pause it.
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Seconds since 1970, for values that other processes read.
pub(crate) fn unix_seconds() -> u64 {
    unix_millis() / 1_000
}

/// Milliseconds since 1970.
#[expect(clippy::disallowed_methods, reason = "the one place that reads the wall clock")]
pub(crate) fn unix_millis() -> u64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX)
}
