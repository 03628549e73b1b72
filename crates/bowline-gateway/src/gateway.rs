//! The gateway: many servers behind one door.
//!
//! A [`Plan`] says what is served; [`Gateway::reload`] follows another one, on the same path as the
//! first. Each server is connected by a task of its own (`upstream`); whenever one of them lists
//! something else, all lists are merged anew (`merge`) and replace those of the front at once.
//! Every request passes the `door`: rules, limits, the user's agreement, the audit.
//!
//! Rules and records are about the server's key and the server's own names. The names that clients
//! see are presentation.

pub mod admin;
mod audit;
mod command;
mod door;
mod merge;
mod metrics;
mod openapi;
mod plan;
mod policy;
mod rate;
mod shared;
mod spelling;
mod status;
mod telemetry;
mod upstream;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use bowline::http::{HttpService, Mounted};
use bowline::{BuildError, Limits, Parts, Registry, Server, Tasks};
use http::StatusCode;
use tokio::sync::{Notify, Semaphore};
use tokio::task::{AbortHandle, JoinSet};

pub use self::audit::{Audit, Broken, Record, verify};
pub use self::command::CommandTool;
use self::door::Door;
use self::merge::{COMMANDS, Merged, PROBLEMS, Source, advertised, merge};
pub use self::metrics::serve_metrics;
pub use self::openapi::{
    Api, ApiOptions, Document, LONGEST_ANSWER, LONGEST_DOCUMENT, OpenApiError,
};
pub use self::plan::{Plan, ServerPlan};
pub use self::policy::{Decision, Policy, Rule, Who};
pub use self::rate::Rate;
use self::shared::Shared;
pub use self::status::{ServerStatus, Status};
pub use self::telemetry::{Destination, Telemetry};
pub use self::upstream::Health;
use self::upstream::{Around, Upstream, lock};

/// How many servers start at once.
const STARTS: usize = 4;

/// How long clients wait for servers that start. Those that answer later join the lists then.
const PATIENCE: Duration = Duration::from_secs(5);

/// Changes of lists that come this soon after one another are one change.
const TOGETHER: Duration = Duration::from_millis(20);

/// Longer than any call takes: how long one may take is up to the door and to the command.
const LONGEST: Duration = Duration::from_secs(30 * 24 * 3600);

/// Makes the HTTP service of one server's own endpoint; gets the server and its key.
pub type Serve = Box<dyn Fn(Server, &str) -> Result<HttpService, BuildError> + Send + Sync>;

/// Many servers behind one door. Cheap to clone.
#[derive(Clone)]
pub struct Gateway(Arc<Inner>);

struct Inner {
    shared: Arc<Shared>,
    around: Arc<Around>,
    current: RwLock<Arc<Current>>,
    registry: Registry,
    serve: Serve,
    /// One reload at a time.
    reloading: tokio::sync::Mutex<()>,
    merging: Mutex<()>,
    is_draining: AtomicBool,
    task: Mutex<Option<AbortHandle>>,
}

/// What is served now.
struct Current {
    plan: Plan,
    /// In the order of the plan.
    upstreams: Vec<Arc<Upstream>>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let Some(task) = lock(&self.task).take() {
            task.abort();
        }
    }
}

impl Gateway {
    /// Starts all servers of a plan, waits a few seconds for each to answer or fail, and returns
    /// the gateway and the server that its clients use.
    ///
    /// # Errors
    /// When a part cannot be built. A server that does not start is not an error.
    pub async fn start(plan: Plan, serve: Serve) -> Result<(Self, Server), BuildError> {
        let shared = Arc::new(Shared::default());
        let door = Door { shared: Arc::clone(&shared), server: None };
        let server = endpoint(&plan.name).middleware(door);
        let around = Arc::new(Around {
            changed: Notify::new(),
            starts: Semaphore::new(STARTS),
            grace: Mutex::new(plan.grace),
            start: Mutex::new(plan.start),
            shared: Arc::clone(&shared),
            has_one_caller: plan.has_one_caller,
        });
        let empty = Current { plan: plan.clone(), upstreams: Vec::new() };
        let gateway = Self(Arc::new(Inner {
            shared,
            around,
            current: RwLock::new(Arc::new(empty)),
            registry: server.registry(),
            serve,
            reloading: tokio::sync::Mutex::default(),
            merging: Mutex::default(),
            is_draining: AtomicBool::new(false),
            task: Mutex::default(),
        }));
        let patience = PATIENCE.min(plan.start);
        gateway.0.shared.report_to(&plan);
        gateway.follow(plan, patience).await?;
        let following = follow(Arc::downgrade(&gateway.0));
        *lock(&gateway.0.task) = Some(tokio::spawn(following).abort_handle());
        Ok((gateway, server))
    }

    /// Follows another plan. Servers that it does not change stay connected; new ones are started
    /// first, and take over when they have answered or failed. What the new rules do not allow is
    /// not allowed from the beginning. Calls that run are not disturbed.
    ///
    /// # Errors
    /// When a part cannot be built. Nothing has changed then.
    pub async fn reload(&self, plan: Plan) -> Result<(), BuildError> {
        let patience = plan.start;
        self.follow(plan, patience).await
    }

    async fn follow(&self, plan: Plan, patience: Duration) -> Result<(), BuildError> {
        let inner = &self.0;
        let _one = inner.reloading.lock().await;
        let before = inner.now();
        // What runs may know the secrets of the old plan, and what begins those of this one, even
        // if this fails.
        inner.shared.hide(before.plan.redactor.and(&plan.redactor));
        let upstreams = inner.open(&plan, &before)?;
        let _expecting = inner.shared.expect(&plan.policy);
        let is_new = |it: &Arc<Upstream>| before.upstreams.iter().all(|old| !Arc::ptr_eq(it, old));
        let starts = |it: &Arc<Upstream>| it.health() == Health::Starting && is_new(it);
        let deadline = tokio::time::Instant::now() + patience;
        while upstreams.iter().any(starts) && tokio::time::Instant::now() < deadline {
            tokio::time::sleep(TOGETHER).await;
        }
        *lock(&inner.around.grace) = plan.grace;
        inner.reopen(&plan);
        let is_new = inner.shared.follow(&plan);
        let current = Arc::new(Current { plan, upstreams });
        *inner.current.write().unwrap_or_else(PoisonError::into_inner) = current;
        inner.merge();
        // Its grace may be another one.
        inner.around.changed.notify_one();
        if is_new {
            inner.registry.lists_changed();
        }
        Ok(())
    }

    /// What is at a path besides the endpoint for all: `/servers/KEY/mcp`, `/live`, `/ready`.
    #[must_use]
    pub fn mounted(&self, path: &str) -> Option<Mounted> {
        match path {
            "/live" => return Some(Mounted::Json(StatusCode::OK, b"{\"live\":true}".to_vec())),
            "/ready" => {
                let is_ready = self.is_ready();
                let text = serde_json::json!({ "ready": is_ready }).to_string();
                let unready = StatusCode::SERVICE_UNAVAILABLE;
                let status = if is_ready { StatusCode::OK } else { unready };
                return Some(Mounted::Json(status, text.into_bytes()));
            }
            _ => {}
        }
        let rest = path.strip_prefix("/.well-known/oauth-protected-resource").unwrap_or(path);
        let (key, _) = rest.strip_prefix("/servers/")?.split_once('/')?;
        let current = self.0.now();
        let upstream = current.upstreams.iter().find(|it| it.plan.key == key)?;
        Some(Mounted::Service(upstream.service.clone()))
    }

    /// Begins the end: it is not ready any more, and the endpoints of servers accept no requests.
    /// What runs goes on.
    pub fn drain(&self) {
        self.0.is_draining.store(true, Ordering::Release);
        for upstream in &self.0.now().upstreams {
            upstream.service.stop();
        }
    }

    /// Ends all servers, and waits for that, at most so long: processes are asked to stop before
    /// they are killed, sessions over HTTP are ended. A program that exits without this leaves its
    /// servers no time to clean up.
    pub async fn close(&self, at_most: Duration) {
        self.drain();
        let mut closing = JoinSet::new();
        for upstream in self.0.now().upstreams.clone() {
            closing.spawn(async move { upstream.close().await });
        }
        let closed = async { while closing.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(at_most, closed).await;
    }

    /// Whether at least one server answers, or there are none; and it does not end.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        let upstreams = &self.0.now().upstreams;
        if self.0.is_draining.load(Ordering::Acquire) {
            return false;
        }
        upstreams.is_empty() || upstreams.iter().any(|it| it.health() == Health::Up)
    }
}

impl Inner {
    fn now(&self) -> Arc<Current> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The servers of a plan: those that it does not change, and new ones that begin to connect.
    fn open(&self, plan: &Plan, before: &Current) -> Result<Vec<Arc<Upstream>>, BuildError> {
        let start = std::mem::replace(&mut *lock(&self.around.start), plan.start);
        let open = |server: &ServerPlan| {
            let old = before.upstreams.iter().find(|it| it.plan.key == server.key);
            match old.filter(|old| old.plan.fingerprint == server.fingerprint) {
                Some(known) => Ok(Arc::clone(known)),
                None => {
                    let shared = Arc::clone(&self.shared);
                    let door = Door { shared, server: Some(server.key.clone()) };
                    let old = old.map(AsRef::as_ref);
                    Upstream::open((server.clone(), old), &self.around, door, &*self.serve)
                }
            }
        };
        let opened: Result<_, _> = plan.servers.iter().map(open).collect();
        opened.inspect_err(|_| *lock(&self.around.start) = start)
    }

    /// Goes on in the audit log of a plan, which may have been moved away.
    fn reopen(&self, plan: &Plan) {
        if let Some(audit) = &plan.audit
            && let Err(error) = audit.reopen()
        {
            let path = audit.path().display();
            self.shared.tell(&format!("audit: {path} cannot be opened again: {error}"));
        }
    }

    /// Puts the lists of all servers together, and shows them.
    fn merge(&self) {
        let _one = lock(&self.merging);
        let current = self.now();
        let grace = *lock(&self.around.grace);
        let mut servers: BTreeMap<String, Option<String>> = BTreeMap::new();
        if !current.plan.commands.is_empty() {
            servers.insert(COMMANDS.to_owned(), None);
        }
        let (mut sources, mut refusing) = (Vec::new(), BTreeMap::new());
        for (plan, it) in current.plan.servers.iter().zip(&current.upstreams) {
            let proxy = it.proxy(grace);
            let why = || it.told().unwrap_or_else(|| "it has not answered yet".to_owned());
            servers.insert(plan.key.clone(), proxy.is_none().then(why));
            refusing.extend(it.refusal().map(|why| (plan.key.clone(), why)));
            sources.extend(proxy.map(|proxy| Source { plan, proxy }));
        }
        let Merged { mut routes, mut front, mut own } =
            merge(&self.shared, &current.plan, &sources);
        let mut unusable = Vec::new();
        for it in &current.upstreams {
            let key = &it.plan.key;
            let parts = own.remove(key).unwrap_or_default();
            if let Err(error) = it.registry.set(parts) {
                // Nothing is better than what the rules of yesterday were about.
                let _ = it.registry.set(Parts::default());
                unusable.push((key.clone(), format!("its lists cannot be shown: {error}")));
            }
        }
        if !unusable.is_empty() {
            sources.retain(|it| unusable.iter().all(|(key, _)| *key != it.plan.key));
            let problems = unusable.iter().map(|(key, why)| format!("{key}: {why}"));
            let problems: Vec<_> = problems.collect();
            let again = merge(&self.shared, &current.plan, &sources);
            (routes, front) = (again.routes, again.front);
            routes.problems.extend(problems);
            servers.extend(unusable.into_iter().map(|(key, why)| (key, Some(why))));
        }
        if let Err(error) = self.registry.set(front) {
            let _ = self.registry.set(Parts::default());
            let why = format!("the lists cannot be merged: {error}");
            servers.values_mut().for_each(|it| *it = Some(why.clone()));
            routes.problems.push(why);
        }
        for it in &sources {
            let left_out = it.proxy.left_out().into_iter().take(PROBLEMS);
            let key = &it.plan.key;
            routes.problems.extend(left_out.map(|why| format!("{key}: left out: {why}")));
        }
        (routes.servers, routes.refusing) = (servers, refusing);
        self.shared.tell_new(&routes.problems);
        self.shared.set_routes(routes);
    }
}

/// Merges whenever something has changed, and when the grace of a server is over.
async fn follow(inner: std::sync::Weak<Inner>) {
    loop {
        let Some(this) = inner.upgrade() else { return };
        let around = Arc::clone(&this.around);
        let grace = *lock(&around.grace);
        let expires = this.now().upstreams.iter().filter_map(|it| it.expires(grace)).min();
        drop(this);
        match expires {
            Some(at) => drop(tokio::time::timeout_at(at, around.changed.notified()).await),
            None => around.changed.notified().await,
        }
        tokio::time::sleep(TOGETHER).await;
        let Some(this) = inner.upgrade() else { return };
        this.merge();
    }
}

/// An endpoint of a gateway. It declares what servers may have that come later.
fn endpoint(name: &str) -> Server {
    let server = Server::new(name, env!("CARGO_PKG_VERSION")).limits(limits());
    server.declare_all().tasks(Tasks::in_memory())
}

/// The limits of all servers of a gateway.
fn limits() -> Limits {
    Limits { deadline: LONGEST, ..Limits::default() }
}

/// What `name` of a server is called at the endpoint for all.
#[must_use]
pub fn name_of(plan: &Plan, server: &ServerPlan, name: &str) -> String {
    advertised(plan.has_prefixes, server.prefix(), name)
}
