//! The schedule, and the whole run.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bowline_fleet::Fleet;
use rustix::process::Signal;
use tokio::task::JoinSet;

use crate::check;
use crate::clients::{History, Random, create_tasks, hold_sessions, watch_changes};
use crate::node::{LEASE, Node};
use crate::proxy::Proxy;
use crate::stores::{Folder, Postgres, Redis, free_port};

/// Everything that can go wrong.
#[derive(Debug, Clone, Copy)]
enum Fault {
    KillNode,
    /// Longer than a lease: when it goes on, others have taken over.
    StopNode,
    CutOffNode,
    /// No letter of another node arrives.
    PartNodes,
    RestartPostgres,
    KillPostgres,
    LoseRedis,
    /// The clock of the database goes forward or back by some leases, and later returns.
    StepClock,
    RotateKeys,
    RollingRestart,
}

const FAULTS: [Fault; 10] = [
    Fault::KillNode,
    Fault::StopNode,
    Fault::CutOffNode,
    Fault::PartNodes,
    Fault::RestartPostgres,
    Fault::KillPostgres,
    Fault::LoseRedis,
    Fault::StepClock,
    Fault::RotateKeys,
    Fault::RollingRestart,
];

struct Trial {
    postgres: Postgres,
    redis: Redis,
    nodes: Vec<Node>,
    /// On the way of each node to its stores.
    proxies: Vec<[Proxy; 2]>,
    /// On the way of other nodes to each.
    letters: Vec<Proxy>,
    fleet: Fleet,
}

const DATABASE: &str = "trial";

/// The seed of choice; otherwise the same one each time, and another one for each full run.
fn seed(is_full: bool) -> u64 {
    let chosen = std::env::var("BOWLINE_SEED").ok().and_then(|seed| seed.parse().ok());
    chosen.unwrap_or_else(|| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        if is_full { now.unwrap().as_secs() } else { 21 }
    })
}

pub async fn run() {
    let is_full = std::env::var_os("BOWLINE_FULL").is_some();
    let seed = seed(is_full);
    println!("BOWLINE_SEED={seed}");
    let began = Instant::now();
    let folder = Folder::new("trial");
    let mut trial = Trial::start(&folder).await;
    let history = Arc::new(History::default());
    let ports = [trial.nodes[0].port, trial.nodes[1].port, trial.nodes[2].port];
    let stop = Arc::new(AtomicBool::new(false));
    let mut random = Random(seed);
    // Four clients create some more than 10,000 tasks in an hour.
    let (least, hour, pause) = match is_full {
        true => (10_000, Duration::from_secs(3_600), Duration::from_millis(1_200)),
        false => (50, Duration::ZERO, Duration::ZERO),
    };
    let mut caused = 0;
    let clients = clients(&history, ports, seed, (&stop, pause));
    loop {
        let mut faults = FAULTS.to_vec();
        while !faults.is_empty() {
            let fault = faults.remove(random.below(faults.len()));
            println!("{:6.1} s  {fault:?}", began.elapsed().as_secs_f64());
            trial.cause(fault, &mut random, &history).await;
            caused += 1;
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        let created = history.tasks.lock().unwrap().len();
        if began.elapsed() >= hour && created >= least {
            break;
        }
    }
    stop.store(true, Ordering::Release);
    clients.join_all().await;
    for node in &trial.nodes {
        node.ready().await;
    }
    println!("{:6.1} s  peace", began.elapsed().as_secs_f64());
    check::tasks_end(&history, ports).await;
    let effects = check::effects(&history, &folder.path().join("effects"));
    check::fences(&history, &trial.postgres, DATABASE);
    check::sessions(&history, ports).await;
    let lag = check::changes(&history, ports).await;
    let tasks = history.tasks.lock().unwrap().len();
    println!(
        "{:6.1} s  {tasks} tasks acknowledged: {effects}; {} calls without an id; {} questions \
         answered, {} sessions ended; {} changes heard, in peace within {lag:.1?}",
        began.elapsed().as_secs_f64(),
        history.refused.load(Ordering::Relaxed),
        history.answered.load(Ordering::Relaxed),
        history.ended.lock().unwrap().len(),
        history.heard.load(Ordering::Relaxed),
    );
    let wrong = history.wrong.lock().unwrap().len();
    println!("figure: 24 | {tasks} tasks through {caused} faults: {wrong} wrong | 0 lost, 0 wrong");
    judge(&history, seed);
}

/// Starts all clients.
fn clients(
    history: &Arc<History>,
    ports: [u16; 3],
    seed: u64,
    (stop, pause): (&Arc<AtomicBool>, Duration),
) -> JoinSet<()> {
    let mut clients = JoinSet::new();
    for number in 0..4 {
        let random = Random(seed.wrapping_add(number * 77));
        let (history, stop) = (Arc::clone(history), Arc::clone(stop));
        let creates = (Arc::clone(&stop), pause);
        clients.spawn(create_tasks(Arc::clone(&history), ports, random.clone(), creates));
        if number < 2 {
            clients.spawn(hold_sessions(history, ports, random, stop));
        } else {
            clients.spawn(watch_changes(history, ports, random, stop));
        }
    }
    clients
}

/// Fails if anything was wrong.
fn judge(history: &History, seed: u64) {
    let wrong = history.wrong.lock().unwrap();
    for what in wrong.iter().take(20) {
        println!("WRONG: {what}");
    }
    assert!(wrong.is_empty(), "{} things were wrong, with BOWLINE_SEED={seed}", wrong.len());
}

impl Trial {
    async fn start(folder: &Folder) -> Self {
        let (postgres, redis) = (Postgres::start(), Redis::start());
        postgres.sql("postgres", &format!("CREATE DATABASE {DATABASE}")).unwrap();
        let fleet = Fleet::connect(&Postgres::url(DATABASE, postgres.port)).await.unwrap();
        postgres.sql(DATABASE, check::AUDIT).unwrap();
        let (mut nodes, mut proxies, mut letters) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..3 {
            let [one, two] = [Proxy::start(postgres.port).await, Proxy::start(redis.port).await];
            let stores =
                (Postgres::url(DATABASE, one.port), format!("redis://127.0.0.1:{}", two.port));
            let port = free_port();
            let letter = Proxy::start(port).await;
            let node = Node::new((port, letter.port), (&stores.0, &stores.1), folder.path());
            node.start();
            nodes.push(node);
            proxies.push([one, two]);
            letters.push(letter);
        }
        for node in &nodes {
            node.ready().await;
        }
        Self { postgres, redis, nodes, proxies, letters, fleet }
    }

    /// Causes a fault, and puts it right again.
    async fn cause(&mut self, fault: Fault, random: &mut Random, history: &History) {
        let ends = |node: &Node| history.ended_nodes.lock().unwrap().push(node.port);
        let at = random.below(self.nodes.len());
        let pause = async |seconds: f64| {
            tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
        };
        match fault {
            Fault::KillNode => {
                ends(&self.nodes[at]);
                self.nodes[at].kill();
                pause(1.0).await;
                self.nodes[at].start();
                self.nodes[at].ready().await;
            }
            Fault::StopNode => {
                self.nodes[at].signal(Signal::STOP);
                pause(LEASE.as_secs_f64() * 1.5).await;
                self.nodes[at].signal(Signal::CONT);
            }
            Fault::CutOffNode => {
                self.proxies[at].iter().for_each(|proxy| proxy.cut(true));
                pause(LEASE.as_secs_f64() * 1.5).await;
                self.proxies[at].iter().for_each(|proxy| proxy.cut(false));
            }
            Fault::PartNodes => {
                self.letters.iter().for_each(|proxy| proxy.cut(true));
                pause(LEASE.as_secs_f64()).await;
                self.letters.iter().for_each(|proxy| proxy.cut(false));
            }
            Fault::RestartPostgres | Fault::KillPostgres => {
                if matches!(fault, Fault::KillPostgres) {
                    self.postgres.kill();
                } else {
                    self.postgres.stop();
                }
                pause(1.0).await;
                self.postgres.run();
            }
            Fault::LoseRedis => {
                self.redis.kill();
                pause(3.0).await;
                self.redis.run();
            }
            Fault::StepClock => self.step_clock(random.below(2) == 0).await,
            Fault::RotateKeys => {
                // The connections of this process may be those of an earlier Postgres.
                while self.fleet.rotate_keys().await.is_err() {
                    pause(0.1).await;
                }
            }
            Fault::RollingRestart => {
                for node in &self.nodes {
                    ends(node);
                    node.stop().await;
                    node.start();
                    node.ready().await;
                }
            }
        }
    }

    /// Lets the database say for a while that it is some leases later, or earlier.
    async fn step_clock(&self, is_later: bool) {
        let leases = if is_later { 3 } else { -3 };
        let millis = leases * i64::try_from(LEASE.as_millis()).unwrap();
        let beat = "SELECT pg_get_functiondef('bowline.beat'::regproc)";
        let right = self.postgres.sql(DATABASE, beat).unwrap();
        let wrong = right.replace("* 1000)", &format!("* 1000 + {millis})"));
        assert_ne!(right, wrong, "heartbeats tell the time");
        self.postgres.sql(DATABASE, &wrong).unwrap();
        tokio::time::sleep(LEASE * 2).await;
        self.postgres.sql(DATABASE, &right).unwrap();
    }
}
