//! How many handlers of tasks run at a time: in all, and of one owner. Others wait for their turn,
//! in the order in which they came.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::shared::lock;

/// The places in which handlers run.
pub(crate) struct Places {
    all: Arc<Semaphore>,
    each: usize,
    owners: Mutex<HashMap<Option<String>, Weak<Semaphore>>>,
}

/// A place in which a handler runs. Dropping it gives it back.
pub(crate) struct Place {
    _own: OwnedSemaphorePermit,
    _all: OwnedSemaphorePermit,
}

fn permits(count: usize) -> usize {
    count.min(Semaphore::MAX_PERMITS)
}

impl Places {
    pub(crate) fn new(all: usize, each: usize) -> Self {
        let all = Arc::new(Semaphore::new(permits(all)));
        Self { all, each: permits(each), owners: Mutex::default() }
    }

    /// Takes a place if one is free.
    pub(crate) fn try_take(&self, owner: Option<&str>) -> Option<Place> {
        let own = self.of(owner).try_acquire_owned().ok()?;
        let all = Arc::clone(&self.all).try_acquire_owned().ok()?;
        Some(Place { _own: own, _all: all })
    }

    /// Waits for a place: first for one of the owner's, so that an owner with many tasks does not
    /// stand in the way of others. `None` once they are closed.
    pub(super) async fn take(&self, owner: Option<&str>) -> Option<Place> {
        let own = self.of(owner).acquire_owned().await.ok()?;
        let all = Arc::clone(&self.all).acquire_owned().await.ok()?;
        Some(Place { _own: own, _all: all })
    }

    /// Gives nobody a place any more. Those that are taken stay.
    pub(super) fn close(&self) {
        self.all.close();
        for own in lock(&self.owners).values().filter_map(Weak::upgrade) {
            own.close();
        }
    }

    fn of(&self, owner: Option<&str>) -> Arc<Semaphore> {
        let mut owners = lock(&self.owners);
        let owner = owner.map(str::to_owned);
        if let Some(known) = owners.get(&owner).and_then(Weak::upgrade) {
            return known;
        }
        if owners.len() == owners.capacity() {
            owners.retain(|_, places| places.strong_count() > 0);
        }
        let places = Arc::new(Semaphore::new(self.each));
        owners.insert(owner, Arc::downgrade(&places));
        places
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn owners_share_the_places() {
        let places = Places::new(3, 2);
        let [one, two] = [places.try_take(Some("ada")), places.try_take(Some("ada"))];
        assert!(one.is_some() && two.is_some());
        assert!(places.try_take(Some("ada")).is_none(), "an owner has two");
        let other = places.try_take(None);
        assert!(other.is_some(), "others have room");
        assert!(places.try_take(Some("eve")).is_none(), "there are three in all");
        let mut next = std::pin::pin!(places.take(Some("ada")));
        assert!(polled(next.as_mut()).is_none());
        drop(two);
        assert!(next.await.is_some(), "a place that is given back goes to whoever waits");
        drop((one, other));
    }

    fn polled<F: Future>(future: std::pin::Pin<&mut F>) -> Option<F::Output> {
        let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
        match future.poll(&mut cx) {
            std::task::Poll::Ready(output) => Some(output),
            std::task::Poll::Pending => None,
        }
    }
}
