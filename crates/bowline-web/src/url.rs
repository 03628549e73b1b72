//! URLs of HTTP: kept as they were written, compared by what they mean.

use std::fmt;

use fluent_uri::{Uri as Base, UriRef};
use http::Uri;
use http::uri::Authority;

use crate::Host;

/// An absolute `http` or `https` URL without a user or a fragment.
///
/// `Display` and `Debug` leave out the query, which may contain secrets.
#[derive(Clone, PartialEq, Eq)]
pub struct Url {
    text: String,
    uri: Uri,
    origin: Origin,
}

/// What a connection depends on: scheme, host and port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// Whether the scheme is `https`, not `http`.
    pub is_https: bool,
    /// The host.
    pub host: Host,
    /// The port, or the default port of the scheme.
    pub port: u16,
}

/// Why a text is not a [`Url`]. Its `Display` says what was expected: `a URL without a fragment`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    /// It is a relative reference, has another scheme, or is not a URL at all.
    #[error("an absolute http or https URL")]
    Shape,
    /// It has a user or a password in front of its host.
    #[error("a URL without a user or password")]
    User,
    /// Its host is missing, or is neither a name nor an address.
    #[error("a URL whose host is a name or an IP address")]
    Host,
    /// Its port is not a number, or out of range.
    #[error("a URL with a port from 1 to 65535")]
    Port,
    /// It has a fragment, which is never sent.
    #[error("a URL without a fragment")]
    Fragment,
}

impl Url {
    /// Parses a URL.
    ///
    /// # Errors
    /// When it is not absolute, not `http` or `https`, or has a user or a fragment.
    pub fn parse(text: &str) -> Result<Self, UrlError> {
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) || text.contains(['\\', '"', '<', '>'])
        {
            return Err(UrlError::Shape);
        }
        if text.contains('#') {
            return Err(UrlError::Fragment);
        }
        let uri: Uri = text.parse().map_err(|_| UrlError::Shape)?;
        let origin = Origin::of(&uri)?;
        Ok(Self { text: text.to_owned(), uri, origin })
    }

    /// Exactly what was parsed.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The URL as requests carry it.
    #[must_use]
    pub fn uri(&self) -> &Uri {
        &self.uri
    }

    /// Scheme, host and port.
    #[must_use]
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// The host.
    #[must_use]
    pub fn host(&self) -> &Host {
        &self.origin.host
    }

    /// The port, or the default port of the scheme.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.origin.port
    }

    /// Whether the scheme is `https`.
    #[must_use]
    pub fn is_https(&self) -> bool {
        self.origin.is_https
    }

    /// Whether the host is this machine: see [`Host::is_loopback`].
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        self.origin.host.is_loopback()
    }

    /// Whether scheme, host and port are the same.
    #[must_use]
    pub fn is_same_origin(&self, other: &Self) -> bool {
        self.origin == other.origin
    }

    /// The path, `/` if there is none.
    #[must_use]
    pub fn path(&self) -> &str {
        self.uri.path()
    }

    /// The query, without its question mark.
    #[must_use]
    pub fn query(&self) -> Option<&str> {
        self.uri.query()
    }

    /// Scheme and authority as they were written, without a slash at the end.
    #[must_use]
    pub fn root(&self) -> &str {
        let start = self.text.find("://").map_or(0, |at| at + 3);
        let end = self.text[start..].find(['/', '?']).map_or(self.text.len(), |at| start + at);
        &self.text[..end]
    }

    /// Resolves a reference found at this URL (RFC 3986, section 5). Its fragment is dropped.
    ///
    /// # Errors
    /// When the reference, or the URL that it leads to, is not valid.
    pub fn join(&self, reference: &str) -> Result<Self, UrlError> {
        let base = Base::parse(self.text.as_str()).map_err(|_| UrlError::Shape)?;
        let reference = UriRef::parse(reference).map_err(|_| UrlError::Shape)?;
        let whole = reference.resolve_against(&base).map_err(|_| UrlError::Shape)?;
        Self::parse(whole.as_str().split('#').next().unwrap_or_default())
    }

    /// The URL with more parameters, already encoded, at the end of its query.
    #[must_use]
    pub fn with_query(&self, more: &str) -> String {
        let joint = if self.text.contains('?') { '&' } else { '?' };
        format!("{}{joint}{more}", self.text)
    }
}

impl TryFrom<Uri> for Url {
    type Error = UrlError;

    fn try_from(uri: Uri) -> Result<Self, UrlError> {
        let origin = Origin::of(&uri)?;
        Ok(Self { text: uri.to_string(), uri, origin })
    }
}

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

impl Origin {
    /// The origin of an absolute URL.
    ///
    /// # Errors
    /// As [`Url::parse`].
    pub fn of(uri: &Uri) -> Result<Self, UrlError> {
        let is_https = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(UrlError::Shape),
        };
        let authority = uri.authority().ok_or(UrlError::Host)?;
        Self::at(is_https, authority)
    }

    fn at(is_https: bool, authority: &Authority) -> Result<Self, UrlError> {
        let text = authority.as_str();
        if text.contains('@') {
            return Err(UrlError::User);
        }
        // Colons inside brackets belong to the host.
        let after_brackets = text.rfind(']').map_or(0, |at| at + 1);
        let (host, port) = match text[after_brackets..].find(':') {
            None => (text, if is_https { 443 } else { 80 }),
            Some(colon) => {
                let (host, port) = text.split_at(after_brackets + colon);
                (host, parse_port(&port[1..]).ok_or(UrlError::Port)?)
            }
        };
        let host = Host::parse(host).ok_or(UrlError::Host)?;
        Ok(Self { is_https, host, port })
    }

    /// Whether a `host` or `host:port` means this origin. Without a port, it means the default
    /// port of the scheme.
    #[must_use]
    pub fn is_at(&self, authority: &Authority) -> bool {
        Self::at(self.is_https, authority).as_ref() == Ok(self)
    }

    /// `host:port`.
    #[must_use]
    pub fn authority(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }
}

fn parse_port(text: &str) -> Option<u16> {
    // `parse` alone would accept a plus sign.
    let is_digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|&port| is_digits && port != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_urls() {
        fn check(text: &str, authority: &str, root: &str) {
            let url = Url::parse(text).unwrap();
            assert_eq!((url.origin().authority().as_str(), url.root()), (authority, root));
            assert_eq!(url.as_str(), text);
            assert_eq!(Url::try_from(url.uri().clone()).unwrap().origin(), url.origin());
        }
        check("https://A.example/x?y", "a.example:443", "https://A.example");
        check("http://[::1]:8080", "[::1]:8080", "http://[::1]:8080");
        check("http://[0:0::1]/", "[::1]:80", "http://[0:0::1]");
        check("http://localhost?q=a/b", "localhost:80", "http://localhost");
        check("HTTP://a.:1/", "a:1", "HTTP://a.:1");
        check("http://0x7f.1/", "127.0.0.1:80", "http://0x7f.1");
    }

    #[test]
    fn invalid_urls() {
        for (text, why) in [
            ("", UrlError::Shape),
            ("/mcp", UrlError::Shape),
            ("mcp", UrlError::Shape),
            ("a:80", UrlError::Shape),
            ("ftp://a/", UrlError::Shape),
            ("javascript:alert(1)", UrlError::Shape),
            ("data:text/html,x", UrlError::Shape),
            ("file:///etc", UrlError::Shape),
            ("https://", UrlError::Shape),
            ("https:///x", UrlError::Shape),
            ("https://a b/", UrlError::Shape),
            ("https://a\\b/", UrlError::Shape),
            ("https://é/", UrlError::Shape),
            ("https://a/\n", UrlError::Shape),
            ("vbscript:x", UrlError::Shape),
            ("about:blank", UrlError::Shape),
            ("https://u@a/", UrlError::User),
            ("https://u:p@a/", UrlError::User),
            ("https://localhost@a/", UrlError::User),
            ("https://a/#f", UrlError::Fragment),
            ("https://a:0/", UrlError::Port),
            ("https://a:99999/", UrlError::Port),
            ("https://a..b/", UrlError::Host),
            ("https://256.1.1.1/", UrlError::Host),
            ("https://[::g]/", UrlError::Host),
        ] {
            let error = Url::parse(text).expect_err(text);
            assert_eq!(error, why, "{text}");
        }
    }

    #[test]
    fn origins() {
        fn check(one: &str, two: &str, same: bool) {
            let (one, two) = (Url::parse(one).unwrap(), Url::parse(two).unwrap());
            assert_eq!(one.is_same_origin(&two), same, "{one} {two}");
        }
        check("https://a/x", "https://A:443/y", true);
        check("https://a/", "http://a/", false);
        check("https://a/", "https://a:8443/", false);
        check("https://a.b/", "https://a.b.c/", false);
        check("http://localhost/", "http://127.0.0.1/", false);
        check("http://localhost:8080/", "http://LOCALHOST:8080/b", true);
        check("http://localhost:8080/", "http://localhost/b", false);
        check("http://localhost:8080/", "https://localhost:8080/b", false);
    }

    #[test]
    fn references() {
        fn check(base: &str, reference: &str, expected: &str) {
            let joined = Url::parse(base).unwrap().join(reference).unwrap();
            assert_eq!(joined.as_str(), expected, "{base} {reference}");
        }
        const BASE: &str = "https://a:1/b/c?d";
        check(BASE, "/x?y", "https://a:1/x?y");
        check(BASE, "x", "https://a:1/b/x");
        check(BASE, "?x", "https://a:1/b/c?x");
        check(BASE, "../x", "https://a:1/x");
        check(BASE, "", BASE);
        check(BASE, "#f", BASE);
        check(BASE, "x#f", "https://a:1/b/x");
        check(BASE, "//e/x", "https://e/x");
        check(BASE, "http://e/", "http://e/");
        check("http://LOCALHOST:8080/a/sse?x=1", "?id=2", "http://LOCALHOST:8080/a/sse?id=2");
        check("http://localhost:8080/a/sse", "messages", "http://localhost:8080/a/messages");
        check("http://localhost/", "http://LOCALHOST:8080/b", "http://LOCALHOST:8080/b");
        check("https://a", "x", "https://a/x");
        check("https://a", "?x", "https://a?x");
        let base = Url::parse(BASE).unwrap();
        for reference in ["ftp://x", "https://u@e/", "a b", "//", "http://e:0/"] {
            assert!(base.join(reference).is_err(), "{reference}");
        }
    }

    #[test]
    fn secrets_stay_out_of_messages() {
        let url = Url::parse("https://a/b?token=hush").unwrap();
        assert_eq!(
            (url.to_string(), format!("{url:?}").contains("hush")),
            ("https://a/b".into(), false)
        );
    }
}
