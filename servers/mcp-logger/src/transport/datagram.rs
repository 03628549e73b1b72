//! UDP datagrams: sends them, and listens for rejections.
//!
//! This is a non-blocking socket of the standard library: most messages go out immediately, and the
//! runtime gets involved only if one has to wait.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use tokio::time::timeout;

/// A socket that sends to one address.
#[derive(Debug)]
pub(super) struct Datagrams(UdpSocket);

impl Datagrams {
    /// Connected, because the system reports rejections only for connected sockets.
    pub(super) fn connect(address: SocketAddr) -> io::Result<Self> {
        let any: IpAddr = match address {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let socket = UdpSocket::bind((any, 0))?;
        socket.set_nonblocking(true)?;
        socket.connect(address)?;
        Ok(Self(socket))
    }

    /// Sends one message.
    pub(super) async fn send(&self, message: &[u8]) -> io::Result<()> {
        match self.0.send(message) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                self.registered()?.send(message).await.map(drop)
            }
            other => other.map(drop),
        }
    }

    /// Waits for a rejection. On this machine it arrives before `send` returns.
    pub(super) async fn rejection(&self, patience: Duration) -> io::Result<()> {
        if let Some(error) = self.0.take_error()? {
            return Err(error);
        }
        if self.0.peer_addr()?.ip().to_canonical().is_loopback() {
            return Ok(());
        }
        // Syslog has no replies; ignore anything that arrives.
        match timeout(patience, self.registered()?.recv(&mut [0; 16])).await {
            Ok(Err(error)) => Err(error),
            Ok(Ok(_)) | Err(_) => Ok(()),
        }
    }

    /// The address it sends to.
    pub(super) fn peer(&self) -> Option<SocketAddr> {
        self.0.peer_addr().ok()
    }

    /// The same socket, registered with the runtime.
    fn registered(&self) -> io::Result<tokio::net::UdpSocket> {
        tokio::net::UdpSocket::from_std(self.0.try_clone()?)
    }
}
