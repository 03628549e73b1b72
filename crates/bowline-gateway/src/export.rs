//! Recordings for other programs: HAR, OpenTelemetry, a web page.

mod har;
mod html;
mod otlp;

pub use self::har::har;
pub use self::html::html;
pub use self::otlp::otlp;

use crate::recording::Recording;

/// When something happened, in nanoseconds since 1970.
fn moment(recording: &Recording, at: f64) -> i128 {
    let started: Option<jiff::Timestamp> = recording.opening.started.parse().ok();
    let started = started.map_or(0, jiff::Timestamp::as_nanosecond);
    #[allow(clippy::cast_possible_truncation, reason = "a session is shorter than centuries")]
    let offset = (at * 1e9) as i128;
    started + offset
}

#[cfg(test)]
mod tests;
