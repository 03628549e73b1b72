//! What the requests of a gateway share. A reload replaces it piece by piece.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use super::audit::{Audit, Record};
use super::merge::{Kind, Route, Routes};
use super::metrics::Metrics;
use super::plan::Plan;
use super::policy::Policy;
use super::rate::{Rate, Used};
use super::upstream::lock;

#[derive(Default)]
pub(super) struct Shared {
    policy: RwLock<Arc<Policy>>,
    routes: RwLock<Arc<Routes>>,
    limits: RwLock<Arc<HashMap<String, Limits>>>,
    audit: RwLock<Option<Arc<Audit>>>,
    /// Why there are no lists at all, if there are none.
    silence: RwLock<Option<String>>,
    pub(super) metrics: Metrics,
    used: Used,
    running: Mutex<HashMap<(String, String), usize>>,
}

/// The limits of one server.
struct Limits {
    rate: Option<Rate>,
    running: Option<usize>,
    timeout: Option<Duration>,
}

/// A call that counts as running until it is dropped.
pub(super) struct Running {
    shared: Arc<Shared>,
    key: Option<(String, String)>,
}

impl Drop for Running {
    fn drop(&mut self) {
        let Some(key) = self.key.take() else { return };
        let mut running = lock(&self.shared.running);
        if let Some(count) = running.get_mut(&key) {
            *count -= 1;
            if *count == 0 {
                running.remove(&key);
            }
        }
    }
}

fn get<T: Clone>(lock: &RwLock<T>) -> T {
    lock.read().unwrap_or_else(PoisonError::into_inner).clone()
}

fn put<T>(lock: &RwLock<T>, value: T) {
    *lock.write().unwrap_or_else(PoisonError::into_inner) = value;
}

impl Shared {
    /// Follows a plan from now on. Returns whether callers may see something else now.
    pub(super) fn follow(&self, plan: &Plan) -> bool {
        let is_new = *self.policy() != plan.policy;
        put(&self.policy, Arc::new(plan.policy.clone()));
        put(&self.audit, plan.audit.clone());
        let limits = plan.servers.iter().map(|it| {
            let limits = Limits { rate: it.rate, running: it.running, timeout: it.timeout };
            (it.key.clone(), limits)
        });
        put(&self.limits, Arc::new(limits.collect()));
        is_new
    }

    pub(super) fn policy(&self) -> Arc<Policy> {
        get(&self.policy)
    }

    pub(super) fn set_routes(&self, routes: Routes, silence: Option<String>) {
        put(&self.routes, Arc::new(routes));
        put(&self.silence, silence);
    }

    pub(super) fn routes(&self) -> Arc<Routes> {
        get(&self.routes)
    }

    pub(super) fn silence(&self) -> Option<String> {
        get(&self.silence)
    }

    /// Where a name leads, at the endpoint of a server or at that for all.
    pub(super) fn route(&self, server: Option<&str>, method: &str, name: &str) -> Option<Route> {
        let kind = match method {
            "tools/call" => Kind::Tool,
            "prompts/get" => Kind::Prompt,
            _ if name.contains(':') => Kind::Resource,
            _ => Kind::Prompt,
        };
        let routes = self.routes();
        let found = match server {
            Some(server) => routes.own.get(&(server.to_owned(), kind, name.to_owned())),
            None => routes.front.get(&(kind, name.to_owned())),
        };
        found.cloned()
    }

    /// The full names that a bare name could mean.
    pub(super) fn candidates(&self, name: &str) -> Vec<String> {
        self.routes().bare.get(name).cloned().unwrap_or_default()
    }

    /// Counts a call, or returns how long to wait for the next one.
    pub(super) fn take(&self, route: &Route, caller: &str) -> Result<(), Duration> {
        let limits = get(&self.limits);
        match limits.get(&*route.server).and_then(|it| it.rate) {
            Some(rate) => self.used.take(rate, caller, &route.server),
            None => Ok(()),
        }
    }

    /// Begins a call, if the caller does not run too many.
    pub(super) fn run(self: &Arc<Self>, route: &Route, caller: &str) -> Option<Running> {
        let limits = get(&self.limits);
        let Some(most) = limits.get(&*route.server).and_then(|it| it.running) else {
            return Some(Running { shared: Arc::clone(self), key: None });
        };
        let key = (caller.to_owned(), route.server.to_string());
        let mut running = lock(&self.running);
        let count = running.entry(key.clone()).or_default();
        if *count >= most {
            return None;
        }
        *count += 1;
        drop(running);
        Some(Running { shared: Arc::clone(self), key: Some(key) })
    }

    pub(super) fn timeout(&self, route: &Route) -> Option<Duration> {
        get(&self.limits).get(&*route.server)?.timeout
    }

    pub(super) fn record(&self, record: &Record) -> io::Result<()> {
        match get(&self.audit) {
            Some(audit) => audit.write(record),
            None => Ok(()),
        }
    }

    /// How many records the audit log has, and its newest digest.
    pub(super) fn audit_head(&self) -> Option<(u64, String)> {
        get(&self.audit).map(|it| it.head())
    }
}
