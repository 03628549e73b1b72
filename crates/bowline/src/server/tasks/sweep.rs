//! What becomes of tasks that nobody runs, that take too long, or that nobody needs any more.

use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bowline_proto::error::ErrorObject;
use tokio::runtime::Handle;
use tokio::task::JoinSet;

use super::record::{Due, State, TaskRecord};
use super::shared::{Doubt, Running, Shared, Updated, lock};
use super::store::StoreError;

/// How often tasks are looked at.
const TICK: Duration = Duration::from_secs(1);
/// How many of them at a time.
const BATCH: usize = 256;
/// How long the ends of tasks may take to be stored when the server stops, if it gives handlers
/// less time than that.
const STORING: Duration = Duration::from_secs(5);

impl Shared {
    /// Begins to look after the tasks, in the background.
    pub(super) fn start_sweeping(self: &Arc<Self>) {
        if self.is_sweeping.swap(true, Ordering::AcqRel) {
            return;
        }
        let Ok(runtime) = Handle::try_current() else {
            self.is_sweeping.store(false, Ordering::Release);
            return;
        };
        runtime.spawn(sweep_on(Sweeping(Arc::downgrade(self))));
    }

    /// Looks at every task that an earlier process may have left. If no other process uses the
    /// store, a lease that is not ours is over, whatever it says.
    async fn sweep_all(self: &Arc<Self>) -> Result<(), StoreError> {
        let horizon = if self.is_shared { self.now() } else { u64::MAX };
        for id in self.in_own_order(self.store.due(horizon, usize::MAX).await?) {
            self.try_to_look_at(&id, self.doubt_of_due()).await;
        }
        Ok(())
    }

    /// Tasks in the order in which this process looks at them: those that share a store begin at
    /// different ones, and race for few.
    fn in_own_order(&self, mut ids: Vec<String>) -> Vec<String> {
        if self.is_shared && !ids.is_empty() {
            let first: usize = self.boot().bytes().map(usize::from).sum();
            let first = first % ids.len();
            ids.rotate_left(first);
        }
        ids
    }

    /// Why nobody knows how a task is that is due and not in doubt: only leases in a shared store
    /// lapse.
    const fn doubt_of_due(&self) -> Doubt {
        if self.is_shared { Doubt::Lapsed } else { Doubt::Ran }
    }

    /// Looks at every task whose time has come, or that is in doubt.
    pub(super) async fn sweep(self: &Arc<Self>) -> Result<(), StoreError> {
        self.views.prune(self.now());
        self.polls.prune();
        for (id, doubt) in self.take_doubtful() {
            self.try_to_look_at(&id, doubt).await;
        }
        let (mut limit, mut seen) = (BATCH, HashSet::new());
        loop {
            let ids = self.store.due(self.now(), limit).await?;
            let is_all = ids.len() < limit;
            let mut has_changed = false;
            for id in self.in_own_order(ids) {
                if !seen.contains(&id) {
                    has_changed |= self.try_to_look_at(&id, self.doubt_of_due()).await;
                    seen.insert(id);
                }
            }
            if is_all {
                return Ok(());
            }
            // Tasks that stay due, however many, do not keep those behind them waiting.
            if !has_changed {
                limit *= 2;
            }
        }
    }

    /// Looks at one task, and again later if the store fails. Returns whether it has changed.
    async fn try_to_look_at(self: &Arc<Self>, id: &str, doubt: Doubt) -> bool {
        let looked = self.look_at(id, doubt).await;
        looked.unwrap_or_else(|error| {
            tracing::warn!(task = %id, %error, "cannot look after a task");
            self.doubt(id, doubt);
            false
        })
    }

    /// Does what is to be done about one task. Returns whether it has changed.
    async fn look_at(self: &Arc<Self>, id: &str, doubt: Doubt) -> Result<bool, StoreError> {
        let record = match self.store.load(id).await {
            Ok(Some(record)) => record,
            Ok(None) => return Ok(false),
            Err(StoreError::Damaged { version }) => return self.remove_damaged(id, version).await,
            Err(error) => return Err(error),
        };
        match record.due_now(self.now(), self.is_alive(&record)) {
            Due::Nothing => return Ok(false),
            Due::Forgotten => {
                self.store.swap(id, record.version, None).await?;
                self.views.forget(id);
            }
            Due::Expired => {
                let message = "the task has expired before it was done";
                let error = ErrorObject::internal(message);
                let end = State::Failed { error };
                self.update(id, |record, now| record.finish(now, end.clone()).then_some(()))
                    .await?;
                self.stop_running(id, u64::MAX);
            }
            Due::Orphaned => return self.adopt(&record, doubt).await,
        }
        Ok(true)
    }

    /// Removes a record that nobody can read, when its time has come.
    async fn remove_damaged(&self, id: &str, version: u64) -> Result<bool, StoreError> {
        if !self.store.due(self.now(), BATCH).await?.iter().any(|due| due == id) {
            return Ok(false);
        }
        tracing::error!(task = %id, "the record of a task is damaged, and is removed");
        self.views.forget(id);
        self.store.swap(id, version, None).await
    }

    /// Whether some process runs a task, as far as can be known.
    fn is_alive(&self, record: &TaskRecord) -> bool {
        let lease = &record.lease;
        if lease.holder == self.boot() {
            let is_running =
                self.running().get(&record.id).is_some_and(|it| it.fence == lease.fence);
            return is_running || self.is_starting(&record.id);
        }
        self.is_shared && lease.until > self.now()
    }

    /// Runs a task again that nobody runs any more, or fails it if its tool does not allow that.
    async fn adopt(
        self: &Arc<Self>,
        orphan: &TaskRecord,
        doubt: Doubt,
    ) -> Result<bool, StoreError> {
        let Some(core) = self.core() else { return Ok(false) };
        let (tool, _) = core.registry.tool(&orphan.tool);
        if tool.is_none() && self.is_shared {
            // A process of another release has this tool. If none has, the task expires.
            return Ok(false);
        }
        let is_ours = orphan.lease.holder == self.boot();
        let end = match doubt {
            Doubt::Created if is_ours => Some(State::Cancelled),
            // It has not begun yet.
            Doubt::Claimed if is_ours => None,
            _ if orphan.is_queued || tool.is_some_and(|tool| tool.reruns) => None,
            Doubt::Lapsed if is_ours => Some(State::Failed { error: lapsed() }),
            _ if is_ours => Some(State::Failed { error: unstored() }),
            _ => Some(State::Failed { error: interrupted() }),
        };
        let starting = self.starting(&orphan.id, doubt);
        let mut place = None;
        let adopted = self.update(&orphan.id, |record, now| {
            let is_same = record.lease == orphan.lease && matches!(record.state, State::Working);
            is_same.then(|| match &end {
                None => {
                    place = place.take().or_else(|| self.places.try_take(record.owner()));
                    record.claim(self.boot(), now, self.lease(now), place.is_none());
                }
                Some(end) => _ = record.finish(now, end.clone()),
            })
        });
        let has_changed = match adopted.await? {
            Updated::Changed(record, ()) if end.is_none() => {
                self.take_over();
                tracing::info!(task = %record.id, tool = %record.tool, "a task runs again");
                self.resume(&record, place).await;
                true
            }
            Updated::Changed(..) => {
                self.take_over();
                true
            }
            Updated::Missing | Updated::Same(_) => false,
        };
        starting.settle();
        Ok(has_changed)
    }

    /// Ends all runs, and stores what became of them: tools that allow it run again later, the
    /// others have failed. Handlers get a while to finish by themselves first.
    pub(super) async fn stop(self: &Arc<Self>, grace: Duration) {
        self.close();
        let _ = tokio::time::timeout(grace, self.all_ended()).await;
        let mut runs = std::mem::take(&mut *lock(&self.runs));
        runs.shutdown().await;
        // Side by side, because a store that is away keeps each of them waiting.
        let mut writes: JoinSet<_> = self
            .running()
            .drain()
            .map(|(id, running)| Arc::clone(self).store_stop(id, running))
            .collect();
        let written = async { while writes.join_next().await.is_some() {} };
        if tokio::time::timeout(grace.max(STORING), written).await.is_err() {
            let left = writes.len();
            tracing::error!(left, "the store took too long for the ends of tasks");
        }
    }

    /// Stores what became of a run that was stopped.
    async fn store_stop(self: Arc<Self>, id: String, running: Running) {
        let core = &running.call.peer().core;
        let stopped = self.update(&id, |record, now| {
            if !record.is_run_by(self.boot(), running.fence) {
                return None;
            }
            let reruns = || core.registry.tool(&record.tool).0.is_some_and(|tool| tool.reruns);
            match record.is_queued || reruns() {
                true => record.lease.until = now,
                false => _ = record.finish(now, State::Failed { error: interrupted() }),
            }
            Some(())
        });
        if let Err(error) = stopped.await {
            tracing::error!(task = %id, %error, "the end of a task cannot be stored");
        }
    }
}

/// What is said of a task whose handler cannot run again.
fn interrupted() -> ErrorObject {
    ErrorObject::internal("the server was restarted while this ran; call again")
}

/// The same of one whose handler did run, in this process, and whose end the store did not take.
fn unstored() -> ErrorObject {
    ErrorObject::internal("the server could not store what became of this; call again")
}

/// The same of one whose handler was stopped in this process, before others could take it over.
fn lapsed() -> ErrorObject {
    let message = "the server could not renew the lease of this task in time, and stopped it";
    ErrorObject::internal(format!("{message}; call again"))
}

/// Somebody looks after the tasks. However that ends, the next request begins anew: a store is code
/// of others, and may panic.
struct Sweeping(Weak<Shared>);

impl Drop for Sweeping {
    fn drop(&mut self) {
        if let Some(shared) = self.0.upgrade() {
            shared.is_sweeping.store(false, Ordering::Release);
        }
    }
}

async fn sweep_on(sweeping: Sweeping) {
    let mut is_first = true;
    loop {
        {
            let Some(shared) = sweeping.0.upgrade() else { return };
            if shared.is_closing() {
                return;
            }
            let swept = match is_first {
                true => shared.sweep_all().await,
                false => shared.sweep().await,
            };
            match swept {
                Ok(()) => {
                    is_first = false;
                    shared.read_again().await;
                }
                Err(error) => tracing::warn!(%error, "cannot look after the tasks"),
            }
        }
        tokio::time::sleep(TICK).await;
    }
}
