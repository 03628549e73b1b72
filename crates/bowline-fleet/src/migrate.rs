//! The tables, made and changed by numbered files that run once each.

use std::time::Duration;

use deadpool_postgres::Client;

use crate::error::FleetError;
use crate::pool::Connections;

/// The files, in order. One that was released is never edited; a change is another file.
const FILES: [(i32, &str); 4] = [
    (1, include_str!("../migrations/0001_records.sql")),
    (2, include_str!("../migrations/0002_nodes.sql")),
    (3, include_str!("../migrations/0003_changes.sql")),
    (4, include_str!("../migrations/0004_owners.sql")),
];

/// Only one node at a time may look and change. Any number does; this one spells "bowline".
const LOCK: i64 = 0x62_6f77_6c69_6e65;
/// How long that may take: another node may be at it, and tables may be large.
const TIME: Duration = Duration::from_secs(60);

/// Brings the tables up to date.
///
/// # Errors
/// When the database fails, or was made by a later release.
pub(crate) async fn migrate(connections: &Connections) -> Result<(), FleetError> {
    connections.with_within(TIME, migrate_with).await
}

async fn migrate_with(client: &mut Client) -> Result<(), FleetError> {
    let transaction = client.transaction().await?;
    let millis = TIME.as_millis();
    let limits =
        format!("SET LOCAL statement_timeout = {millis}; SET LOCAL lock_timeout = {millis}");
    transaction.batch_execute(&limits).await?;
    transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&LOCK]).await?;
    let exists = "SELECT to_regclass('bowline.migrations') IS NOT NULL";
    if !transaction.query_one(exists, &[]).await?.get::<_, bool>(0) {
        let first = "CREATE SCHEMA IF NOT EXISTS bowline;
            CREATE TABLE bowline.migrations (
                number integer PRIMARY KEY,
                applied timestamptz NOT NULL DEFAULT clock_timestamp()
            )";
        transaction.batch_execute(first).await?;
    }
    let latest = "SELECT coalesce(max(number), 0) FROM bowline.migrations";
    let applied: i32 = transaction.query_one(latest, &[]).await?.get(0);
    let (known, _) = FILES[FILES.len() - 1];
    if applied > known {
        return Err(FleetError::TooNew { found: applied, known });
    }
    for (number, sql) in FILES.into_iter().filter(|(number, _)| *number > applied) {
        transaction.batch_execute(sql).await?;
        let insert = "INSERT INTO bowline.migrations (number) VALUES ($1)";
        transaction.execute(insert, &[&number]).await?;
        tracing::info!(number, "the tables of the fleet were changed");
    }
    transaction.commit().await?;
    Ok(())
}
