//! New records, many in one transaction.
//!
//! Quotas are exact, so creations of the whole fleet wait for each other, for as long as a commit
//! takes. That would allow as many creations a second as there are commits; but whatever a node is
//! asked to create in the meantime goes into its next transaction.
//!
//! A record that nobody waits for any more is not created, or is removed again: nobody has its id.

use std::sync::Arc;
use std::time::Duration;

use bowline::tasks::{Quota, StoreError, TaskRecord};
use bowline::with_causes;
use futures_util::future::try_join_all;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use crate::error::FleetError;
use crate::pool::Connections;
use crate::store::{encode, number};

/// How many records one transaction creates at most.
const BATCH: usize = 256;
/// How often the removal of records is tried, and the pause between two tries.
const TRIES: u32 = 60;
const PAUSE: Duration = Duration::from_secs(1);

/// A record to be created.
pub(crate) struct New {
    kind: String,
    id: Vec<u8>,
    owner: Option<Vec<u8>>,
    created: i64,
    due: i64,
    record: String,
    version: i64,
    mark: i64,
    each: i64,
    all: i64,
}

impl New {
    pub(crate) fn of(kind: String, record: &TaskRecord, quota: Quota) -> Result<Self, StoreError> {
        let most = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        Ok(Self {
            kind,
            id: record.id().as_bytes().to_vec(),
            owner: record.owner().map(|owner| owner.as_bytes().to_vec()),
            created: number(record.created()),
            due: number(record.due()),
            record: encode(record)?,
            version: number(record.version()),
            mark: number(record.mark()),
            each: most(quota.each),
            all: most(quota.all),
        })
    }
}

/// A record that must not exist: its kind, id and version.
type Ghost = (String, Vec<u8>, i64);
type Waiter = oneshot::Sender<Result<(), StoreError>>;

/// Creates records. Ends with its last clone.
#[derive(Clone)]
pub(crate) struct Creator {
    wanted: mpsc::Sender<(New, Waiter)>,
}

impl Creator {
    /// Starts its task.
    pub(crate) fn start(connections: Connections) -> Self {
        let (wanted, mut queue) = mpsc::channel(BATCH);
        tokio::spawn(async move {
            let (mut batch, mut removals) = (Vec::new(), JoinSet::new());
            while queue.recv_many(&mut batch, BATCH).await > 0 {
                // Whoever has gone meanwhile never learns the id.
                batch.retain(|(_, waiter): &(New, Waiter)| !waiter.is_closed());
                if batch.is_empty() {
                    continue;
                }
                let ghosts = create_all(&connections, std::mem::take(&mut batch)).await;
                if !ghosts.is_empty() {
                    removals.spawn(remove_all(connections.clone(), ghosts));
                }
                while removals.try_join_next().is_some() {}
            }
            while removals.join_next().await.is_some() {}
        });
        Self { wanted }
    }

    pub(crate) async fn create(&self, new: New) -> Result<(), StoreError> {
        let (waiter, done) = oneshot::channel();
        let ended = |_| StoreError::failed("the fleet has stopped");
        self.wanted.send((new, waiter)).await.map_err(|_| ended(()))?;
        done.await.map_err(|_| ended(()))?
    }
}

/// Creates records. Returns those that exist, or may exist, although nobody was told.
async fn create_all(connections: &Connections, batch: Vec<(New, Waiter)>) -> Vec<Ghost> {
    let (records, waiters): (Vec<New>, Vec<Waiter>) = batch.into_iter().unzip();
    let done = transact(connections, &records).await;
    let ghost = |New { kind, id, version, .. }: New| (kind, id, version);
    match done {
        Ok(results) => {
            let mut ghosts = Vec::new();
            for ((result, waiter), record) in results.into_iter().zip(waiters).zip(records) {
                let told = waiter.send(match result {
                    0 => Ok(()),
                    1 => Err(StoreError::Full),
                    _ => Err(StoreError::failed("a task with this id exists")),
                });
                if told.is_err() && result == 0 {
                    ghosts.push(ghost(record));
                }
            }
            ghosts
        }
        Err(error) => {
            let error = Arc::new(error);
            for waiter in waiters {
                let _ = waiter.send(Err(StoreError::failed(Arc::clone(&error))));
            }
            // The commit may still arrive.
            records.into_iter().map(ghost).collect()
        }
    }
}

/// Removes records that nobody has touched since they were created.
async fn remove_all(connections: Connections, ghosts: Vec<Ghost>) {
    let sql = "SELECT bowline.remove_record(kind, id, version)
        FROM unnest($1::text[], $2::bytea[], $3::bigint[]) AS ghost (kind, id, version)";
    let kinds: Vec<_> = ghosts.iter().map(|(kind, ..)| kind).collect();
    let ids: Vec<_> = ghosts.iter().map(|(_, id, _)| id).collect();
    let versions: Vec<_> = ghosts.iter().map(|(.., version)| version).collect();
    // A statement that failed for want of an answer has been given up by the database after that.
    tokio::time::sleep(connections.patience()).await;
    for _ in 0..TRIES {
        let removed = connections
            .with(async |client| client.query(sql, &[&kinds, &ids, &versions]).await.map(|_| ()));
        match removed.await {
            Ok(()) => return,
            Err(error) => {
                tracing::debug!(error = %with_causes(&error), "records cannot be removed yet");
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn transact(connections: &Connections, records: &[New]) -> Result<Vec<i32>, FleetError> {
    let sql = "SELECT bowline.create_record($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
    let work = async |client: &deadpool_postgres::Client| {
        let statement = client.prepare_cached(sql).await?;
        let create = async |new: &New| {
            let New { kind, id, owner, created, due, record, version, mark, each, all } = new;
            let parameters: [&(dyn tokio_postgres::types::ToSql + Sync); 10] =
                [kind, id, owner, created, due, record, version, mark, each, all];
            let row = client.query_one(&statement, &parameters).await?;
            Ok::<i32, tokio_postgres::Error>(row.get(0))
        };
        if let [only] = records {
            return Ok(vec![create(only).await?]);
        }
        client.batch_execute("BEGIN").await?;
        // Sent one after another without waiting for answers in between.
        match try_join_all(records.iter().map(create)).await {
            Ok(results) => {
                client.batch_execute("COMMIT").await?;
                Ok(results)
            }
            Err(error) => {
                client.batch_execute("ROLLBACK").await?;
                Err(error)
            }
        }
    };
    connections.with(work).await
}
