//! Where a message goes, and how it gets there.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// One datagram per message (RFC 5426). Delivery is not confirmed.
    #[default]
    Udp,
    /// A connection (RFC 6587).
    Tcp,
    /// An encrypted connection to an authenticated server (RFC 5425).
    Tls,
    /// A local socket, such as `/dev/log`.
    Unix,
}

impl Transport {
    /// The default port.
    pub fn default_port(self) -> u16 {
        if self == Self::Tls { 6514 } else { 514 }
    }

    /// The ports that are registered for syslog over this transport.
    pub fn syslog_ports(self) -> &'static [u16] {
        match self {
            Self::Udp => &[514],
            Self::Tcp => &[514, 601],
            Self::Tls => &[6514],
            Self::Unix => &[],
        }
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

/// How messages on a connection are delimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Framing {
    /// The length before each message (RFC 6587, section 3.4.1). Safe with any content.
    #[default]
    OctetCounting,
    /// A line feed after each message (RFC 6587, section 3.4.2), for receivers that support nothing
    /// else.
    Lf,
}

impl Framing {
    /// The bytes of a message on a connection.
    ///
    /// # Errors
    /// If the message contains its own delimiter.
    pub fn frame(self, message: &[u8]) -> Result<Vec<u8>, FrameError> {
        match self {
            Self::OctetCounting => {
                Ok([message.len().to_string().as_bytes(), b" ", message].concat())
            }
            Self::Lf if message.contains(&b'\n') => Err(FrameError::LineFeed),
            Self::Lf if message.contains(&0) => Err(FrameError::Nul),
            Self::Lf => Ok([message, b"\n"].concat()),
        }
    }
}

/// A message contains what ends a record, so that one message would become two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// A line feed, with framing `lf`.
    #[error(
        "the message contains a line feed, which framing lf uses as the delimiter; \
         use framing octet-counting, or control_characters escape"
    )]
    LineFeed,
    /// A NUL, where receivers take it for the end of a record.
    #[error(
        "the message contains a NUL, which ends a record on local sockets and for some receivers \
         with framing lf; use control_characters escape"
    )]
    Nul,
    /// A line feed on a local stream socket.
    #[error(
        "the message contains a line feed, which may end a record on a local stream socket; \
         use control_characters escape"
    )]
    LocalLineFeed,
}

/// A machine, or a local socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Host {
    /// An IP address.
    Address(IpAddr),
    /// A host name, in lower case.
    Name(String),
    /// The path of a local socket.
    Path(PathBuf),
}

/// Why the `server` argument is rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// It is empty.
    #[error("server is empty; give an IP address, a host name, or the name of a target")]
    Empty,
    /// It contains a port.
    #[error("server {0:?} contains a port; pass the port as `port`")]
    Port(String),
    /// A URL, for example.
    #[error(
        "server {0:?} is neither an IP address nor a host name; for the path of a socket, set \
         transport to \"unix\""
    )]
    Unreadable(String),
    /// Transport `unix` needs an absolute path.
    #[error("server {0:?} is not an absolute path; transport \"unix\" needs one, such as /dev/log")]
    NotAPath(String),
}

impl Host {
    /// Parses the `server` argument.
    ///
    /// # Errors
    /// If it is not a server.
    pub fn parse(text: &str, transport: Transport) -> Result<Self, HostError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(HostError::Empty);
        }
        if transport == Transport::Unix {
            let is_path = text.starts_with('/') && !text.contains('\0');
            let path = is_path.then(|| Self::Path(text.into()));
            return path.ok_or_else(|| HostError::NotAPath(text.to_owned()));
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

    /// The host and port, as in `host:port`.
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

/// Underscores are not valid in host names, but such hosts exist.
fn is_name(name: &str) -> bool {
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|it| it.is_ascii_alphanumeric() || b"-_".contains(&it))
    };
    // Such as 10.0.0.300: a mistyped address, not a name.
    let is_number = |label: &str| label.bytes().all(|it| it.is_ascii_digit());
    name.len() <= 253
        && name.split('.').all(is_label)
        && !name.rsplit('.').next().is_some_and(is_number)
}

/// Certificates: ours, and those we trust.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Trust {
    /// Certificates to trust in addition to the system's, as PEM.
    pub ca_file: Option<PathBuf>,
    /// The name the server's certificate must have, if it differs from the host name.
    pub server_name: Option<String>,
    /// Our certificate and its key, as PEM, for servers that require one.
    pub identity: Option<(PathBuf, PathBuf)>,
}

/// Where a message goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    /// The name of the configured target, if it is one.
    pub target: Option<String>,
    /// The host.
    pub host: Host,
    /// The port. Not used for local sockets.
    pub port: u16,
    /// The transport.
    pub transport: Transport,
    /// How messages are delimited on a connection.
    pub framing: Framing,
    /// Certificates, for TLS.
    pub trust: Trust,
    /// The time limit for all steps together.
    pub timeout: Duration,
}

impl Destination {
    /// The bytes of a message as they are sent there.
    ///
    /// # Errors
    /// If the message contains its own delimiter.
    pub fn frame(&self, message: &[u8]) -> Result<Vec<u8>, FrameError> {
        match self.transport {
            Transport::Tcp | Transport::Tls => self.framing.frame(message),
            Transport::Unix if message.contains(&0) => Err(FrameError::Nul),
            Transport::Udp | Transport::Unix => Ok(message.to_vec()),
        }
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = self.host.with_port(self.port);
        match &self.target {
            Some(target) => write!(f, "{target} ({address})"),
            None => f.write_str(&address),
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
    fn invalid_servers_are_rejected() {
        fn check(text: &str, transport: Transport, part: &str) {
            let error = Host::parse(text, transport).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
        check(" ", Transport::Udp, "is empty");
        check("10.0.0.1:514", Transport::Udp, "pass the port as `port`");
        check("[::1]:514", Transport::Udp, "pass the port as `port`");
        check("udp://host", Transport::Udp, "nor a host name");
        check("/dev/log", Transport::Udp, "transport to \"unix\"");
        check("10.0.0.300", Transport::Udp, "neither an IP address");
        check("a b", Transport::Udp, "nor a host name");
        check("-a", Transport::Udp, "nor a host name");
        check("host", Transport::Unix, "not an absolute path");
        check(":514", Transport::Udp, "nor a host name");
    }

    #[test]
    fn frames_are_counted_or_delimited() {
        assert_eq!(Framing::OctetCounting.frame(b"a\nb").unwrap(), b"3 a\nb");
        assert_eq!(Framing::Lf.frame(b"ab").unwrap(), b"ab\n");
        assert_eq!(Framing::OctetCounting.frame(b"a\0b").unwrap(), b"3 a\0b");
        assert_eq!(Framing::Lf.frame(b"a\nb"), Err(FrameError::LineFeed));
        assert_eq!(Framing::Lf.frame(b"a\0b"), Err(FrameError::Nul));
    }
}
