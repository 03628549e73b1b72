//! A world: its disk, its servers, its clients, and what happens to them.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bowline::TaskLimits;
use bowline::tasks::OutsideError;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use crate::disk::Disk;
use crate::people::Person;
use crate::process::{Node, Process};
use crate::random::Random;

pub(crate) struct World {
    pub(crate) random: Random,
    /// Whether two servers use the disk at the same time.
    pub(crate) is_shared: bool,
    /// Whether nothing breaks: servers stop, and that is all.
    pub(crate) is_calm: bool,
    pub(crate) limits: TaskLimits,
    /// The tasks whose handlers were cut down by servers that stopped.
    cut: Mutex<BTreeSet<String>>,
    disk: Mutex<Disk>,
    is_stormy: AtomicBool,
    /// The servers that can be reached.
    pub(crate) servers: watch::Sender<Vec<Node>>,
    pub(crate) began: Instant,
}

/// Longer than any task lives, and longer than its end is remembered.
const LONG: Duration = Duration::from_secs(400);

impl World {
    /// Lives through the world of a seed.
    pub(crate) async fn live(seed: u64) {
        let random = Random::new(seed);
        let (is_shared, is_calm) = (random.one_in(4), random.one_in(4));
        let mut limits = TaskLimits::default();
        if random.one_in(2) {
            limits.running = 1 + usize::try_from(random.below(3)).unwrap();
        }
        if random.one_in(4) {
            limits.stored = 3_000 + usize::try_from(random.below(20_000)).unwrap();
        }
        let world = Arc::new(Self {
            random,
            is_shared,
            is_calm,
            limits,
            cut: Mutex::default(),
            disk: Mutex::default(),
            is_stormy: AtomicBool::new(!is_calm),
            servers: watch::Sender::new(Vec::new()),
            began: Instant::now(),
        });
        let mut people = JoinSet::new();
        for _ in 0..=world.random.below(3) {
            people.spawn(Person::live(Arc::clone(&world)));
        }
        let processes = match (is_calm, is_shared) {
            (true, _) => world.stop().await,
            (false, true) => world.stall().await,
            (false, false) => world.crash().await,
        };
        world.is_stormy.store(false, Ordering::SeqCst);
        while let Some(person) = people.join_next().await {
            person.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()));
        }
        // A clock that began later is behind by as much.
        sleep(world.began.elapsed() + LONG).await;
        let left = world.disk().unfinished();
        assert!(left.is_empty(), "these never end: {left:?}");
        sleep(world.began.elapsed() + LONG).await;
        assert_eq!(world.disk().len(), 0, "ends are forgotten some time");
        drop(processes);
    }

    /// Servers that crash, and others that take their place.
    async fn crash(self: &Arc<Self>) -> Vec<Arc<Process>> {
        let mut processes = Vec::new();
        for _ in 0..=self.random.below(4) {
            let (process, service) = Process::start(self);
            self.servers.send_replace(vec![service]);
            sleep(Duration::from_millis(self.random.below(20_000))).await;
            processes.push(process);
            if let [.., dead, _] = &processes[..] {
                assert!(!Arc::ptr_eq(dead, &processes[processes.len() - 1]));
            }
            if self.random.one_in(4) {
                break;
            }
            let last = processes.len() - 1;
            processes[last].kill();
            self.servers.send_replace(Vec::new());
        }
        if self.servers.borrow().is_empty() {
            let (process, service) = Process::start(self);
            self.servers.send_replace(vec![service]);
            processes.push(process);
        }
        sleep(Duration::from_millis(self.random.below(20_000))).await;
        processes
    }

    /// Two servers, one of which is sometimes too slow to renew its leases.
    async fn stall(self: &Arc<Self>) -> Vec<Arc<Process>> {
        let [one, two] = [Process::start(self), Process::start(self)];
        self.servers.send_replace(vec![one.1, two.1]);
        for _ in 0..self.random.below(4) {
            sleep(Duration::from_millis(self.random.below(30_000))).await;
            let slow = if self.random.one_in(2) { &one.0 } else { &two.0 };
            slow.stall(true);
            sleep(Duration::from_millis(self.random.below(90_000))).await;
            slow.stall(false);
        }
        vec![one.0, two.0]
    }

    /// Servers that stop, and others that take their place.
    async fn stop(self: &Arc<Self>) -> Vec<Arc<Process>> {
        let count = if self.is_shared { 2 } else { 1 };
        let mut all: Vec<_> = (0..count).map(|_| Process::start(self)).collect();
        for _ in 0..self.random.below(4) {
            self.reach(&all[all.len() - count..]);
            sleep(Duration::from_millis(self.random.below(40_000))).await;
            let at = all.len() - count;
            self.reach(&all[at + 1..]);
            // Whoever is about to send something has done so.
            sleep(Duration::from_millis(1)).await;
            all[at].0.stop(&all[at].1.service).await;
            all.push(Process::start(self));
        }
        self.reach(&all[all.len() - count..]);
        all.into_iter().map(|(process, _)| process).collect()
    }

    fn reach(&self, processes: &[(Arc<Process>, Node)]) {
        self.servers.send_replace(processes.iter().map(|(_, node)| node.clone()).collect());
    }

    /// Ends a task whose work is done outside, through whatever server is there.
    pub(crate) async fn end_outside(self: Arc<Self>, task: String) {
        sleep(Duration::from_millis(self.random.below(20_000))).await;
        loop {
            let node = self.servers.borrow().first().cloned();
            if let Some(Node { tasks, .. }) = node {
                let outside = tasks.outside(&task);
                let ended = timeout(Duration::from_secs(30), outside.complete("outside")).await;
                if let Ok(Ok(()) | Err(OutsideError::Ended | OutsideError::Unknown)) = ended {
                    return;
                }
            }
            sleep(Duration::from_secs(1)).await;
        }
    }

    pub(crate) fn note_cut(&self, task: &str) {
        self.cut.lock().unwrap_or_else(PoisonError::into_inner).insert(task.to_owned());
    }

    pub(crate) fn was_cut(&self, task: &str) -> bool {
        self.cut.lock().unwrap_or_else(PoisonError::into_inner).contains(task)
    }

    /// The disk. A change that must not be breaks it, and with it the world.
    pub(crate) fn disk(&self) -> MutexGuard<'_, Disk> {
        self.disk.lock().expect("nothing was wrong before")
    }

    /// A clock for all, in milliseconds since 1970.
    pub(crate) fn now(&self) -> u64 {
        1_800_000_000_000 + u64::try_from(self.began.elapsed().as_millis()).unwrap()
    }

    pub(crate) fn is_stormy(&self) -> bool {
        self.is_stormy.load(Ordering::SeqCst)
    }
}
