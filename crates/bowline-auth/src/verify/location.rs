//! URLs in a server's settings, and why some are rejected.

use bowline_proto::scope::is_scope;
use bowline_web::{Origin, Url, WebError};

/// Why settings are rejected.
#[derive(Clone, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// A URL cannot be used.
    #[error("{url:?} cannot be used: expected {expected}")]
    Url {
        /// The URL.
        url: String,
        /// What it should be.
        expected: String,
    },
    /// A scope is not valid: scopes are words of visible ASCII without `"` and `\`.
    #[error("{0:?} is not a scope: expected one word of visible ASCII without \" and \\")]
    Scope(String),
    /// The HTTP client cannot be built.
    #[error("cannot set up the HTTP client")]
    Web(#[from] WebError),
}

bowline_proto::debug_as_sentence!(SetupError);

/// The URL of a party that vouches for tokens: `https`, or `http` on this machine.
pub(super) fn trusted(url: &str) -> Result<Url, SetupError> {
    without_query(url).and_then(|_| trusted_with_query(url))
}

/// The same, where a query is allowed.
pub(super) fn trusted_with_query(url: &str) -> Result<Url, SetupError> {
    let parsed = Url::parse(url).map_err(|error| bad(url, error.to_string()))?;
    if parsed.is_https() || parsed.is_loopback() {
        return Ok(parsed);
    }
    Err(bad(url, "https, because tokens are trusted on its word"))
}

/// A URL without a query.
pub(super) fn without_query(url: &str) -> Result<Url, SetupError> {
    if url.contains('?') {
        return Err(bad(url, "a URL without a query"));
    }
    Url::parse(url).map_err(|error| bad(url, error.to_string()))
}

/// Whether two URLs are the same but for spelling, query and fragment.
pub(super) fn is_same(one: &str, other: &str) -> bool {
    match (identity(one), identity(other)) {
        (Some(one), Some(other)) => one == other,
        _ => false,
    }
}

/// What is left of a URL without spelling, query and fragment.
fn identity(url: &str) -> Option<(Origin, Vec<u8>)> {
    let url = Url::parse(url.split('#').next()?).ok()?;
    let mut path = url.path().as_bytes().to_vec();
    for at in 0..path.len() {
        if path[at] == b'%' {
            let end = path.len().min(at + 3);
            path[at..end].make_ascii_uppercase();
        }
    }
    Some((url.origin().clone(), path))
}

/// A scope, if the word is one.
pub(super) fn scope(word: String) -> Result<String, SetupError> {
    if is_scope(&word) { Ok(word) } else { Err(SetupError::Scope(word)) }
}

fn bad(url: &str, expected: impl Into<String>) -> SetupError {
    SetupError::Url { url: url.to_owned(), expected: expected.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trusted_urls() {
        for url in ["https://a.example", "https://a.example:8443/b", "http://localhost:1/x"] {
            assert!(trusted(url).is_ok(), "{url}");
        }
        for url in ["http://127.0.0.1:1", "http://[::1]:1/"] {
            assert!(trusted(url).is_ok(), "{url}");
        }
        let refused = [
            "http://a.example",
            "ftp://a.example",
            "a.example",
            "/x",
            "",
            "https://u@a.example",
            "https://a.example?x",
            "https://a.example#x",
            "http://localhost.evil.example",
            "http://127.0.0.1.evil.example",
        ];
        for url in refused {
            assert!(trusted(url).is_err(), "{url}");
        }
    }

    #[test]
    fn urls_are_compared_by_meaning() {
        let same = [
            ("https://a.example/x", "HTTPS://A.EXAMPLE:443/x?q#f"),
            ("http://a.example", "http://a.example:80/"),
            ("https://a.example/%2f", "https://a.example/%2F"),
        ];
        for (one, other) in same {
            assert!(is_same(one, other), "{one} {other}");
        }
        let different = [
            ("https://a.example/x", "http://a.example/x"),
            ("https://a.example/x", "https://a.example/x/"),
            ("https://a.example/x", "https://a.example/X"),
            ("https://a.example/x", "https://a.example:444/x"),
            ("https://a.example/x", "https://b.example/x"),
            ("https://a.example/x", "https://u@a.example/x"),
            ("https://a.example/x", "x"),
        ];
        for (one, other) in different {
            assert!(!is_same(one, other), "{one} {other}");
        }
    }
}
