//! Sends bytes as datagrams or over TCP, TLS and local sockets.
//!
//! Every step has a name, and all of them share one deadline, so that an error says which step
//! failed.

mod datagram;
mod tls;

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout, timeout_at};

use self::datagram::Datagrams;
pub use self::tls::{Handshake, TlsError};
use crate::allow::{Allow, NotAllowed, Verdict};
use crate::destination::{Destination, FrameError, Framing, Host, Transport};

/// The network settings: allowed destinations, and detours.
#[derive(Debug, Clone)]
pub struct Network {
    /// Which destinations are allowed.
    pub allow: Allow,
    /// Addresses to connect to instead of `host:port`, for tunnels and tests.
    pub connect_to: BTreeMap<String, SocketAddr>,
    /// How long to wait for the rejection of a datagram to another machine.
    pub udp_wait: Duration,
}

/// Why sending failed.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// The destination is not allowed.
    #[error(transparent)]
    NotAllowed(#[from] NotAllowed),
    /// The name does not resolve.
    #[error("cannot resolve {host}; check the name")]
    Resolve {
        /// The name.
        host: String,
        /// The error of the system.
        #[source]
        cause: io::Error,
    },
    /// The connection failed.
    #[error("{destination}: cannot connect over {transport}")]
    Connect {
        /// The destination.
        destination: String,
        /// The transport.
        transport: &'static str,
        /// The error of the system.
        #[source]
        cause: io::Error,
    },
    /// The datagram was rejected.
    #[error(
        "{0} rejected the datagram (ICMP port unreachable): nothing is listening on this UDP port; \
         check the port, or try transport tcp"
    )]
    Rejected(String),
    /// The TLS connection failed.
    #[error("{destination}: TLS connection failed")]
    Tls {
        /// The destination.
        destination: String,
        /// The cause.
        #[source]
        cause: TlsError,
    },
    /// Writing failed.
    #[error("{destination}: cannot write")]
    Write {
        /// The destination.
        destination: String,
        /// The error of the system.
        #[source]
        cause: io::Error,
    },
    /// The receiver reset the connection.
    #[error("{destination}: the receiver reset the connection and may not have read everything")]
    Broken {
        /// The destination.
        destination: String,
        /// The error of the system.
        #[source]
        cause: io::Error,
    },
    /// A step took too long.
    #[error("{destination}: timed out after {} ms while {stage}; raise timeout_ms, or check that it is reachable", .after.as_millis())]
    Timeout {
        /// The destination.
        destination: String,
        /// The step.
        stage: &'static str,
        /// The time limit.
        after: Duration,
    },
    /// A message contains its own delimiter.
    #[error(transparent)]
    Frame(#[from] FrameError),
}

/// An open socket to a destination.
#[derive(Debug)]
pub struct Link {
    wire: Wire,
    /// The addresses that could be used.
    pub addresses: Vec<SocketAddr>,
    /// The one that was used, unless it is a path.
    pub address: Option<SocketAddr>,
    /// What was negotiated, for TLS.
    pub handshake: Option<Handshake>,
    framing: Framing,
    destination: String,
    timeout: Duration,
    udp_wait: Duration,
}

#[derive(Debug)]
enum Wire {
    Udp(Datagrams),
    Tcp(TcpStream),
    Tls(Box<tls::Stream>),
    #[cfg(unix)]
    Datagram(tokio::net::UnixDatagram),
    #[cfg(unix)]
    Stream(tokio::net::UnixStream),
}

/// How long to wait for the receiver to close its side of a connection.
const CLOSING: Duration = Duration::from_millis(500);

impl Network {
    /// Whether a destination is allowed, before its name is resolved. Targets always are.
    ///
    /// # Errors
    /// If it is not.
    pub fn check(&self, to: &Destination) -> Result<Verdict, LinkError> {
        match &to.target {
            Some(_) => Ok(Verdict::Yes),
            None => Ok(self.allow.judge(to)?),
        }
    }

    /// The allowed addresses of a destination, in the order to try.
    ///
    /// Names are resolved once, and the addresses that were checked are the ones used.
    ///
    /// # Errors
    /// If the name does not resolve, or no address is allowed.
    pub async fn addresses(&self, to: &Destination) -> Result<Vec<SocketAddr>, LinkError> {
        let verdict = self.check(to)?;
        if let Some(address) = self.connect_to.get(&to.host.with_port(to.port)) {
            return Ok(vec![*address]);
        }
        let found: Vec<SocketAddr> = match &to.host {
            Host::Address(address) => return Ok(vec![(*address, to.port).into()]),
            Host::Path(_) => return Ok(Vec::new()),
            Host::Name(name) => {
                let host = || name.clone();
                let looked_up = tokio::net::lookup_host((name.as_str(), to.port)).await;
                looked_up.map_err(|cause| LinkError::Resolve { host: host(), cause })?.collect()
            }
        };
        let is_allowed =
            |it: &SocketAddr| verdict == Verdict::Yes || self.allow.covers(it.ip(), to);
        let allowed: Vec<SocketAddr> = found.into_iter().filter(is_allowed).collect();
        if allowed.is_empty() {
            return Err(self.allow.reject(to).into());
        }
        Ok(allowed)
    }

    /// Opens a socket to a destination.
    ///
    /// # Errors
    /// If the destination is not allowed, or cannot be reached in time.
    ///
    /// # Cancel safety
    /// Dropping it leaves nothing behind.
    pub async fn open(&self, to: &Destination) -> Result<Link, LinkError> {
        let destination = to.to_string();
        let clock = Clock {
            destination: &destination,
            until: Instant::now() + to.timeout,
            after: to.timeout,
        };
        let addresses = clock.within("resolving its name", self.addresses(to)).await??;
        let mut link = Link {
            wire: clock.within("connecting", connect(to, &addresses)).await??,
            addresses,
            address: None,
            handshake: None,
            framing: to.framing,
            destination: destination.clone(),
            timeout: to.timeout,
            udp_wait: self.udp_wait,
        };
        link.address = link.wire.peer();
        if let (Host::Name(_), Some(address)) = (&to.host, link.address) {
            // A name may have several addresses; errors say which one failed.
            link.destination += &format!(" at {}", address.ip());
        }
        if to.transport == Transport::Tls
            && let Wire::Tcp(stream) = link.wire
        {
            let encrypting = clock.within("negotiating TLS", tls::connect(to, stream)).await?;
            let (stream, handshake) = encrypting
                .map_err(|cause| LinkError::Tls { destination: destination.clone(), cause })?;
            link.handshake = Some(handshake);
            link.wire = Wire::Tls(Box::new(stream));
        }
        Ok(link)
    }
}

impl Link {
    /// Sends one message.
    ///
    /// # Errors
    /// If it cannot be framed or written.
    ///
    /// # Cancel safety
    /// Dropping it may leave half a message on a connection. Do not send anything more over it.
    pub async fn send(&mut self, message: &[u8]) -> Result<(), LinkError> {
        let framing = self.framing;
        let writing = async {
            let written = match &mut self.wire {
                Wire::Udp(socket) => socket.send(message).await,
                Wire::Tcp(stream) => stream.write_all(&framing.frame(message)?).await,
                Wire::Tls(stream) => {
                    let frame = framing.frame(message)?;
                    // Encrypted bytes may still be buffered.
                    match stream.write_all(&frame).await {
                        Ok(()) => stream.flush().await,
                        failed => failed,
                    }
                }
                #[cfg(unix)]
                Wire::Datagram(_) | Wire::Stream(_) if message.contains(&0) => {
                    return Err(FrameError::Nul.into());
                }
                #[cfg(unix)]
                Wire::Datagram(socket) => socket.send(message).await.map(drop),
                // Some receivers take a line feed for the end of a record, too.
                #[cfg(unix)]
                Wire::Stream(_) if message.contains(&b'\n') => {
                    return Err(FrameError::LocalLineFeed.into());
                }
                // Local receivers do not support octet counting; a zero byte ends a record.
                #[cfg(unix)]
                Wire::Stream(stream) => stream.write_all(&[message, b"\0"].concat()).await,
            };
            Ok::<_, LinkError>(written)
        };
        let clock = Clock {
            destination: &self.destination,
            until: Instant::now() + self.timeout,
            after: self.timeout,
        };
        let written = clock.within("writing", writing).await??;
        written.map_err(|cause| self.failed(cause))
    }

    /// Closes the socket, and waits for the receiver's reaction: it may reject a datagram or reset
    /// a connection.
    ///
    /// # Errors
    /// If the receiver rejects a datagram or resets the connection.
    pub async fn finish(mut self) -> Result<(), LinkError> {
        let (udp_wait, destination) = (self.udp_wait, self.destination.clone());
        let closed = match &mut self.wire {
            Wire::Udp(socket) => socket.rejection(udp_wait).await,
            Wire::Tcp(stream) => close(stream).await,
            Wire::Tls(stream) => close(stream).await,
            #[cfg(unix)]
            Wire::Datagram(_) => Ok(()),
            #[cfg(unix)]
            Wire::Stream(stream) => close(stream).await,
        };
        closed.map_err(|cause| match cause.kind() {
            io::ErrorKind::ConnectionRefused => LinkError::Rejected(destination),
            _ => LinkError::Broken { destination, cause },
        })
    }

    fn failed(&self, cause: io::Error) -> LinkError {
        let destination = self.destination.clone();
        match (&self.wire, cause.kind()) {
            (Wire::Udp(_), io::ErrorKind::ConnectionRefused) => LinkError::Rejected(destination),
            _ => LinkError::Write { destination, cause },
        }
    }
}

impl Wire {
    fn peer(&self) -> Option<SocketAddr> {
        match self {
            Self::Udp(socket) => socket.peer(),
            Self::Tcp(stream) => stream.peer_addr().ok(),
            _ => None,
        }
    }
}

/// One deadline for several steps.
struct Clock<'a> {
    destination: &'a str,
    until: Instant,
    after: Duration,
}

impl Clock<'_> {
    async fn within<T>(
        &self,
        stage: &'static str,
        work: impl Future<Output = T>,
    ) -> Result<T, LinkError> {
        let (destination, after) = (self.destination.to_owned(), self.after);
        timeout_at(self.until, work).await.map_err(|_| LinkError::Timeout {
            destination,
            stage,
            after,
        })
    }
}

/// Connects to the first address that answers. Each gets a share of the time, because a dead one
/// never answers.
async fn connect(to: &Destination, addresses: &[SocketAddr]) -> Result<Wire, LinkError> {
    let destination = to.to_string();
    let failed = |cause| LinkError::Connect { destination, transport: to.transport.name(), cause };
    if let Host::Path(path) = &to.host {
        return connect_local(path).await.map_err(failed);
    }
    let share = to.timeout / u32::try_from(addresses.len()).unwrap_or(u32::MAX).max(1);
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for address in addresses {
        let connected = match to.transport {
            Transport::Udp => Datagrams::connect(*address).map(Wire::Udp),
            _ => match timeout(share, TcpStream::connect(address)).await {
                Ok(connected) => connected.map(Wire::Tcp),
                Err(_) => Err(io::ErrorKind::TimedOut.into()),
            },
        };
        match connected {
            Ok(wire) => return Ok(wire),
            Err(error) => last = error,
        }
    }
    Err(failed(last))
}

#[cfg(unix)]
async fn connect_local(path: &Path) -> io::Result<Wire> {
    let socket = tokio::net::UnixDatagram::unbound()?;
    match socket.connect(path) {
        Ok(()) => Ok(Wire::Datagram(socket)),
        // Perhaps the wrong kind of socket, so try the other. Systems report this with different
        // errors.
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound) => Err(error),
        Err(_) => tokio::net::UnixStream::connect(path).await.map(Wire::Stream),
    }
}

#[cfg(not(unix))]
async fn connect_local(_: &Path) -> io::Result<Wire> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "this system has no Unix sockets"))
}

/// Shuts down our side, and reads until the other side closes.
async fn close<S: AsyncRead + AsyncWrite + Unpin>(stream: &mut S) -> io::Result<()> {
    stream.shutdown().await?;
    let mut ignored = [0; 256];
    let reading = async {
        loop {
            match stream.read(&mut ignored).await {
                Ok(0) => return Ok(()),
                Ok(_) => {}
                // Many receivers close TLS without a close_notify.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    };
    // A receiver may keep its side open forever; that is not an error.
    timeout(CLOSING, reading).await.unwrap_or(Ok(()))
}
