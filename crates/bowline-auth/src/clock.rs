//! The wall clock, asked in one place.

use std::time::{SystemTime, UNIX_EPOCH};

/// Seconds since 1970: what tokens and assertions are dated with.
#[expect(clippy::disallowed_methods, reason = "the one place that reads the wall clock")]
pub(crate) fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_secs())
}
