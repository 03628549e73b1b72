//! A store that outlives its servers, counts what it does, and breaks on demand.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bowline::tasks::{Quota, StoreError, StoreFuture, TaskRecord, TaskStore};
use serde_json::Value;

#[derive(Clone, Default)]
pub(crate) struct Shelf(Arc<Shared>);

#[derive(Default)]
struct Shared {
    /// As bytes, as on a disk.
    kept: Mutex<BTreeMap<String, Vec<u8>>>,
    /// How often a record was loaded.
    loads: AtomicUsize,
    /// Whether the next look for what is due panics.
    panics: AtomicBool,
    /// Whether the next change does.
    swap_panics: AtomicBool,
    /// Whether the first load after the next change fails, and whether the next one does.
    load_fails_later: AtomicBool,
    load_fails: AtomicBool,
    /// Whether no change comes through, and each takes its time to say so.
    is_slow: AtomicBool,
    /// How many of the next changes fail.
    swap_fails: AtomicUsize,
}

fn read(bytes: &[u8]) -> TaskRecord {
    TaskRecord::decode(bytes).unwrap()
}

#[allow(dead_code, reason = "shared with other tests")]
impl Shelf {
    pub(crate) fn loads(&self) -> usize {
        self.0.loads.load(Ordering::SeqCst)
    }

    pub(crate) fn panic_once(&self) {
        self.0.panics.store(true, Ordering::SeqCst);
    }

    pub(crate) fn panic_at_the_next_change(&self) {
        self.0.swap_panics.store(true, Ordering::SeqCst);
    }

    pub(crate) fn fail_to_load_what_changes_next(&self) {
        self.0.load_fails_later.store(true, Ordering::SeqCst);
    }

    pub(crate) fn be_slow(&self) {
        self.0.is_slow.store(true, Ordering::SeqCst);
    }

    pub(crate) fn fail_at_the_next_changes(&self, count: usize) {
        self.0.swap_fails.store(count, Ordering::SeqCst);
    }

    pub(crate) fn will_panic(&self) -> bool {
        self.0.panics.load(Ordering::SeqCst)
    }

    /// The record of a task, as JSON.
    pub(crate) fn record(&self, id: &str) -> Value {
        let kept = self.0.kept.lock().unwrap();
        kept.get(id).map_or(Value::Null, |bytes| serde_json::from_slice(bytes).unwrap())
    }

    fn answer<'a, T: Send + 'a>(
        &self,
        work: impl FnOnce(&mut BTreeMap<String, Vec<u8>>) -> Result<T, StoreError>,
    ) -> StoreFuture<'a, T> {
        let done = work(&mut self.0.kept.lock().unwrap());
        Box::pin(std::future::ready(done))
    }
}

impl TaskStore for Shelf {
    fn create(&self, record: Arc<TaskRecord>, quota: Quota) -> StoreFuture<'_, ()> {
        self.answer(|kept| {
            let own = kept.values().filter(|it| read(it).owner() == record.owner()).count();
            if kept.len() >= quota.all || own >= quota.each {
                return Err(StoreError::Full);
            }
            kept.insert(record.id().to_owned(), record.encode().unwrap());
            Ok(())
        })
    }

    fn load<'a>(&'a self, id: &'a str) -> StoreFuture<'a, Option<Arc<TaskRecord>>> {
        self.0.loads.fetch_add(1, Ordering::SeqCst);
        if self.0.load_fails.swap(false, Ordering::SeqCst) {
            return self.answer(|_| Err(StoreError::failed("on purpose")));
        }
        self.answer(|kept| Ok(kept.get(id).map(|it| Arc::new(read(it)))))
    }

    fn swap<'a>(
        &'a self,
        id: &'a str,
        version: u64,
        next: Option<Arc<TaskRecord>>,
    ) -> StoreFuture<'a, bool> {
        assert!(!self.0.swap_panics.swap(false, Ordering::SeqCst), "on purpose");
        if self.0.is_slow.load(Ordering::SeqCst) {
            return Box::pin(async {
                tokio::time::sleep(Duration::from_secs(4)).await;
                Err(StoreError::failed("on purpose"))
            });
        }
        if self.0.load_fails_later.swap(false, Ordering::SeqCst) {
            self.0.load_fails.store(true, Ordering::SeqCst);
        }
        let left = |left: usize| left.checked_sub(1);
        let fails = self.0.swap_fails.fetch_update(Ordering::SeqCst, Ordering::SeqCst, left);
        self.answer(|kept| {
            if fails.is_ok() {
                return Err(StoreError::failed("on purpose"));
            }
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
        assert!(!self.0.panics.swap(false, Ordering::SeqCst), "on purpose");
        self.answer(|kept| {
            let due = kept.values().map(|it| read(it)).filter(|it| it.due() <= now);
            Ok(due.take(limit).map(|it| it.id().to_owned()).collect())
        })
    }
}
