//! The heartbeat of a node: once a second it says that it lives, and reads who else does, what time
//! it is, and the keys.

use std::sync::{Arc, PoisonError, Weak};
use std::time::Duration;

use bowline::fleet::Node;
use bowline::with_causes;
use tokio::time::Instant;
use tokio_postgres::Row;

use crate::error::FleetError;
use crate::fleet::Inner;

const BEAT: Duration = Duration::from_secs(1);
/// How many beats there are between two cleanups.
const CLEANUP: u32 = 60;

/// Says that a node lives. Its row may be gone if it was silent for a day.
const SEEN: &str = "INSERT INTO bowline.nodes AS it (number, address)
    OVERRIDING SYSTEM VALUE VALUES ($1, $2)
    ON CONFLICT (number) DO UPDATE SET seen = clock_timestamp(), address = excluded.address
    RETURNING (extract(epoch FROM clock_timestamp()) * 1000)::bigint";

/// The others, without those that have died.
const OTHERS: &str = "SELECT number, address FROM bowline.nodes
    WHERE number <> $1 AND address IS NOT NULL AND seen > clock_timestamp() - interval '10 s'";

/// Beats until the node leaves.
pub(crate) async fn keep_beating(node: Weak<Inner>) {
    let mut beats: u32 = 0;
    loop {
        tokio::time::sleep(BEAT).await;
        let Some(inner) = node.upgrade() else { return };
        beats = beats.wrapping_add(1);
        let mut done = inner.beat().await;
        if done.is_ok() && beats.is_multiple_of(CLEANUP) {
            done = inner.clean_up().await;
        }
        if let Err(error) = done {
            inner.counters.failed_beat();
            tracing::warn!(error = %with_causes(&error), "the store of the fleet cannot be used");
        }
    }
}

impl Inner {
    /// One beat.
    pub(crate) async fn beat(&self) -> Result<(), FleetError> {
        let number = i64::from(self.node.number());
        let address = self.address.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let beat = self.connections.with(async |client| {
            let seen = client.prepare_cached(SEEN).await?;
            let others = client.prepare_cached(OTHERS).await?;
            let asked = Instant::now();
            let now: i64 = client.query_one(&seen, &[&number, &address]).await?.get(0);
            self.clock.read(u64::try_from(now).unwrap_or(0), asked);
            client.query(&others, &[&number]).await
        });
        let rows = beat.await?;
        let read = |row: &Row| {
            let node = u32::try_from(row.get::<_, i64>(0)).ok().and_then(Node::new)?;
            Some((node, row.get(1)))
        };
        let others = rows.iter().filter_map(read).collect();
        *self.others.lock().unwrap_or_else(PoisonError::into_inner) = others;
        self.keys.read(&self.connections).await
    }

    /// Forgets what is old.
    async fn clean_up(&self) -> Result<(), FleetError> {
        let old = "DELETE FROM bowline.nodes WHERE seen < clock_timestamp() - interval '1 day'";
        let changes =
            "DELETE FROM bowline.changes WHERE changed < clock_timestamp() - interval '1 hour'";
        self.connections
            .with(async |client| {
                client.execute(old, &[]).await?;
                client.execute(changes, &[]).await
            })
            .await?;
        self.keys.renew(&self.connections).await?;
        while self.sessions.clean(self.now()).await? >= 1_000 {}
        Ok(())
    }

    /// Says that a node has left.
    pub(crate) async fn forget_node(self: &Arc<Self>) -> Result<(), FleetError> {
        let number = i64::from(self.node.number());
        let sql = "DELETE FROM bowline.nodes WHERE number = $1";
        self.connections.with(async |client| client.execute(sql, &[&number]).await).await?;
        Ok(())
    }
}
