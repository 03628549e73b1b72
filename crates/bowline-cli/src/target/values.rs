//! Values of options: times, sizes, levels, revisions; variables of the environment.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use bowline::Revision;
use bowline::client::Preference;
use bowline::model::LoggingLevel;

use crate::failure::Failure;

/// A duration: a number of seconds, or a number with a unit.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let split = text.find(|letter: char| letter.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let seconds = match unit {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err(format!("unknown unit {unit:?}: use ms, s, m or h")),
    };
    let number: f64 =
        number.trim().parse().map_err(|_| "expected a number, as in 30s".to_owned())?;
    let time = Duration::try_from_secs_f64(number * seconds).map_err(|error| error.to_string())?;
    // Small enough to be added to any time.
    const MOST: Duration = Duration::from_secs(366 * 24 * 3600);
    match time {
        Duration::ZERO => Err("must be more than zero".to_owned()),
        time => Ok(time.min(MOST)),
    }
}

/// A number of bytes, or of larger units: powers of 1024.
pub(crate) fn size(text: &str) -> Result<usize, String> {
    let split = text.find(|letter: char| letter.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let factor = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" | "kib" => 1 << 10,
        "m" | "mb" | "mib" => 1 << 20,
        "g" | "gb" | "gib" => 1 << 30,
        _ => return Err(format!("unknown unit {unit:?}: use k, M or G")),
    };
    let number: usize = number.trim().parse().map_err(|_| "expected a number, as in 64M")?;
    match number.checked_mul(factor) {
        None => Err("more than this machine can address".to_owned()),
        Some(0) => Err("must be more than zero".to_owned()),
        Some(bytes) => Ok(bytes),
    }
}

pub(super) fn level(text: &str) -> Result<LoggingLevel, String> {
    let found = LoggingLevel::ALL.into_iter().find(|level| level.as_str() == text);
    let known = LoggingLevel::ALL.map(LoggingLevel::as_str).join(", ");
    found.ok_or_else(|| format!("expected one of {known}"))
}

pub(crate) fn preference(text: &str) -> Result<Preference, String> {
    match text {
        "auto" => Ok(Preference::Auto),
        "legacy" => Ok(Preference::Legacy),
        "modern" => Ok(Preference::Modern),
        _ => text.parse::<Revision>().map(Preference::Pin).map_err(|_| {
            let known = Revision::ALL.map(Revision::as_str).join(", ");
            format!("expected auto, legacy, modern, or one of {known}")
        }),
    }
}

/// The variables of this process that fit a pattern: a name, or its beginning and a `*`.
pub(super) fn inherited(patterns: &[String]) -> impl Iterator<Item = (OsString, OsString)> {
    let fits = |name: &str| {
        patterns.iter().any(|pattern| match pattern.strip_suffix('*') {
            Some(beginning) => name.starts_with(beginning),
            None => name == pattern,
        })
    };
    std::env::vars_os().filter(move |(name, _)| name.to_str().is_some_and(fits))
}

/// `NAME=VALUE`, where the value need not be Unicode.
pub(super) fn variable(pair: &OsString) -> Result<(OsString, OsString), Failure> {
    split(pair).filter(|(name, _)| !name.is_empty()).ok_or_else(|| {
        Failure::usage(format!("--env {}: expected NAME=VALUE", pair.to_string_lossy()))
    })
}

#[cfg(unix)]
fn split(pair: &OsString) -> Option<(OsString, OsString)> {
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    let bytes = pair.as_bytes();
    let at = bytes.iter().position(|byte| *byte == b'=')?;
    let part = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
    Some((part(&bytes[..at]), part(&bytes[at + 1..])))
}

#[cfg(not(unix))]
fn split(pair: &OsString) -> Option<(OsString, OsString)> {
    let (name, value) = pair.to_str()?.split_once('=')?;
    Some((name.into(), value.into()))
}

/// A folder as a URI.
pub(crate) fn file_uri(dir: &Path) -> Result<String, Failure> {
    let whole = std::path::absolute(dir).map_err(|error| Failure::file("--root", dir, error))?;
    let text = whole.to_str();
    let text = text.ok_or_else(|| Failure::file("--root", dir, "its name is not valid Unicode"))?;
    let text = text.replace('\\', "/");
    let mut uri = String::from(if text.starts_with('/') { "file://" } else { "file:///" });
    let path = text.trim_end_matches('/');
    for byte in if path.is_empty() { "/" } else { path }.bytes() {
        if byte.is_ascii_alphanumeric() || b"/-_.~:".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            uri += &format!("%{byte:02X}");
        }
    }
    Ok(uri)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        for (text, millis) in [("30", 30_000), ("1.5s", 1500), ("500ms", 500), ("2m", 120_000)] {
            assert_eq!(duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "x", "-1", "0", "5 weeks", "nan", "1e400"] {
            assert!(duration(text).is_err(), "{text}");
        }
        assert!(duration("1000000000h").is_ok());
    }

    #[test]
    fn sizes_have_units() {
        for (text, bytes) in [("7", 7), ("500k", 512_000), ("64M", 64 << 20), ("1 GiB", 1 << 30)] {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for text in ["", "0", "-1", "1.5M", "5 pages", "99999999999999999999", "99999999999G"] {
            assert!(size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn revisions_are_words_or_dates() {
        assert_eq!(preference("legacy"), Ok(Preference::Legacy));
        assert_eq!(preference("2025-06-18"), Ok(Preference::Pin(Revision::V2025_06_18)));
        let told = preference("2025-01-01").unwrap_err();
        assert!(told.contains("2026-07-28"), "{told}");
    }

    #[test]
    fn variables_have_names() {
        assert_eq!(variable(&"A=b=c".into()).unwrap(), ("A".into(), "b=c".into()));
        assert!(variable(&"=x".into()).is_err());
        assert!(variable(&"x".into()).is_err());
    }
}
