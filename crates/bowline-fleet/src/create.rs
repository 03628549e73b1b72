//! New records, many in one transaction.
//!
//! Quotas are exact, so creations of the whole fleet wait for each other, for as long as a commit
//! takes. That would allow as many creations a second as there are commits; but whatever a node is
//! asked to create in the meantime goes into its next transaction.
//!
//! A task that nobody waits for any more is not created, or is removed again: nobody has its id.
//! Records of other kinds stay, because their ids are used again: the removal of a session that
//! could not be ended would also remove the end that was acknowledged at the second try.

use std::sync::Arc;
use std::time::Duration;

use bowline::tasks::{Quota, StoreError, TaskRecord};
use bowline::with_causes;
use futures_util::future::try_join_all;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use crate::error::FleetError;
use crate::pool::Connections;
use crate::store::{encode, number};

/// How many records one transaction creates at most.
const BATCH: usize = 256;
/// How many records wait to be removed at most. What is beyond it is taken over like the tasks of a
/// node that has died.
const GHOSTS: usize = 10_000;
/// The pause after a removal that failed, and how often it is tried once the node has left.
const PAUSE: Duration = Duration::from_secs(1);
const TRIES: u32 = 60;

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
    /// Starts its task. Records whose ids are not used again are removed if nobody was told that
    /// they exist.
    pub(crate) fn start(connections: Connections, ids_are_used_once: bool) -> Self {
        let (wanted, mut queue) = mpsc::channel(BATCH);
        let (ghosts, unwanted) = mpsc::channel(GHOSTS);
        tokio::spawn(keep_removing(connections.clone(), unwanted));
        tokio::spawn(async move {
            let mut batch = Vec::new();
            while queue.recv_many(&mut batch, BATCH).await > 0 {
                // Whoever has gone meanwhile never learns the id.
                batch.retain(|(_, waiter): &(New, Waiter)| !waiter.is_closed());
                if batch.is_empty() {
                    continue;
                }
                let untold = create_all(&connections, std::mem::take(&mut batch)).await;
                if ids_are_used_once {
                    give_up(&ghosts, untold);
                }
            }
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

/// Lets records be removed.
fn give_up(ghosts: &mpsc::Sender<(Instant, Ghost)>, untold: Vec<Ghost>) {
    let now = Instant::now();
    let left = untold.into_iter().filter_map(|ghost| ghosts.try_send((now, ghost)).err()).count();
    if left > 0 {
        tracing::warn!(left, "tasks may run whose ids nobody has");
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
            match *error {
                // Nothing was sent.
                FleetError::Pool(_) => Vec::new(),
                // The commit may still arrive.
                _ => records.into_iter().map(ghost).collect(),
            }
        }
    }
}

/// Removes records that nobody has touched since they were created, as soon as Postgres can.
async fn keep_removing(connections: Connections, mut unwanted: mpsc::Receiver<(Instant, Ghost)>) {
    let (mut batch, mut tries) = (Vec::new(), 0);
    while unwanted.recv_many(&mut batch, BATCH).await > 0 {
        // A statement that failed for want of an answer has been given up by the database after
        // that.
        let latest = batch.iter().map(|(since, _)| *since).max().unwrap_or_else(Instant::now);
        tokio::time::sleep_until(latest + connections.patience()).await;
        while let Err(error) = remove_all(&connections, &batch).await {
            tracing::debug!(error = %with_causes(&error), "records cannot be removed yet");
            if unwanted.is_closed() {
                tries += 1;
                if tries >= TRIES {
                    return;
                }
            }
            tokio::time::sleep(PAUSE).await;
        }
        batch.clear();
    }
}

async fn remove_all(
    connections: &Connections,
    ghosts: &[(Instant, Ghost)],
) -> Result<(), FleetError> {
    let sql = "SELECT bowline.remove_record(kind, id, version)
        FROM unnest($1::text[], $2::bytea[], $3::bigint[]) AS ghost (kind, id, version)";
    let kinds: Vec<_> = ghosts.iter().map(|(_, (kind, ..))| kind).collect();
    let ids: Vec<_> = ghosts.iter().map(|(_, (_, id, _))| id).collect();
    let versions: Vec<_> = ghosts.iter().map(|(_, (.., version))| version).collect();
    connections
        .with(async |client| client.query(sql, &[&kinds, &ids, &versions]).await.map(|_| ()))
        .await
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
