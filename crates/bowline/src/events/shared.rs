//! What all parts of events share: the kinds, and the subscriptions with their workers.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use bowline_web::{FetchLimits, Reach, Web, WebError};
use http::uri::Authority;
use tokio::sync::{Notify, Semaphore, watch};

use super::keep::Keeper;
use super::kind::EventKind;
use super::log::Log;
use super::secret::WebhookSecret;
use super::subscription::{Before, Key, Saved, State, Subscription, Wish};
use super::{EventLimits, deliver};
use crate::tasks::{Places, StoreError};
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
    /// A place for every stream.
    pub(super) streams: Places,
    pub(super) changed: Notify,
    /// Whether the server stops.
    pub(super) stopping: watch::Sender<bool>,
    /// Where subscriptions are kept.
    pub(super) keeper: OnceLock<Keeper>,
}

/// A subscription that was made or renewed.
pub(super) struct Subscribed {
    pub(super) subscription: Arc<Subscription>,
    /// Whether events were lost.
    pub(super) is_truncated: bool,
    /// What it was like before, if it is not new.
    pub(super) before: Option<Before>,
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
            streams: Places::new(limits.streams, limits.streams_per_owner),
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

    /// Subscribes, or renews a subscription.
    ///
    /// # Errors
    /// When there are too many.
    pub(super) fn subscribe(self: &Arc<Self>, wish: Wish) -> Result<Subscribed, &'static str> {
        let expires = clock::unix_millis().saturating_add(wish.ttl);
        let mut all = self.lock();
        if let Some(found) = all.get(&wish.key) {
            let (before, is_truncated) = found.renew(wish, expires);
            self.changed.notify_one();
            let subscription = Arc::clone(found);
            return Ok(Subscribed { subscription, is_truncated, before: Some(before) });
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
        Ok(Subscribed { subscription: made, is_truncated, before: None })
    }

    /// Takes a subscription back that could not be stored: the client hears that it failed. One
    /// that there was before goes on as it was.
    pub(super) async fn take_back(self: &Arc<Self>, subscribed: Subscribed) {
        let Subscribed { subscription, before, .. } = subscribed;
        match before {
            Some(before) => {
                subscription.restore(before);
                self.changed.notify_one();
            }
            None => {
                if let Some(ended) = self.end(&subscription.key).await {
                    self.try_to_keep(&ended).await;
                }
            }
        }
    }

    /// Takes a subscription out. When this returns, nothing is sent any more.
    async fn end(&self, key: &Key) -> Option<Arc<Subscription>> {
        let found = self.lock().remove(key)?;
        self.changed.notify_one();
        let worker = lock(&found.worker).take();
        if let Some(worker) = worker {
            worker.abort();
            let _ = worker.await;
        }
        Some(found)
    }

    /// Ends a subscription. When this returns, nothing is sent any more. Returns whether there was
    /// one.
    ///
    /// # Errors
    /// When the store fails. The subscription goes on then: it would be back after a restart.
    pub(super) async fn unsubscribe(self: &Arc<Self>, key: &Key) -> Result<bool, StoreError> {
        let Some(found) = self.end(key).await else { return Ok(false) };
        let kept = self.keep(&found).await;
        if kept.is_err() {
            let mut all = self.lock();
            if !all.contains_key(key) && !*self.stopping.borrow() {
                self.start(&mut all, &found);
            }
        }
        kept.map(|()| true)
    }

    /// Ends a subscription from within its worker, if that is still `over`. Returns whether the
    /// worker is done.
    pub(super) async fn forget(
        &self,
        subscription: &Subscription,
        over: impl FnOnce(&State) -> bool,
    ) -> bool {
        {
            // A subscription is renewed under this lock.
            let mut all = self.lock();
            let is_there = |found: &Arc<Subscription>| found.id == subscription.id;
            if !all.get(&subscription.key).is_some_and(is_there) {
                return true;
            }
            if !over(&subscription.state()) {
                return false;
            }
            all.remove(&subscription.key);
        }
        self.try_to_keep(subscription).await;
        self.changed.notify_one();
        true
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

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
