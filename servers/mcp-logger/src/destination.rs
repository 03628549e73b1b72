//! Where a message goes, and how it gets there.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What carries the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// One datagram for each message (RFC 5426). Nobody says whether it arrives.
    #[default]
    Udp,
    /// A connection (RFC 6587).
    Tcp,
    /// An encrypted connection to a server that proves who it is (RFC 5425).
    Tls,
    /// A socket of this machine, such as `/dev/log`.
    Unix,
}

impl Transport {
    /// The customary port.
    pub fn default_port(self) -> u16 {
        if self == Self::Tls { 6514 } else { 514 }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Udp => "udp",
            Self::Tcp => "tcp",
            Self::Tls => "tls",
            Self::Unix => "unix",
        }
    }
}

/// How messages on a connection are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Framing {
    /// The length in front of each (RFC 6587, part 3.4.1). Safe with any content.
    #[default]
    OctetCounting,
    /// A line feed behind each (RFC 6587, part 3.4.2), for receivers that know nothing else.
    Lf,
}

impl Framing {
    /// The bytes of a message on a connection.
    ///
    /// # Errors
    /// When the message holds what ends a message.
    pub fn frame(self, message: &[u8]) -> Result<Vec<u8>, FrameError> {
        match self {
            Self::OctetCounting => {
                Ok([message.len().to_string().as_bytes(), b" ", message].concat())
            }
            Self::Lf if message.contains(&b'\n') => Err(FrameError),
            Self::Lf => Ok([message, b"\n"].concat()),
        }
    }
}

/// A line feed inside of a message that a line feed ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the message holds a line feed, which would end it half way with framing lf; \
     use framing octet-counting, or control_characters escape"
)]
pub struct FrameError;

/// A machine, or a socket of this one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Host {
    /// By number.
    Address(IpAddr),
    /// By name, in lower case.
    Name(String),
    /// By the path of its socket.
    Path(PathBuf),
}

/// A server that is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// Nothing was said.
    #[error("server is empty; give an IP address, a host name, or the name of a target")]
    Empty,
    /// A port came with it.
    #[error("server {0:?} has a port in it; give the port as `port`")]
    Port(String),
    /// A URL or the like.
    #[error(
        "server {0:?} is no IP address and no host name; for the path of a socket, set transport \
         to \"unix\""
    )]
    Unreadable(String),
    /// A socket needs a path.
    #[error("server {0:?} is no absolute path, which transport \"unix\" needs, such as /dev/log")]
    NoPath(String),
}

impl Host {
    /// Reads what somebody wrote as a server.
    ///
    /// # Errors
    /// When it is none.
    pub fn parse(text: &str, transport: Transport) -> Result<Self, HostError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(HostError::Empty);
        }
        if transport == Transport::Unix {
            let is_path = text.starts_with('/') && !text.contains('\0');
            let path = is_path.then(|| Self::Path(text.into()));
            return path.ok_or_else(|| HostError::NoPath(text.to_owned()));
        }
        let bare = text.strip_prefix('[').and_then(|it| it.strip_suffix(']')).unwrap_or(text);
        if let Ok(address) = bare.parse::<IpAddr>() {
            return Ok(Self::Address(address.to_canonical()));
        }
        let name = text.strip_suffix('.').unwrap_or(text).to_lowercase();
        if is_name(&name) {
            return Ok(Self::Name(name));
        }
        let has_port = text.rsplit_once(':').is_some_and(|(host, port)| {
            port.parse::<u32>().is_ok() && Self::parse(host, transport).is_ok()
        });
        Err(if has_port { HostError::Port } else { HostError::Unreadable }(text.to_owned()))
    }

    /// With a port, as people write it.
    pub fn with_port(&self, port: u16) -> String {
        match self {
            Self::Address(IpAddr::V6(address)) => format!("[{address}]:{port}"),
            Self::Address(address) => format!("{address}:{port}"),
            Self::Name(name) => format!("{name}:{port}"),
            Self::Path(path) => path.display().to_string(),
        }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(f),
            Self::Name(name) => name.fmt(f),
            Self::Path(path) => path.display().fmt(f),
        }
    }
}

/// Underscores are not allowed in host names, but there are such hosts.
fn is_name(name: &str) -> bool {
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|it| it.is_ascii_alphanumeric() || b"-_".contains(&it))
    };
    // Such as 10.0.0.300: meant as a number, and no name.
    let is_number = |label: &str| label.bytes().all(|it| it.is_ascii_digit());
    name.len() <= 253
        && name.split('.').all(is_label)
        && !name.rsplit('.').next().is_some_and(is_number)
}

/// Certificates: ours, and those that we trust.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Trust {
    /// Certificates that are trusted besides those of the system, as PEM.
    pub ca_file: Option<PathBuf>,
    /// The name that the server's certificate must have, if not its own.
    pub server_name: Option<String>,
    /// Our certificate and its key, as PEM, where the server wants to know who we are.
    pub identity: Option<(PathBuf, PathBuf)>,
}

/// Where a message goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    /// What it is called in the configuration, if it is there.
    pub target: Option<String>,
    /// Which machine.
    pub host: Host,
    /// Which port. Means nothing for a socket of this machine.
    pub port: u16,
    /// What carries the bytes.
    pub transport: Transport,
    /// How messages are told apart on a connection.
    pub framing: Framing,
    /// Certificates, for TLS.
    pub trust: Trust,
    /// How long all of it may take.
    pub timeout: Duration,
}

impl Destination {
    /// The bytes of a message on its way there.
    ///
    /// # Errors
    /// When the message holds what ends a message on that way.
    pub fn frame(&self, message: &[u8]) -> Result<Vec<u8>, FrameError> {
        match self.transport {
            Transport::Tcp | Transport::Tls => self.framing.frame(message),
            Transport::Udp | Transport::Unix => Ok(message.to_vec()),
        }
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = self.host.with_port(self.port);
        match &self.target {
            Some(target) => write!(f, "{target} ({place})"),
            None => f.write_str(&place),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_addresses_names_or_paths() {
        fn check(text: &str, transport: Transport, shown: &str) {
            assert_eq!(Host::parse(text, transport).unwrap().with_port(514), shown);
        }
        check("192.168.1.40", Transport::Udp, "192.168.1.40:514");
        check("::1", Transport::Tcp, "[::1]:514");
        check("[2001:DB8::1]", Transport::Tcp, "[2001:db8::1]:514");
        check("::ffff:10.0.0.1", Transport::Udp, "10.0.0.1:514");
        check("Logs.Example.COM.", Transport::Tls, "logs.example.com:514");
        check("localhost", Transport::Udp, "localhost:514");
        check("my_host", Transport::Udp, "my_host:514");
        check("/dev/log", Transport::Unix, "/dev/log");
    }

    #[test]
    fn what_is_no_server_is_refused() {
        fn check(text: &str, transport: Transport, part: &str) {
            let error = Host::parse(text, transport).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
        check(" ", Transport::Udp, "is empty");
        check("10.0.0.1:514", Transport::Udp, "give the port as `port`");
        check("[::1]:514", Transport::Udp, "give the port as `port`");
        check("udp://host", Transport::Udp, "no host name");
        check("/dev/log", Transport::Udp, "transport to \"unix\"");
        check("10.0.0.300", Transport::Udp, "no IP address");
        check("a b", Transport::Udp, "no host name");
        check("-a", Transport::Udp, "no host name");
        check("host", Transport::Unix, "no absolute path");
        check(":514", Transport::Udp, "no host name");
    }

    #[test]
    fn frames_are_counted_or_ended() {
        assert_eq!(Framing::OctetCounting.frame(b"a\nb").unwrap(), b"3 a\nb");
        assert_eq!(Framing::Lf.frame(b"ab").unwrap(), b"ab\n");
        assert_eq!(Framing::Lf.frame(b"a\nb"), Err(FrameError));
    }
}
