//! Hosts and origins in headers, parsed strictly and compared by meaning.
//!
//! Only what browsers and HTTP clients write is accepted. Anything else (`127.1`, `user@localhost`,
//! `localhost#x`, a zone in an address) is malformed, so that no later component can interpret it
//! differently. Nothing is copied.

use std::net::Ipv6Addr;

/// A host and an optional port.
#[derive(Debug, Clone, Copy)]
pub(super) struct Authority<'a> {
    pub(super) host: Host<'a>,
    pub(super) port: Option<u16>,
}

/// A host: a name or IPv4 address as text, without case, or an IPv6 address as a number.
#[derive(Debug, Clone, Copy)]
pub(super) enum Host<'a> {
    Name(&'a str),
    V6(Ipv6Addr),
}

/// The names that clients on the same machine use for a server.
///
/// This is a list of names, not a definition of loopback: 127.0.0.2 and `x.localhost` are not on
/// it. A hostile name server can point `x.localhost` anywhere, and clients do not use it by
/// default.
pub(super) const LOCAL_NAMES: [Host<'_>; 3] =
    [Host::Name("localhost"), Host::Name("127.0.0.1"), Host::V6(Ipv6Addr::LOCALHOST)];

/// The origin of a page.
#[derive(Debug, Clone, Copy)]
pub(super) struct Origin<'a> {
    pub(super) scheme: &'a str,
    pub(super) authority: Authority<'a>,
}

impl<'a> Authority<'a> {
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        if let Some(rest) = text.strip_prefix('[') {
            let (address, rest) = rest.split_once(']')?;
            let port = match rest {
                "" => None,
                _ => Some(parse_port(rest.strip_prefix(':')?)?),
            };
            let host = Host::V6(address.parse().ok()?);
            return Some(Self { host, port });
        }
        // This runs for every request, and the search functions of `str` are made for longer texts.
        let (name, port) = match text.bytes().position(|byte| byte == b':') {
            Some(colon) => (&text[..colon], Some(parse_port(&text[colon + 1..])?)),
            None => (text, None),
        };
        // `localhost.` is the fully qualified form of `localhost`.
        let name = name.strip_suffix('.').unwrap_or(name);
        is_name(name).then_some(Self { host: Host::Name(name), port })
    }

    /// The port, or the default port of the scheme.
    pub(super) fn port_for(&self, scheme: &str) -> Option<u16> {
        self.port.or_else(|| default_port(scheme))
    }
}

impl PartialEq<Host<'_>> for Host<'_> {
    fn eq(&self, other: &Host<'_>) -> bool {
        match (self, other) {
            (Self::Name(one), Host::Name(two)) => one.eq_ignore_ascii_case(two),
            (Self::V6(one), Host::V6(two)) => one == two,
            _ => false,
        }
    }
}

impl<'a> Origin<'a> {
    /// Parses `scheme://host[:port]` and nothing more: no path, no user, not `null`.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        let (scheme, authority) = text.split_once("://")?;
        let mut letters = scheme.bytes();
        let is_scheme = letters.next().is_some_and(|first| first.is_ascii_alphabetic())
            && letters.all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
        let authority = Authority::parse(authority)?;
        is_scheme.then_some(Self { scheme, authority })
    }

    /// Whether the page came over HTTP, and not from an application or extension.
    pub(super) fn is_web(&self) -> bool {
        default_port(self.scheme).is_some()
    }

    pub(super) fn port(&self) -> Option<u16> {
        self.authority.port_for(self.scheme)
    }

    pub(super) fn is(&self, other: &Origin<'_>) -> bool {
        self.scheme.eq_ignore_ascii_case(other.scheme)
            && self.authority.host == other.authority.host
            && self.port() == other.port()
    }
}

fn default_port(scheme: &str) -> Option<u16> {
    if scheme.eq_ignore_ascii_case("https") {
        Some(443)
    } else if scheme.eq_ignore_ascii_case("http") {
        Some(80)
    } else {
        None
    }
}

fn parse_port(text: &str) -> Option<u16> {
    // `parse` alone would accept a plus sign.
    let is_digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_digits)
}

fn is_name(name: &str) -> bool {
    const LONGEST: usize = 253;
    // Starts as if after a dot, because a name must not begin with one.
    let mut last = b'.';
    for byte in name.bytes() {
        let is_fine = match byte {
            b'.' => last != b'.',
            b'-' | b'_' => true,
            _ => byte.is_ascii_alphanumeric(),
        };
        if !is_fine {
            return false;
        }
        last = byte;
    }
    last != b'.' && name.len() <= LONGEST
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_hosts() {
        fn check(text: &str, port: Option<u16>, is_local: bool) {
            let authority = Authority::parse(text).expect(text);
            assert_eq!(authority.port, port, "{text}");
            assert_eq!(LOCAL_NAMES.contains(&authority.host), is_local, "{text}");
        }
        check("localhost", None, true);
        check("LocalHost:8080", Some(8080), true);
        check("localhost.", None, true);
        check("localhost.:1", Some(1), true);
        check("127.0.0.1", None, true);
        check("127.0.0.1:65535", Some(65535), true);
        check("[::1]", None, true);
        check("[::1]:80", Some(80), true);
        check("[0:0:0:0:0:0:0:1]:80", Some(80), true);
        check("[0000::0001]", None, true);
        check("127.0.0.2", None, false);
        check("127.1", None, false);
        check("2130706433", None, false);
        check("0x7f.0.0.1", None, false);
        check("0.0.0.0", None, false);
        check("[::]", None, false);
        check("[::ffff:127.0.0.1]", None, false);
        check("localhost.evil.com", None, false);
        check("127.0.0.1.evil.com", None, false);
        check("evil-localhost", None, false);
        check("foo.localhost", None, false);
        check("my_service.internal:80", Some(80), false);
    }

    #[test]
    fn invalid_hosts() {
        for text in [
            "",
            ".",
            ":80",
            "localhost..",
            ".localhost",
            "localhost:",
            "localhost:x",
            "localhost:+80",
            "localhost:65536",
            "localhost:80:80",
            "localhost:80@evil.com",
            "localhost@evil.com",
            "evil.com#localhost",
            "evil.com?localhost",
            "evil.com/localhost",
            "evil.com\\localhost",
            "local host",
            "localhost,evil.com",
            "::1",
            "[::1",
            "[::1]80",
            "[::1]:",
            "[::1%lo0]",
            "[localhost]",
            "[127.0.0.1]",
            "l\u{f6}calhost",
            "localhost%00",
            "*",
        ] {
            assert!(Authority::parse(text).is_none(), "{text:?}");
        }
    }

    #[test]
    fn origins_are_compared_by_meaning() {
        fn check(one: &str, two: &str, same: bool) {
            let (left, right) = (Origin::parse(one).unwrap(), Origin::parse(two).unwrap());
            assert_eq!(left.is(&right), same, "{one} {two}");
        }
        check("https://a.b", "HTTPS://A.b.:443", true);
        check("http://a.b:80", "http://a.b", true);
        check("http://[::1]", "http://[0::1]:80", true);
        check("app://a", "app://a", true);
        check("https://a.b", "http://a.b", false);
        check("https://a.b", "https://a.b:444", false);
        check("https://a.b", "https://a.bc", false);
    }

    #[test]
    fn invalid_origins() {
        for text in [
            "null",
            "",
            "localhost",
            "//localhost",
            "://localhost",
            "http:localhost",
            "http:/localhost",
            "http://",
            "http://localhost/",
            "http://user@localhost",
            "http://user:pw@localhost",
            "http://localhost#x",
            "http://localhost http://evil.com",
            "http://localhost, http://evil.com",
            "ht tp://localhost",
            "1http://localhost",
            "file://",
            "http://http://localhost",
        ] {
            assert!(Origin::parse(text).is_none(), "{text:?}");
        }
    }
}
