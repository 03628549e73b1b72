//! Datagrams: sent at once where the system takes them, and listened to for refusals.
//!
//! A socket of the standard library that does not block: most messages go out before anybody could
//! wait, and only then is the runtime told of it.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use tokio::time::timeout;

/// A socket that sends to one address.
#[derive(Debug)]
pub(super) struct Datagrams(UdpSocket);

impl Datagrams {
    /// Connected, because only then does the system tell of refusals.
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
                self.waiting()?.send(message).await.map(drop)
            }
            other => other.map(drop),
        }
    }

    /// Waits for a refusal. On this machine it is there before sending is over.
    pub(super) async fn refusal(&self, patience: Duration) -> io::Result<()> {
        if let Some(error) = self.0.take_error()? {
            return Err(error);
        }
        if self.0.peer_addr()?.ip().is_loopback() {
            return Ok(());
        }
        // Nobody answers syslog; what comes nevertheless is not for us.
        match timeout(patience, self.waiting()?.recv(&mut [0; 16])).await {
            Ok(Err(error)) => Err(error),
            Ok(Ok(_)) | Err(_) => Ok(()),
        }
    }

    /// Whom it sends to.
    pub(super) fn peer(&self) -> Option<SocketAddr> {
        self.0.peer_addr().ok()
    }

    /// The same socket, for those who wait.
    fn waiting(&self) -> io::Result<tokio::net::UdpSocket> {
        tokio::net::UdpSocket::from_std(self.0.try_clone()?)
    }
}
