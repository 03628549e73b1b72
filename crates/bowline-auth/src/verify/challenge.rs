//! How a request is rejected: the status, and challenges that a client can act on.

use std::fmt::{self, Write};

use http::StatusCode;
use http::header::{HeaderMap, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};

/// The header of a nonce for proofs (RFC 9449).
pub(super) const DPOP_NONCE: HeaderName = HeaderName::from_static("dpop-nonce");

/// The rejection of a request, as its client sees it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Denial {
    /// 400, 401, 403 or 503.
    pub status: StatusCode,
    /// The challenges, and what else the client needs for its next attempt.
    pub headers: Box<HeaderMap>,
    /// The reason, for people.
    pub message: String,
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Denial {}

impl Denial {
    pub(super) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, headers: Box::default(), message: message.into() }
    }

    pub(super) fn challenge(mut self, challenge: &Challenge) -> Self {
        self.headers.append(WWW_AUTHENTICATE, challenge.to_value());
        self
    }

    pub(super) fn nonce(mut self, nonce: &str) -> Self {
        if let Ok(nonce) = HeaderValue::from_str(nonce) {
            self.headers.insert(DPOP_NONCE, nonce);
        }
        self
    }

    pub(super) fn retry_soon(mut self) -> Self {
        self.headers.insert(RETRY_AFTER, HeaderValue::from_static("5"));
        self
    }
}

/// One challenge.
#[derive(Debug, Clone)]
pub(super) struct Challenge {
    text: String,
    is_empty: bool,
}

impl Challenge {
    pub(super) fn new(scheme: &str) -> Self {
        Self { text: scheme.to_owned(), is_empty: true }
    }

    /// Adds a parameter. Its value is quoted, and characters that a header cannot carry are
    /// dropped.
    pub(super) fn with(mut self, name: &str, value: &str) -> Self {
        let separator = if std::mem::replace(&mut self.is_empty, false) { " " } else { ", " };
        let _ = write!(self.text, "{separator}{name}=\"");
        for character in value.chars() {
            match character {
                '"' | '\\' => self.text.extend(['\\', character]),
                ' '..='~' => self.text.push(character),
                _ => {}
            }
        }
        self.text.push('"');
        self
    }

    pub(super) fn maybe(self, name: &str, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    fn to_value(&self) -> HeaderValue {
        HeaderValue::from_str(&self.text).expect("only visible ASCII was written")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stay_within_their_quotes() {
        let challenge = Challenge::new("Bearer").with("a", "x\"\\\r\n, b=é\u{7f}").maybe("c", None);
        let challenge = challenge.maybe("d", Some("e f"));
        assert_eq!(challenge.to_value(), r#"Bearer a="x\"\\, b=", d="e f""#);
    }
}
