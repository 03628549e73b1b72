//! Which servers may be sent to.
//!
//! The caller of a tool chooses where its packets go. On stdio that is the user who started the
//! server, and everything is allowed until a list is given. Over HTTP it may be anyone who can
//! reach the port, and only listed servers are allowed.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;

use crate::destination::{Destination, Host, Transport};

/// One entry of the list: who, and on which ports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowEntry {
    place: Place,
    ports: Ports,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Place {
    /// A host name, whatever its addresses.
    Name(String),
    /// All names below a domain: `*.example.com`.
    Below(String),
    /// A range of addresses, such as `10.0.0.0/8`, or a single address.
    Network(Network),
    /// A local socket.
    Path(PathBuf),
}

/// The ports of an entry. Without any, a caller could speak to a database, a mail server or a
/// printer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ports {
    /// Those that are registered for syslog over the transport.
    Syslog,
    /// From the first to the last one.
    Range(u16, u16),
    /// All of them.
    Any,
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
    "{0:?} cannot be allowed: expected a host name, *.domain, IP address or network such as \
     10.0.0.0/8, and perhaps its ports, as in logs.example.com:5140, 10.0.0.0/8:5140-5149, \
     [2001:db8::1]:514 or localhost:*; or an absolute path"
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
#[error("sending to {destination} is not allowed; {allowed}")]
pub struct NotAllowed {
    destination: String,
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
    /// Judges a destination before its name is resolved.
    ///
    /// # Errors
    /// If it is not allowed.
    pub fn judge(&self, to: &Destination) -> Result<Verdict, NotAllowed> {
        let Self::Listed(entries) = self else { return Ok(Verdict::Yes) };
        let is_listed = entries.iter().any(|entry| entry.covers(&to.host, to));
        let has_networks =
            || entries.iter().any(|it| matches!(it.place, Place::Network(_)) && it.ports.have(to));
        match to.host {
            _ if is_listed => Ok(Verdict::Yes),
            Host::Name(_) if has_networks() => Ok(Verdict::ByAddress),
            _ => Err(self.reject(to)),
        }
    }

    /// Whether a destination is allowed at an address that its name resolves to.
    pub fn covers(&self, address: IpAddr, to: &Destination) -> bool {
        match self {
            Self::Anything => true,
            Self::Listed(entries) => {
                let host = Host::Address(address.to_canonical());
                entries.iter().any(|entry| entry.covers(&host, to))
            }
        }
    }

    /// The error for a destination that is not allowed.
    pub fn reject(&self, to: &Destination) -> NotAllowed {
        let destination = match &to.host {
            Host::Path(path) => path.display().to_string(),
            host => format!("{} over {}", host.with_port(to.port), to.transport.name()),
        };
        NotAllowed { destination, allowed: self.to_string() }
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
                let shown: Vec<_> = entries.iter().map(ToString::to_string).collect();
                write!(f, "allowed: {}", shown.join(", "))?;
                let is_bare = |it: &AllowEntry| {
                    it.ports == Ports::Syslog && !matches!(it.place, Place::Path(_))
                };
                if entries.iter().any(is_bare) {
                    f.write_str(
                        " (without a port: 514 over udp, 514 and 601 over tcp, 6514 over tls)",
                    )?;
                }
                Ok(())
            }
        }
    }
}

impl AllowEntry {
    fn covers(&self, host: &Host, to: &Destination) -> bool {
        match (&self.place, host) {
            (Place::Path(allowed), Host::Path(path)) => allowed == path,
            _ => self.place.covers(host) && self.ports.have(to),
        }
    }
}

impl Place {
    fn covers(&self, host: &Host) -> bool {
        match (self, host) {
            (Self::Name(allowed), Host::Name(name)) => allowed == name,
            (Self::Below(domain), Host::Name(name)) => {
                name.strip_suffix(domain.as_str()).is_some_and(|rest| rest.ends_with('.'))
            }
            (Self::Network(network), Host::Address(address)) => network.contains(*address),
            _ => false,
        }
    }

    fn parse(text: &str) -> Option<Self> {
        if let Some(network) = Network::parse(text) {
            return Some(Self::Network(network));
        }
        if let Some(domain) = text.strip_prefix("*.") {
            let Host::Name(domain) = Host::parse(domain, Transport::Udp).ok()? else { return None };
            return Some(Self::Below(domain));
        }
        let transport = if text.starts_with('/') { Transport::Unix } else { Transport::Udp };
        Some(match Host::parse(text, transport).ok()? {
            Host::Name(name) => Self::Name(name),
            Host::Path(path) => Self::Path(path),
            Host::Address(address) => Self::Network(Network::of(address)),
        })
    }
}

impl Ports {
    fn have(self, to: &Destination) -> bool {
        match self {
            Self::Syslog => to.transport.syslog_ports().contains(&to.port),
            Self::Range(first, last) => (first..=last).contains(&to.port),
            Self::Any => true,
        }
    }

    fn parse(text: &str) -> Option<Self> {
        if text == "*" {
            return Some(Self::Any);
        }
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let (first, last) = (first.parse().ok()?, last.parse().ok()?);
        (0 < first && first <= last).then_some(Self::Range(first, last))
    }
}

impl FromStr for AllowEntry {
    type Err = AllowEntryError;

    fn from_str(text: &str) -> Result<Self, AllowEntryError> {
        let text = text.trim();
        let (place, ports) = match text.strip_prefix('[').and_then(|it| it.split_once(']')) {
            Some((place, "")) => (place, None),
            Some((place, rest)) => (place, rest.strip_prefix(':').or(Some(""))),
            // More than one colon is an IPv6 address.
            None if text.starts_with('/') || text.matches(':').count() != 1 => (text, None),
            None => text.split_once(':').map_or((text, None), |(place, it)| (place, Some(it))),
        };
        let reject = || AllowEntryError(text.to_owned());
        Ok(Self {
            place: Place::parse(place).ok_or_else(reject)?,
            ports: ports.map_or(Some(Ports::Syslog), Ports::parse).ok_or_else(reject)?,
        })
    }
}

impl fmt::Display for AllowEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Place::Network(it) if it.address.is_ipv6() && self.ports != Ports::Syslog => {
                write!(f, "[{it}]")?;
            }
            Place::Name(name) => f.write_str(name)?,
            Place::Below(domain) => write!(f, "*.{domain}")?,
            Place::Network(network) => network.fmt(f)?,
            Place::Path(path) => path.display().fmt(f)?,
        }
        match self.ports {
            Ports::Syslog => Ok(()),
            Ports::Range(first, last) if first == last => write!(f, ":{first}"),
            Ports::Range(first, last) => write!(f, ":{first}-{last}"),
            Ports::Any => f.write_str(":*"),
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
    use std::time::Duration;

    use super::*;
    use crate::destination::{Framing, Trust};

    fn allow(entries: &[&str]) -> Allow {
        Allow::Listed(entries.iter().map(|entry| entry.parse().unwrap()).collect())
    }

    fn to(host: &str, transport: Transport, port: u16) -> Destination {
        Destination {
            target: None,
            host: Host::parse(host, transport).unwrap(),
            port,
            transport,
            framing: Framing::default(),
            trust: Trust::default(),
            timeout: Duration::ZERO,
        }
    }

    #[test]
    fn lists_are_enforced() {
        let check = |entries: &[&str], host: &str, verdict| {
            let transport = if host.starts_with('/') { Transport::Unix } else { Transport::Udp };
            let judged = allow(entries).judge(&to(host, transport, 514)).ok();
            assert_eq!(judged, verdict, "{entries:?} {host}");
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
    fn entries_have_ports() {
        let check = |entry: &str, transport, port, is_allowed| {
            let judged = allow(&[entry]).judge(&to("10.0.0.5", transport, port));
            assert_eq!(judged.is_ok(), is_allowed, "{entry} {transport:?} {port}");
        };
        let (udp, tcp, tls) = (Transport::Udp, Transport::Tcp, Transport::Tls);
        // Without a port: those of syslog over the transport.
        for entry in ["10.0.0.5", "10.0.0.0/8"] {
            check(entry, udp, 514, true);
            check(entry, tcp, 514, true);
            check(entry, tcp, 601, true);
            check(entry, tls, 6514, true);
            for (transport, port) in [(udp, 6514), (udp, 53), (tcp, 6379), (tcp, 25), (tls, 443)] {
                check(entry, transport, port, false);
            }
        }
        check("10.0.0.5:5140", udp, 5140, true);
        check("10.0.0.5:5140", udp, 514, false);
        check("10.0.0.0/8:5140-5149", tcp, 5149, true);
        check("10.0.0.0/8:5140-5149", tcp, 5150, false);
        check("10.0.0.0/8:*", tcp, 6379, true);
        // A name that resolves to an allowed address is judged by the port as well.
        let list = allow(&["10.0.0.0/8", "192.0.2.0/24:99"]);
        assert_eq!(list.judge(&to("db.example.com", tcp, 99)), Ok(Verdict::ByAddress));
        assert!(list.judge(&to("db.example.com", tcp, 6379)).is_err());
        assert!(!list.covers("10.0.0.5".parse().unwrap(), &to("db.example.com", tcp, 99)));
    }

    #[test]
    fn entries_are_shown_as_they_are_written() {
        for entry in [
            "10.0.0.0/8",
            "10.0.0.1:514",
            "logs.example.com:5140-5149",
            "*.example.com:*",
            "2001:db8::1",
            "2001:db8::/32",
            "[2001:db8::/32]:514",
            "[::1]:*",
            "/dev/log",
        ] {
            assert_eq!(entry.parse::<AllowEntry>().unwrap().to_string(), entry);
        }
        assert_eq!("[::1]".parse::<AllowEntry>().unwrap().to_string(), "::1");
    }

    #[test]
    fn invalid_entries_are_rejected() {
        for text in [
            "",
            "10.0.0.0/33",
            "::/129",
            "a b",
            "*.10.0.0.1",
            "http://x",
            "10.0.0.1:0",
            "10.0.0.1:70000",
            "10.0.0.1:9-8",
            "10.0.0.1:",
            "[::1]514",
            "[::1",
            "a:b",
            "::1:*",
        ] {
            assert!(text.parse::<AllowEntry>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_rejection_lists_what_is_allowed() {
        let list = allow(&["10.0.0.0/8", "logs.example.com:99"]);
        assert_eq!(
            list.judge(&to("10.0.0.1", Transport::Tcp, 6379)).unwrap_err().to_string(),
            "sending to 10.0.0.1:6379 over tcp is not allowed; allowed: 10.0.0.0/8, \
             logs.example.com:99 (without a port: 514 over udp, 514 and 601 over tcp, 6514 over tls)"
        );
    }
}
