//! Where tasks are kept: five verbs, and nothing of the protocol.

use std::collections::{BTreeSet, HashMap};
use std::error::Error;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::record::TaskRecord;

/// What a store returns.
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// Where tasks are kept.
///
/// A store is asked for five things and knows no rules: what a task may become, who may see it and
/// how long it lives is decided by its callers. `testing::task_store_contract` (feature `testing`)
/// checks that a store keeps what this trait promises.
///
/// A write that has returned is durable, as far as the store has durability at all: clients are
/// told about it next.
pub trait TaskStore: Send + Sync + 'static {
    /// Keeps a new task, if the quota allows it.
    ///
    /// # Errors
    /// [`StoreError::Full`] if there are as many as the quota allows, and then nothing is kept. A
    /// task is never replaced: an id that exists is another error.
    fn create(&self, record: Arc<TaskRecord>, quota: Quota) -> StoreFuture<'_, ()>;

    /// The task with this id.
    fn load<'a>(&'a self, id: &'a str) -> StoreFuture<'a, Option<Arc<TaskRecord>>>;

    /// Replaces a task with its `next` record, or removes it, if it still has this version.
    /// Returns whether it had. Of several callers with the same version, one succeeds.
    fn swap<'a>(
        &'a self,
        id: &'a str,
        version: u64,
        next: Option<Arc<TaskRecord>>,
    ) -> StoreFuture<'a, bool>;

    /// Tasks of an owner in the order of their creation and ids, those that come after `after`, up
    /// to `limit` of them.
    fn page<'a>(
        &'a self,
        owner: Option<&'a str>,
        after: Option<(u64, &'a str)>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<Arc<TaskRecord>>>;

    /// The ids of tasks that are [due](TaskRecord::due) by `now`, the earliest first, up to
    /// `limit` of them.
    fn due(&self, now: u64, limit: usize) -> StoreFuture<'_, Vec<String>>;

    /// What time it is, in milliseconds since 1970, if the store has a clock that all its users
    /// share. Leases are kept by it; otherwise by the clock of each process.
    fn now(&self) -> Option<u64> {
        None
    }
}

/// How many tasks there may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    /// Of all owners.
    pub all: usize,
    /// Of one owner. Tasks without an owner count together.
    pub each: usize,
}

/// Why a store did not do what it was asked for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// There is no room.
    #[error("there is no room for another task")]
    Full,
    /// The engine failed.
    #[error("the task store failed")]
    Failed(#[source] Box<dyn Error + Send + Sync>),
}

impl StoreError {
    /// The engine failed.
    pub fn failed(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Failed(error.into())
    }
}

/// Keeps tasks in memory: they end with the process.
pub(crate) struct InMemory {
    /// The most bytes that all records together may take.
    memory: usize,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    tasks: HashMap<String, Arc<TaskRecord>>,
    /// By owner, in the order of pages.
    owners: HashMap<Option<String>, BTreeSet<(u64, String)>>,
    due: BTreeSet<(u64, String)>,
    bytes: usize,
}

impl InMemory {
    pub(crate) fn new(memory: usize) -> Self {
        Self { memory, kept: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn insert(&mut self, record: Arc<TaskRecord>) {
        let id = record.id.clone();
        let owned = self.owners.entry(record.owner.clone()).or_default();
        owned.insert((record.created, id.clone()));
        self.due.insert((record.due(), id.clone()));
        self.bytes += record.size();
        self.tasks.insert(id, record);
    }

    fn remove(&mut self, id: &str) {
        let Some(record) = self.tasks.remove(id) else { return };
        self.bytes = self.bytes.saturating_sub(record.size());
        self.due.remove(&(record.due(), record.id.clone()));
        if let Some(owned) = self.owners.get_mut(&record.owner) {
            owned.remove(&(record.created, record.id.clone()));
            if owned.is_empty() {
                self.owners.remove(&record.owner);
            }
        }
    }
}

/// Nothing here waits.
fn ready<'a, T: Send + 'a>(value: Result<T, StoreError>) -> StoreFuture<'a, T> {
    Box::pin(std::future::ready(value))
}

impl TaskStore for InMemory {
    fn create(&self, record: Arc<TaskRecord>, quota: Quota) -> StoreFuture<'_, ()> {
        let mut kept = self.lock();
        let own = kept.owners.get(&record.owner).map_or(0, BTreeSet::len);
        let is_full = kept.tasks.len() >= quota.all
            || own >= quota.each
            || kept.bytes + record.size() > self.memory;
        if is_full {
            return ready(Err(StoreError::Full));
        }
        if kept.tasks.contains_key(&record.id) {
            return ready(Err(StoreError::failed("a task with this id exists")));
        }
        kept.insert(record);
        ready(Ok(()))
    }

    fn load<'a>(&'a self, id: &'a str) -> StoreFuture<'a, Option<Arc<TaskRecord>>> {
        ready(Ok(self.lock().tasks.get(id).cloned()))
    }

    fn swap<'a>(
        &'a self,
        id: &'a str,
        version: u64,
        next: Option<Arc<TaskRecord>>,
    ) -> StoreFuture<'a, bool> {
        let mut kept = self.lock();
        let found = kept.tasks.get(id).filter(|found| found.version == version);
        let Some(before) = found.map(|found| found.size()) else { return ready(Ok(false)) };
        let after = next.as_ref().map_or(0, |next| next.size());
        // What does not grow always fits, so that a task can always end.
        if after > before && kept.bytes - before + after > self.memory {
            return ready(Err(StoreError::Full));
        }
        kept.remove(id);
        if let Some(next) = next {
            kept.insert(next);
        }
        ready(Ok(true))
    }

    fn page<'a>(
        &'a self,
        owner: Option<&'a str>,
        after: Option<(u64, &'a str)>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<Arc<TaskRecord>>> {
        let kept = self.lock();
        let owned = kept.owners.get(&owner.map(str::to_owned));
        let is_after = |(created, id): &&(u64, String)| {
            after.is_none_or(|(other, last)| (*created, id.as_str()) > (other, last))
        };
        let ids = owned.into_iter().flatten().filter(is_after).take(limit);
        ready(Ok(ids.filter_map(|(_, id)| kept.tasks.get(id).cloned()).collect()))
    }

    fn due(&self, now: u64, limit: usize) -> StoreFuture<'_, Vec<String>> {
        let kept = self.lock();
        let due = kept.due.iter().take_while(|(due, _)| *due <= now).take(limit);
        ready(Ok(due.map(|(_, id)| id.clone()).collect()))
    }
}
