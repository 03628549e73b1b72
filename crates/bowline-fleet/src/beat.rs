//! The heartbeat of a node: once a second it says that it lives, and reads who else does, what time
//! it is, and the keys.

use std::sync::atomic::Ordering;
use std::sync::{PoisonError, Weak};
use std::time::Duration;

use bowline::fleet::Node;
use bowline::with_causes;
use tokio::time::Instant;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::error::FleetError;
use crate::fleet::{Inner, Whereabouts};
use crate::pool::Connections;

const BEAT: Duration = Duration::from_secs(1);
/// The time between two cleanups.
const CLEANUP: Duration = Duration::from_secs(60);

/// Takes a number that no other process has, not even one that a restored database knows nothing
/// of.
const REGISTER: &str = "INSERT INTO bowline.nodes (address, incarnation, server)
    VALUES ($1, $2, $3) ON CONFLICT DO NOTHING RETURNING number";

const SEEN: &str = "SELECT bowline.beat($1, $2, $3, $4)";

/// The others of this server, without those that have died.
const OTHERS: &str = "SELECT number, address FROM bowline.nodes WHERE number <> $1
    AND server = $2 AND address IS NOT NULL AND seen > clock_timestamp() - interval '10 s'";

/// Where one node is, or was, and whether it was heard of lately.
const ONE: &str = "SELECT address, seen > clock_timestamp() - interval '60 s'
    FROM bowline.nodes WHERE number = $1";

/// Takes a number for a process.
pub(crate) async fn register(
    connections: &Connections,
    incarnation: &[u8],
    address: Option<&str>,
) -> Result<Node, FleetError> {
    loop {
        let taken = connections
            .with(async |client| client.query_opt(REGISTER, &[&address, &incarnation, &""]).await);
        // Otherwise the number is somebody's, and the next one may be free.
        if let Some(row) = taken.await? {
            let node = u32::try_from(row.get::<_, i64>(0)).ok().and_then(Node::new);
            return Ok(node.expect("the sequence ends where the numbers of nodes do"));
        }
    }
}

/// Beats until the node leaves.
pub(crate) async fn keep_beating(node: Weak<Inner>) {
    loop {
        tokio::time::sleep(BEAT).await;
        let Some(inner) = node.upgrade() else { return };
        if let Err(error) = inner.beat().await {
            inner.counters.failed_beat();
            tracing::warn!(error = %with_causes(&error), "the store of the fleet cannot be used");
        }
    }
}

/// Cleans up until the node leaves. That may take its time, and no heartbeat waits for it.
pub(crate) async fn keep_clean(node: Weak<Inner>) {
    loop {
        let Some(inner) = node.upgrade() else { return };
        let cleaned = inner.clean_up().await;
        drop(inner);
        tokio::time::sleep(CLEANUP).await;
        let Some(inner) = node.upgrade() else { return };
        let renewed = inner.keys.renew(&inner.connections).await;
        if let Err(error) = cleaned.and(renewed) {
            tracing::warn!(error = %with_causes(&error), "the fleet cannot be cleaned up yet");
        }
    }
}

impl Inner {
    /// One beat.
    pub(crate) async fn beat(&self) -> Result<(), FleetError> {
        let began = Instant::now();
        let number = i64::from(self.node.number());
        let address = self.address.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let server = self.server();
        let beat = self.own_connection.with(async |client| {
            let seen = client.prepare_cached(SEEN).await?;
            let others = client.prepare_cached(OTHERS).await?;
            let asked = Instant::now();
            let parameters: [&(dyn ToSql + Sync); 4] =
                [&number, &self.incarnation, &address, &server];
            let now: Option<i64> = client.query_one(&seen, &parameters).await?.get(0);
            if let Some(now) = now {
                self.clock.read(u64::try_from(now).unwrap_or(0), asked);
            }
            Ok((now.is_some(), client.query(&others, &[&number, &server]).await?))
        });
        let (is_known, rows) = beat.await?;
        let was_displaced = self.is_displaced.swap(!is_known, Ordering::AcqRel);
        if !is_known && !was_displaced {
            tracing::error!(
                node = number,
                "another process has the number of this node, as after the database was restored; \
                 help: restart this process"
            );
        }
        let read = |row: &Row| {
            let node = u32::try_from(row.get::<_, i64>(0)).ok().and_then(Node::new)?;
            Some((node, row.get(1)))
        };
        let others = rows.iter().filter_map(read).collect();
        *self.others.lock().unwrap_or_else(PoisonError::into_inner) = others;
        self.keys.read(&self.own_connection).await?;
        self.clock.beaten(began);
        Ok(())
    }

    /// Where a node is. One that has come just now may not have been heard of.
    pub(crate) async fn find(&self, node: Node) -> Whereabouts {
        let known = self.others.lock().unwrap_or_else(PoisonError::into_inner).get(&node).cloned();
        if let Some(address) = known {
            return Whereabouts::At { address, is_silent: false };
        }
        let number = i64::from(node.number());
        let found = self.connections.with(async |client| {
            let statement = client.prepare_cached(ONE).await?;
            client.query_opt(&statement, &[&number]).await
        });
        match found.await {
            Ok(None) => Whereabouts::Nowhere,
            Ok(Some(row)) => match (row.get::<_, Option<String>>(0), row.get::<_, bool>(1)) {
                // Perhaps it lives, and cannot reach its store.
                (Some(address), was_seen) => Whereabouts::At { address, is_silent: !was_seen },
                (None, true) => Whereabouts::Unknown,
                (None, false) => Whereabouts::Nowhere,
            },
            Err(error) => {
                let error = with_causes(&error);
                tracing::warn!(node = number, %error, "a node cannot be looked up");
                Whereabouts::Unknown
            }
        }
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
        while self.sessions.clean(self.now()).await? >= 1_000 {}
        Ok(())
    }

    /// Says that a node has left.
    pub(crate) async fn forget_node(&self) -> Result<(), FleetError> {
        let number = i64::from(self.node.number());
        let sql = "DELETE FROM bowline.nodes WHERE number = $1 AND incarnation = $2";
        let incarnation = &self.incarnation;
        self.connections
            .with(async |client| client.execute(sql, &[&number, incarnation]).await)
            .await?;
        Ok(())
    }
}
