//! Ports for programs that are to be told where to listen.

use std::net::{Ipv4Addr, TcpStream};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Below the ports that systems give to whoever names none.
const FIRST: u16 = 20_000;
const COUNT: u32 = 10_000;

/// A port on loopback where nobody listens.
///
/// It is looked for by knocking. A listener that was opened to get a port and closed again would
/// live on in every process that another thread is starting meanwhile, until that is a program of
/// its own: the port would be taken, and somebody seem to be there.
#[must_use]
pub fn free_port() -> u16 {
    static TAKEN: AtomicU32 = AtomicU32::new(0);
    loop {
        // Tests of other processes begin elsewhere.
        let at = std::process::id().wrapping_mul(61).wrapping_add(TAKEN.fetch_add(1, Relaxed));
        let port = FIRST + u16::try_from(at % COUNT).expect("it is below 10,000");
        if TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            return port;
        }
    }
}
