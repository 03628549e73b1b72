//! Headers that the user adds to every request.

use std::path::Path;

use bowline_web::Url;
use http::{HeaderName, HeaderValue};

use crate::failure::Failure;

/// Parses `Name: value`.
pub(crate) fn parse(text: &str, what: &str) -> Result<(String, String), Failure> {
    let wrong = || Failure::usage(format!("{what}: expected NAME: VALUE"));
    let (name, value) = text.split_once(':').ok_or_else(wrong)?;
    let (name, value) = (name.trim(), value.trim());
    HeaderName::try_from(name).map_err(|_| wrong())?;
    HeaderValue::from_bytes(value.as_bytes()).map_err(|_| {
        Failure::usage(format!("{what} {name}: the value contains control characters"))
    })?;
    Ok((name.to_owned(), value.to_owned()))
}

/// The headers in a file, one per line; blank lines and lines that begin with `#` are skipped.
pub(super) fn read(file: &Path) -> Result<Vec<(String, String)>, Failure> {
    let what = format!("--header-file {}", file.display());
    let text = std::fs::read_to_string(file)
        .map_err(|error| Failure::usage(format!("{what}: {error}")))?;
    let lines = text.lines().enumerate();
    let lines = lines.filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
    lines.map(|(at, line)| parse(line, &format!("{what}, line {}", at + 1))).collect()
}

/// A URL without its user and password, and the header that carries them instead.
fn without_userinfo(url: &str) -> Option<(String, String)> {
    let user = crate::redact::userinfo(url.split(['?', '#']).next()?)?;
    let clean = url.replacen(&format!("{user}@"), "", 1);
    let user = crate::schema::decoded(user);
    Some((clean, format!("Basic {}", bowline::base64::STANDARD.encode(user.as_bytes()))))
}

/// Takes the user and password out of a URL. Returns the header that carries them instead.
pub(super) fn taken_from(url: &mut String) -> Option<(String, String)> {
    let (clean, user) = without_userinfo(url)?;
    *url = clean;
    Some(("authorization".to_owned(), user))
}

/// What people are told about a URL that is exposed.
pub(super) fn exposed(url: &str) -> Failure {
    Failure::usage(format!("{url}: headers and tokens would be sent unencrypted"))
}

/// Whether requests to a URL cross the network unencrypted: `http`, and not to this machine.
pub(super) fn is_exposed(url: &str) -> bool {
    let address = url.split('#').next().unwrap_or_default();
    Url::parse(address)
        .map_or_else(|_| url.starts_with("http://"), |url| !url.is_https() && !url.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_read_and_their_values_not_told() {
        assert_eq!(parse("X-Key:  a:b ", "--header").unwrap(), ("X-Key".into(), "a:b".into()));
        for text in ["secret", ": secret", "a b: secret", "a: sec\nret"] {
            let told = parse(text, "--header").unwrap_err().what;
            assert!(!told.contains("sec"), "{told}");
        }
    }

    #[test]
    fn users_in_a_url_become_a_header() {
        let (url, header) = without_userinfo("https://bob:p%40ss@a.b/mcp?x=1@2").unwrap();
        assert_eq!(
            (url.as_str(), header.as_str()),
            ("https://a.b/mcp?x=1@2", "Basic Ym9iOnBAc3M=")
        );
        assert_eq!(without_userinfo("https://a.b/x@y"), None);
    }

    #[test]
    fn only_loopback_is_safe_without_tls() {
        for (url, exposed) in [
            ("https://example.com/mcp", false),
            ("http://example.com/mcp", true),
            ("http://localhost:3000/mcp", false),
            ("http://127.0.0.1/mcp", false),
            ("http://127.0.0.1.evil.example/mcp", true),
            ("http://localhost@evil.example/mcp", true),
            ("http://[::1]:80/mcp", false),
        ] {
            assert_eq!(is_exposed(url), exposed, "{url}");
        }
    }
}
