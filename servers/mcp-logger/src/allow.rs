//! Which servers may be sent to.
//!
//! Whoever can call a tool decides where its packets go. On stdio that is the person who started
//! the server, and everything is allowed until a list is given. Over HTTP it may be anybody who
//! reaches the port, and nothing is allowed that is not on the list.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;

use crate::destination::{Host, Transport};

/// One thing that is allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// A machine by name, whatever its address.
    Name(String),
    /// All names below one: `*.example.com`.
    Below(String),
    /// A range of addresses: `10.0.0.0/8`, or one of them.
    Network(Network),
    /// A socket of this machine.
    Path(PathBuf),
}

/// A range of addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    bits: u8,
}

/// An entry that is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} cannot be allowed: it is no host name, *.domain, IP address, network such as \
     10.0.0.0/8, or absolute path"
)]
pub struct EntryError(String);

/// What is allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Allow {
    /// Everything.
    Anything,
    /// What is listed, and nothing else.
    Listed(Vec<Entry>),
}

/// A server that may not be sent to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{host} is not among the servers that this logger may send to ({allowed})")]
pub struct NotAllowed {
    host: String,
    allowed: String,
}

/// What the name of a server says about whether it is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is, whatever its addresses.
    Yes,
    /// Each of its addresses has to be asked about.
    ByAddress,
}

impl Allow {
    /// Judges a server by what it is called.
    ///
    /// # Errors
    /// When it is not allowed.
    pub fn judge(&self, host: &Host) -> Result<Verdict, NotAllowed> {
        let Self::Listed(entries) = self else { return Ok(Verdict::Yes) };
        let is_listed = entries.iter().any(|entry| entry.covers(host));
        let has_networks = entries.iter().any(|entry| matches!(entry, Entry::Network(_)));
        match host {
            _ if is_listed => Ok(Verdict::Yes),
            Host::Name(_) if has_networks => Ok(Verdict::ByAddress),
            _ => Err(self.refuse(host)),
        }
    }

    /// Whether an address may be sent to.
    pub fn covers(&self, address: IpAddr) -> bool {
        match self {
            Self::Anything => true,
            Self::Listed(entries) => {
                entries.iter().any(|entry| entry.covers(&Host::Address(address.to_canonical())))
            }
        }
    }

    /// The refusal of a server.
    pub fn refuse(&self, host: &Host) -> NotAllowed {
        NotAllowed { host: host.to_string(), allowed: self.to_string() }
    }
}

/// For the model: what it can send to instead.
impl fmt::Display for Allow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Anything => f.write_str("anything is allowed"),
            Self::Listed(entries) if entries.is_empty() => f.write_str(
                "only targets of its configuration; others are allowed with --allow when it starts",
            ),
            Self::Listed(entries) => {
                let entries: Vec<_> = entries.iter().map(ToString::to_string).collect();
                write!(f, "allowed are {}", entries.join(", "))
            }
        }
    }
}

impl Entry {
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

impl FromStr for Entry {
    type Err = EntryError;

    fn from_str(text: &str) -> Result<Self, EntryError> {
        let text = text.trim();
        if let Some(network) = Network::parse(text) {
            return Ok(Self::Network(network));
        }
        let host = |text: &str, transport| {
            Host::parse(text, transport).map_err(|_| EntryError(text.to_owned()))
        };
        if let Some(domain) = text.strip_prefix("*.") {
            let below = host(domain, Transport::Udp)?;
            let Host::Name(domain) = below else { return Err(EntryError(text.to_owned())) };
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

impl fmt::Display for Entry {
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

    /// Whether an address lies in it. IPv4 and IPv6 are different things.
    pub fn contains(self, address: IpAddr) -> bool {
        let same = |here: u128, there: u128, width: u32| {
            let dropped = width - u32::from(self.bits).min(width);
            // Dropping all of 128 bits leaves nothing to compare.
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
    fn lists_are_kept_to() {
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
    fn what_cannot_be_allowed_is_refused() {
        for text in ["", "10.0.0.0/33", "::/129", "a b", "*.10.0.0.1", "http://x", "10.0.0.1:514"] {
            assert!(text.parse::<Entry>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_refusal_tells_what_is_allowed() {
        let list = allow(&["10.0.0.0/8", "logs.example.com", "192.0.2.7"]);
        let host = Host::parse("8.8.8.8", Transport::Udp).unwrap();
        assert_eq!(
            list.judge(&host).unwrap_err().to_string(),
            "8.8.8.8 is not among the servers that this logger may send to \
             (allowed are 10.0.0.0/8, logs.example.com, 192.0.2.7)"
        );
    }
}
