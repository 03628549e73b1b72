//! The URL itself: what can be wrong with it before anything is sent.

use std::net::IpAddr;

use http::Uri;

use super::report::Diagnosis;
use super::seen::plain;

/// A URL that can be sent to.
#[derive(Debug, Clone)]
pub(crate) struct Address {
    pub(crate) uri: Uri,
    pub(crate) is_secure: bool,
    /// Without brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
}

impl Address {
    /// Reads a URL, or says what is wrong with it.
    pub(crate) fn parse(text: &str) -> Result<Self, Diagnosis> {
        check_text(text)?;
        let uri: Uri = text.parse().map_err(|error| {
            Diagnosis::unreachable(format!("the URL cannot be read: {error}"), EXAMPLE)
        })?;
        let authority = uri.authority().map_or("", |authority| authority.as_str());
        if authority.contains('@') {
            return Err(Diagnosis::unreachable(
                "the URL has a user in front of its host, which is not sent",
                "Send credentials in a header: --header or --token.",
            ));
        }
        let host = uri.host().unwrap_or_default();
        if host.is_empty() {
            return Err(Diagnosis::unreachable("the URL has no host", EXAMPLE));
        }
        let is_secure = uri.scheme_str() == Some("https");
        let port = match (authority.len() > host.len(), uri.port_u16()) {
            (false, _) if is_secure => 443,
            (false, _) => 80,
            (true, Some(port @ 1..)) => port,
            (true, _) => {
                return Err(Diagnosis::unreachable(
                    "the port is not a number from 1 to 65535",
                    "Correct the number after the host's colon.",
                ));
            }
        };
        let host = host.trim_matches(['[', ']']).to_owned();
        Ok(Self { uri, is_secure, host, port })
    }

    /// What makes it work here and not elsewhere.
    pub(crate) fn advice(&self) -> Option<Diagnosis> {
        if matches!(self.host.as_str(), "0.0.0.0" | "::") {
            return Some(Diagnosis::unreachable(
                format!("{} is an address to listen on, not one to connect to", self.host),
                "Use 127.0.0.1 or the name of the machine.",
            ));
        }
        if !self.is_secure && !self.is_loopback() {
            return Some(Diagnosis::unreachable(
                "the URL is plain http to another machine: tokens and messages can be read on the way",
                "Use https, or a tunnel.",
            ));
        }
        None
    }

    pub(crate) fn is_loopback(&self) -> bool {
        match self.host.parse::<IpAddr>() {
            Ok(address) => address.to_canonical().is_loopback(),
            Err(_) => {
                self.host.eq_ignore_ascii_case("localhost") || self.host.ends_with(".localhost")
            }
        }
    }

    /// The same host, another path.
    pub(crate) fn at(&self, path: &str) -> Option<Uri> {
        let mut parts = self.uri.clone().into_parts();
        parts.path_and_query = Some(path.parse().ok()?);
        Uri::from_parts(parts).ok()
    }

    /// An address that a server gives, against this one: a path, or a URL of the same origin.
    pub(crate) fn resolve(&self, place: &str) -> Option<Uri> {
        if place.contains("://") {
            let other = Self::parse(place).ok()?;
            let is_same = (other.is_secure, &other.host, other.port)
                == (self.is_secure, &self.host, self.port);
            return is_same.then_some(other.uri);
        }
        let path = self.uri.path();
        match place {
            _ if place.starts_with("//") => None,
            _ if place.starts_with('/') => self.at(place),
            _ if place.starts_with('?') => self.at(&format!("{path}{place}")),
            _ => self.at(&format!("{}{place}", &path[..=path.rfind('/')?])),
        }
    }
}

const EXAMPLE: &str = "Compare it with https://host:port/mcp.";

/// What can be told from the text alone.
fn check_text(text: &str) -> Result<(), Diagnosis> {
    let wrong = |cause: String, fix: String| Err(Diagnosis::unreachable(cause, fix));
    let around = |letter: char| letter.is_whitespace() || "\"'`<>".contains(letter);
    let trimmed = text.trim_matches(around);
    if trimmed != text {
        let cause = "the URL has quotes or blanks around it".to_owned();
        return wrong(cause, format!("Use {}", plain(trimmed)));
    }
    if text.contains(['{', '}', '<', '>', ' ']) || text.contains("$(") {
        let cause = "the URL still has a placeholder or a blank in it".to_owned();
        return wrong(cause, "Fill in the value that it stands for.".to_owned());
    }
    let Some((scheme, rest)) = text.split_once("://") else {
        let scheme = if looks_local(text) { "http" } else { "https" };
        let fix = format!("Use {scheme}://{}", plain(text));
        return wrong("the URL has no scheme".to_owned(), fix);
    };
    if !matches!(scheme.to_ascii_lowercase().as_str(), "http" | "https") {
        let fix = format!("MCP travels over http or https: https://{}", plain(rest));
        return wrong(format!("{}:// is no scheme of MCP", plain(scheme)), fix);
    }
    Ok(())
}

fn looks_local(text: &str) -> bool {
    let host = text.split(['/', ':']).next().unwrap_or_default();
    matches!(host, "localhost" | "127.0.0.1" | "0.0.0.0") || host.starts_with("192.168.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_that_are_none_are_corrected() {
        for (text, cause, fix) in [
            ("localhost:3000/mcp", "no scheme", "http://localhost:3000/mcp"),
            ("example.com/mcp", "no scheme", "https://example.com/mcp"),
            ("\"https://a/mcp\"", "quotes", "https://a/mcp"),
            ("ws://a/mcp", "ws://", "https://a/mcp"),
            ("sse://a", "sse://", "https"),
            ("https://a/{tenant}/mcp", "placeholder", "Fill in"),
            ("https://user:word@a/mcp", "user in front", "--header"),
            ("http://a:99999/mcp", "", ""),
            ("http://a:x/mcp", "", ""),
            ("http://", "", ""),
        ] {
            let found = Address::parse(text).expect_err(text);
            assert!(found.cause.contains(cause), "{text}: {found:?}");
            assert!(found.fix.contains(fix), "{text}: {found:?}");
        }
    }

    #[test]
    fn parts_are_found() {
        for (text, host, port, is_loopback) in [
            ("http://localhost:3000/mcp", "localhost", 3000, true),
            ("https://a.example", "a.example", 443, false),
            ("http://[::1]:8/x", "::1", 8, true),
            ("http://[::1]/x", "::1", 80, true),
            ("HTTP://127.0.0.1", "127.0.0.1", 80, true),
        ] {
            let found = Address::parse(text).unwrap_or_else(|error| panic!("{text}: {error:?}"));
            assert_eq!(
                (found.host.as_str(), found.port, found.is_loopback()),
                (host, port, is_loopback),
                "{text}"
            );
        }
        let address = Address::parse("https://a:8/x?y=1").unwrap();
        assert_eq!(address.at("/mcp").unwrap(), "https://a:8/mcp");
        for (place, found) in [
            ("/m?s=1", Some("https://a:8/m?s=1")),
            ("m?s=1", Some("https://a:8/m?s=1")),
            ("?s=1", Some("https://a:8/x?s=1")),
            ("https://a:8/m", Some("https://a:8/m")),
            ("https://a/m", None),
            ("http://a:8/m", None),
            ("//b/m", None),
        ] {
            let resolved = address.resolve(place).map(|uri| uri.to_string());
            assert_eq!(resolved.as_deref(), found, "{place}");
        }
        assert!(
            Address::parse("http://0.0.0.0:1/")
                .unwrap()
                .advice()
                .unwrap()
                .cause
                .contains("listen on")
        );
        assert!(
            Address::parse("http://a/").unwrap().advice().unwrap().cause.contains("plain http")
        );
        assert_eq!(Address::parse("https://a/").unwrap().advice(), None);
    }
}
