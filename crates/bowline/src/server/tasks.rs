//! Tasks: calls that go on after their request has been answered.
//!
//! A long-running tool is written like any other, and says that it may be a task:
//!
//! ```
//! use bowline::{Context, HandlerError, tool};
//!
//! /// Build the project.
//! #[tool(task)]
//! async fn build(context: Context, release: bool) -> Result<String, HandlerError> {
//!     context.status("compiling");
//!     // …
//!     if !context.confirm("Publish it?").await? {
//!         return Ok("built".to_owned());
//!     }
//!     Ok("built and published".to_owned())
//! }
//! ```
//!
//! Clients that can use a task get one: by the extension `io.modelcontextprotocol/tasks` in
//! 2026-07-28, at their request in 2025-11-25. For all others it is an ordinary call. The handler
//! cannot tell: questions, [`Context::once`](crate::Context::once), progress and cancellation work,
//! and [`Context::status`](crate::Context::status) is what pollers see.
//!
//! # When a call becomes a task
//!
//! | | |
//! |---|---|
//! | `#[tool(task)]`, [`TaskMode::Optional`] | at once, if the client can use one |
//! | `#[tool(task = "required")]`, [`TaskMode::Required`] | at once; clients that cannot use one are rejected. Most cannot today |
//! | `#[tool(task(after = "2s"))]`, [`TaskMode::After`] | if it is not done by then |
//! | `#[tool(task = "on_demand")]`, [`TaskMode::OnDemand`] | at [`Context::background`](crate::Context::background) |
//!
//! A client of 2025-11-25 decides for itself: with `params.task` the call is a task at once.
//!
//! # What survives
//!
//! Tasks are in memory, unless [`Server::tasks`](crate::Server::tasks) says otherwise; the crate
//! `bowline-redb` keeps them in a file. A task that waits for an answer has no handler: it runs
//! again from the top once the answer is there, with all earlier answers and the values of
//! [`Context::once`](crate::Context::once), in this process or in a later one. A task that was
//! running when its process ended runs again, too, if its tool [allows that](crate::Tool::rerun);
//! otherwise it has failed, and says so. One whose handler waited for its turn, or had returned
//! without a result or a question, runs in any case: nothing was cut down. A value that `once` has
//! returned is stored, and its work is never done again; work that was cut down before that may be.
//!
//! A task belongs to the [principal](crate::Principal) that started it. Tokens and headers are
//! never stored: a run without a request has the name of the principal and no more.

mod again;
#[cfg(feature = "testing")]
pub(crate) mod contract;
mod ending;
mod launch;
mod leases;
mod legacy;
mod link;
mod methods;
mod outline;
mod outside;
mod places;
mod polls;
mod record;
mod run;
mod shared;
mod size;
mod store;
mod sweep;
mod view;
mod views;
mod watch;

use std::sync::Arc;
use std::time::Duration;

use bowline_proto::model::{ServerTaskRequests, ServerTasksCapability, ToolTasks, task_extension};
use bowline_proto::revision::Revision;
use serde_json::Map;

pub use self::outside::{Elsewhere, OutsideError, OutsideTask};
pub use self::record::TaskRecord;
pub use self::store::{Quota, StoreError, StoreFuture, TaskStore};
pub(crate) use self::{
    launch::{Launch, Plan, forbidden},
    link::Link,
};
#[cfg(feature = "events")]
pub(crate) use self::{places::Places, view::iso};
use self::{shared::Shared, store::InMemory};
use super::core::Core;
use super::extension::Extension;
use super::fleet::TaskCounts;
use super::peer::Transport;

/// When a call of a tool becomes a [task](crate::tasks).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TaskMode {
    /// At once, if the client can use one; otherwise it is an ordinary call.
    Optional,
    /// At once. Clients that cannot use one are rejected.
    Required,
    /// If it is not done after this time, and the client can use one.
    After(Duration),
    /// When the handler says so, with [`Context::background`](crate::Context::background), if the
    /// client can use one.
    OnDemand,
}

/// The tasks of a server, and where they are kept. Cheap to clone.
#[derive(Clone)]
#[must_use = "tasks do nothing until they are those of a server"]
pub struct Tasks(Arc<Shared>);

/// How many tasks there may be, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskLimits {
    /// How many are kept in all: 10,000.
    pub tasks: usize,
    /// How many of one principal are kept: 1,000. Clients without an identity count by their
    /// address, where there is one; others count together. Further calls are rejected until some
    /// have been forgotten.
    pub tasks_per_owner: usize,
    /// How long a task is kept, from its creation: 1 hour. Its outcome is kept for 5 minutes at
    /// least.
    pub ttl: Duration,
    /// The longest that a client may wish for: 24 hours.
    pub longest_ttl: Duration,
    /// The longest result, in bytes: 4 MiB. With a longer one, the task fails.
    pub result: usize,
    /// How long a process may run a task without renewing its lease, in a store that several
    /// processes use: 30 seconds. It renews after a third, and stops its own handlers shortly
    /// before the end if it could not; afterwards another process takes over.
    pub lease: Duration,
    /// How many handlers run at a time in this process: 1,000. Those of further tasks wait for
    /// their turn, also after a restart. A handler that waits for an answer does not run.
    pub running: usize,
    /// How many of one principal run at a time: 100. A call that
    /// [becomes a task later](TaskMode::After) and finds no place stays an ordinary call.
    pub running_per_owner: usize,
    /// How many rounds of questions a task may have: 100.
    pub rounds: u32,
    /// How soon a task may be polled again that was polled 20 times in quick succession: 100 ms. A
    /// poll that comes earlier is answered then, or when the task changes. Zero turns this off.
    pub poll: Duration,
    /// The bytes of all tasks in memory: 64 MiB. It does not concern other stores.
    pub memory: usize,
    /// The share of it that the tasks of one principal may take: 16 MiB.
    pub memory_per_owner: usize,
    /// The bytes of all tasks in another store that bounds them, such as `bowline-redb`: 1 GiB.
    pub stored: usize,
    /// The share of it that the tasks of one principal may take: 256 MiB.
    pub stored_per_owner: usize,
}

impl Default for TaskLimits {
    fn default() -> Self {
        Self {
            tasks: 10_000,
            tasks_per_owner: 1_000,
            ttl: Duration::from_secs(3_600),
            longest_ttl: Duration::from_secs(24 * 3_600),
            result: 4 << 20,
            lease: Duration::from_secs(30),
            running: 1_000,
            running_per_owner: 100,
            rounds: 100,
            poll: Duration::from_millis(100),
            memory: 64 << 20,
            memory_per_owner: 16 << 20,
            stored: 1 << 30,
            stored_per_owner: 256 << 20,
        }
    }
}

impl TaskLimits {
    /// How long a task is kept whose caller has a wish, in milliseconds.
    fn ttl(&self, wish: Option<u64>) -> u64 {
        match wish {
            Some(wish) => wish.clamp(1_000, millis(self.longest_ttl).max(1_000)),
            None => millis(self.ttl),
        }
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl Tasks {
    /// Tasks that end with the process.
    pub fn in_memory() -> Self {
        Self::in_memory_with(TaskLimits::default())
    }

    /// The same, with other limits.
    pub fn in_memory_with(limits: TaskLimits) -> Self {
        let (store, bytes) = (InMemory::default(), (limits.memory, limits.memory_per_owner));
        Self(Arc::new(Shared::new(Arc::new(store), limits, bytes, false)))
    }

    /// Tasks in a store that only this process uses: what another process was running is over.
    pub fn in_store(store: impl TaskStore, limits: TaskLimits) -> Self {
        let bytes = (limits.stored, limits.stored_per_owner);
        Self(Arc::new(Shared::new(Arc::new(store), limits, bytes, false)))
    }

    /// Tasks in a store that several processes use at the same time. Each run has a lease, and is
    /// taken over when that is not renewed.
    pub fn in_shared_store(store: impl TaskStore, limits: TaskLimits) -> Self {
        let bytes = (limits.stored, limits.stored_per_owner);
        Self(Arc::new(Shared::new(Arc::new(store), limits, bytes, true)))
    }

    /// A task whose tool has returned [`Elsewhere`], for ending it.
    pub fn outside(&self, id: impl Into<String>) -> OutsideTask {
        OutsideTask { tasks: self.clone(), id: id.into() }
    }

    fn shared(&self) -> &Arc<Shared> {
        &self.0
    }

    /// The extension that serves them, in both generations.
    pub(crate) fn extension(&self) -> Extension {
        let tasks = self.clone();
        // Valid in the modern era only, even if a client declares it earlier.
        let extension = Extension::new(task_extension::ID).declared_in(Revision::MODERN..).on_stop(
            move |grace| {
                let tasks = tasks.clone();
                async move { tasks.0.stop(grace).await }
            },
        );
        legacy::add(methods::add(extension, self), self)
    }

    /// What a server declares in 2025-11-25.
    pub(crate) fn capability(transport: Transport, has_principal: bool) -> ServerTasksCapability {
        let call = ToolTasks { call: Some(Map::new()) };
        ServerTasksCapability {
            list: legacy::can_list(transport, has_principal).then(Map::new),
            cancel: Some(Map::new()),
            requests: Some(ServerTaskRequests { tools: Some(call) }),
        }
    }

    /// Makes them those of a server. Returns whether they were not those of another one.
    pub(crate) fn belong_to(&self, core: &Arc<Core>) -> bool {
        self.0.belong_to(core)
    }

    /// Goes on with what an earlier process has left.
    pub(crate) fn start(&self) {
        self.0.start_sweeping();
    }

    /// What became of the leases of tasks in this process.
    pub(crate) fn counts(&self) -> TaskCounts {
        self.0.counts()
    }

    /// The tasks whose changes somebody in this process waits for.
    pub(crate) fn watched(&self) -> Vec<String> {
        self.0.watched()
    }

    /// Takes in that another process may have changed a task.
    pub(crate) async fn handle_change(&self, id: &str) {
        self.0.handle_change(id).await;
    }

    /// What a status notification to a legacy session shows, and whether it is the last one about
    /// this task.
    pub(crate) fn shown(&self, id: &str) -> Option<(bowline_proto::model::Task, bool)> {
        self.0.views.show(id)
    }
}
