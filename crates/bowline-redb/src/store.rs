//! The store, as tasks see it.

use std::path::Path;
use std::sync::Arc;

use bowline::tasks::{Quota, StoreError, StoreFuture, TaskRecord, TaskStore};

use crate::engine::Engine;
use crate::error::{Failure, OpenError};
use crate::tables::{self, Entry, Written};
use crate::writer::{Write, Writer};

/// A file of tasks.
///
/// [`tasks`](crate::tasks) is the short way to it. Dropping it waits until everything is written
/// and closes the file.
pub struct Store {
    // In this order: the thread ends first, and then the file is closed.
    writer: Writer,
    engine: Arc<Engine>,
}

impl Store {
    /// Opens a file, which is created if it does not exist.
    ///
    /// # Errors
    /// When the file is in use, damaged, or cannot be opened.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        let path = path.as_ref();
        let engine = Arc::new(Engine::new(path)?);
        let writer = Writer::start(Arc::clone(&engine), path)
            .map_err(|error| OpenError::unusable(path, error))?;
        Ok(Self { writer, engine })
    }

    /// Reads, without keeping a thread of the runtime waiting.
    async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Engine) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, StoreError> {
        let engine = Arc::clone(&self.engine);
        let read = tokio::task::spawn_blocking(move || work(&engine)).await;
        Ok(read.map_err(StoreError::failed)??)
    }
}

fn decode(version: u64, bytes: &[u8]) -> Result<Arc<TaskRecord>, StoreError> {
    let decoded = TaskRecord::decode(bytes).map(Arc::new);
    decoded.map_err(|_| StoreError::Damaged { version })
}

impl TaskStore for Store {
    fn create(&self, record: Arc<TaskRecord>, quota: Quota) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            let write = Write::Create(Entry::new(&record)?, quota);
            match self.writer.write(write).await? {
                Written::Done => Ok(()),
                Written::Full => Err(StoreError::Full),
                Written::Exists | Written::Stale => {
                    Err(StoreError::failed("a task with this id exists"))
                }
            }
        })
    }

    fn load<'a>(&'a self, id: &'a str) -> StoreFuture<'a, Option<Arc<TaskRecord>>> {
        let id = id.to_owned();
        Box::pin(async move {
            let found = self.read(move |engine| {
                let found = engine.read(|transaction| tables::load(transaction, &id))?;
                Ok(found.map(|(version, bytes)| decode(version, &bytes)))
            });
            found.await?.transpose()
        })
    }

    fn swap<'a>(
        &'a self,
        id: &'a str,
        version: u64,
        next: Option<Arc<TaskRecord>>,
    ) -> StoreFuture<'a, bool> {
        self.swap_within(id, version, next, Quota::of(usize::MAX, usize::MAX))
    }

    fn swap_within<'a>(
        &'a self,
        id: &'a str,
        version: u64,
        next: Option<Arc<TaskRecord>>,
        quota: Quota,
    ) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            let next = next.as_deref().map(Entry::new).transpose()?;
            let write = Write::Swap { id: id.to_owned(), version, next, quota };
            match self.writer.write(write).await? {
                Written::Full => Err(StoreError::Full),
                written => Ok(written == Written::Done),
            }
        })
    }

    fn page<'a>(
        &'a self,
        owner: Option<&'a str>,
        after: Option<(u64, &'a str)>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<Arc<TaskRecord>>> {
        let owner = owner.map(str::to_owned);
        let after = after.map(|(created, id)| (created, id.to_owned()));
        Box::pin(async move {
            self.read(move |engine| {
                let after = after.as_ref().map(|(created, id)| (*created, id.as_str()));
                // One that is damaged does not hide the others.
                let read = |bytes: &[u8]| TaskRecord::decode(bytes).map(Arc::new).ok();
                engine.read(|transaction| {
                    tables::page(transaction, owner.as_deref(), after, limit, read)
                })
            })
            .await
        })
    }

    fn due(&self, now: u64, limit: usize) -> StoreFuture<'_, Vec<String>> {
        Box::pin(
            self.read(move |engine| {
                engine.read(|transaction| tables::due(transaction, now, limit))
            }),
        )
    }
}
