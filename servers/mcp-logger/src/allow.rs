//! Which servers may be sent to.
//!
//! The caller of a tool chooses where its packets go. On stdio that is the user who started the
//! server, and everything is allowed until a list is given. Over HTTP it may be anyone who can
//! reach the port, and only listed servers are allowed.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;

use crate::destination::{Host, Transport};

/// One entry of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AllowEntry {
    /// A host name, whatever its addresses.
    Name(String),
    /// All names below a domain: `*.example.com`.
    Below(String),
    /// A range of addresses, such as `10.0.0.0/8`, or a single address.
    Network(Network),
    /// A local socket.
    Path(PathBuf),
}

/// A range of addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    bits: u8,
}

/// An invalid entry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} cannot be allowed: expected a host name, *.domain, IP address, network such as \
     10.0.0.0/8, or absolute path"
)]
pub struct AllowEntryError(String);

/// The destinations that are allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Allow {
    /// All of them.
    Anything,
    /// Only those listed.
    Listed(Vec<AllowEntry>),
}

/// A destination that is not allowed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("sending to {host} is not allowed; {allowed}")]
pub struct NotAllowed {
    host: String,
    allowed: String,
}

/// Whether a host is allowed, judged by its name alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Yes, whatever its addresses.
    Yes,
    /// It depends on each of its addresses.
    ByAddress,
}

impl Allow {
    /// Judges a host before its name is resolved.
    ///
    /// # Errors
    /// If it is not allowed.
    pub fn judge(&self, host: &Host) -> Result<Verdict, NotAllowed> {
        let Self::Listed(entries) = self else { return Ok(Verdict::Yes) };
        let is_listed = entries.iter().any(|entry| entry.covers(host));
        let has_networks = entries.iter().any(|entry| matches!(entry, AllowEntry::Network(_)));
        match host {
            _ if is_listed => Ok(Verdict::Yes),
            Host::Name(_) if has_networks => Ok(Verdict::ByAddress),
            _ => Err(self.reject(host)),
        }
    }

    /// Whether an address is allowed.
    pub fn covers(&self, address: IpAddr) -> bool {
        match self {
            Self::Anything => true,
            Self::Listed(entries) => {
                entries.iter().any(|entry| entry.covers(&Host::Address(address.to_canonical())))
            }
        }
    }

    /// The error for a host that is not allowed.
    pub fn reject(&self, host: &Host) -> NotAllowed {
        NotAllowed { host: host.to_string(), allowed: self.to_string() }
    }
}

/// For the model: which destinations it can use instead.
impl fmt::Display for Allow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Anything => f.write_str("any server is allowed"),
            Self::Listed(entries) if entries.is_empty() => f.write_str(
                "only configured targets are allowed; to allow others, restart with --allow",
            ),
            Self::Listed(entries) => {
                let entries: Vec<_> = entries.iter().map(ToString::to_string).collect();
                write!(f, "allowed: {}", entries.join(", "))
            }
        }
    }
}

impl AllowEntry {
    fn covers(&self, host: &Host) -> bool {
        match (self, host) {
            (Self::Name(allowed), Host::Name(name)) => allowed == name,
            (Self::Below(domain), Host::Name(name)) => {
                name.strip_suffix(domain.as_str()).is_some_and(|rest| rest.ends_with('.'))
            }
            (Self::Network(network), Host::Address(address)) => network.contains(*address),
            (Self::Path(allowed), Host::Path(path)) => allowed == path,
            _ => false,
        }
    }
}

impl FromStr for AllowEntry {
    type Err = AllowEntryError;

    fn from_str(text: &str) -> Result<Self, AllowEntryError> {
        let text = text.trim();
        if let Some(network) = Network::parse(text) {
            return Ok(Self::Network(network));
        }
        let host = |text: &str, transport| {
            Host::parse(text, transport).map_err(|_| AllowEntryError(text.to_owned()))
        };
        if let Some(domain) = text.strip_prefix("*.") {
            let below = host(domain, Transport::Udp)?;
            let Host::Name(domain) = below else { return Err(AllowEntryError(text.to_owned())) };
            return Ok(Self::Below(domain));
        }
        let transport = if text.starts_with('/') { Transport::Unix } else { Transport::Udp };
        Ok(match host(text, transport)? {
            Host::Name(name) => Self::Name(name),
            Host::Path(path) => Self::Path(path),
            Host::Address(address) => Self::Network(Network::of(address)),
        })
    }
}

impl fmt::Display for AllowEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Below(domain) => write!(f, "*.{domain}"),
            Self::Network(network) => network.fmt(f),
            Self::Path(path) => path.display().fmt(f),
        }
    }
}

impl Network {
    fn of(address: IpAddr) -> Self {
        Self { address, bits: if address.is_ipv4() { 32 } else { 128 } }
    }

    fn parse(text: &str) -> Option<Self> {
        let (address, bits) = text.split_once('/')?;
        let address: IpAddr = address.parse().ok()?;
        let bits = bits.parse().ok()?;
        (bits <= Self::of(address).bits).then_some(Self { address, bits })
    }

    /// Whether the network contains an address. IPv4 and IPv6 never match each other.
    pub fn contains(self, address: IpAddr) -> bool {
        let same = |here: u128, there: u128, width: u32| {
            let dropped = width - u32::from(self.bits).min(width);
            // Shifting by the full 128 bits overflows; then there is nothing to compare.
            here.checked_shr(dropped).unwrap_or(0) == there.checked_shr(dropped).unwrap_or(0)
        };
        match (self.address, address) {
            (IpAddr::V4(here), IpAddr::V4(there)) => {
                same(here.to_bits().into(), there.to_bits().into(), 32)
            }
            (IpAddr::V6(here), IpAddr::V6(there)) => same(here.to_bits(), there.to_bits(), 128),
            _ => false,
        }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::of(self.address) {
            return self.address.fmt(f);
        }
        write!(f, "{}/{}", self.address, self.bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allow(entries: &[&str]) -> Allow {
        Allow::Listed(entries.iter().map(|entry| entry.parse().unwrap()).collect())
    }

    fn judge(entries: &[&str], host: &str) -> Option<Verdict> {
        let transport = if host.starts_with('/') { Transport::Unix } else { Transport::Udp };
        allow(entries).judge(&Host::parse(host, transport).unwrap()).ok()
    }

    #[test]
    fn lists_are_enforced() {
        let check = |entries: &[&str], host, verdict| {
            assert_eq!(judge(entries, host), verdict, "{entries:?} {host}");
        };
        check(&[], "10.0.0.1", None);
        check(&["10.0.0.0/8"], "10.1.2.3", Some(Verdict::Yes));
        check(&["10.0.0.0/8"], "::ffff:10.1.2.3", Some(Verdict::Yes));
        check(&["10.0.0.0/8"], "11.1.2.3", None);
        check(&["10.0.0.0/8"], "logs.example.com", Some(Verdict::ByAddress));
        check(&["0.0.0.0/0"], "11.1.2.3", Some(Verdict::Yes));
        check(&["0.0.0.0/0"], "::1", None);
        check(&["::/0"], "2001:db8::1", Some(Verdict::Yes));
        check(&["2001:db8::/33"], "2001:db8:8000::1", None);
        check(&["10.0.0.5"], "10.0.0.5", Some(Verdict::Yes));
        check(&["10.0.0.5"], "10.0.0.6", None);
        check(&["Logs.example.com."], "logs.example.com", Some(Verdict::Yes));
        check(&["*.example.com"], "a.b.example.com", Some(Verdict::Yes));
        check(&["*.example.com"], "example.com", None);
        check(&["*.example.com"], "badexample.com", None);
        check(&["/dev/log"], "/dev/log", Some(Verdict::Yes));
        check(&["/dev/log"], "/dev/logs", None);
    }

    #[test]
    fn invalid_entries_are_rejected() {
        for text in ["", "10.0.0.0/33", "::/129", "a b", "*.10.0.0.1", "http://x", "10.0.0.1:514"] {
            assert!(text.parse::<AllowEntry>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_rejection_lists_what_is_allowed() {
        let list = allow(&["10.0.0.0/8", "logs.example.com", "192.0.2.7"]);
        let host = Host::parse("8.8.8.8", Transport::Udp).unwrap();
        assert_eq!(
            list.judge(&host).unwrap_err().to_string(),
            "sending to 8.8.8.8 is not allowed; allowed: 10.0.0.0/8, logs.example.com, 192.0.2.7"
        );
    }
}
