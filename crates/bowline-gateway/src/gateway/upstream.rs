//! One server behind the gateway: connected, followed, connected again.
//!
//! A server that does not start or dies harms nobody else. What it listed last stays for the
//! [grace](super::Plan::grace) time, and calls to a process that has died fail at once: it is
//! started again here, where starts take turns, and not by its client.

mod reach;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bowline::client::{Phase, StateWatch, WaitError};
use bowline::{Proxy, Registry, Server, http::HttpService};
use serde::Serialize;
use tokio::sync::{Notify, Semaphore};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use self::reach::{Cause, ask, connect};
use super::door::Door;
use super::metrics::{Labels, Timed};
use super::plan::ServerPlan;
use super::shared::Shared;

/// The gaps between attempts to connect: they double from the first to the last.
const GAPS: [Duration; 2] = [Duration::from_millis(250), Duration::from_secs(30)];

/// How often a server that seems well is asked whether it is.
const PROBE: Duration = Duration::from_secs(30);

/// How soon one is asked again that has not answered, and how often until it is started again.
const AGAIN: Duration = Duration::from_secs(5);
const MISSES: u32 = 3;

/// For how long a server may answer nothing while a call runs, if calls have no limit: many do one
/// thing at a time.
const BUSY: Duration = Duration::from_secs(600);

/// How long a connection may be lost before people are told.
const LOST: Duration = Duration::from_secs(1);

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
    /// Whether that is the one of earlier settings: only its lists count.
    is_inherited: bool,
    health: Health,
    /// Why it is down, for callers.
    told: String,
    /// Why calls must fail at once, if they must.
    refusal: Option<String>,
    /// Since when it is not well.
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
    pub(super) has_one_caller: bool,
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
                let server = super::endpoint(&plan.key).middleware(door);
                let registry = server.registry();
                (serve(server, &plan.key)?, registry)
            }
        };
        // Its lists stay until there are new ones, or for the grace time.
        let (kept, since) = before.map_or_else(|| (None, Instant::now()), Self::kept);
        let state = State {
            is_inherited: kept.is_some(),
            told: String::new(),
            refusal: kept.is_some().then(|| "it starts with new settings".to_owned()),
            proxy: kept,
            health: Health::Starting,
            since,
            starts: 0,
        };
        let (state, task) = (Mutex::new(state), Mutex::default());
        let this = Arc::new(Self { plan, service, registry, state, task });
        let run = run(Arc::downgrade(&this), Arc::clone(around));
        *lock(&this.task) = Some(tokio::spawn(run).abort_handle());
        Ok(this)
    }

    /// What the one that takes over its endpoint inherits: its lists, and since when they are old.
    fn kept(&self) -> (Option<Proxy>, Instant) {
        let state = lock(&self.state);
        let is_well = state.health == Health::Up;
        (state.proxy.clone(), if is_well { Instant::now() } else { state.since })
    }

    /// Ends it, and waits for that. It is not started again.
    pub(super) async fn close(&self) {
        if let Some(task) = lock(&self.task).take() {
            task.abort();
        }
        let proxy = lock(&self.state).proxy.clone();
        if let Some(proxy) = proxy {
            proxy.close().await;
        }
    }

    /// What it has, if it has said so and is not down for too long.
    pub(super) fn proxy(&self, grace: Duration) -> Option<Proxy> {
        let mut state = lock(&self.state);
        if state.health == Health::Up || state.since.elapsed() < grace {
            return state.proxy.clone();
        }
        if state.is_inherited {
            state.proxy = None;
        }
        None
    }

    /// When its lists must go, if nothing changes.
    pub(super) fn expires(&self, grace: Duration) -> Option<Instant> {
        let state = lock(&self.state);
        let at = state.since.checked_add(grace)?;
        let is_ahead = state.health != Health::Up && state.proxy.is_some() && at > Instant::now();
        is_ahead.then_some(at)
    }

    /// Why calls to it must fail at once, if they must.
    pub(super) fn refusal(&self) -> Option<String> {
        lock(&self.state).refusal.clone()
    }

    /// Why it is down, for callers.
    pub(super) fn told(&self) -> Option<String> {
        let state = lock(&self.state);
        matches!(state.health, Health::Down(_)).then(|| state.told.clone())
    }

    pub(super) fn health(&self) -> Health {
        lock(&self.state).health.clone()
    }

    /// How often it was connected to.
    pub(super) fn starts(&self) -> u64 {
        lock(&self.state).starts
    }

    pub(super) fn process_id(&self) -> Option<u32> {
        let state = lock(&self.state);
        state.proxy.as_ref().filter(|_| !state.is_inherited)?.client().process_id()
    }

    /// It is well, perhaps by a new connection; or not.
    fn set(&self, around: &Around, now: Result<Option<Proxy>, Cause>) {
        let mut state = lock(&self.state);
        let was_well = state.health == Health::Up;
        let (health, proxy) = match now {
            Ok(proxy) => {
                state.refusal = None;
                if proxy.is_none() && !was_well {
                    // What it has may have changed meanwhile.
                    state.proxy.iter().for_each(Proxy::refresh);
                }
                (Health::Up, proxy)
            }
            Err(cause) => {
                if was_well {
                    state.since = Instant::now();
                }
                state.told = around.shared.redacted(&cause.told);
                let told = state.told.clone();
                state.refusal = (!cause.is_reachable || state.is_inherited).then_some(told);
                (Health::Down(around.shared.redacted(&cause.why)), None)
            }
        };
        let is_news = state.health != health || proxy.is_some();
        if state.health != health {
            match &health {
                Health::Up => around.shared.tell(&format!("{}: is up", self.plan.key)),
                Health::Down(why) => {
                    around.shared.tell(&format!("{}: is down: {why}", self.plan.key));
                }
                Health::Starting => {}
            }
        }
        state.health = health;
        if proxy.is_some() {
            state.proxy = proxy;
            state.is_inherited = false;
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
                this.set(&around, Ok(Some(proxy.clone())));
                drop(this);
                let Some(cause) = follow(&upstream, &around, proxy, watch).await else { return };
                let Some(this) = upstream.upgrade() else { return };
                this.set(&around, Err(cause));
            }
            Err(cause) => this.set(&around, Err(cause)),
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

/// Follows a server until it is gone for good, and says why; `None` if nobody wants it any more.
async fn follow(
    upstream: &std::sync::Weak<Upstream>,
    around: &Around,
    proxy: Proxy,
    mut watch: StateWatch,
) -> Option<Cause> {
    let (mut seen, mut misses, mut probe) = (0, 0, Instant::now() + PROBE);
    loop {
        let now = tokio::select! {
            version = proxy.changed(seen) => {
                seen = version;
                around.changed.notify_one();
                continue;
            }
            state = watch.changed() => {
                let Some(state) = state else { return Some(Cause::ended(None)) };
                match state.phase {
                    Phase::Closed => return Some(Cause::ended(Some(&state))),
                    Phase::Ready => Ok(None),
                    // A session that is lost is opened again by the call that finds out.
                    _ => match watch.wait_for(Phase::Ready, LOST).await {
                        Ok(_) => Ok(None),
                        Err(WaitError::Closed { state }) => {
                            return Some(Cause::ended(Some(&state)));
                        }
                        Err(WaitError::TimedOut { state, .. }) => {
                            Err(Cause { is_reachable: true, ..Cause::ended(Some(&state)) })
                        }
                    },
                }
            }
            () = tokio::time::sleep_until(probe) => {
                // A reload may have changed it.
                let limit = around.shared.limit(&upstream.upgrade()?.plan.key);
                let answered = ask(proxy.client(), limit.unwrap_or(BUSY)).await;
                misses = if answered.is_ok() { 0 } else { misses + 1 };
                probe = Instant::now() + if misses == 0 { PROBE } else { AGAIN };
                answered.map(|()| None)
            }
        };
        match now {
            Err(cause) if misses >= MISSES => {
                // A process is ended, and then started again.
                proxy.client().clone().close().await;
                return Some(Cause { is_reachable: false, ..cause });
            }
            now => upstream.upgrade()?.set(around, now),
        }
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
