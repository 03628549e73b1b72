//! Addresses, kept as they were written and read strictly.
//!
//! What is compared byte by byte elsewhere (issuers, resources) stays text; this is for going
//! somewhere, and for asking whether two addresses are at the same place.

use std::fmt;

use http::Uri;

/// An address with `http` or `https`, without user and fragment.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Url {
    text: String,
    uri: Uri,
}

impl Url {
    /// Reads an address. The error says what it must be.
    pub(super) fn parse(text: &str) -> Result<Self, &'static str> {
        const SHAPE: &str = "an absolute http or https address";
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) || text.contains(['\\', '"', '<', '>'])
        {
            return Err(SHAPE);
        }
        if text.contains('#') {
            return Err("an address without a fragment");
        }
        let uri: Uri = text.parse().map_err(|_| SHAPE)?;
        let authority = uri.authority().ok_or(SHAPE)?;
        if authority.as_str().contains('@') {
            return Err("an address without a user or password");
        }
        if authority.host().is_empty() || !matches!(uri.scheme_str(), Some("http" | "https")) {
            return Err(SHAPE);
        }
        let is_bare = authority.as_str() == authority.host();
        if !is_bare && authority.port_u16().is_none_or(|port| port == 0) {
            return Err("an address with a port between 1 and 65535");
        }
        Ok(Self { text: text.to_owned(), uri })
    }

    /// Exactly what was parsed.
    pub(super) fn as_str(&self) -> &str {
        &self.text
    }

    pub(super) fn uri(&self) -> &Uri {
        &self.uri
    }

    pub(super) fn is_https(&self) -> bool {
        self.uri.scheme_str() == Some("https")
    }

    /// In lower case; an IPv6 address has its brackets.
    pub(super) fn host(&self) -> String {
        self.uri.host().unwrap_or_default().to_ascii_lowercase()
    }

    pub(super) fn port(&self) -> u16 {
        self.uri.port_u16().unwrap_or_else(|| self.default_port())
    }

    /// The port that the scheme stands for.
    pub(super) fn default_port(&self) -> u16 {
        if self.is_https() { 443 } else { 80 }
    }

    pub(super) fn path(&self) -> &str {
        self.uri.path()
    }

    pub(super) fn query(&self) -> Option<&str> {
        self.uri.query()
    }

    /// One of the names by which a machine calls itself.
    pub(super) fn is_loopback(&self) -> bool {
        matches!(self.host().as_str(), "localhost" | "127.0.0.1" | "[::1]")
    }

    pub(super) fn is_same_origin(&self, other: &Self) -> bool {
        self.is_https() == other.is_https()
            && self.host() == other.host()
            && self.port() == other.port()
    }

    /// Scheme and authority as they were written, without a slash.
    pub(super) fn origin(&self) -> &str {
        let start = self.text.find("://").map_or(0, |at| at + 3);
        let end = self.text[start..].find(['/', '?']).map_or(self.text.len(), |at| start + at);
        &self.text[..end]
    }

    /// The address that a reference such as `/path` or a whole address means from here.
    pub(super) fn join(&self, reference: &str) -> Result<Self, &'static str> {
        if reference.starts_with("//") {
            let scheme = if self.is_https() { "https:" } else { "http:" };
            return Self::parse(&format!("{scheme}{reference}"));
        }
        if reference.starts_with('/') {
            return Self::parse(&format!("{}{reference}", self.origin()));
        }
        if reference.contains("://") {
            return Self::parse(reference);
        }
        let folder = self.path().rsplit_once('/').map_or("", |(folder, _)| folder);
        Self::parse(&format!("{}{folder}/{reference}", self.origin()))
    }

    /// The address with more in its query.
    pub(super) fn with_query(&self, more: &str) -> String {
        let joint = if self.text.contains('?') { '&' } else { '?' };
        format!("{}{joint}{more}", self.text)
    }
}

/// Without the query, which may hold secrets.
impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text.split('?').next().unwrap_or_default())
    }
}

impl fmt::Debug for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Url({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_can_be_read() {
        fn check(text: &str, host: &str, port: u16, origin: &str) {
            let url = Url::parse(text).unwrap();
            assert_eq!((url.host().as_str(), url.port(), url.origin()), (host, port, origin));
            assert_eq!(url.as_str(), text);
        }
        check("https://A.example/x?y", "a.example", 443, "https://A.example");
        check("http://[::1]:8080", "[::1]", 8080, "http://[::1]:8080");
        check("http://localhost?q=a/b", "localhost", 80, "http://localhost");
    }

    #[test]
    fn addresses_that_cannot() {
        for text in [
            "",
            "/mcp",
            "mcp",
            "ftp://a/",
            "javascript:alert(1)",
            "data:text/html,x",
            "file:///etc",
            "https://",
            "https:///x",
            "https://u@a/",
            "https://u:p@a/",
            "https://a/#f",
            "https://a b/",
            "https://a\\b/",
            "https://é/",
            "https://a:0/",
            "https://a:99999/",
            "https://a/\n",
            "vbscript:x",
            "about:blank",
        ] {
            assert!(Url::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn same_place() {
        fn check(one: &str, two: &str, same: bool) {
            let (one, two) = (Url::parse(one).unwrap(), Url::parse(two).unwrap());
            assert_eq!(one.is_same_origin(&two), same, "{one} {two}");
        }
        check("https://a/x", "https://A:443/y", true);
        check("https://a/", "http://a/", false);
        check("https://a/", "https://a:8443/", false);
        check("https://a.b/", "https://a.b.c/", false);
        check("http://localhost/", "http://127.0.0.1/", false);
    }

    #[test]
    fn references() {
        let from = Url::parse("https://a:1/b/c?d").unwrap();
        let join = |reference| from.join(reference).unwrap().as_str().to_owned();
        assert_eq!(join("/x?y"), "https://a:1/x?y");
        assert_eq!(join("x"), "https://a:1/b/x");
        assert_eq!(join("//e/x"), "https://e/x");
        assert_eq!(join("http://e/"), "http://e/");
        assert!(from.join("ftp://x").is_err());
    }
}
