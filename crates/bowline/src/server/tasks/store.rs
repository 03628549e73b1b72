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

    /// The same if the quota [has room](Quota::has_room_for_change) for that, for stores that bound
    /// the bytes of tasks: `testing::task_store_bytes_contract` checks those. For others it is
    /// [`swap`](Self::swap).
    ///
    /// # Errors
    /// [`StoreError::Full`] if there is no room, and then nothing has changed.
    fn swap_within<'a>(
        &'a self,
        id: &'a str,
        version: u64,
        next: Option<Arc<TaskRecord>>,
        quota: Quota,
    ) -> StoreFuture<'a, bool> {
        let _ = quota;
        self.swap(id, version, next)
    }

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

/// How many tasks there may be, and how many bytes they may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    /// Tasks of all owners.
    pub all: usize,
    /// Tasks of one [owner](TaskRecord::owner). Those without an owner count together.
    pub each: usize,
    /// The bytes of all tasks.
    pub bytes: usize,
    /// The bytes of the tasks of one owner.
    pub bytes_each: usize,
}

impl Quota {
    /// The bytes by which a task may grow when it [ends](TaskRecord::has_ended), even if there is
    /// no room: enough to say why.
    pub const ENDING: usize = 1 << 10;

    /// So many tasks, of any size.
    pub const fn of(all: usize, each: usize) -> Self {
        Self { all, each, bytes: usize::MAX, bytes_each: usize::MAX }
    }

    /// Whether this many bytes fit that are added to those of all owners and those of one.
    pub fn has_room(&self, all: usize, own: usize, more: usize) -> bool {
        all.saturating_add(more) <= self.bytes && own.saturating_add(more) <= self.bytes_each
    }

    /// Whether a record fits that replaces another one. What does not grow always fits, so that a
    /// task can always end.
    pub fn has_room_for_change(
        &self,
        (all, own): (usize, usize),
        (before, after): (usize, usize),
        next: &TaskRecord,
    ) -> bool {
        let spare = if next.has_ended() { Self::ENDING } else { 0 };
        after <= before.saturating_add(spare) || self.has_room(all, own, after - before)
    }
}

/// Why a store did not do what it was asked for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// There is no room.
    #[error("there is no room for another task")]
    Full,
    /// The record is damaged. It is removed when it is [due](TaskStore::due).
    #[error("the record of a task is damaged")]
    Damaged {
        /// The version under which it can be removed.
        version: u64,
    },
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
#[derive(Default)]
pub(crate) struct InMemory {
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    /// With their sizes.
    tasks: HashMap<String, (Arc<TaskRecord>, usize)>,
    owners: HashMap<Option<String>, Owned>,
    due: BTreeSet<(u64, String)>,
    bytes: usize,
}

/// The tasks of one owner.
#[derive(Default)]
struct Owned {
    /// In the order of pages.
    order: BTreeSet<(u64, String)>,
    bytes: usize,
}

impl InMemory {
    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn of(&self, owner: Option<&str>) -> Option<&Owned> {
        self.owners.get(&owner.map(str::to_owned))
    }

    /// The bytes of all owners, and of one.
    fn bytes(&self, owner: Option<&str>) -> (usize, usize) {
        (self.bytes, self.of(owner).map_or(0, |owned| owned.bytes))
    }

    fn insert(&mut self, record: Arc<TaskRecord>, size: usize) {
        let id = record.id.clone();
        let owned = self.owners.entry(record.owner().map(str::to_owned)).or_default();
        owned.order.insert((record.created, id.clone()));
        owned.bytes += size;
        self.due.insert((record.due(), id.clone()));
        self.bytes += size;
        self.tasks.insert(id, (record, size));
    }

    fn remove(&mut self, id: &str) {
        let Some((record, size)) = self.tasks.remove(id) else { return };
        self.bytes = self.bytes.saturating_sub(size);
        self.due.remove(&(record.due(), record.id.clone()));
        let owner = record.owner().map(str::to_owned);
        if let Some(owned) = self.owners.get_mut(&owner) {
            owned.order.remove(&(record.created, record.id.clone()));
            owned.bytes = owned.bytes.saturating_sub(size);
            if owned.order.is_empty() {
                self.owners.remove(&owner);
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
        let own = kept.of(record.owner()).map_or(0, |owned| owned.order.len());
        let (all, own_bytes) = kept.bytes(record.owner());
        let size = record.size();
        let is_full = kept.tasks.len() >= quota.all
            || own >= quota.each
            || !quota.has_room(all, own_bytes, size);
        if is_full {
            return ready(Err(StoreError::Full));
        }
        if kept.tasks.contains_key(&record.id) {
            return ready(Err(StoreError::failed("a task with this id exists")));
        }
        kept.insert(record, size);
        ready(Ok(()))
    }

    fn load<'a>(&'a self, id: &'a str) -> StoreFuture<'a, Option<Arc<TaskRecord>>> {
        ready(Ok(self.lock().tasks.get(id).map(|(record, _)| Arc::clone(record))))
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
        let mut kept = self.lock();
        let found = kept.tasks.get(id).filter(|(found, _)| found.version == version);
        let Some((found, before)) = found else { return ready(Ok(false)) };
        let after = next.as_ref().map_or(0, |next| next.size());
        if let Some(next) = &next
            && !quota.has_room_for_change(kept.bytes(found.owner()), (*before, after), next)
        {
            return ready(Err(StoreError::Full));
        }
        kept.remove(id);
        if let Some(next) = next {
            kept.insert(next, after);
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
        let owned = kept.of(owner);
        let is_after = |(created, id): &&(u64, String)| {
            after.is_none_or(|(other, last)| (*created, id.as_str()) > (other, last))
        };
        let ids = owned.into_iter().flat_map(|owned| &owned.order).filter(is_after).take(limit);
        let records = ids.filter_map(|(_, id)| kept.tasks.get(id));
        ready(Ok(records.map(|(record, _)| Arc::clone(record)).collect()))
    }

    fn due(&self, now: u64, limit: usize) -> StoreFuture<'_, Vec<String>> {
        let kept = self.lock();
        let due = kept.due.iter().take_while(|(due, _)| *due <= now).take(limit);
        ready(Ok(due.map(|(_, id)| id.clone()).collect()))
    }
}

#[cfg(feature = "http")]
#[cfg(test)]
mod tests {
    use bowline_proto::json::Json;

    use super::*;

    fn record(id: &str, owner: &str, bytes: usize) -> Arc<TaskRecord> {
        let content = Json::from_text(format!("\"{}\"", "x".repeat(bytes))).unwrap();
        Arc::new(TaskRecord::kept("test", id, Some(owner), 1, content))
    }

    #[tokio::test]
    async fn an_owner_has_a_share_of_the_memory() {
        let (store, few) = (InMemory::default(), Quota::of(99, 99));
        let quota = Quota { bytes: 100_000, bytes_each: 40_000, ..few };
        let create = async |id: &str, owner: &str, bytes: usize| {
            store.create(record(id, owner, bytes), quota).await.is_ok()
        };
        assert!(create("a", "ada", 30_000).await);
        assert!(!create("b", "ada", 30_000).await, "an owner has a share");
        assert!(create("c", "eve", 30_000).await, "others have theirs");
        let grown = TaskRecord::clone(&record("a", "ada", 45_000)).at_version(1);
        let grown = store.swap_within("a", 0, Some(Arc::new(grown)), quota).await;
        assert!(matches!(grown, Err(StoreError::Full)), "growing counts, too");
        assert!(create("d", "bob", 30_000).await);
        assert!(!create("e", "joe", 30_000).await, "and there is an end for all");
        assert!(store.swap("a", 0, None).await.unwrap());
        assert!(create("b", "ada", 30_000).await, "what is removed makes room");
    }
}
