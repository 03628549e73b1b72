//! The fleet, as a server sees it.

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use bowline::TaskLimits;
use bowline::fleet::{Inbox, Node, TaskCounts};
use bowline::with_causes;
use bowline_web::{FetchLimits, Proxy, Web};
use ring::rand::{SecureRandom as _, SystemRandom};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::changes;
use crate::clock::Clock;
use crate::error::FleetError;
use crate::hear::Hints;
use crate::keys::Keys;
use crate::metrics::{Counters, Metrics};
use crate::node::LETTER;
use crate::pending::Pending;
use crate::pool::{Connections, without_password};
use crate::store::{Store, TASK};
use crate::{beat, migrate};

/// One node of a fleet. Cheap to clone; clones are the same node.
#[derive(Clone)]
pub struct Fleet {
    pub(crate) inner: Arc<Inner>,
}

/// The settings of a [`Fleet`].
#[derive(Clone)]
#[must_use = "a fleet is joined with `connect`"]
pub struct FleetBuilder {
    url: String,
    redis: Option<String>,
    redis_root: Option<Vec<u8>>,
    address: Option<String>,
    secret: Option<Vec<u8>>,
    other_secret: Option<Vec<u8>>,
    name: Option<String>,
    connections: usize,
    limits: TaskLimits,
    patience: Duration,
}

pub(crate) struct Inner {
    pub(crate) node: Node,
    /// The process, which no other one is.
    pub(crate) incarnation: Vec<u8>,
    /// Another process has the number of this node.
    pub(crate) is_displaced: AtomicBool,
    /// The server that it is a node of, once that is known.
    pub(crate) server: Arc<OnceLock<String>>,
    pub(crate) connections: Connections,
    /// For heartbeats, which must not wait until others have what they want.
    pub(crate) own_connection: Connections,
    pub(crate) clock: Arc<Clock>,
    pub(crate) keys: Keys,
    pub(crate) tasks: Store,
    pub(crate) sessions: Store,
    pub(crate) limits: TaskLimits,
    pub(crate) pending: Mutex<Pending>,
    pub(crate) announced: Arc<Notify>,
    /// Held by whoever announces, so that a node that leaves can wait for it.
    pub(crate) announcing: tokio::sync::Mutex<()>,
    pub(crate) inbox: OnceLock<Inbox>,
    pub(crate) address: Mutex<Option<String>>,
    /// The address was chosen by the operator.
    pub(crate) is_fixed: bool,
    /// The other nodes, and where they are.
    pub(crate) others: Mutex<HashMap<Node, String>>,
    pub(crate) counters: Counters,
    pub(crate) redis: Option<Hints>,
    pub(crate) web: Web,
    pub(crate) is_leaving: AtomicBool,
    /// What runs in the background.
    pub(crate) work: Mutex<JoinSet<()>>,
}

/// Where a node is.
pub(crate) enum Whereabouts {
    /// A node that was silent for a minute, and is not found there either, has left for ever.
    At { address: String, is_silent: bool },
    /// It may live, and nobody knows where.
    Unknown,
    /// It has left for ever.
    Nowhere,
}

impl Fleet {
    /// Joins the fleet of a database, whose tables are made or brought up to date.
    ///
    /// # Errors
    /// When the database cannot be reached or used.
    pub async fn connect(url: &str) -> Result<Self, FleetError> {
        Self::builder(url).connect().await
    }

    /// The settings of a fleet on this database, such as `postgres://user@host/name`.
    pub fn builder(url: impl Into<String>) -> FleetBuilder {
        FleetBuilder {
            url: url.into(),
            redis: None,
            redis_root: None,
            address: None,
            secret: None,
            other_secret: None,
            name: None,
            connections: 8,
            limits: TaskLimits::default(),
            patience: Duration::from_secs(5),
        }
    }

    /// Adds a key, which seals as soon as every node has had the time to read it. Older keys open
    /// what they have sealed for two days.
    ///
    /// # Errors
    /// When the database cannot be used.
    pub async fn rotate_keys(&self) -> Result<(), FleetError> {
        self.inner.keys.add(&self.inner.connections).await
    }

    /// Replaces all keys by a new one, because one of them has leaked: legacy sessions and request
    /// states end within a second, on all nodes.
    ///
    /// # Errors
    /// When the database cannot be used.
    pub async fn revoke_keys(&self) -> Result<(), FleetError> {
        self.inner.keys.replace(&self.inner.connections).await
    }

    /// Seals the keys in the database with the [secret](FleetBuilder::secret) of this node if
    /// [another one](FleetBuilder::other_secret) has sealed them, as nodes do once a minute.
    ///
    /// # Errors
    /// When the database cannot be used.
    pub async fn reseal_keys(&self) -> Result<(), FleetError> {
        self.inner.keys.renew(&self.inner.connections).await
    }

    /// A store in the database of the fleet, for whatever is kept like tasks: `Events::keep_in`.
    pub fn store(&self, kind: &'static str) -> Store {
        let inner = &self.inner;
        let (connections, clock) = (inner.connections.clone(), Arc::clone(&inner.clock));
        Store::new(kind, Arc::clone(&inner.server), connections, clock)
    }

    /// What this node has done so far, and how it is.
    pub fn metrics(&self) -> Metrics {
        let inner = &self.inner;
        let others = inner.others.lock().unwrap_or_else(PoisonError::into_inner).len();
        let tasks = inner.inbox.get().map_or_else(TaskCounts::default, Inbox::task_counts);
        let seen = (others, inner.clock.silence());
        Metrics::new(&inner.counters, inner.connections.usage(), seen, tasks)
    }
}

impl FleetBuilder {
    /// Lets news travel through Redis or Valkey: `redis://host`, or encrypted `rediss://host`. If it
    /// is away, news travels through Postgres, and nothing fails.
    pub fn redis(mut self, url: impl Into<String>) -> Self {
        self.redis = Some(url.into());
        self
    }

    /// Trusts a certificate authority of Redis, as PEM, instead of those of the system. That of
    /// Postgres is in its address: `sslrootcert`.
    pub fn redis_root(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.redis_root = Some(pem.into());
        self
    }

    /// Sets where other nodes reach this one, as the origin of a URL: `http://10.0.0.7:8080`. By
    /// default it is the address that the server listens on, unless that is 0.0.0.0 or `[::]`. A
    /// node that others cannot reach warns about it: legacy clients cannot answer its questions
    /// through other nodes.
    pub fn address(mut self, origin: impl Into<String>) -> Self {
        self.address = Some(origin.into());
        self
    }

    /// Seals the keys in the database with a secret of at least 32 bytes, the same on all nodes.
    /// Without one, anybody who can read the database can read them.
    pub fn secret(mut self, secret: impl Into<Vec<u8>>) -> Self {
        self.secret = Some(secret.into());
        self
    }

    /// Also opens keys in the database that this secret has sealed, for changing the secret while
    /// nodes run: first all nodes have the new one here, then they have it as their
    /// [secret](Self::secret) and the old one here, and a minute later they need the old one no
    /// more.
    pub fn other_secret(mut self, secret: impl Into<Vec<u8>>) -> Self {
        self.other_secret = Some(secret.into());
        self
    }

    /// Sets the name of the fleet: by default it is that of the server. Fleets with different names
    /// share nothing, even in one database.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets how many connections to Postgres this node opens at most, beside one for news
    /// and one for heartbeats: 8.
    pub fn connections(mut self, connections: usize) -> Self {
        self.connections = connections.max(1);
        self
    }

    /// Sets how long Postgres may take for one answer: 5 seconds.
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Replaces the limits of tasks.
    pub fn limits(mut self, limits: TaskLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Joins the fleet.
    ///
    /// # Errors
    /// When the database cannot be reached or used. Redis need not be there yet.
    pub async fn connect(self) -> Result<Fleet, FleetError> {
        let connections = Connections::new(&self.url, self.connections, self.patience)?;
        let own_connection = Connections::new(&self.url, 1, self.patience)?;
        migrate::migrate(&connections).await?;
        let redis = self.redis.as_deref().map(|url| {
            Hints::new(url, self.redis_root.as_deref()).map_err(|error| FleetError::Address {
                url: without_password(url),
                reason: error.to_string(),
            })
        });
        let redis = redis.transpose()?;
        let server = Arc::new(self.name.map_or_else(OnceLock::new, OnceLock::from));
        let secrets = (self.secret, self.other_secret);
        let keys = Keys::open(&connections, secrets, Arc::clone(&server)).await?;
        let mut incarnation = vec![0; 16];
        let filled = SystemRandom::new().fill(&mut incarnation);
        filled.map_err(|_| FleetError::Keys("there are no random bytes".to_owned()))?;
        let node = beat::register(&connections, &incarnation, self.address.as_deref()).await?;
        let limits = FetchLimits { total: LETTER, ..FetchLimits::default() };
        // Nodes reach each other directly.
        let web = Web::builder().fetch_limits(limits).proxy(Proxy::None).build();
        let web = web.map_err(|error| FleetError::Keys(with_causes(&error)))?;
        let clock = Arc::new(Clock::default());
        let store =
            |kind| Store::new(kind, Arc::clone(&server), connections.clone(), Arc::clone(&clock));
        let announced = Arc::new(Notify::new());
        let inner = Inner {
            node,
            incarnation,
            is_displaced: AtomicBool::new(false),
            tasks: store(TASK),
            sessions: store("session"),
            server,
            connections,
            own_connection,
            clock,
            keys,
            limits: self.limits,
            pending: Mutex::default(),
            announced: Arc::clone(&announced),
            announcing: tokio::sync::Mutex::default(),
            inbox: OnceLock::new(),
            is_fixed: self.address.is_some(),
            address: Mutex::new(self.address),
            others: Mutex::default(),
            counters: Counters::default(),
            redis,
            web,
            is_leaving: AtomicBool::new(false),
            work: Mutex::default(),
        };
        let fleet = Fleet { inner: Arc::new(inner) };
        fleet.inner.beat().await?;
        fleet.inner.spawn(beat::keep_beating(Arc::downgrade(&fleet.inner)));
        fleet.inner.spawn(beat::keep_clean(Arc::downgrade(&fleet.inner)));
        fleet.inner.spawn(changes::keep_announcing(Arc::downgrade(&fleet.inner), announced));
        Ok(fleet)
    }
}

impl Inner {
    /// Runs something until the node leaves.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.work.lock().unwrap_or_else(PoisonError::into_inner).spawn(work);
    }

    /// The name of the server; empty before it is known.
    pub(crate) fn server(&self) -> &str {
        self.server.get().map_or("", String::as_str)
    }

    /// Milliseconds since 1970, by the database.
    pub(crate) fn now(&self) -> u64 {
        self.clock.now().unwrap_or_default()
    }
}
