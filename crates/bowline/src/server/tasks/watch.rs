//! Who waits for tasks in this process, and how they hear of changes.

use std::collections::HashSet;
use std::sync::{Arc, Weak};

use bowline_proto::session::Topic;
use tokio::sync::Notify;

use super::super::extension::TASKS;
use super::record::TaskRecord;
use super::shared::{Shared, lock};
use super::store::StoreError;

/// How many changes wait for the store at most. A client may name any number of tasks, one listen
/// request after the other.
const UNREAD: usize = 10_000;

impl Shared {
    /// Tells everyone who waits for a task that it has changed.
    pub(super) fn publish(&self, record: &Arc<TaskRecord>) {
        self.wake(record);
        if let Some(core) = self.core() {
            core.registry.bus().publish(&topic(&record.id));
        }
    }

    /// The same for those in this process.
    fn publish_here(&self, record: &Arc<TaskRecord>) {
        self.wake(record);
        if let Some(core) = self.core() {
            core.registry.bus().publish_here(&topic(&record.id));
        }
    }

    fn wake(&self, record: &Arc<TaskRecord>) {
        let watcher = lock(&self.watchers).get(&record.id).and_then(Weak::upgrade);
        if let Some(watcher) = watcher {
            watcher.notify_waiters();
        }
        self.views.update(record, self.now());
    }

    /// The tasks whose changes somebody here waits for.
    pub(super) fn watched(&self) -> Vec<String> {
        let mut ids: HashSet<String> = self.running().keys().cloned().collect();
        ids.extend(self.views.ids());
        let watchers = lock(&self.watchers);
        let is_live = |(_, watcher): &(&String, &Weak<Notify>)| watcher.strong_count() > 0;
        ids.extend(watchers.iter().filter(is_live).map(|(id, _)| id.clone()));
        ids.into_iter().collect()
    }

    fn is_watched(&self, id: &str) -> bool {
        let is_live = |watcher: &Weak<Notify>| watcher.strong_count() > 0;
        self.running().contains_key(id)
            || self.views.contains(id)
            || lock(&self.watchers).get(id).is_some_and(is_live)
    }

    /// Takes in that another process may have changed a task: whoever waits for it here looks, and
    /// a handler that runs here stops if the task has ended or is run elsewhere.
    pub(super) async fn handle_change(self: &Arc<Self>, id: &str) {
        if !self.is_watched(id) {
            // Those that listen read the task themselves.
            if let Some(core) = self.core() {
                core.registry.bus().publish_here(&topic(id));
            }
            return;
        }
        let Some(found) = self.load_or_later(id).await else { return };
        let running = self.running().get(id).map(|running| running.fence);
        match &found {
            Some(record) => {
                if let Some(fence) = running
                    && !record.is_run_by(self.boot(), fence)
                {
                    self.stop_running(id, fence);
                }
                self.publish_here(record);
            }
            None => {
                self.stop_running(id, u64::MAX);
                self.views.forget(id);
            }
        }
    }

    /// Loads a task for those who wait for it. `None` if the store fails: the change is taken in
    /// [again](Self::read_again) when the store can be read.
    pub(super) async fn load_or_later(
        self: &Arc<Self>,
        id: &str,
    ) -> Option<Option<Arc<TaskRecord>>> {
        match self.store.load(id).await {
            Ok(found) => Some(found),
            Err(StoreError::Damaged { .. }) => None,
            Err(error) => {
                tracing::debug!(task = %id, %error, "a task that has changed cannot be read yet");
                let mut unread = lock(&self.unread);
                if unread.len() < UNREAD {
                    unread.insert(id.to_owned());
                }
                drop(unread);
                self.start_sweeping();
                None
            }
        }
    }

    /// Takes in changes of tasks that could not be read when they had changed.
    pub(super) async fn read_again(self: &Arc<Self>) {
        let mut unread = std::mem::take(&mut *lock(&self.unread)).into_iter();
        while let Some(id) = unread.next() {
            self.handle_change(&id).await;
            let mut still = lock(&self.unread);
            if still.contains(&id) {
                return still.extend(unread);
            }
        }
    }

    /// What is notified when a task changes.
    pub(super) fn watch(&self, id: &str) -> Arc<Notify> {
        let mut watchers = lock(&self.watchers);
        if let Some(watcher) = watchers.get(id).and_then(Weak::upgrade) {
            return watcher;
        }
        if watchers.len() == watchers.capacity() {
            watchers.retain(|_, watcher| watcher.strong_count() > 0);
        }
        let watcher = Arc::new(Notify::new());
        watchers.insert(id.to_owned(), Arc::downgrade(&watcher));
        watcher
    }
}

/// Changes of a task.
pub(super) fn topic(id: &str) -> Topic {
    Topic::Extension(TASKS.into(), id.into())
}
