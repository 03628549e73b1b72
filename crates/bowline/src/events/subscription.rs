//! Who is subscribed to what.

use std::sync::{Arc, Mutex, MutexGuard};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::task::JoinHandle;

use super::EventLimits;
use super::kind::{Candidate, EventKind};
use super::limits::millis;
use super::log::Occurrence;
use super::secret::WebhookSecret;
use super::shared::lock;
use crate::clock;

/// What makes a subscription: two of them with the same key are one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct Key {
    pub(super) owner: String,
    pub(super) url: String,
    pub(super) name: String,
    /// Canonical JSON.
    pub(super) arguments: String,
}

/// A subscription of a webhook.
pub(super) struct Subscription {
    pub(super) id: String,
    pub(super) key: Key,
    pub(super) arguments: Value,
    pub(super) kind: Arc<EventKind>,
    state: Mutex<State>,
    pub(super) worker: Mutex<Option<JoinHandle<()>>>,
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
    pub(super) id: String,
    pub(super) key: Key,
    pub(super) arguments: Value,
    pub(super) secret: String,
    pub(super) expires: u64,
    pub(super) max_age: Option<u64>,
    pub(super) is_verified: bool,
}

/// What a subscription was like before it was renewed.
pub(super) struct Before {
    secret: WebhookSecret,
    expires: u64,
    max_age: Option<u64>,
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

impl Key {
    pub(super) fn new(owner: &str, url: &str, name: &str, arguments: &Value) -> Self {
        let [owner, url, name] = [owner, url, name].map(str::to_owned);
        Self { owner, url, name, arguments: canonical(arguments).to_string() }
    }
}

impl Subscription {
    pub(super) fn new(
        id: String,
        wish: (Key, Value),
        kind: Arc<EventKind>,
        state: State,
    ) -> Arc<Self> {
        let (key, arguments) = wish;
        let (state, worker, version) = (Mutex::new(state), Mutex::default(), Mutex::default());
        Arc::new(Self { id, key, arguments, kind, state, worker, version })
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Renews it. Returns what it was like before, and whether events were lost.
    pub(super) fn renew(&self, wish: Wish, expires: u64) -> (Before, bool) {
        let mut state = self.state();
        let before = Before {
            secret: std::mem::replace(&mut state.secret, wish.secret),
            expires: std::mem::replace(&mut state.expires, expires),
            max_age: std::mem::replace(&mut state.max_age, wish.max_age),
        };
        let mut is_truncated = std::mem::take(&mut state.is_truncated);
        // It never goes back: what was delivered stays so.
        if let Some((position, is_lost)) = wish.from {
            state.position = state.position.max(position);
            is_truncated |= is_lost;
        }
        (before, is_truncated)
    }

    /// Undoes a renewal. The next one says again what was lost.
    pub(super) fn restore(&self, before: Before) {
        let mut state = self.state();
        (state.secret, state.expires, state.max_age) =
            (before.secret, before.expires, before.max_age);
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
