//! What all tasks of a server share: the store, the clock, who runs and who waits.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::super::call::Call;
use super::super::core::Core;
use super::leases::Leases;
use super::places::Places;
use super::polls::Polls;
use super::record::TaskRecord;
use super::store::{Quota, StoreError, TaskStore};
use super::views::Views;
use super::{TaskLimits, millis};
use crate::{clock, random};

/// What all tasks of a server share.
pub(crate) struct Shared {
    pub(super) store: Arc<dyn TaskStore>,
    pub(super) limits: TaskLimits,
    /// How many tasks may be in the store, and how many bytes.
    pub(super) quota: Quota,
    /// Whether other processes use the store at the same time. Otherwise whatever another process
    /// was running is over.
    pub(super) is_shared: bool,
    /// This process, or rather this use of the store.
    boot: String,
    clock: Clock,
    core: OnceLock<Weak<Core>>,
    running: Mutex<HashMap<String, Running>>,
    pub(super) runs: Mutex<JoinSet<()>>,
    pub(super) watchers: Mutex<HashMap<String, Weak<Notify>>>,
    /// Tasks whose questions are being asked on a legacy request.
    asking: Mutex<HashSet<String>>,
    pub(super) views: Views,
    pub(super) places: Places,
    pub(super) polls: Polls,
    /// Tasks that are about to run here: that is being stored, or has just been. How often, because
    /// several requests may be at it.
    starting: Mutex<HashMap<String, u32>>,
    /// Tasks that need to be looked at.
    doubtful: Mutex<HashMap<String, Doubt>>,
    /// Tasks that have changed and could not be read since, for those who wait for them.
    pub(super) unread: Mutex<HashSet<String>>,
    pub(super) is_sweeping: AtomicBool,
    is_closing: AtomicBool,
    pub(super) leases: Leases,
}

/// A handler that runs in this process.
#[derive(Clone)]
pub(super) struct Running {
    pub(super) call: Arc<Call>,
    pub(super) fence: u64,
}

/// Why nobody knows how a task is: the store has failed, or whoever was writing is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Doubt {
    /// It may have been created, and nobody knows its id.
    Created,
    /// It may be about to run, and its handler was not started.
    Claimed,
    /// Its handler may have run, and may be over.
    Ran,
    /// Its lease has lapsed: a handler here was stopped before that.
    Lapsed,
}

/// A task that is about to run here. Until this is dropped, it is not an orphan. Unless it is
/// [settled](Self::settle) before, the task is in doubt then.
pub(super) struct Starting {
    shared: Arc<Shared>,
    id: String,
    doubt: Option<Doubt>,
}

impl Starting {
    pub(super) fn settle(mut self) {
        self.doubt = None;
    }
}

impl Drop for Starting {
    fn drop(&mut self) {
        // In doubt first, so that it is never neither.
        if let Some(doubt) = self.doubt {
            self.shared.doubt(&self.id, doubt);
        }
        let mut starting = lock(&self.shared.starting);
        if let Some(count) = starting.get_mut(&self.id) {
            *count -= 1;
            if *count == 0 {
                starting.remove(&self.id);
            }
        }
    }
}

/// What became of a task that was to be changed.
pub(super) enum Updated<T> {
    Missing,
    /// There was nothing to change.
    Same(Arc<TaskRecord>),
    Changed(Arc<TaskRecord>, T),
}

/// How often a write is tried that must not be lost, and the pause after the first failure.
const TRIES: u32 = 8;
const PAUSE: Duration = Duration::from_millis(25);
const LONGEST_PAUSE: Duration = Duration::from_millis(1_600);

impl Shared {
    pub(super) fn new(
        store: Arc<dyn TaskStore>,
        limits: TaskLimits,
        (bytes, bytes_each): (usize, usize),
        is_shared: bool,
    ) -> Self {
        let (all, each) = (limits.tasks, limits.tasks_per_owner);
        Self {
            store,
            limits,
            quota: Quota { all, each, bytes, bytes_each },
            is_shared,
            boot: random::token(),
            clock: Clock::default(),
            core: OnceLock::new(),
            running: Mutex::default(),
            runs: Mutex::default(),
            watchers: Mutex::default(),
            asking: Mutex::default(),
            views: Views::default(),
            places: Places::new(limits.running.max(1), limits.running_per_owner.max(1)),
            polls: Polls::new(limits.poll),
            starting: Mutex::default(),
            doubtful: Mutex::default(),
            unread: Mutex::default(),
            is_sweeping: AtomicBool::new(false),
            is_closing: AtomicBool::new(false),
            leases: Leases::default(),
        }
    }

    pub(super) fn boot(&self) -> &str {
        &self.boot
    }

    /// Milliseconds since 1970.
    pub(super) fn now(&self) -> u64 {
        self.store.now().unwrap_or_else(|| self.clock.now())
    }

    /// Until when a run that begins or goes on now may count on being the only one.
    pub(super) fn lease(&self, now: u64) -> u64 {
        match self.is_shared {
            true => now.saturating_add(millis(self.limits.lease)),
            false => u64::MAX,
        }
    }

    /// Says that a task is about to run here, before that is stored.
    pub(super) fn starting(self: &Arc<Self>, id: &str, doubt: Doubt) -> Starting {
        *lock(&self.starting).entry(id.to_owned()).or_default() += 1;
        Starting { shared: Arc::clone(self), id: id.to_owned(), doubt: Some(doubt) }
    }

    pub(super) fn is_starting(&self, id: &str) -> bool {
        lock(&self.starting).contains_key(id)
    }

    /// Remembers a task that needs to be looked at.
    pub(super) fn doubt(&self, id: &str, doubt: Doubt) {
        let mut doubtful = lock(&self.doubtful);
        let known = doubtful.entry(id.to_owned()).or_insert(doubt);
        if doubt == Doubt::Ran {
            *known = doubt;
        }
    }

    pub(super) fn take_doubtful(&self) -> HashMap<String, Doubt> {
        std::mem::take(&mut *lock(&self.doubtful))
    }

    /// Sets the server that the tasks belong to. Returns whether there was none.
    pub(super) fn belong_to(&self, core: &Arc<Core>) -> bool {
        self.core.set(Arc::downgrade(core)).is_ok()
    }

    /// The server, while it exists.
    pub(super) fn core(&self) -> Option<Arc<Core>> {
        self.core.get()?.upgrade()
    }

    pub(super) fn close(&self) {
        self.is_closing.store(true, Ordering::Release);
        self.places.close();
    }

    pub(super) fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::Acquire)
    }

    /// Changes a task, as often as it takes until nobody else has changed it meanwhile. `change`
    /// returns `None` if there is nothing to change.
    pub(super) async fn update<T>(
        &self,
        id: &str,
        mut change: impl FnMut(&mut TaskRecord, u64) -> Option<T>,
    ) -> Result<Updated<T>, StoreError> {
        loop {
            let Some(found) = self.store.load(id).await? else { return Ok(Updated::Missing) };
            let mut next = TaskRecord::clone(&found);
            let Some(changed) = change(&mut next, self.now()) else {
                return Ok(Updated::Same(found));
            };
            next.version = found.version + 1;
            let next = Arc::new(next);
            let record = Some(Arc::clone(&next));
            if self.store.swap_within(id, found.version, record, self.quota).await? {
                // Nobody can see that a lease was renewed.
                if next.mark() != found.mark() {
                    self.publish(&next);
                }
                return Ok(Updated::Changed(next, changed));
            }
        }
    }

    /// Tries something again for a while if the store fails.
    pub(super) async fn insist<T, F>(&self, work: impl Fn() -> F) -> Result<T, StoreError>
    where
        F: Future<Output = Result<T, StoreError>>,
    {
        let mut pause = PAUSE;
        let began = clock::now();
        let mut tries = 1;
        // A store that others use as well may be away for a moment, and a lease outlasts that.
        while tries < TRIES || self.is_shared && began.elapsed() < self.limits.lease {
            match work().await {
                Err(StoreError::Failed(error)) => {
                    tracing::warn!(%error, "the task store failed; trying again");
                }
                done => return done,
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
            tries += 1;
        }
        work().await
    }

    pub(super) fn asking(&self) -> MutexGuard<'_, HashSet<String>> {
        lock(&self.asking)
    }

    pub(super) fn running(&self) -> MutexGuard<'_, HashMap<String, Running>> {
        lock(&self.running)
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The wall clock, except that it never goes backward, and that tests can pause it.
struct Clock {
    started: Instant,
    /// When that was, by the furthest that the wall clock has been ahead.
    unix: AtomicU64,
}

impl Default for Clock {
    fn default() -> Self {
        Self { started: clock::now(), unix: AtomicU64::new(clock::unix_millis()) }
    }
}

impl Clock {
    fn now(&self) -> u64 {
        let elapsed = clock::now().saturating_duration_since(self.started).as_millis();
        self.after(u64::try_from(elapsed).unwrap_or(u64::MAX), clock::unix_millis())
    }

    /// So many milliseconds after the start, with what the wall clock says: that one also counts
    /// while the machine sleeps. If it was set ahead and back, time goes on from where it was.
    fn after(&self, elapsed: u64, wall: u64) -> u64 {
        let unix = wall.saturating_sub(elapsed);
        self.unix.fetch_max(unix, Ordering::Relaxed).max(unix).saturating_add(elapsed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(feature = "testing")]
    #[tokio::test]
    async fn ids_that_nobody_knows_are_not_kept() {
        let tasks = super::super::Tasks::in_memory();
        let tool = crate::Tool::new("tool", || async { "done" });
        let server = crate::Server::new("tasks", "1.0.0").with(tool).tasks(tasks.clone());
        let revision = bowline_proto::revision::Revision::REQUESTED_TASKS;
        let client = crate::testing::connect_in(server, revision).await.unwrap();
        client.resume_task("x".repeat(1 << 16)).wait().await.unwrap_err();
        assert!(lock(&tasks.shared().watchers).is_empty());
    }

    #[test]
    fn time_never_goes_backward() {
        let clock = Clock { started: clock::now(), unix: AtomicU64::new(1_000) };
        for (elapsed, wall, expected) in [
            (0, 1_000, 1_000),
            (10, 1_009, 1_010),
            // The machine slept.
            (20, 5_020, 5_020),
            // The clock was set back, and later ahead.
            (30, 1_030, 5_030),
            (30, 0, 5_030),
            (40, 9_000, 9_000),
            (50, 8_000, 9_010),
        ] {
            assert_eq!(clock.after(elapsed, wall), expected, "{wall} after {elapsed}");
        }
    }
}
