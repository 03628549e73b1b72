//! New records, many in one transaction.
//!
//! Quotas are exact, so creations of the whole fleet wait for each other, for as long as a commit
//! takes. That would allow as many creations a second as there are commits; but whatever a node is
//! asked to create in the meantime goes into its next transaction.

use std::sync::Arc;

use bowline::tasks::{Quota, StoreError, TaskRecord};
use futures_util::future::try_join_all;
use tokio::sync::{mpsc, oneshot};

use crate::error::FleetError;
use crate::pool::Connections;
use crate::store::{encode, number};

/// How many records one transaction creates at most.
const BATCH: usize = 256;

/// A record to be created.
pub(crate) struct New {
    id: Vec<u8>,
    owner: Option<Vec<u8>>,
    created: i64,
    due: i64,
    record: String,
    version: i64,
    each: i64,
    all: i64,
}

impl New {
    pub(crate) fn of(record: &TaskRecord, quota: Quota) -> Result<Self, StoreError> {
        let most = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        Ok(Self {
            id: record.id().as_bytes().to_vec(),
            owner: record.owner().map(|owner| owner.as_bytes().to_vec()),
            created: number(record.created()),
            due: number(record.due()),
            record: encode(record)?,
            version: number(record.version()),
            each: most(quota.each),
            all: most(quota.all),
        })
    }
}

type Waiter = oneshot::Sender<Result<(), StoreError>>;

/// Creates records of one kind. Ends with its last clone.
#[derive(Clone)]
pub(crate) struct Creator {
    wanted: mpsc::Sender<(New, Waiter)>,
}

impl Creator {
    /// Starts its task.
    pub(crate) fn start(kind: &'static str, connections: Connections) -> Self {
        let (wanted, mut queue) = mpsc::channel(BATCH);
        tokio::spawn(async move {
            let mut batch = Vec::new();
            while queue.recv_many(&mut batch, BATCH).await > 0 {
                create_all(kind, &connections, std::mem::take(&mut batch)).await;
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

async fn create_all(kind: &str, connections: &Connections, batch: Vec<(New, Waiter)>) {
    let (records, waiters): (Vec<New>, Vec<Waiter>) = batch.into_iter().unzip();
    match transact(kind, connections, &records).await {
        Ok(results) => {
            for (result, waiter) in results.into_iter().zip(waiters) {
                let _ = waiter.send(match result {
                    0 => Ok(()),
                    1 => Err(StoreError::Full),
                    _ => Err(StoreError::failed("a task with this id exists")),
                });
            }
        }
        Err(error) => {
            let error = Arc::new(error);
            for waiter in waiters {
                let _ = waiter.send(Err(StoreError::failed(Arc::clone(&error))));
            }
        }
    }
}

async fn transact(
    kind: &str,
    connections: &Connections,
    records: &[New],
) -> Result<Vec<i32>, FleetError> {
    let sql = "SELECT bowline.create_record($1, $2, $3, $4, $5, $6, $7, $8, $9)";
    let work = async |client: &deadpool_postgres::Client| {
        let statement = client.prepare_cached(sql).await?;
        let create = async |new: &New| {
            let New { id, owner, created, due, record, version, each, all } = new;
            let parameters: [&(dyn tokio_postgres::types::ToSql + Sync); 9] =
                [&kind, id, owner, created, due, record, version, each, all];
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
