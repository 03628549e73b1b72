//! The two clocks, asked in one place.

use std::time::{SystemTime, UNIX_EPOCH};

use tokio::time::Instant;

/// For deadlines and ages. Tests can stop it.
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Seconds since 1970, for what must be understood by another process.
#[expect(clippy::disallowed_methods, reason = "the one place that reads the wall clock")]
pub(crate) fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_secs())
}
