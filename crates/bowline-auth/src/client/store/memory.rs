//! A store in memory.

use std::collections::HashMap;
use std::fmt;
use std::future::ready;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Store, StoreLock, Stored};
use crate::client::secret::Secret;

/// Stores credentials in memory. Clones share them.
#[derive(Clone, Default)]
pub struct MemoryStore(Arc<Mutex<HashMap<String, Slot>>>);

#[derive(Default)]
struct Slot {
    value: Option<Secret>,
    lock: Arc<tokio::sync::Mutex<()>>,
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    fn slots(&self) -> MutexGuard<'_, HashMap<String, Slot>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for MemoryStore {
    fn load<'a>(&'a self, key: &'a str) -> Stored<'a, Option<Secret>> {
        let value = self.slots().get(key).and_then(|slot| slot.value.clone());
        Box::pin(ready(Ok(value)))
    }

    fn save<'a>(&'a self, key: &'a str, value: &'a Secret) -> Stored<'a, ()> {
        self.slots().entry(key.to_owned()).or_default().value = Some(value.clone());
        Box::pin(ready(Ok(())))
    }

    fn remove<'a>(&'a self, key: &'a str) -> Stored<'a, ()> {
        if let Some(slot) = self.slots().get_mut(key) {
            slot.value = None;
        }
        Box::pin(ready(Ok(())))
    }

    fn lock<'a>(&'a self, key: &'a str) -> Stored<'a, StoreLock> {
        let lock = Arc::clone(&self.slots().entry(key.to_owned()).or_default().lock);
        Box::pin(async move { Ok(Box::new(lock.lock_owned().await) as StoreLock) })
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MemoryStore({} keys)", self.slots().len())
    }
}
