//! Messages that could not be sent: kept on disk, in order for each destination, and sent later.
//!
//! Plain files instead of a database: a queue that is only appended to and read from its beginning
//! needs an atomic rename and a flush, which every file system has, and people can look at it.
//!
//! Nothing that was answered with "spooled" is lost, even if the process is killed. Up to
//! `queue::GROUP` messages may arrive twice if that happens, or if the connection breaks,
//! while they are being sent: syslog has no acknowledgements.

mod drain;
mod lock;
mod queue;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::{fs, io};

use bowline::Registry;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::runtime::Handle;
use tokio::sync::{Mutex, OwnedMutexGuard, Semaphore};
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::Instant;

use self::queue::Queue;
use crate::arguments::Endpoint;
use crate::config::Config;
use crate::destination::{Destination, Transport};
use crate::plan::{self, PlanError};
use crate::rate::Rate;
use crate::transport::Network;

/// The resource that shows what is waiting.
pub const SPOOL_URI: &str = "syslog://spool";

/// Where messages are kept that could not be sent, and how many.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpoolSettings {
    /// The folder. One process at a time can use it.
    pub dir: PathBuf,
    /// The most messages of all destinations together; 10,000 by default.
    #[serde(default = "max_messages")]
    pub max_messages: usize,
    /// The most bytes of all destinations together; 64 MiB by default.
    #[serde(default = "max_bytes")]
    pub max_bytes: u64,
    /// How long to wait after the first failure before sending again, in milliseconds; 1000 by
    /// default. The time doubles with every failure.
    #[serde(default = "retry_ms")]
    pub retry_ms: u64,
    /// The longest time to wait, in milliseconds; 60,000 by default.
    #[serde(default = "max_retry_ms")]
    pub max_retry_ms: u64,
}

impl SpoolSettings {
    /// A spool in a folder, with the default limits.
    pub fn new(dir: PathBuf) -> Self {
        Self {
            dir,
            max_messages: max_messages(),
            max_bytes: max_bytes(),
            retry_ms: retry_ms(),
            max_retry_ms: max_retry_ms(),
        }
    }
}

fn max_messages() -> usize {
    10_000
}

fn max_bytes() -> u64 {
    64 << 20
}

fn retry_ms() -> u64 {
    1_000
}

fn max_retry_ms() -> u64 {
    60_000
}

/// Why the spool cannot be used, or does not keep a message.
#[derive(Debug, thiserror::Error)]
pub enum SpoolError {
    /// Another process uses the folder.
    #[error("{} is in use by another mcp-logger; give each one a folder of its own", .0.display())]
    InUse(PathBuf),
    /// The folder cannot be read or written.
    #[error("{}", .dir.display())]
    Io {
        /// The folder.
        dir: PathBuf,
        /// The error of the system.
        #[source]
        cause: io::Error,
    },
    /// There is no room.
    #[error(
        "the spool is full: {messages} messages with {bytes} bytes are waiting, and at most \
         {max_messages} with {max_bytes} are kept"
    )]
    Full {
        /// How many messages are waiting.
        messages: usize,
        /// How many bytes they have.
        bytes: u64,
        /// The limit of messages.
        max_messages: usize,
        /// The limit of bytes.
        max_bytes: u64,
    },
}

/// What is waiting.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct SpoolState {
    /// The number of messages.
    pub messages: usize,
    /// The number of bytes.
    pub bytes: u64,
    /// The most messages that are kept.
    pub max_messages: usize,
    /// The most bytes that are kept.
    pub max_bytes: u64,
    /// The destinations that messages are waiting for.
    pub destinations: Vec<WaitingState>,
}

/// What is waiting for one destination.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct WaitingState {
    /// The destination.
    pub target: String,
    /// The transport, unless the target is no longer configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transport: Option<Transport>,
    /// The number of messages.
    pub messages: usize,
    /// The number of bytes.
    pub bytes: u64,
    /// How often sending has failed in a row.
    pub failures: u32,
    /// Why it failed the last time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// In how many milliseconds it is tried again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_in_ms: Option<u64>,
}

/// A destination as it is stored: a target by its name, because its settings may change.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(untagged)]
enum Waypoint {
    Target { target: String },
    Server(Endpoint),
}

/// The queue of one destination, and how sending goes.
#[derive(Debug)]
struct Line {
    waypoint: Waypoint,
    queue: Queue,
    failures: u32,
    error: Option<String>,
    retry: Option<Instant>,
    is_draining: bool,
}

/// The queues by the names of their folders.
type Lines = BTreeMap<String, Line>;

/// Messages that wait on disk.
#[derive(Debug)]
pub struct Spool {
    settings: SpoolSettings,
    config: Config,
    network: Network,
    /// Its own: what is sent late takes nothing away from callers.
    rate: Rate,
    lines: Arc<Mutex<Lines>>,
    /// How many destinations are sent to at once.
    places: Semaphore,
    tasks: std::sync::Mutex<JoinSet<()>>,
    registry: OnceLock<Registry>,
    _lock: lock::Lock,
}

/// How many destinations the spool sends to at once.
const AT_ONCE: usize = 8;

impl Spool {
    /// Opens a folder, and sends what an earlier process left in it, if there is a runtime.
    ///
    /// # Errors
    /// If another process uses the folder, or it cannot be read or written.
    pub fn open(
        settings: SpoolSettings,
        config: &Config,
        network: &Network,
    ) -> Result<Arc<Self>, SpoolError> {
        let broken = |cause| SpoolError::Io { dir: settings.dir.clone(), cause };
        queue::private_folder(&settings.dir).map_err(broken)?;
        let lock = lock::Lock::take(&settings.dir.join("lock")).map_err(broken)?;
        let lock = lock.ok_or_else(|| SpoolError::InUse(settings.dir.clone()))?;
        let mut lines = Lines::new();
        for entry in fs::read_dir(&settings.dir).map_err(broken)? {
            let entry = entry.map_err(broken)?;
            if entry.path().is_dir()
                && let Some((queue, stored)) = Queue::open(entry.path()).map_err(broken)?
            {
                let waypoint = serde_json::from_slice(&stored).map_err(io::Error::from);
                let waypoint = waypoint.map_err(broken)?;
                let key = entry.file_name().to_string_lossy().into_owned();
                lines.insert(key, Line::new(waypoint, queue));
            }
        }
        let keys: Vec<String> = lines.keys().cloned().collect();
        let spool = Arc::new(Self {
            rate: Rate::new(config.messages_per_second, config.burst),
            config: config.clone(),
            network: network.clone(),
            lines: Arc::new(Mutex::new(lines)),
            places: Semaphore::new(AT_ONCE),
            tasks: std::sync::Mutex::default(),
            registry: OnceLock::new(),
            settings,
            _lock: lock,
        });
        if Handle::try_current().is_ok() {
            keys.into_iter().for_each(|key| spool.start(key));
        }
        Ok(spool)
    }

    /// Announces changes of [`SPOOL_URI`] there.
    pub fn announce_to(&self, registry: Registry) {
        let _ = self.registry.set(registry);
    }

    fn announce(&self) {
        if let Some(registry) = self.registry.get() {
            registry.resource_updated(SPOOL_URI);
        }
    }

    /// Whether messages are waiting for a destination. Then others must wait behind them.
    pub async fn is_waiting(&self, to: &Destination) -> bool {
        let lines = self.lines.lock().await;
        !lines.is_empty() && lines.contains_key(&Waypoint::of(to).key())
    }

    /// Keeps messages, all or none, and returns how many are waiting for their destination then.
    /// They are on the disk when this returns.
    ///
    /// # Errors
    /// If the spool is full or cannot be written.
    ///
    /// # Cancel safety
    /// When it is dropped, the messages may be kept or not.
    pub async fn keep(
        self: &Arc<Self>,
        to: &Destination,
        messages: Vec<Vec<u8>>,
    ) -> Result<usize, SpoolError> {
        let waypoint = Waypoint::of(to);
        let key = waypoint.key();
        let (spool, name) = (Arc::clone(self), key.clone());
        let kept = self.with(move |lines| spool.keep_in(lines, name, waypoint, &messages)).await;
        let waiting = kept.map_err(|cause| self.broken(cause))??;
        self.start(key);
        self.announce();
        Ok(waiting)
    }

    fn keep_in(
        &self,
        lines: &mut Lines,
        key: String,
        waypoint: Waypoint,
        messages: &[Vec<u8>],
    ) -> Result<usize, SpoolError> {
        let SpoolSettings { max_messages, max_bytes, .. } = self.settings;
        let (waiting, bytes) = totals(lines);
        let more = u64::try_from(queue::size(messages)).unwrap_or(u64::MAX);
        if waiting + messages.len() > max_messages || bytes.saturating_add(more) > max_bytes {
            return Err(SpoolError::Full { messages: waiting, bytes, max_messages, max_bytes });
        }
        if let Some(line) = lines.get_mut(&key) {
            line.queue.add(messages).map_err(|cause| self.broken(cause))?;
            return Ok(line.queue.messages());
        }
        let destination = serde_json::to_vec_pretty(&waypoint).map_err(io::Error::from);
        let queue = destination.and_then(|it| Queue::create(self.settings.dir.join(&key), &it));
        let mut queue = queue.map_err(|cause| self.broken(cause))?;
        if let Err(cause) = queue.add(messages) {
            queue.delete();
            return Err(self.broken(cause));
        }
        lines.insert(key, Line::new(waypoint, queue));
        Ok(messages.len())
    }

    fn broken(&self, cause: io::Error) -> SpoolError {
        SpoolError::Io { dir: self.settings.dir.clone(), cause }
    }

    /// Works with the files, away from the threads of the runtime.
    async fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Lines) -> T + Send + 'static,
    ) -> io::Result<T> {
        let mut lines: OwnedMutexGuard<Lines> = Arc::clone(&self.lines).lock_owned().await;
        spawn_blocking(move || work(&mut lines)).await.map_err(io::Error::other)
    }

    /// What is waiting.
    pub async fn state(&self) -> SpoolState {
        let lines = self.lines.lock().await;
        let (messages, bytes) = totals(&lines);
        let now = Instant::now();
        let destinations = lines.values().map(|line| {
            let to = line.waypoint.resolve(&self.config).ok();
            let until = line.retry.map(|at| at.saturating_duration_since(now).as_millis());
            WaitingState {
                target: to.as_ref().map_or_else(|| line.waypoint.name(), ToString::to_string),
                transport: to.map(|it| it.transport),
                messages: line.queue.messages(),
                bytes: line.queue.bytes(),
                failures: line.failures,
                error: line.error.clone(),
                retry_in_ms: until.map(|it| u64::try_from(it).unwrap_or(u64::MAX)),
            }
        });
        let SpoolSettings { max_messages, max_bytes, .. } = self.settings;
        let destinations = destinations.collect();
        SpoolState { messages, bytes, max_messages, max_bytes, destinations }
    }
}

impl Line {
    fn new(waypoint: Waypoint, queue: Queue) -> Self {
        Self { waypoint, queue, failures: 0, error: None, retry: None, is_draining: false }
    }
}

impl Waypoint {
    fn of(to: &Destination) -> Self {
        match &to.target {
            Some(target) => Self::Target { target: target.clone() },
            None => Self::Server(Endpoint {
                server: to.host.to_string(),
                port: (to.transport != Transport::Unix).then_some(to.port),
                transport: Some(to.transport),
                framing: Some(to.framing),
                timeout_ms: None,
            }),
        }
    }

    /// The name of its folder.
    fn key(&self) -> String {
        let text = serde_json::to_vec(self).unwrap_or_default();
        let digest = ring::digest::digest(&ring::digest::SHA256, &text);
        digest.as_ref()[..16].iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Where its messages go by this configuration.
    fn resolve(&self, config: &Config) -> Result<Destination, PlanError> {
        match self {
            Self::Target { target } if !config.targets.contains_key(target) => {
                Err(PlanError::NoTarget(target.clone()))
            }
            Self::Target { target } => {
                let endpoint = Endpoint { server: target.clone(), ..Endpoint::default() };
                plan::destination(config, &endpoint)
            }
            // A target of that name, configured since, is another place.
            Self::Server(endpoint) => plan::server(config, endpoint),
        }
    }

    fn name(&self) -> String {
        match self {
            Self::Target { target } => target.clone(),
            Self::Server(endpoint) => endpoint.server.clone(),
        }
    }
}

fn totals(lines: &Lines) -> (usize, u64) {
    let of = |line: &Line| (line.queue.messages(), line.queue.bytes());
    lines.values().map(of).fold((0, 0), |sum, it| (sum.0 + it.0, sum.1 + it.1))
}
