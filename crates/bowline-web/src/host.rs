//! Hosts as URLs spell them: a name, or one of the many ways to write an address.
//!
//! `0x7f.1`, `2130706433` and `0177.0.0.1` are all 127.0.0.1 to a C library or a proxy. They are
//! parsed here as browsers parse them, so that what is checked is what is connected to.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The host of a URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Host {
    /// A name in lower case, without a dot at the end.
    Name(String),
    /// An address, however it was spelled.
    Address(IpAddr),
}

impl Host {
    /// Parses a host as a URL spells it, an IPv6 address in brackets.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if let Some(rest) = text.strip_prefix('[') {
            let address: Ipv6Addr = rest.strip_suffix(']')?.parse().ok()?;
            return Some(Self::Address(IpAddr::V6(address)));
        }
        let name = text.strip_suffix('.').unwrap_or(text);
        let known = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        if name.split('.').any(str::is_empty) || !name.bytes().all(known) {
            return None;
        }
        if looks_like_number(name.rsplit('.').next().unwrap_or(name)) {
            return parse_v4(name).map(|address| Self::Address(IpAddr::V4(address)));
        }
        Some(Self::Name(name.to_ascii_lowercase()))
    }

    /// Whether it means this machine: 127.0.0.0/8, `::1`, 127.0.0.0/8 mapped into IPv6,
    /// `localhost` or a name under `.localhost`.
    ///
    /// This is the only definition of loopback. A client of this crate connects to such a name only
    /// at a loopback address, so that what may go to this machine alone never leaves it.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        match self {
            Self::Name(name) => name == "localhost" || name.ends_with(".localhost"),
            Self::Address(address) => address.to_canonical().is_loopback(),
        }
    }

    /// The host as resolvers and certificates spell it: an IPv6 address without brackets.
    #[must_use]
    pub fn bare(&self) -> String {
        match self {
            Self::Name(name) => name.clone(),
            Self::Address(address) => address.to_string(),
        }
    }
}

/// As a URL spells it.
impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(IpAddr::V4(address)) => write!(f, "{address}"),
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

fn looks_like_number(part: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits(part) || parse_number(part).is_some()
}

/// Up to four numbers, of which the last fills what the others leave.
fn parse_v4(text: &str) -> Option<Ipv4Addr> {
    let parts: Vec<u64> = text.split('.').map(parse_number).collect::<Option<_>>()?;
    let (&last, first) = parts.split_last()?;
    if first.len() > 3 || first.iter().any(|&part| part > 255) {
        return None;
    }
    let free_bits = 8 * (4 - u32::try_from(first.len()).ok()?);
    if last >> free_bits != 0 {
        return None;
    }
    let high = first.iter().fold(0, |sum, part| sum << 8 | part) << free_bits;
    u32::try_from(high | last).ok().map(Ipv4Addr::from)
}

/// Decimal, octal with a leading `0`, hexadecimal with a leading `0x`.
fn parse_number(part: &str) -> Option<u64> {
    let (digits, radix) = match part.as_bytes() {
        [b'0', b'x' | b'X', ..] => (&part[2..], 16),
        [b'0', _, ..] => (&part[1..], 8),
        _ => (part, 10),
    };
    if digits.is_empty() {
        // `0x` alone is zero to browsers.
        return (radix == 16).then_some(0);
    }
    let is_digits = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    u64::from_str_radix(digits, radix).ok().filter(|_| is_digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_this_machine() {
        let ours = [
            "localhost",
            "LOCALHOST.",
            "x.localhost",
            "a.b.LocalHost.",
            "127.0.0.1",
            "127.0.0.2",
            "127.255.255.255",
            "127.1",
            "0x7f.0.0.1",
            "2130706433",
            "[::1]",
            "[0:0:0:0:0:0:0:1]",
            "[::ffff:127.0.0.1]",
            "[::ffff:7f00:2]",
        ];
        for text in ours {
            assert!(Host::parse(text).unwrap().is_loopback(), "{text}");
        }
        let others = [
            "localhost.example",
            "localhost.evil.example.",
            "evil-localhost",
            "xlocalhost",
            "127.0.0.1.example",
            "128.0.0.1",
            "126.255.255.255",
            "0.0.0.0",
            "[::]",
            "[::2]",
            "[::127.0.0.1]",
            "[::ffff:128.0.0.1]",
            "[64:ff9b::7f00:1]",
        ];
        for text in others {
            assert!(!Host::parse(text).unwrap().is_loopback(), "{text}");
        }
    }

    #[test]
    fn what_is_not_a_host() {
        for text in
            ["", ".", "..", "a..b", ".localhost", "a b", "a%41", "[::1", "[localhost]", "[::1%1]"]
        {
            assert_eq!(Host::parse(text), None, "{text:?}");
        }
    }
}
