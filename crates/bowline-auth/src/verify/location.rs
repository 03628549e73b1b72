//! URLs that a server is set up with, and what is wrong with some.

use bowline_web::WebError;
use http::Uri;

/// Why something cannot be set up as it was asked for.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// A URL cannot be used.
    #[error("{url:?} cannot be used: {why}")]
    Url {
        /// The URL.
        url: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A scope cannot be used: scopes are words of visible ASCII without `"` and `\`.
    #[error("{0:?} is not a scope: it must be one word of visible ASCII without \" and \\")]
    Scope(String),
    /// Keys cannot be fetched from anywhere.
    #[error("the HTTP client cannot be set up")]
    Web(#[from] WebError),
}

/// The URL of something that tokens are believed because of: `https`, or `http` on this machine.
pub(super) fn trusted(url: &str) -> Result<Uri, SetupError> {
    let uri = absolute(url)?;
    let is_safe = uri.scheme_str() == Some("https") || is_loopback(uri.host().unwrap_or_default());
    match is_safe {
        true => Ok(uri),
        false => Err(bad(url, "it must be https, since tokens are believed because of it")),
    }
}

/// An absolute URL of HTTP without user, query and fragment.
pub(super) fn absolute(url: &str) -> Result<Uri, SetupError> {
    if url.contains(['#', '?']) {
        return Err(bad(url, "it must have neither a query nor a fragment"));
    }
    let uri: Uri = url.parse().map_err(|_| bad(url, "it is no URL"))?;
    if !matches!(uri.scheme_str(), Some("http" | "https")) {
        return Err(bad(url, "it must begin with https:// or http://"));
    }
    match uri.authority() {
        Some(authority) if !authority.as_str().contains('@') => Ok(uri),
        Some(_) => Err(bad(url, "it must not hold a user")),
        None => Err(bad(url, "it has no host")),
    }
}

/// Whether two URLs are the same but for spelling, query and fragment.
pub(super) fn is_same(one: &str, other: &str) -> bool {
    match (normal(one), normal(other)) {
        (Some(one), Some(other)) => one == other,
        _ => false,
    }
}

fn normal(url: &str) -> Option<String> {
    let url = url.split(['#', '?']).next().unwrap_or(url);
    let uri = absolute(url).ok()?;
    let scheme = uri.scheme_str()?;
    let host = uri.host()?.to_ascii_lowercase();
    let standard = if scheme == "https" { 443 } else { 80 };
    let port = uri.port_u16().unwrap_or(standard);
    let mut path = uri.path().as_bytes().to_vec();
    for place in 0..path.len() {
        if path[place] == b'%' {
            let end = path.len().min(place + 3);
            path[place..end].make_ascii_uppercase();
        }
    }
    Some(format!("{scheme}://{host}:{port}{}", String::from_utf8(path).ok()?))
}

fn is_loopback(host: &str) -> bool {
    let bare = host.trim_matches(['[', ']']);
    host.eq_ignore_ascii_case("localhost")
        || bare.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// A word that can stand in a list of scopes (RFC 6749, section 3.3).
pub(super) fn scope(word: String) -> Result<String, SetupError> {
    let is_word = !word.is_empty()
        && word.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\');
    if is_word { Ok(word) } else { Err(SetupError::Scope(word)) }
}

fn bad(url: &str, why: &'static str) -> SetupError {
    SetupError::Url { url: url.to_owned(), why }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn which_are_trusted() {
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
    fn which_are_the_same() {
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
