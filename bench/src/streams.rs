//! The cost of idle clients: sessions, and streams of changes.

use std::net::SocketAddr;

use crate::frames::{Revision, listen};
use crate::http::Connection;
use crate::program::{Line, Program};

/// What is kept open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kept {
    /// Sessions of the legacy era, opened over one persistent connection.
    Sessions,
    /// Streams of changes in the modern era, one connection each.
    Streams,
}

/// The additional memory of a server with this many open, in bytes, for each of the counts, which
/// must increase.
pub(crate) async fn gained(
    line: &Line,
    kept: Kept,
    counts: &[usize],
) -> Result<Vec<(f64, f64)>, String> {
    let (program, address) = Program::listening(line).await?;
    let mut opener = Opener { address, connections: Vec::new() };
    // The first ones warm up caches and tables.
    opener.open(kept, WARM).await?;
    let before = program.resident()?;
    let mut points = Vec::new();
    let mut open = 0;
    for &count in counts {
        opener.open(kept, count - open).await?;
        open = count;
        let gained = program.resident()?.saturating_sub(before);
        points.push((count as f64, gained as f64));
    }
    Ok(points)
}

const WARM: usize = 32;

struct Opener {
    address: SocketAddr,
    connections: Vec<Connection>,
}

impl Opener {
    async fn open(&mut self, kept: Kept, count: usize) -> Result<(), String> {
        for _ in 0..count {
            match kept {
                Kept::Sessions => self.open_session().await?,
                Kept::Streams => {
                    let idle = Connection::open(self.address, Revision::Modern).await?;
                    let mut idle = idle.with_outline("subscriptions/listen", None);
                    idle.listen(listen().as_bytes()).await?;
                    self.connections.push(idle);
                }
            }
        }
        Ok(())
    }

    /// One connection opens them all, so that only the session is measured.
    async fn open_session(&mut self) -> Result<(), String> {
        if self.connections.is_empty() {
            self.connections.push(Connection::open(self.address, Revision::Modern).await?);
        }
        self.connections[0].open_session().await
    }
}
