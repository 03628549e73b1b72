//! Timestamps, in the notation of each format.

use std::str::FromStr;

use jiff::civil::DateTime;
use jiff::fmt::temporal::Pieces;
use jiff::tz::{Offset, TimeZone};

/// A point in time, with its UTC offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timestamp {
    local: DateTime,
    offset: Offset,
}

/// An invalid timestamp.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("timestamp {text:?} is not RFC 3339, such as 2026-11-15T09:30:00.25+09:00: {reason}")]
pub struct TimestampError {
    text: String,
    reason: String,
}

impl Timestamp {
    /// Now, in the zone of this machine.
    pub fn now() -> Self {
        let now = jiff::Timestamp::now();
        let offset = TimeZone::system().to_offset(now);
        Self { local: offset.to_datetime(now), offset }
    }

    /// `Nov 15 09:30:00`, without year and zone (RFC 3164, section 4.1.2).
    pub fn to_rfc3164(self) -> String {
        self.local.strftime("%b %e %H:%M:%S").to_string()
    }

    /// `2026-11-15T09:30:00.250000+09:00`, with microseconds (RFC 5424, section 6.2.3).
    pub fn to_rfc5424(self) -> String {
        let seconds = self.offset.seconds();
        let (sign, minutes) = (if seconds < 0 { '-' } else { '+' }, seconds.abs() / 60);
        let time = self.local.strftime("%Y-%m-%dT%H:%M:%S");
        let micros = self.local.subsec_nanosecond() / 1_000;
        format!("{time}.{micros:06}{sign}{:02}:{:02}", minutes / 60, minutes % 60)
    }
}

impl FromStr for Timestamp {
    type Err = TimestampError;

    fn from_str(text: &str) -> Result<Self, TimestampError> {
        let reject = |reason: &str| TimestampError { text: text.into(), reason: reason.into() };
        let pieces = Pieces::parse(text).map_err(|error| reject(&error.to_string()))?;
        let time = pieces.time().ok_or_else(|| reject("it has no time of day"))?;
        let offset = pieces.to_numeric_offset().ok_or_else(|| reject("it has no offset or Z"))?;
        if !(0..=9999).contains(&pieces.date().year()) {
            return Err(reject("the year must have four digits"));
        }
        Ok(Self { local: pieces.date().to_datetime(time), offset })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_format_has_its_notation() {
        fn check(text: &str, old: &str, new: &str) {
            let timestamp: Timestamp = text.parse().unwrap();
            assert_eq!(timestamp.to_rfc3164(), old);
            assert_eq!(timestamp.to_rfc5424(), new);
        }
        check(
            "2026-11-05T09:30:00.25+09:00",
            "Nov  5 09:30:00",
            "2026-11-05T09:30:00.250000+09:00",
        );
        check("1985-04-12T23:20:50Z", "Apr 12 23:20:50", "1985-04-12T23:20:50.000000+00:00");
        check(
            "2003-08-24T05:14:15.000003999-07:30",
            "Aug 24 05:14:15",
            "2003-08-24T05:14:15.000003-07:30",
        );
    }

    #[test]
    fn incomplete_timestamps_are_rejected() {
        for text in ["", "now", "2026-11-05", "2026-11-05T09:30:00", "-000001-01-01T00:00:00Z"] {
            let error = text.parse::<Timestamp>().unwrap_err().to_string();
            assert!(error.contains("is not RFC 3339"), "{error}");
        }
    }
}
