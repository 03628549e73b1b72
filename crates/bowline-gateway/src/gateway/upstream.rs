//! One server behind the gateway: connected, followed, connected again.
//!
//! A server that does not start or dies harms nobody else. What it listed last stays for the
//! [grace](super::Plan::grace) time, and calls to a process that has died fail at once: it is
//! started again here, where starts take turns, and not by its client.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bowline::client::{Phase, Restart, StateWatch, Target};
use bowline::{Proxy, Registry, Server, http::HttpService, with_causes};
use serde::Serialize;
use tokio::sync::{Notify, Semaphore};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::door::Door;
use super::metrics::{Labels, Timed};
use super::plan::ServerPlan;
use super::shared::Shared;

/// The gaps between attempts to connect: they double from the first to the last.
const GAPS: [Duration; 2] = [Duration::from_millis(250), Duration::from_secs(30)];

/// How long a server that starts keeps others from starting: one that hangs would for ever.
const TURN: Duration = Duration::from_secs(10);

/// How often a server that seems well is asked whether it is.
const PROBE: Duration = Duration::from_secs(30);

/// How a server is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase", tag = "state", content = "why")]
pub enum Health {
    /// It has not answered yet.
    Starting,
    /// It answers.
    Up,
    /// It does not, for this reason.
    Down(String),
}

pub(super) struct Upstream {
    pub(super) plan: ServerPlan,
    /// Its own endpoint.
    pub(super) service: HttpService,
    pub(super) registry: Registry,
    state: Mutex<State>,
    task: Mutex<Option<AbortHandle>>,
}

struct State {
    proxy: Option<Proxy>,
    health: Health,
    /// When it was well for the last time.
    since: Instant,
    /// How often it was connected to.
    starts: u64,
}

/// What all servers of a gateway share.
pub(super) struct Around {
    /// Something has changed.
    pub(super) changed: Notify,
    /// How many may start at once.
    pub(super) starts: Semaphore,
    pub(super) grace: Mutex<Duration>,
    pub(super) start: Mutex<Duration>,
    pub(super) shared: Arc<Shared>,
}

impl Drop for Upstream {
    fn drop(&mut self) {
        if let Some(task) = lock(&self.task).take() {
            task.abort();
        }
    }
}

impl Upstream {
    /// Begins to connect; `before` is the server whose endpoint it takes over.
    pub(super) fn open(
        (plan, before): (ServerPlan, Option<&Self>),
        around: &Arc<Around>,
        door: Door,
        serve: impl FnOnce(Server, &str) -> Result<HttpService, bowline::BuildError>,
    ) -> Result<Arc<Self>, bowline::BuildError> {
        // Sessions at its own endpoint outlive a change of its settings.
        let (service, registry) = match before {
            Some(before) => (before.service.clone(), before.registry.clone()),
            None => {
                let server = Server::new(plan.key.clone(), env!("CARGO_PKG_VERSION"));
                let server = server.declare_all().middleware(door);
                let registry = server.registry();
                (serve(server, &plan.key)?, registry)
            }
        };
        let state =
            State { proxy: None, health: Health::Starting, since: Instant::now(), starts: 0 };
        let (state, task) = (Mutex::new(state), Mutex::default());
        let this = Arc::new(Self { plan, service, registry, state, task });
        let run = run(Arc::downgrade(&this), Arc::clone(around));
        *lock(&this.task) = Some(tokio::spawn(run).abort_handle());
        Ok(this)
    }

    /// What it has, if it has said so and is not down for too long.
    pub(super) fn proxy(&self, grace: Duration) -> Option<Proxy> {
        let state = lock(&self.state);
        let is_late = matches!(state.health, Health::Down(_)) && state.since.elapsed() >= grace;
        state.proxy.clone().filter(|_| !is_late)
    }

    pub(super) fn health(&self) -> Health {
        lock(&self.state).health.clone()
    }

    /// How often it was connected to.
    pub(super) fn starts(&self) -> u64 {
        lock(&self.state).starts
    }

    pub(super) fn process_id(&self) -> Option<u32> {
        lock(&self.state).proxy.as_ref()?.client().process_id()
    }

    fn set(&self, around: &Around, health: Health, proxy: Option<Proxy>) {
        let mut state = lock(&self.state);
        if health == Health::Up {
            state.since = Instant::now();
        }
        if state.health != health {
            match &health {
                Health::Up => around.shared.tell(&format!("{}: is up", self.plan.key)),
                Health::Down(why) => {
                    around.shared.tell(&format!("{}: is down: {why}", self.plan.key));
                }
                Health::Starting => {}
            }
        }
        let is_news = state.health != health || proxy.is_some();
        state.health = health;
        if proxy.is_some() {
            state.proxy = proxy;
            state.starts += 1;
        }
        drop(state);
        if is_news {
            around.changed.notify_one();
        }
    }
}

/// Connects to a server, again and again, until nobody wants it any more.
async fn run(upstream: std::sync::Weak<Upstream>, around: Arc<Around>) {
    let mut gap = GAPS[0];
    loop {
        let Some(this) = upstream.upgrade() else { return };
        let started = Instant::now();
        match connect(&this, &around).await {
            Ok(proxy) => {
                let watch = proxy.client().watch();
                let about = Labels { server: this.plan.key.clone(), ..Labels::default() };
                let _session = around.shared.metrics.session(Timed::ClientSession, about);
                this.set(&around, Health::Up, Some(proxy.clone()));
                drop(this);
                let Some(why) = follow(&upstream, &around, proxy, watch).await else { return };
                let Some(this) = upstream.upgrade() else { return };
                this.set(&around, Health::Down(why), None);
            }
            Err(why) => this.set(&around, Health::Down(why), None),
        }
        if started.elapsed() > GAPS[1] {
            gap = GAPS[0];
        }
        // Servers that fail together do not come back together.
        tokio::time::sleep(gap.mul_f64(jitter())).await;
        gap = GAPS[1].min(2 * gap);
    }
}

/// Between a half and one.
fn jitter() -> f64 {
    let nanoseconds = jiff::Timestamp::now().subsec_nanosecond();
    0.5 + f64::from(nanoseconds.unsigned_abs() % 1000) / 2000.0
}

async fn connect(this: &Upstream, around: &Around) -> Result<Proxy, String> {
    let Ok(turn) = around.starts.acquire().await else { return Err("stopped".to_owned()) };
    let target = (this.plan.target)()?;
    let (make, again, preference) =
        (Arc::clone(&this.plan.client), Arc::clone(&this.plan.target), this.plan.preference);
    let client = move || make().preference(preference).restart(Restart::Never);
    let builder = Proxy::builder(client());
    // A server that asks its callers gets a connection for each of them.
    let builder = builder.further(move || {
        let target = again().unwrap_or_else(|why| Target::from(format!("unusable: {why}")));
        (client(), target)
    });
    let limit = *lock(&around.start);
    let connected = tokio::time::timeout(limit, builder.connect(target));
    let mut connected = std::pin::pin!(connected);
    let connected = match tokio::time::timeout(TURN, &mut connected).await {
        Ok(connected) => connected,
        Err(_) => {
            drop(turn);
            connected.await
        }
    };
    match connected {
        Ok(Ok(proxy)) => Ok(proxy),
        Ok(Err(error)) => Err(with_causes(&error)),
        Err(_) => Err(format!("it did not start within {limit:?}")),
    }
}

/// Follows a server until it is gone for good, and says why; `None` if nobody wants it any more.
async fn follow(
    upstream: &std::sync::Weak<Upstream>,
    around: &Around,
    proxy: Proxy,
    mut watch: StateWatch,
) -> Option<String> {
    let mut seen = 0;
    let mut probe = tokio::time::interval_at(Instant::now() + PROBE, PROBE);
    loop {
        let health = tokio::select! {
            version = proxy.changed(seen) => {
                seen = version;
                around.changed.notify_one();
                continue;
            }
            state = watch.changed() => {
                let ended = |reason: Option<_>| match reason {
                    Some(reason) => format!("{reason}"),
                    None => "the connection is closed".to_owned(),
                };
                let Some(state) = state else { return Some(ended(None)) };
                match state.phase {
                    Phase::Closed => return Some(ended(state.reason)),
                    Phase::Ready => Health::Up,
                    _ => Health::Down(ended(state.reason)),
                }
            }
            _ = probe.tick() => {
                let pinged = tokio::time::timeout(PROBE / 3, proxy.client().ping()).await;
                match pinged {
                    Ok(Ok(())) => Health::Up,
                    Ok(Err(error)) if error.as_refusal().is_some() => Health::Up,
                    Ok(Err(error)) => Health::Down(with_causes(&error)),
                    Err(_) => Health::Down("it does not answer a ping".to_owned()),
                }
            }
        };
        upstream.upgrade()?.set(around, health, None);
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
