//! Free ports, for programs that must be told where to listen.

use std::net::{Ipv4Addr, TcpStream};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Below the ephemeral ports that systems assign.
const FIRST: u16 = 20_000;
const COUNT: u32 = 10_000;

/// A port on loopback that nothing listens on.
///
/// It is found by trying to connect. Binding a listener to get a port and closing it again would
/// not do: a process that another thread is spawning meanwhile may inherit the socket, which then
/// keeps the port in use until the process calls `exec`.
#[must_use]
pub fn free_port() -> u16 {
    static TAKEN: AtomicU32 = AtomicU32::new(0);
    loop {
        // Each test process starts its search elsewhere.
        let at = std::process::id().wrapping_mul(61).wrapping_add(TAKEN.fetch_add(1, Relaxed));
        let port = FIRST + u16::try_from(at % COUNT).expect("it is below 10,000");
        if TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            return port;
        }
    }
}
