//! Hosts as URLs spell them: a name, or one of the many ways to write an address.
//!
//! `0x7f.1`, `2130706433` and `0177.0.0.1` are all 127.0.0.1 to a C library or a proxy. They are
//! read here, the way browsers do, so that what is checked and what is meant are the same.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use http::Uri;

use crate::WebError;

/// Where a request goes: host and port, and what to call them in errors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) host: Host,
    pub(crate) port: u16,
    pub(crate) secure: bool,
}

/// A host of a URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Host {
    /// Lower case, without the dot at the end.
    Name(String),
    Address(IpAddr),
}

impl Target {
    /// # Errors
    /// When the URL is not one of `http` or `https`, carries a user, or has no readable host.
    pub(crate) fn parse(uri: &Uri) -> Result<Self, WebError> {
        let secure = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(refused(uri, "it does not begin with http:// or https://")),
        };
        let authority = uri.authority().ok_or_else(|| refused(uri, "it has no host"))?;
        if authority.as_str().contains('@') {
            return Err(refused(uri, "it has a user in front of its host, which is not sent"));
        }
        let (text, port) = split_port(authority.as_str())
            .ok_or_else(|| refused(uri, "its port is not a number from 1 to 65535"))?;
        let host = Host::parse(text).map_err(|why| refused(uri, why))?;
        let port = port.unwrap_or(if secure { 443 } else { 80 });
        Ok(Self { host, port, secure })
    }

    /// As errors call it.
    pub(crate) fn name(&self) -> String {
        let port = self.port;
        match &self.host {
            Host::Name(name) => format!("{name}:{port}"),
            Host::Address(IpAddr::V4(address)) => format!("{address}:{port}"),
            Host::Address(IpAddr::V6(address)) => format!("[{address}]:{port}"),
        }
    }
}

impl Host {
    /// Reads a host as it stands in a URL, an IPv6 address in brackets.
    pub(crate) fn parse(text: &str) -> Result<Self, &'static str> {
        if let Some(rest) = text.strip_prefix('[') {
            let inner = rest.strip_suffix(']').ok_or("its host has no closing bracket")?;
            let address: Ipv6Addr =
                inner.parse().map_err(|_| "its host in brackets is not an IPv6 address")?;
            return Ok(Self::Address(IpAddr::V6(address)));
        }
        let name = text.strip_suffix('.').unwrap_or(text);
        if name.is_empty() || name.split('.').any(str::is_empty) {
            return Err("its host is empty or has an empty part");
        }
        let known = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        if !name.bytes().all(known) {
            return Err("its host has characters that no host name has");
        }
        if looks_like_number(name.rsplit('.').next().unwrap_or(name)) {
            let address = parse_v4(name).ok_or("its host is a number but not an IPv4 address")?;
            return Ok(Self::Address(IpAddr::V4(address)));
        }
        Ok(Self::Name(name.to_ascii_lowercase()))
    }

    /// The host as it is looked up.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Name(name) => name.clone(),
            Self::Address(address) => address.to_string(),
        }
    }

    pub(crate) fn is_loopback(&self) -> bool {
        match self {
            Self::Name(name) => name == "localhost" || name.ends_with(".localhost"),
            Self::Address(address) => address.to_canonical().is_loopback(),
        }
    }
}

/// Parts from host, the port as a number when there is one.
pub(crate) fn split_port(authority: &str) -> Option<(&str, Option<u16>)> {
    let after_host = authority.rfind(']').map_or(0, |bracket| bracket + 1);
    match authority[after_host..].rfind(':') {
        None => Some((authority, None)),
        Some(colon) => {
            let (host, port) = authority.split_at(after_host + colon);
            let port = &port[1..];
            if !port.bytes().all(|byte| byte.is_ascii_digit()) {
                return None;
            }
            let port: u16 = port.parse().ok().filter(|&port| port != 0)?;
            Some((host, Some(port)))
        }
    }
}

fn refused(uri: &Uri, why: &'static str) -> WebError {
    // Of the host nothing but what the URL library read, without user and port.
    WebError::Url { host: uri.host().unwrap_or("the URL").to_owned(), why }
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
    match digits.is_empty() {
        // `0x` alone is zero to browsers.
        true => (radix == 16).then_some(0),
        false if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) => None,
        false => u64::from_str_radix(digits, radix).ok(),
    }
}
