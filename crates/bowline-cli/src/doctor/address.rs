//! The URL: what can be wrong with it before anything is sent.

use bowline_web::{Host, Url, UrlError};

use super::report::{Diagnosis, unreachable};
use super::seen::plain;

/// Parses a URL, or explains what is wrong with it.
pub(crate) fn parse(text: &str) -> Result<Url, Diagnosis> {
    check_text(text).map_err(|(cause, fix)| unreachable(cause).fix(fix))?;
    // A fragment is never sent.
    let text = text.split('#').next().unwrap_or_default();
    Url::parse(text).map_err(|error| match error {
        UrlError::User => unreachable("the URL contains a user name, which is never sent")
            .fix("Send credentials in a header: --header or --token."),
        expected => unreachable(format!("the URL is not valid: expected {expected}"))
            .fix("Compare it with https://host:port/mcp."),
    })
}

/// Why a URL may work here, but not for every client.
pub(crate) fn advice(url: &Url) -> Option<Diagnosis> {
    if let Host::Address(address) = url.host()
        && address.is_unspecified()
    {
        return Some(
            unreachable(format!("{address} is an address to listen on, not to connect to"))
                .fix("Use 127.0.0.1 or the name of the machine."),
        );
    }
    (!url.is_https() && !url.is_loopback()).then(|| {
        unreachable(
            "the URL is plain http to another machine: tokens and messages can be read on the way",
        )
        .fix("Use https, or a tunnel.")
    })
}

/// The cause and the fix of what the text alone shows.
fn check_text(text: &str) -> Result<(), (String, String)> {
    let around = |letter: char| letter.is_whitespace() || "\"'`<>".contains(letter);
    let trimmed = text.trim_matches(around);
    if trimmed != text {
        let cause = "the URL has quotes or spaces around it";
        return Err((cause.to_owned(), format!("Use {}", plain(trimmed))));
    }
    if text.contains(['{', '}', '<', '>', ' ']) || text.contains("$(") {
        let cause = "the URL still contains a placeholder or a space";
        return Err((cause.to_owned(), "Fill in the value.".to_owned()));
    }
    let Some((scheme, rest)) = text.split_once("://") else {
        let host = text.split(['/', ':']).next().unwrap_or_default();
        let is_local =
            matches!(host, "localhost" | "127.0.0.1" | "0.0.0.0") || host.starts_with("192.168.");
        let scheme = if is_local { "http" } else { "https" };
        return Err((
            "the URL has no scheme".to_owned(),
            format!("Use {scheme}://{}", plain(text)),
        ));
    };
    if !matches!(scheme.to_ascii_lowercase().as_str(), "http" | "https") {
        return Err((
            format!("MCP does not use {}://", plain(scheme)),
            format!("Use http or https: https://{}", plain(rest)),
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_urls_are_corrected() {
        for (text, cause, fix) in [
            ("localhost:3000/mcp", "no scheme", "http://localhost:3000/mcp"),
            ("example.com/mcp", "no scheme", "https://example.com/mcp"),
            ("\"https://a/mcp\"", "quotes", "https://a/mcp"),
            ("ws://a/mcp", "ws://", "https://a/mcp"),
            ("sse://a", "sse://", "https"),
            ("https://a/{tenant}/mcp", "placeholder", "Fill in"),
            ("https://user:word@a/mcp", "contains a user", "--header"),
            ("http://a:99999/mcp", "a port from 1 to 65535", "https://host:port"),
            ("http://a:x/mcp", "not valid", ""),
            ("http://", "not valid", ""),
        ] {
            let found = parse(text).expect_err(text);
            assert!(found.cause.contains(cause), "{text}: {found:?}");
            assert!(found.fix.contains(fix), "{text}: {found:?}");
        }
    }

    #[test]
    fn traps_are_reported() {
        for (text, cause) in [
            ("http://0.0.0.0:1/", Some("listen on")),
            ("http://[::]:1/", Some("listen on")),
            ("http://a/", Some("plain http")),
            ("https://a/#b", None),
            ("http://localhost:3000/mcp", None),
            ("http://[::1]:8/x", None),
            ("HTTP://127.0.0.1", None),
        ] {
            let found = advice(&parse(text).unwrap_or_else(|error| panic!("{text}: {error:?}")));
            let found = found.map(|it| it.cause).unwrap_or_default();
            assert!(cause.map_or(found.is_empty(), |it| found.contains(it)), "{text}: {found}");
        }
    }
}
