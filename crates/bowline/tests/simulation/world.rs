//! A world: its disk, its servers, its clients, and what happens to them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bowline::http::HttpService;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::disk::Disk;
use crate::people::Person;
use crate::process::Process;
use crate::random::Random;

pub(crate) struct World {
    pub(crate) random: Random,
    /// Whether two servers use the disk at the same time.
    pub(crate) is_shared: bool,
    disk: Mutex<Disk>,
    is_stormy: AtomicBool,
    /// The servers that can be reached.
    pub(crate) servers: watch::Sender<Vec<HttpService>>,
    pub(crate) began: Instant,
}

/// Longer than any task lives, and longer than its end is remembered.
const LONG: Duration = Duration::from_secs(400);

impl World {
    /// Lives through the world of a seed.
    pub(crate) async fn live(seed: u64) {
        let random = Random::new(seed);
        let is_shared = random.one_in(4);
        let world = Arc::new(Self {
            random,
            is_shared,
            disk: Mutex::default(),
            is_stormy: AtomicBool::new(true),
            servers: watch::Sender::new(Vec::new()),
            began: Instant::now(),
        });
        let mut people = JoinSet::new();
        for _ in 0..=world.random.below(3) {
            people.spawn(Person::live(Arc::clone(&world)));
        }
        let processes = match is_shared {
            true => world.stall().await,
            false => world.crash().await,
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

    pub(crate) fn disk(&self) -> MutexGuard<'_, Disk> {
        self.disk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_stormy(&self) -> bool {
        self.is_stormy.load(Ordering::SeqCst)
    }
}
