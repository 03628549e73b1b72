//! Records in Postgres: the five verbs of a store, each one statement.

use std::sync::{Arc, OnceLock};

use bowline::tasks::{Quota, StoreError, StoreFuture, TaskRecord, TaskStore};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::clock::Clock;
use crate::create::{Creator, New};
use crate::error::FleetError;
use crate::pool::Connections;

/// The kind whose ids are random, so that none is used twice.
pub(crate) const TASK: &str = "task";

/// Records of one kind, in Postgres.
///
/// It keeps tasks, and everything else that is kept like tasks: `Events::keep_in` takes one as
/// well.
#[derive(Clone)]
pub struct Store {
    kind: &'static str,
    /// The server that the records belong to. Until that is known, they belong to none.
    server: Arc<OnceLock<String>>,
    connections: Connections,
    creator: Creator,
    clock: Arc<Clock>,
}

impl Store {
    pub(crate) fn new(
        kind: &'static str,
        server: Arc<OnceLock<String>>,
        connections: Connections,
        clock: Arc<Clock>,
    ) -> Self {
        let creator = Creator::start(connections.clone(), kind == TASK);
        Self { kind, server, connections, creator, clock }
    }

    /// What records of this kind and server are called in the table.
    fn kind(&self) -> String {
        match self.server.get() {
            Some(server) => format!("{} {server}", self.kind),
            None => self.kind.to_owned(),
        }
    }

    /// Removes what was due some time ago. Tasks are removed by the server.
    pub(crate) async fn clean(&self, before: u64) -> Result<u64, FleetError> {
        let sql = "SELECT bowline.remove_record(kind, id, version) FROM (
                SELECT kind, id, version FROM bowline.records
                WHERE kind = $1 AND due < $2 ORDER BY due LIMIT 1000 FOR UPDATE SKIP LOCKED
            ) AS old";
        let (kind, before) = (self.kind(), number(before));
        let with =
            async |client: &deadpool_postgres::Client| client.execute(sql, &[&kind, &before]).await;
        self.connections.with(with).await
    }

    /// The [marks](TaskRecord::mark) of some records, by id.
    pub(crate) async fn marks(&self, ids: &[String]) -> Result<Vec<(String, u64)>, FleetError> {
        let sql = "SELECT id, mark FROM bowline.records WHERE kind = $1 AND id = ANY($2)";
        let kind = self.kind();
        let ids: Vec<&[u8]> = ids.iter().map(String::as_bytes).collect();
        let rows = self
            .connections
            .with(async |client| {
                let statement = client.prepare_cached(sql).await?;
                client.query(&statement, &[&kind, &ids]).await
            })
            .await?;
        let read = |row: &Row| {
            let id = String::from_utf8_lossy(row.get(0)).into_owned();
            (id, u64::try_from(row.get::<_, i64>(1)).unwrap_or(0))
        };
        Ok(rows.iter().map(read).collect())
    }
}

/// A number as Postgres keeps it. What is beyond its range is at its end.
pub(crate) fn number(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn decode(row: &Row) -> Result<Arc<TaskRecord>, StoreError> {
    let text: &str = row.get(0);
    TaskRecord::decode(text.as_bytes()).map(Arc::new).map_err(StoreError::failed)
}

/// The text of a record.
pub(crate) fn encode(record: &TaskRecord) -> Result<String, StoreError> {
    let bytes = record.encode().map_err(StoreError::failed)?;
    String::from_utf8(bytes).map_err(StoreError::failed)
}

impl TaskStore for Store {
    fn create(&self, record: Arc<TaskRecord>, quota: Quota) -> StoreFuture<'_, ()> {
        Box::pin(async move { self.creator.create(New::of(self.kind(), &record, quota)?).await })
    }

    fn load<'a>(&'a self, id: &'a str) -> StoreFuture<'a, Option<Arc<TaskRecord>>> {
        Box::pin(async move {
            let sql = "SELECT record FROM bowline.records WHERE kind = $1 AND id = $2";
            let kind = self.kind();
            let found = self.connections.with(async |client| {
                let statement = client.prepare_cached(sql).await?;
                client.query_opt(&statement, &[&kind, &id.as_bytes()]).await
            });
            found.await?.as_ref().map(decode).transpose()
        })
    }

    fn swap<'a>(
        &'a self,
        id: &'a str,
        version: u64,
        next: Option<Arc<TaskRecord>>,
    ) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            let (kind, version, id) = (self.kind(), number(version), id.as_bytes());
            let Some(next) = next else {
                let sql = "SELECT bowline.remove_record($1, $2, $3)";
                let removed = self.connections.with(async |client| {
                    let statement = client.prepare_cached(sql).await?;
                    client.query_one(&statement, &[&kind, &id, &version]).await
                });
                return Ok(removed.await?.get(0));
            };
            let sql = "UPDATE bowline.records SET version = $4, due = $5, record = $6, mark = $7
                WHERE kind = $1 AND id = $2 AND version = $3";
            let (later, due, text) = (number(next.version()), number(next.due()), encode(&next)?);
            let mark = number(next.mark());
            let parameters: [&(dyn ToSql + Sync); 7] =
                [&kind, &id, &version, &later, &due, &text, &mark];
            let changed = self.connections.with(async |client| {
                let statement = client.prepare_cached(sql).await?;
                client.execute(&statement, &parameters).await
            });
            Ok(changed.await? == 1)
        })
    }

    fn page<'a>(
        &'a self,
        owner: Option<&'a str>,
        after: Option<(u64, &'a str)>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<Arc<TaskRecord>>> {
        Box::pin(async move {
            // Rows are compared as in an index, which `IS NOT DISTINCT FROM` would not use. It has
            // the digests of owners.
            let sql = match owner {
                Some(_) => {
                    "SELECT record FROM bowline.records WHERE kind = $1
                     AND sha256(owner) = sha256($2) AND owner = $2
                     AND (created, id) > ($3, $4) ORDER BY created, id LIMIT $5"
                }
                None => {
                    "SELECT record FROM bowline.records WHERE kind = $1
                     AND sha256(owner) IS NULL AND $2::bytea IS NULL
                     AND (created, id) > ($3, $4) ORDER BY created, id LIMIT $5"
                }
            };
            let owner = owner.map(str::as_bytes);
            let (created, id) = after.map_or((-1, ""), |(created, id)| (number(created), id));
            let (kind, limit) = (self.kind(), i64::try_from(limit).unwrap_or(i64::MAX));
            let rows = self.connections.with(async |client| {
                let statement = client.prepare_cached(sql).await?;
                let id = id.as_bytes();
                client.query(&statement, &[&kind, &owner, &created, &id, &limit]).await
            });
            rows.await?.iter().map(decode).collect()
        })
    }

    fn due(&self, now: u64, limit: usize) -> StoreFuture<'_, Vec<String>> {
        Box::pin(async move {
            // Locks would end with the statement, and each would be a write. Of several nodes that
            // look at the same time, the first one that changes a record has it.
            let sql = "SELECT id FROM bowline.records WHERE kind = $1 AND due <= $2
                ORDER BY due, id LIMIT $3";
            let (kind, limit) = (self.kind(), i64::try_from(limit).unwrap_or(i64::MAX));
            let rows = self.connections.with(async |client| {
                let statement = client.prepare_cached(sql).await?;
                client.query(&statement, &[&kind, &number(now), &limit]).await
            });
            let text = |row: &Row| String::from_utf8(row.get::<_, Vec<u8>>(0));
            let ids: Result<_, _> = rows.await?.iter().map(text).collect();
            ids.map_err(StoreError::failed)
        })
    }

    fn now(&self) -> Option<u64> {
        self.clock.now()
    }
}
