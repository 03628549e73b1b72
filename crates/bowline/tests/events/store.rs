//! A store that outlives the server, and fails on demand.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use bowline::tasks::{Quota, StoreError, StoreFuture, TaskRecord, TaskStore};

#[derive(Clone, Default)]
pub(crate) struct Store(Arc<Shared>);

#[derive(Default)]
struct Shared {
    /// As bytes, as on a disk.
    kept: Mutex<BTreeMap<String, Vec<u8>>>,
    is_broken: AtomicBool,
}

impl Store {
    pub(crate) fn len(&self) -> usize {
        self.0.kept.lock().unwrap().len()
    }

    pub(crate) fn set_broken(&self, is_broken: bool) {
        self.0.is_broken.store(is_broken, Ordering::SeqCst);
    }

    fn answer<'a, T: Send + 'a>(
        &self,
        work: impl FnOnce(&mut BTreeMap<String, Vec<u8>>) -> Result<T, StoreError>,
    ) -> StoreFuture<'a, T> {
        let done = match self.0.is_broken.load(Ordering::SeqCst) {
            true => Err(StoreError::failed("the disk is gone")),
            false => work(&mut self.0.kept.lock().unwrap()),
        };
        Box::pin(std::future::ready(done))
    }
}

fn read(bytes: &[u8]) -> TaskRecord {
    TaskRecord::decode(bytes).unwrap()
}

impl TaskStore for Store {
    fn create(&self, record: Arc<TaskRecord>, quota: Quota) -> StoreFuture<'_, ()> {
        self.answer(|kept| {
            let own = kept.values().filter(|it| read(it).owner() == record.owner()).count();
            if kept.len() >= quota.all || own >= quota.each {
                return Err(StoreError::Full);
            }
            let before = kept.insert(record.id().to_owned(), record.encode().unwrap());
            assert!(before.is_none(), "an id was used again");
            Ok(())
        })
    }

    fn load<'a>(&'a self, id: &'a str) -> StoreFuture<'a, Option<Arc<TaskRecord>>> {
        self.answer(|kept| Ok(kept.get(id).map(|it| Arc::new(read(it)))))
    }

    fn swap<'a>(
        &'a self,
        id: &'a str,
        version: u64,
        next: Option<Arc<TaskRecord>>,
    ) -> StoreFuture<'a, bool> {
        self.answer(|kept| {
            if kept.get(id).is_none_or(|it| read(it).version() != version) {
                return Ok(false);
            }
            match next {
                Some(next) => drop(kept.insert(id.to_owned(), next.encode().unwrap())),
                None => drop(kept.remove(id)),
            }
            Ok(true)
        })
    }

    fn page<'a>(
        &'a self,
        _: Option<&'a str>,
        _: Option<(u64, &'a str)>,
        _: usize,
    ) -> StoreFuture<'a, Vec<Arc<TaskRecord>>> {
        self.answer(|_| Err(StoreError::failed("nothing here needs pages")))
    }

    fn due(&self, now: u64, limit: usize) -> StoreFuture<'_, Vec<String>> {
        self.answer(|kept| {
            let due = kept.values().map(|it| read(it)).filter(|it| it.due() <= now);
            Ok(due.take(limit).map(|it| it.id().to_owned()).collect())
        })
    }
}
