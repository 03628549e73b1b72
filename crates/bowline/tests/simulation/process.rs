//! A server process, and its way to the disk, which fails and hesitates.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bowline::http::HttpService;
use bowline::tasks::{Quota, StoreError, StoreFuture, TaskRecord, TaskStore};
use bowline::{Limits, Server, TaskLimits, Tasks};
use serde_json::Value;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};

use crate::disk::{Disk, to_value};
use crate::tools;
use crate::world::World;

/// A server process. It does nothing any more once it is dead.
pub(crate) struct Process {
    pub(crate) world: Arc<World>,
    is_dead: AtomicBool,
    /// Its writes and reads take very long.
    is_stalled: AtomicBool,
    /// When it was told to stop.
    stopped: Mutex<Option<Instant>>,
    /// The name under which it runs tasks, once that is known.
    holder: Mutex<Option<String>>,
}

/// How a server process is reached.
#[derive(Clone)]
pub(crate) struct Node {
    pub(crate) service: HttpService,
    pub(crate) tasks: Tasks,
}

impl Process {
    /// Starts one.
    pub(crate) fn start(world: &Arc<World>) -> (Arc<Self>, Node) {
        let process = Arc::new(Self {
            world: Arc::clone(world),
            is_dead: AtomicBool::new(false),
            is_stalled: AtomicBool::new(false),
            stopped: Mutex::default(),
            holder: Mutex::default(),
        });
        let limits = TaskLimits { ttl: Duration::from_secs(90), ..world.limits };
        let store = Store(Arc::clone(&process));
        let tasks = match world.is_shared {
            true => Tasks::in_shared_store(store, limits),
            false => Tasks::in_store(store, limits),
        };
        let server = Server::new("simulated", "1.0.0").with(tools::all(&process));
        let service = server.tasks(tasks.clone()).http().into_service().unwrap();
        (process, Node { service, tasks })
    }

    /// Tells it to stop, and waits as long as that may take.
    pub(crate) async fn stop(&self, service: &HttpService) {
        *self.stopped.lock().unwrap() = Some(Instant::now());
        service.stop();
        sleep(Limits::default().grace + Duration::from_secs(1)).await;
    }

    /// Whether it was told to stop a while ago.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopped.lock().unwrap().is_some_and(|at| at < Instant::now())
    }

    /// Checks a change where nothing breaks: only a handler that was cut down by a stop is lost,
    /// and a server that stops begins nothing.
    fn check_calm(&self, before: &TaskRecord, next: &TaskRecord, is_stopping: bool) {
        let (before, after) = (to_value(before), to_value(next));
        let error = after["state"]["Failed"]["error"]["message"].as_str().unwrap_or_default();
        let is_lost = error.ends_with("; call again");
        assert!(!is_lost || self.world.was_cut(next.id()), "it was not cut: {before} to {after}");
        let is_queued = |record: &Value| record["is_queued"] == true;
        let begins = is_queued(&before) && !is_queued(&after) && after["state"] == "Working";
        assert!(!begins || !is_stopping, "begun by a server that stops: {before} to {after}");
    }

    pub(crate) fn kill(&self) {
        self.is_dead.store(true, Ordering::SeqCst);
    }

    pub(crate) fn stall(&self, is_stalled: bool) {
        self.is_stalled.store(is_stalled, Ordering::SeqCst);
    }

    /// Never ready in a process that is dead.
    pub(crate) async fn alive(&self) {
        if self.is_dead.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
    }

    async fn hesitate(&self) {
        let random = &self.world.random;
        if self.is_stalled.load(Ordering::SeqCst) {
            sleep(Duration::from_secs(random.below(90))).await;
        } else if self.world.is_stormy() {
            match random.below(8) {
                0 => sleep(Duration::from_millis(random.below(3_000))).await,
                1..4 => sleep(Duration::from_millis(random.below(20))).await,
                4 => tokio::task::yield_now().await,
                _ => {}
            }
        }
        self.alive().await;
    }
}

/// Its way to the disk.
struct Store(Arc<Process>);

impl Store {
    /// Does something on the disk, like a thread of its own: whether or not anybody still waits.
    fn access<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Disk, &mut Option<String>) -> Result<T, StoreError> + Send + 'static,
    ) -> StoreFuture<'_, T> {
        let process = Arc::clone(&self.0);
        let failed = || StoreError::failed("the disk failed");
        let (send, receive) = oneshot::channel();
        // As with every future, nothing happens before it is polled.
        let work = async move {
            process.hesitate().await;
            let fails = |times| process.world.is_stormy() && process.world.random.one_in(times);
            if fails(20) {
                return drop(send.send(Err(failed())));
            }
            let done = work(&mut process.world.disk(), &mut process.holder.lock().unwrap());
            process.hesitate().await;
            // It is done, and nobody knows.
            let done = if fails(20) { Err(failed()) } else { done };
            drop(send.send(done));
        };
        Box::pin(async move {
            tokio::spawn(work);
            receive.await.map_err(StoreError::failed)?
        })
    }
}

impl TaskStore for Store {
    fn create(&self, record: Arc<TaskRecord>, quota: Quota) -> StoreFuture<'_, ()> {
        self.access(move |disk, holder| {
            let of = to_value(&record)["lease"]["holder"].as_str().unwrap().to_owned();
            assert_eq!(*holder.get_or_insert_with(|| of.clone()), of, "one name for a process");
            if !disk.has_room(&record, quota) {
                return Err(StoreError::Full);
            }
            disk.create(record);
            Ok(())
        })
    }

    fn load<'a>(&'a self, id: &'a str) -> StoreFuture<'a, Option<Arc<TaskRecord>>> {
        let id = id.to_owned();
        self.access(move |disk, _| Ok(disk.load(&id)))
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
        let (id, process, is_stopping) = (id.to_owned(), Arc::clone(&self.0), self.0.is_stopping());
        self.access(move |disk, holder| {
            let before = disk.load(&id).filter(|it| it.version() == version);
            if let (Some(before), Some(next)) = (&before, &next) {
                if !disk.has_room(next, quota) {
                    return Err(StoreError::Full);
                }
                if process.world.is_calm {
                    process.check_calm(before, next, is_stopping);
                }
            }
            Ok(disk.swap(&id, version, next, holder))
        })
    }

    fn page<'a>(
        &'a self,
        owner: Option<&'a str>,
        after: Option<(u64, &'a str)>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<Arc<TaskRecord>>> {
        let owner = owner.map(str::to_owned);
        let after = after.map(|(created, id)| (created, id.to_owned()));
        self.access(move |disk, _| {
            let after = after.as_ref().map(|(created, id)| (*created, id.as_str()));
            let mut page = disk.page(owner.as_deref(), after);
            page.truncate(limit);
            Ok(page)
        })
    }

    fn now(&self) -> Option<u64> {
        // Servers that share a disk and start one after another need the same clock.
        self.0.world.is_shared.then(|| self.0.world.now())
    }

    fn due(&self, now: u64, limit: usize) -> StoreFuture<'_, Vec<String>> {
        self.access(move |disk, _| Ok(disk.due(now, limit)))
    }
}
