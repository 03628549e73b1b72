//! Who is subscribed to what, and what all parts of events share.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use bowline_web::{FetchLimits, Reach, Web, WebError};
use http::uri::Authority;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::sync::{Notify, Semaphore, watch};
use tokio::task::JoinHandle;

use super::keep::Keeper;
use super::kind::{Candidate, EventKind};
use super::limits::millis;
use super::log::{Log, Occurrence};
use super::secret::WebhookSecret;
use super::{EventLimits, deliver};
use crate::{clock, random};

/// What all parts of events share.
pub(super) struct Shared {
    pub(super) limits: EventLimits,
    pub(super) log: Log,
    kinds: Mutex<BTreeMap<String, Arc<EventKind>>>,
    also: Mutex<Vec<Authority>>,
    web: OnceLock<Result<Web, WebError>>,
    subscriptions: Mutex<HashMap<Key, Arc<Subscription>>>,
    /// A permit for every webhook that is being sent.
    pub(super) deliveries: Semaphore,
    /// A permit for every stream.
    pub(super) streams: Arc<Semaphore>,
    pub(super) changed: Notify,
    /// Whether the server stops.
    pub(super) stopping: watch::Sender<bool>,
    /// Where subscriptions are kept.
    pub(super) keeper: OnceLock<Keeper>,
}

/// What makes a subscription: two of them with the same key are one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct Key {
    pub(super) owner: String,
    pub(super) url: String,
    pub(super) name: String,
    /// Canonical JSON.
    arguments: String,
}

/// A subscription of a webhook.
pub(super) struct Subscription {
    pub(super) id: String,
    pub(super) key: Key,
    pub(super) arguments: Value,
    pub(super) kind: Arc<EventKind>,
    state: Mutex<State>,
    worker: Mutex<Option<JoinHandle<()>>>,
    /// The version that the store has, if it has one.
    pub(super) version: Mutex<Option<u64>>,
}

/// What changes about a subscription.
pub(super) struct State {
    pub(super) secret: WebhookSecret,
    /// In milliseconds since 1970.
    pub(super) expires: u64,
    /// Events that are older than this when they are due are left out, in milliseconds.
    pub(super) max_age: Option<u64>,
    /// The next event to look at.
    pub(super) position: u64,
    /// Whether events were lost since the client last heard of it.
    pub(super) is_truncated: bool,
    pub(super) is_verified: bool,
    /// Attempts that have failed in a row, since when, and how the last one did.
    pub(super) failures: u32,
    pub(super) failing_since: Option<u64>,
    pub(super) problem: Option<String>,
}

/// A subscription as an application keeps it.
#[derive(Serialize, Deserialize)]
pub(super) struct Saved {
    id: String,
    key: Key,
    arguments: Value,
    secret: String,
    pub(super) expires: u64,
    max_age: Option<u64>,
    is_verified: bool,
}

/// What a client wants to be sent.
pub(super) struct Wish {
    pub(super) key: Key,
    pub(super) arguments: Value,
    pub(super) kind: Arc<EventKind>,
    pub(super) secret: WebhookSecret,
    pub(super) ttl: u64,
    pub(super) max_age: Option<u64>,
    /// From where on, if it says so, and whether something is lost before.
    pub(super) from: Option<(u64, bool)>,
}

impl Shared {
    pub(super) fn new(limits: EventLimits) -> Self {
        Self {
            log: Log::new(&limits),
            kinds: Mutex::default(),
            also: Mutex::default(),
            web: OnceLock::new(),
            subscriptions: Mutex::default(),
            deliveries: Semaphore::new(limits.deliveries.max(1)),
            streams: Arc::new(Semaphore::new(limits.streams)),
            changed: Notify::new(),
            stopping: watch::Sender::new(false),
            keeper: OnceLock::new(),
            limits,
        }
    }

    /// Adds a kind. Returns whether it is new.
    pub(super) fn add(&self, kind: EventKind) -> bool {
        lock(&self.kinds).insert(kind.name.clone(), Arc::new(kind)).is_none()
    }

    pub(super) fn kind(&self, name: &str) -> Option<Arc<EventKind>> {
        lock(&self.kinds).get(name).cloned()
    }

    pub(super) fn kinds(&self) -> Vec<Arc<EventKind>> {
        lock(&self.kinds).values().cloned().collect()
    }

    pub(super) fn allow(&self, authority: Authority) {
        lock(&self.also).push(authority);
    }

    /// Whether a host is an exception.
    pub(super) fn is_exception(&self, url: &bowline_web::Url) -> bool {
        lock(&self.also).iter().any(|authority| url.origin().is_at(authority))
    }

    pub(super) fn reach(&self) -> Reach {
        Reach::Public { also: lock(&self.also).clone() }
    }

    /// What sends webhooks.
    pub(super) fn web(&self) -> Result<&Web, WebError> {
        let limits = FetchLimits { bytes: 16 << 10, total: self.limits.answer };
        let build = || Web::builder().reach(self.reach()).fetch_limits(limits).build();
        self.web.get_or_init(build).as_ref().map_err(Clone::clone)
    }

    /// Subscribes, or renews a subscription. Returns it, and whether events were lost.
    ///
    /// # Errors
    /// When there are too many.
    pub(super) fn subscribe(
        self: &Arc<Self>,
        wish: Wish,
    ) -> Result<(Arc<Subscription>, bool), &'static str> {
        let expires = clock::unix_millis().saturating_add(wish.ttl);
        let mut all = self.lock();
        if let Some(found) = all.get(&wish.key) {
            let was_truncated = found.renew(wish, expires);
            self.changed.notify_one();
            return Ok((Arc::clone(found), was_truncated));
        }
        let own = all.keys().filter(|key| key.owner == wish.key.owner).count();
        if own >= self.limits.subscriptions_per_owner {
            return Err("this client has too many subscriptions; help: unsubscribe from some");
        }
        if all.len() >= self.limits.subscriptions {
            return Err("the server has too many subscriptions; try again later");
        }
        let (position, is_truncated) = wish.from.unwrap_or_else(|| (self.log.end(), false));
        let state = State {
            secret: wish.secret,
            expires,
            max_age: wish.max_age,
            position,
            is_truncated: false,
            is_verified: false,
            failures: 0,
            failing_since: None,
            problem: None,
        };
        let (key, arguments) = (wish.key, wish.arguments);
        let made = Subscription::new(random::token(), (key, arguments), wish.kind, state);
        self.start(&mut all, &made);
        Ok((made, is_truncated))
    }

    /// Ends a subscription. When this returns, nothing is sent any more.
    pub(super) async fn unsubscribe(&self, key: &Key) -> bool {
        let Some(found) = self.lock().remove(key) else { return false };
        self.changed.notify_one();
        let worker = lock(&found.worker).take();
        if let Some(worker) = worker {
            worker.abort();
            let _ = worker.await;
        }
        self.try_to_keep(&found).await;
        true
    }

    /// Ends a subscription from within its worker, or before it has begun.
    pub(super) async fn forget(&self, subscription: &Subscription) {
        let is_there = self.is_there(subscription);
        if is_there {
            self.lock().remove(&subscription.key);
            self.try_to_keep(subscription).await;
            self.changed.notify_one();
        }
    }

    pub(super) fn is_there(&self, subscription: &Subscription) -> bool {
        self.lock().get(&subscription.key).is_some_and(|found| found.id == subscription.id)
    }

    pub(super) fn save(&self) -> Vec<Saved> {
        self.lock().values().map(|it| it.save()).collect()
    }

    /// Whether a subscription still means something.
    pub(super) fn can_restore(&self, saved: &Saved) -> bool {
        saved.expires > clock::unix_millis() && self.kind(&saved.key.name).is_some()
    }

    /// Brings subscriptions back, each with its version in the store. Returns how many there are
    /// now.
    pub(super) fn restore(self: &Arc<Self>, saved: Vec<(Saved, Option<u64>)>) -> usize {
        let mut all = self.lock();
        for (saved, version) in saved.into_iter().filter(|(saved, _)| self.can_restore(saved)) {
            let Saved { id, key, arguments, secret, expires, max_age, is_verified } = saved;
            let (kind, secret) = (self.kind(&key.name), WebhookSecret::parse(&secret));
            let (Some(kind), Some(secret)) = (kind, secret) else { continue };
            if all.contains_key(&key) {
                continue;
            }
            let state = State {
                secret,
                expires,
                max_age,
                position: self.log.end(),
                is_truncated: true,
                is_verified,
                failures: 0,
                failing_since: None,
                problem: None,
            };
            let restored = Subscription::new(id, (key, arguments), kind, state);
            *lock(&restored.version) = version;
            self.start(&mut all, &restored);
        }
        all.len()
    }

    /// Begins to deliver.
    fn start(self: &Arc<Self>, all: &mut HashMap<Key, Arc<Subscription>>, new: &Arc<Subscription>) {
        all.insert(new.key.clone(), Arc::clone(new));
        let worker = tokio::spawn(deliver::run(Arc::clone(self), Arc::clone(new)));
        *lock(&new.worker) = Some(worker);
        self.changed.notify_one();
    }

    /// Ends all deliveries and streams. The subscriptions stay, for whoever saves them.
    pub(super) async fn stop(&self) {
        self.stopping.send_replace(true);
        let all: Vec<_> = self.lock().values().cloned().collect();
        let workers: Vec<_> = all.iter().filter_map(|it| lock(&it.worker).take()).collect();
        for worker in &workers {
            worker.abort();
        }
        for worker in workers {
            let _ = worker.await;
        }
    }

    pub(super) fn abort_all(&self) {
        for subscription in self.lock().values() {
            if let Some(worker) = lock(&subscription.worker).take() {
                worker.abort();
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Arc<Subscription>>> {
        lock(&self.subscriptions)
    }
}

impl Key {
    pub(super) fn new(owner: &str, url: &str, name: &str, arguments: &Value) -> Self {
        let [owner, url, name] = [owner, url, name].map(str::to_owned);
        Self { owner, url, name, arguments: canonical(arguments).to_string() }
    }
}

impl Subscription {
    fn new(id: String, wish: (Key, Value), kind: Arc<EventKind>, state: State) -> Arc<Self> {
        let (key, arguments) = wish;
        let (state, worker, version) = (Mutex::new(state), Mutex::default(), Mutex::default());
        Arc::new(Self { id, key, arguments, kind, state, worker, version })
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Renews it. Returns whether events were lost.
    fn renew(&self, wish: Wish, expires: u64) -> bool {
        let mut state = self.state();
        state.secret = wish.secret;
        state.expires = expires;
        state.max_age = wish.max_age;
        let mut is_truncated = std::mem::take(&mut state.is_truncated);
        // It never goes back: what was delivered stays so.
        if let Some((position, is_lost)) = wish.from {
            state.position = state.position.max(position);
            is_truncated |= is_lost;
        }
        is_truncated
    }

    /// Whether an event is to be sent.
    pub(super) fn wants(&self, event: &Occurrence, max_age: Option<u64>) -> bool {
        let (owner, arguments) = (self.key.owner.as_str(), &self.arguments);
        let candidate = Candidate { principal: Some(owner), arguments, data: &event.data };
        let is_fresh = |age: u64| event.time.saturating_add(age) >= clock::unix_millis();
        *event.name == *self.key.name
            && max_age.is_none_or(is_fresh)
            && self.kind.admits(&candidate)
    }

    pub(super) fn save(&self) -> Saved {
        let state = self.state();
        Saved {
            id: self.id.clone(),
            key: self.key.clone(),
            arguments: self.arguments.clone(),
            secret: state.secret.expose().to_owned(),
            expires: state.expires,
            max_age: state.max_age,
            is_verified: state.is_verified,
        }
    }
}

impl State {
    /// An attempt has failed. Returns how long to pause, or `None` if the time for attempts is
    /// over.
    pub(super) fn fail(
        &mut self,
        problem: String,
        limits: &EventLimits,
    ) -> Option<std::time::Duration> {
        let now = clock::unix_millis();
        let since = *self.failing_since.get_or_insert(now);
        let pause = limits.first_pause.saturating_mul(1 << self.failures.min(20));
        self.failures = self.failures.saturating_add(1);
        self.problem = Some(problem);
        let is_over = now.saturating_sub(since) >= millis(limits.patience);
        (!is_over).then(|| pause.min(limits.longest_pause))
    }

    /// An attempt has succeeded.
    pub(super) fn succeed(&mut self) {
        (self.failures, self.failing_since, self.problem) = (0, None, None);
    }
}

/// JSON with its members in order, so that equal values are equal texts.
fn canonical(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let mut sorted: Vec<_> = members.iter().collect();
            sorted.sort_by_key(|(name, _)| *name);
            let members = sorted.into_iter().map(|(name, it)| (name.clone(), canonical(it)));
            Value::Object(members.collect::<Map<_, _>>())
        }
        Value::Array(items) => items.iter().map(canonical).collect(),
        other => other.clone(),
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
