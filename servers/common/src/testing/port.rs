//! Free ports, for programs that must be told where to listen.

use std::net::{Ipv4Addr, TcpStream, UdpSocket};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU16, Ordering::Relaxed};

/// Below the ephemeral ports that systems assign.
const FIRST: u16 = 20_000;
/// Each process takes its ports from a block of its own.
const BLOCKS: u16 = 100;
const BLOCK: u16 = 100;
/// A block belongs to the process that has bound its port here, until that process ends.
const CLAIMS: u16 = FIRST - BLOCKS;

/// A port on loopback that nothing listens on, and that no other process gets from here.
///
/// It is found by trying to connect. Binding a listener to get a port and closing it again would
/// not do: a process that another thread is spawning meanwhile may inherit the socket, which then
/// keeps the port in use until the process calls `exec`.
#[must_use]
pub fn free_port() -> u16 {
    static CLAIM: OnceLock<(UdpSocket, u16)> = OnceLock::new();
    static TAKEN: AtomicU16 = AtomicU16::new(0);
    let (_, first) = CLAIM.get_or_init(claim);
    loop {
        let port = first + TAKEN.fetch_add(1, Relaxed) % BLOCK;
        if TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            return port;
        }
    }
}

/// A block that no other process has, by its first port, and what keeps it.
fn claim() -> (UdpSocket, u16) {
    let mut claims = (0..BLOCKS).filter_map(|block| {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, CLAIMS + block)).ok()?;
        Some((socket, FIRST + block * BLOCK))
    });
    claims.next().expect("fewer than a hundred processes look for ports at the same time")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_belong_to_one_at_a_time() {
        let (one, two) = (claim(), claim());
        assert_ne!(one.1, two.1);
        assert!((FIRST..30_000).contains(&two.1));
        assert!(UdpSocket::bind(one.0.local_addr().unwrap()).is_err());
        assert_ne!(free_port(), free_port());
    }
}
