//! Sending bytes: datagrams, connections, encrypted connections, local sockets.
//!
//! Every step has a name and all of them one deadline, so that a failure says what did not work.

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

/// What is known of a network before anybody is asked: who may be sent to, and detours.
#[derive(Debug, Clone)]
pub struct Network {
    /// Who may be sent to.
    pub allow: Allow,
    /// Other places for `host:port`: tunnels, and tests.
    pub connect_to: BTreeMap<String, SocketAddr>,
    /// How long to wait for the refusal of a datagram to a machine that is not this one.
    pub udp_wait: Duration,
}

/// Why something could not be sent.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// It may not be sent there.
    #[error(transparent)]
    NotAllowed(#[from] NotAllowed),
    /// The name has no address.
    #[error("{host} has no address; check the name")]
    Resolve {
        /// The name.
        host: String,
        /// What the system says.
        #[source]
        cause: io::Error,
    },
    /// Nobody is there.
    #[error("{place}: cannot connect over {transport}")]
    Connect {
        /// Where.
        place: String,
        /// How.
        transport: &'static str,
        /// What the system says.
        #[source]
        cause: io::Error,
    },
    /// The datagram came back.
    #[error(
        "{0} refused the datagram (ICMP port unreachable): nothing listens on this UDP port; \
         check the port, or try transport tcp"
    )]
    Refused(String),
    /// No encrypted connection.
    #[error("{place}: no TLS connection")]
    Tls {
        /// Where.
        place: String,
        /// Why.
        #[source]
        cause: TlsError,
    },
    /// The connection broke.
    #[error("{place}: cannot write")]
    Write {
        /// Where.
        place: String,
        /// What the system says.
        #[source]
        cause: io::Error,
    },
    /// The receiver threw the connection away.
    #[error("{place}: the receiver broke the connection, and may not have read everything")]
    Broken {
        /// Where.
        place: String,
        /// What the system says.
        #[source]
        cause: io::Error,
    },
    /// It took too long.
    #[error("{place}: timed out after {} ms {stage}; raise timeout_ms, or check that it is reachable", .after.as_millis())]
    Timeout {
        /// Where.
        place: String,
        /// What was going on.
        stage: &'static str,
        /// After which time.
        after: Duration,
    },
    /// A message cannot be framed.
    #[error(transparent)]
    Frame(#[from] FrameError),
}

/// An open way to a destination.
#[derive(Debug)]
pub struct Link {
    wire: Wire,
    /// The addresses that there were to choose from.
    pub addresses: Vec<SocketAddr>,
    /// The one that was chosen, unless it is a path.
    pub address: Option<SocketAddr>,
    /// What was agreed, for TLS.
    pub handshake: Option<Handshake>,
    framing: Framing,
    place: String,
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

/// How long to wait for a receiver to close a connection that is closed on our side.
const CLOSING: Duration = Duration::from_millis(500);

impl Network {
    /// The addresses of a destination that may be sent to, in the order to be tried.
    ///
    /// They are looked up once, and what is judged is what is used.
    ///
    /// # Errors
    /// When there is none, or none that may be sent to.
    pub async fn addresses(&self, to: &Destination) -> Result<Vec<SocketAddr>, LinkError> {
        let verdict = match &to.target {
            Some(_) => Verdict::Yes,
            None => self.allow.judge(&to.host)?,
        };
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
        let is_allowed = |it: &SocketAddr| verdict == Verdict::Yes || self.allow.covers(it.ip());
        let allowed: Vec<SocketAddr> = found.into_iter().filter(is_allowed).collect();
        if allowed.is_empty() {
            return Err(self.allow.refuse(&to.host).into());
        }
        Ok(allowed)
    }

    /// Opens a way to a destination.
    ///
    /// # Errors
    /// When it may not be sent to, or cannot be reached in time.
    ///
    /// # Cancel safety
    /// Dropping it leaves nothing behind.
    pub async fn open(&self, to: &Destination) -> Result<Link, LinkError> {
        let place = to.to_string();
        let clock = Clock { place: &place, until: Instant::now() + to.timeout, after: to.timeout };
        let addresses = clock.within("looking up its address", self.addresses(to)).await??;
        let mut link = Link {
            wire: clock.within("connecting", connect(to, &addresses)).await??,
            addresses,
            address: None,
            handshake: None,
            framing: to.framing,
            place: place.clone(),
            timeout: to.timeout,
            udp_wait: self.udp_wait,
        };
        link.address = link.wire.peer();
        if let (Host::Name(_), Some(address)) = (&to.host, link.address) {
            // Names have several addresses, and only one of them may be the trouble.
            link.place += &format!(" at {}", address.ip());
        }
        if to.transport == Transport::Tls
            && let Wire::Tcp(stream) = link.wire
        {
            let encrypting = clock.within("agreeing on TLS", tls::connect(to, stream)).await?;
            let (stream, handshake) =
                encrypting.map_err(|cause| LinkError::Tls { place: place.clone(), cause })?;
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
    /// When it cannot be framed or written.
    ///
    /// # Cancel safety
    /// Dropping it may leave half a message on a connection. Send nothing more over it then.
    pub async fn send(&mut self, message: &[u8]) -> Result<(), LinkError> {
        let framing = self.framing;
        let writing = async {
            let written = match &mut self.wire {
                Wire::Udp(socket) => socket.send(message).await,
                Wire::Tcp(stream) => stream.write_all(&framing.frame(message)?).await,
                Wire::Tls(stream) => {
                    let frame = framing.frame(message)?;
                    // What is encrypted may still wait for its turn.
                    match stream.write_all(&frame).await {
                        Ok(()) => stream.flush().await,
                        failed => failed,
                    }
                }
                #[cfg(unix)]
                Wire::Datagram(socket) => socket.send(message).await.map(drop),
                // Local receivers know no counts; a zero byte ends a record there.
                #[cfg(unix)]
                Wire::Stream(stream) => stream.write_all(&[message, b"\0"].concat()).await,
            };
            Ok::<_, LinkError>(written)
        };
        let clock =
            Clock { place: &self.place, until: Instant::now() + self.timeout, after: self.timeout };
        let written = clock.within("writing", writing).await??;
        written.map_err(|cause| self.failed(cause))
    }

    /// Closes the way, and waits for what the receiver has to say about it: a datagram may be
    /// refused, a connection broken.
    ///
    /// # Errors
    /// When the receiver says that something is wrong.
    pub async fn finish(mut self) -> Result<(), LinkError> {
        let (udp_wait, place) = (self.udp_wait, self.place.clone());
        let closed = match &mut self.wire {
            Wire::Udp(socket) => socket.refusal(udp_wait).await,
            Wire::Tcp(stream) => close(stream).await,
            Wire::Tls(stream) => close(stream).await,
            #[cfg(unix)]
            Wire::Datagram(_) => Ok(()),
            #[cfg(unix)]
            Wire::Stream(stream) => close(stream).await,
        };
        closed.map_err(|cause| match cause.kind() {
            io::ErrorKind::ConnectionRefused => LinkError::Refused(place),
            _ => LinkError::Broken { place, cause },
        })
    }

    fn failed(&self, cause: io::Error) -> LinkError {
        let place = self.place.clone();
        match (&self.wire, cause.kind()) {
            (Wire::Udp(_), io::ErrorKind::ConnectionRefused) => LinkError::Refused(place),
            _ => LinkError::Write { place, cause },
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
    place: &'a str,
    until: Instant,
    after: Duration,
}

impl Clock<'_> {
    async fn within<T>(
        &self,
        stage: &'static str,
        work: impl Future<Output = T>,
    ) -> Result<T, LinkError> {
        let (place, after) = (self.place.to_owned(), self.after);
        timeout_at(self.until, work).await.map_err(|_| LinkError::Timeout { place, stage, after })
    }
}

/// The first address that answers. Each gets its share of the time, since a dead one says nothing.
async fn connect(to: &Destination, addresses: &[SocketAddr]) -> Result<Wire, LinkError> {
    let place = to.to_string();
    let failed = |cause| LinkError::Connect { place, transport: to.transport.name(), cause };
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
        // The wrong kind of socket: the other kind may be right. Each system has its own name
        // for that.
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound) => Err(error),
        Err(_) => tokio::net::UnixStream::connect(path).await.map(Wire::Stream),
    }
}

#[cfg(not(unix))]
async fn connect_local(_: &Path) -> io::Result<Wire> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "this system has no such sockets"))
}

/// Says that nothing more comes, and reads what the other side still says.
async fn close<S: AsyncRead + AsyncWrite + Unpin>(stream: &mut S) -> io::Result<()> {
    stream.shutdown().await?;
    let mut ignored = [0; 256];
    let reading = async {
        loop {
            match stream.read(&mut ignored).await {
                Ok(0) => return Ok(()),
                Ok(_) => {}
                // Many receivers end TLS without saying goodbye.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    };
    // A receiver may keep its side open for ever; that is no error.
    timeout(CLOSING, reading).await.unwrap_or(Ok(()))
}
