//! The fleet, as a server sees it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use bowline::TaskLimits;
use bowline::fleet::{Change, FleetFuture, Inbox, Node, Opened, PATH};
use bowline::seal::KeyRing;
use bowline::tasks::TaskStore;
use bowline::{Tasks, with_causes};
use bowline_web::{Body, FetchLimits, Web};
use bytes::Bytes;
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::changes::{self, Pending};
use crate::clock::Clock;
use crate::error::FleetError;
use crate::keys::Keys;
use crate::metrics::{Counters, Metrics};
use crate::pool::{Connections, without_password};
use crate::store::Store;
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
    address: Option<String>,
    secret: Option<Vec<u8>>,
    connections: usize,
    limits: TaskLimits,
    patience: Duration,
}

pub(crate) struct Inner {
    pub(crate) node: Node,
    pub(crate) connections: Connections,
    pub(crate) clock: Arc<Clock>,
    pub(crate) keys: Keys,
    pub(crate) tasks: Store,
    pub(crate) sessions: Store,
    pub(crate) limits: TaskLimits,
    pub(crate) pending: Mutex<Pending>,
    pub(crate) announced: Notify,
    pub(crate) inbox: OnceLock<Inbox>,
    pub(crate) address: Mutex<Option<String>>,
    /// The address was chosen by the operator.
    is_fixed: bool,
    /// The other nodes, and where they are.
    pub(crate) others: Mutex<HashMap<Node, String>>,
    pub(crate) counters: Counters,
    pub(crate) redis: Option<redis::Client>,
    web: Web,
    is_leaving: AtomicBool,
    /// What runs in the background.
    work: Mutex<JoinSet<()>>,
}

/// A node that was not heard of for this long is not ready.
const SILENCE: Duration = Duration::from_secs(5);
/// How long a letter may take.
const LETTER: Duration = Duration::from_secs(5);

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
            address: None,
            secret: None,
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

    /// A store in the database of the fleet, for whatever is kept like tasks: `Events::keep_in`.
    pub fn store(&self, kind: &'static str) -> Store {
        Store::new(kind, self.inner.connections.clone(), Arc::clone(&self.inner.clock))
    }

    /// What this node has done so far, and how it is.
    pub fn metrics(&self) -> Metrics {
        let inner = &self.inner;
        let others = inner.others.lock().unwrap_or_else(PoisonError::into_inner).len();
        Metrics::new(&inner.counters, inner.connections.usage(), others, inner.clock.silence())
    }
}

impl FleetBuilder {
    /// Lets news travel through Redis or Valkey: `redis://host`. If it is away, news travels
    /// through Postgres, and nothing fails.
    pub fn redis(mut self, url: impl Into<String>) -> Self {
        self.redis = Some(url.into());
        self
    }

    /// Sets where other nodes reach this one, as the origin of a URL: `http://10.0.0.7:8080`. By
    /// default it is the address that the server listens on, unless that is 0.0.0.0 or `[::]`.
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

    /// Sets how many connections to Postgres this node opens at most, beside one for news: 8.
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
        migrate::migrate(&mut connections.get().await?).await?;
        let redis = self.redis.as_deref().map(|url| {
            redis::Client::open(url).map_err(|error| FleetError::Address {
                url: without_password(url),
                reason: error.to_string(),
            })
        });
        let redis = redis.transpose()?;
        let keys = Keys::open(&connections, self.secret).await?;
        let sql = "INSERT INTO bowline.nodes (address) VALUES ($1) RETURNING number";
        let address = &self.address;
        let row = connections.with(async |client| client.query_one(sql, &[address]).await).await?;
        let number = u32::try_from(row.get::<_, i64>(0)).ok().and_then(Node::new);
        let node = number.expect("the sequence ends where the numbers of nodes do");
        let limits = FetchLimits { total: LETTER, ..FetchLimits::default() };
        let web = Web::builder().fetch_limits(limits).build();
        let web = web.map_err(|error| FleetError::Keys(with_causes(&error)))?;
        let clock = Arc::new(Clock::default());
        let inner = Inner {
            node,
            tasks: Store::new("task", connections.clone(), Arc::clone(&clock)),
            sessions: Store::new("session", connections.clone(), Arc::clone(&clock)),
            connections,
            clock,
            keys,
            limits: self.limits,
            pending: Mutex::default(),
            announced: Notify::new(),
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
        fleet.inner.spawn(changes::keep_announcing(Arc::downgrade(&fleet.inner)));
        Ok(fleet)
    }
}

impl Inner {
    /// Runs something until the node leaves.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.work.lock().unwrap_or_else(PoisonError::into_inner).spawn(work);
    }

    fn address_of(&self, node: Node) -> Option<String> {
        self.others.lock().unwrap_or_else(PoisonError::into_inner).get(&node).cloned()
    }

    /// Milliseconds since 1970, by the database.
    pub(crate) fn now(&self) -> u64 {
        self.clock.now().unwrap_or_default()
    }
}

/// The request that carries a letter.
fn letter_to(address: &str, letter: String) -> Option<http::Request<Bytes>> {
    let uri = format!("{}{PATH}", address.trim_end_matches('/'));
    http::Request::post(uri).body(Bytes::from(letter)).ok()
}

/// Passes a body on as it comes, until nobody wants it any more.
async fn pipe(mut from: Body, to: mpsc::Sender<Vec<u8>>) {
    loop {
        let chunk = tokio::select! {
            chunk = from.chunk() => chunk,
            () = to.closed() => return,
        };
        let Some(Ok(chunk)) = chunk else { return };
        if to.send(chunk.to_vec()).await.is_err() {
            return;
        }
    }
}

impl bowline::fleet::Fleet for Fleet {
    fn node(&self) -> Node {
        self.inner.node
    }

    fn keys(&self) -> KeyRing {
        self.inner.keys.ring().clone()
    }

    fn tasks(&self) -> Tasks {
        Tasks::in_shared_store(self.inner.tasks.clone(), self.inner.limits)
    }

    fn sessions(&self) -> Arc<dyn TaskStore> {
        Arc::new(self.inner.sessions.clone())
    }

    fn start(&self, inbox: Inbox) {
        // A second server has news of its own only while the first one has not.
        if self.inner.inbox.set(inbox.clone()).is_ok() {
            self.inner.spawn(changes::keep_listening(Arc::downgrade(&self.inner), inbox));
        }
    }

    fn announce(&self, change: Change) {
        let mut pending = self.inner.pending.lock().unwrap_or_else(PoisonError::into_inner);
        pending.add(change);
        drop(pending);
        self.inner.announced.notify_one();
    }

    fn listens_at(&self, origin: &str) {
        if !self.inner.is_fixed {
            let mut address = self.inner.address.lock().unwrap_or_else(PoisonError::into_inner);
            *address = Some(origin.to_owned());
        }
    }

    fn send(&self, to: Node, letter: String) -> FleetFuture<'_, bool> {
        let address = self.inner.address_of(to);
        Box::pin(async move {
            let request = address.and_then(|address| letter_to(&address, letter));
            let Some(request) = request else { return false };
            let began = Instant::now();
            let sent = self.inner.web.fetch(request).await;
            let arrived = sent.as_ref().is_ok_and(|response| response.status().is_success());
            self.inner.counters.letter(arrived);
            match sent {
                Ok(response) if !arrived => {
                    let status = response.status();
                    tracing::warn!(node = to.number(), %status, "a letter was refused");
                }
                Err(error) => {
                    let took = began.elapsed();
                    tracing::warn!(node = to.number(), %error, ?took, "a letter did not arrive");
                }
                Ok(_) => {}
            }
            arrived
        })
    }

    fn open(&self, to: Node, letter: String) -> FleetFuture<'_, Option<Opened>> {
        let address = self.inner.address_of(to);
        Box::pin(async move {
            let request = letter_to(&address?, letter)?;
            let response = tokio::time::timeout(LETTER, self.inner.web.send(request)).await;
            let response = response.ok()?.ok();
            self.inner.counters.letter(response.is_some());
            let response = response?;
            let status = response.status().as_u16();
            let from = response.into_body();
            let (chunks, body) = mpsc::channel(16);
            tokio::spawn(pipe(from, chunks));
            Some(Opened { status, body })
        })
    }

    fn others(&self) -> Vec<Node> {
        let others = self.inner.others.lock().unwrap_or_else(PoisonError::into_inner);
        others.keys().copied().collect()
    }

    fn is_ready(&self) -> bool {
        let silence = self.inner.clock.silence();
        !self.inner.is_leaving.load(Ordering::Acquire) && silence.is_some_and(|it| it < SILENCE)
    }

    fn leave(&self) -> FleetFuture<'_, ()> {
        Box::pin(async move {
            self.inner.is_leaving.store(true, Ordering::Release);
            // What has changed last is still announced.
            let _ = self.inner.announce_pending().await;
            let mut work = std::mem::take(
                &mut *self.inner.work.lock().unwrap_or_else(PoisonError::into_inner),
            );
            work.shutdown().await;
            if let Err(error) = self.inner.forget_node().await {
                tracing::debug!(error = %with_causes(&error), "the node cannot be unregistered");
            }
        })
    }
}
