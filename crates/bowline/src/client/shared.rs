//! What all parts of one client share: pending calls, what is known about the server, the state of
//! the connection.

use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use bowline_proto::decode::DecodeError;
use bowline_proto::error::ErrorObject;
use bowline_proto::json::Json;
use bowline_proto::model::{Implementation, LoggingLevel};
use bowline_proto::session::{Calls, Inbound, Preference, Rejection, SameId};
use tokio::sync::{Semaphore, broadcast, oneshot, watch};
use tokio::task::AbortHandle;

use super::budget::Budget;
use super::cache::Cache;
use super::call::ProgressSink;
use super::changes::{Feed, Feeds};
use super::claim::Claims;
use super::error::{CallError, CloseReason};
use super::exchange::ExchangeError;
use super::handlers::Handlers;
#[cfg(feature = "client-http")]
use super::http::HttpLink;
use super::limits::{ClientLimits, Timeouts};
use super::notification::{Fault, OnFault, OnNotification, OnStderr, Told};
use super::outgoing::{Claim, cancelled};
use super::restart::Restart;
use super::state::{Peer, PendingCall, Phase, State};
use super::task::{TaskFeed, TaskFeeds};
use super::tools::ToolBook;
use super::trace::TraceContext;
use super::verdicts::Verdicts;
use super::wire::OnWire;
use super::workers::Workers;
use super::{Client, Handle};
use crate::clock;
use crate::outbox::Outbox;

/// The configuration of a client.
pub(super) struct Profile {
    pub(super) info: Implementation,
    pub(super) limits: ClientLimits,
    pub(super) timeouts: Timeouts,
    pub(super) preference: Preference,
    pub(super) restart: Restart,
    pub(super) verdicts: Verdicts,
    pub(super) has_cache: bool,
    /// Whether calls may become tasks.
    pub(super) has_tasks: bool,
    pub(super) trace: Arc<dyn Fn() -> Option<TraceContext> + Send + Sync>,
    /// What becomes of results of kinds that extensions define.
    pub(super) claims: Claims,
    pub(super) on_notification: Option<OnNotification>,
    pub(super) on_fault: Option<OnFault>,
    pub(super) on_stderr: Option<OnStderr>,
    pub(super) on_wire: Option<OnWire>,
}

/// What all parts of one client share.
pub(super) struct Shared {
    pub(super) profile: Profile,
    pub(super) handlers: Handlers,
    pub(super) state: watch::Sender<State>,
    pub(super) calls: Mutex<Calls<Waiter>>,
    pub(super) inbound: Mutex<Inbound<AbortHandle>>,
    /// A permit for every request of the server until its answer is on its way.
    pub(super) places: Arc<Semaphore>,
    /// Requests of the server that are being answered, and subscriptions to changes.
    pub(super) workers: Workers,
    live: Mutex<Option<Live>>,
    pub(super) notifications: broadcast::Sender<Told>,
    /// What the server may still send that nobody has taken.
    pub(super) queued: Budget,
    pub(super) feeds: Feeds,
    pub(super) task_feeds: TaskFeeds,
    /// A permit for every subscription to a task. Closed once the server refused one.
    pub(super) task_streams: Arc<Semaphore>,
    pub(super) cache: Cache,
    pub(super) tools: ToolBook,
    /// The wanted log level as an index, or [`NO_LEVEL`].
    log_level: AtomicU8,
    /// The id of the process, or 0.
    pub(super) process: AtomicU32,
    /// What keeps the connection open.
    pub(super) handle: OnceLock<Weak<Handle>>,
}

/// A connection that is ready for calls.
#[derive(Clone)]
pub(super) struct Live {
    pub(super) link: Link,
    pub(super) peer: Arc<Peer>,
    pub(super) claim: Arc<Claim>,
}

impl Live {
    /// Whether headers repeat arguments of calls.
    pub(super) fn sends_headers(&self) -> bool {
        match &self.link {
            Link::Stream(_) => false,
            #[cfg(feature = "client-http")]
            Link::Http(_) => self.peer.revision.is_modern(),
        }
    }
}

/// What carries messages.
#[derive(Clone)]
pub(super) enum Link {
    /// A byte stream: frames go into the outbox, and answers are matched by id.
    Stream(Arc<Outbox>),
    /// HTTP: each request is its own exchange.
    #[cfg(feature = "client-http")]
    Http(Arc<HttpLink>),
}

/// A caller that waits for an answer.
pub(super) struct Waiter {
    pub(super) answer: oneshot::Sender<Result<Json, ExchangeError>>,
    pub(super) hears: Hears,
    /// Whether to cancel the request when the answer is no longer wanted.
    pub(super) is_cancellable: bool,
}

/// What a call receives besides its answer.
#[derive(Clone)]
pub(super) enum Hears {
    Nothing,
    Progress(ProgressSink),
    Changes(Arc<Feed>),
    Task(Arc<TaskFeed>),
}

impl Shared {
    pub(super) fn new(profile: Profile, handlers: Handlers) -> Arc<Self> {
        let limits = &profile.limits;
        let starting = State { phase: Phase::Starting, reason: None, generation: 0 };
        Arc::new(Self {
            state: watch::Sender::new(starting),
            calls: Mutex::new(Calls::new()),
            inbound: Mutex::new(Inbound::new(SameId::Refuse, limits.questions)),
            places: Arc::new(Semaphore::new(limits.questions.saturating_mul(2).min(MOST_PLACES))),
            workers: Workers::default(),
            live: Mutex::default(),
            notifications: broadcast::Sender::new(limits.notifications.max(1)),
            queued: Budget::new(limits.queued_bytes),
            feeds: Feeds::default(),
            task_feeds: TaskFeeds::default(),
            task_streams: Arc::new(Semaphore::new(limits.task_streams.min(MOST_PLACES))),
            cache: Cache::new(limits, profile.has_cache),
            tools: ToolBook::new(limits),
            log_level: AtomicU8::new(NO_LEVEL),
            process: AtomicU32::new(0),
            handle: OnceLock::new(),
            handlers,
            profile,
        })
    }

    /// Publishes the state of the connection.
    pub(super) fn enter(&self, phase: Phase, reason: Option<CloseReason>) {
        self.state.send_modify(|state| {
            state.phase = phase;
            state.reason = reason;
            if phase == Phase::Ready {
                state.generation += 1;
            }
        });
    }

    /// Makes calls possible.
    pub(super) fn go_live(self: &Arc<Self>, live: Live) {
        self.cache.clear();
        let is_legacy = !live.peer.revision.is_modern();
        *lock(&self.live) = Some(live);
        self.enter(Phase::Ready, None);
        // A new session does not know the log level of the previous one.
        if let Some(level) = self.log_level().filter(|_| is_legacy) {
            let shared = Arc::clone(self);
            self.spawn(async move { drop(shared.tell_log_level(level).await) });
        }
    }

    /// Makes calls impossible, and fails pending ones.
    pub(super) fn go_down(&self, reason: &CloseReason) {
        *lock(&self.live) = None;
        for (_, waiter) in lock(&self.calls).drain() {
            let _ = waiter.answer.send(Err(ExchangeError::Closed(reason.clone())));
        }
        for task in lock(&self.inbound).drain() {
            task.abort();
        }
    }

    /// The client that these parts belong to, unless the application has dropped it.
    pub(super) fn client(self: &Arc<Self>) -> Option<Client> {
        let handle = self.handle.get()?.upgrade()?;
        Some(Client { shared: Arc::clone(self), handle })
    }

    /// The connection, if it is ready for calls.
    pub(super) fn live(&self) -> Option<Live> {
        lock(&self.live).clone()
    }

    /// Waits for the connection, at most as long as connecting may take.
    pub(super) async fn ready(&self, method: &str) -> Result<Live, CallError> {
        self.ready_within(method, self.profile.timeouts.connect).await
    }

    /// Waits for the connection.
    pub(super) async fn ready_within(
        &self,
        method: &str,
        patience: Duration,
    ) -> Result<Live, CallError> {
        match self.live() {
            Some(live) => Ok(live),
            None => Box::pin(self.wait_until_ready(method, patience)).await,
        }
    }

    async fn wait_until_ready(&self, method: &str, patience: Duration) -> Result<Live, CallError> {
        let mut state = self.state.subscribe();
        let settled = |state: &State| matches!(state.phase, Phase::Ready | Phase::Closed);
        loop {
            let waited = tokio::time::timeout(patience, state.wait_for(settled)).await.map(drop);
            if waited.is_err() {
                return Err(CallError::TimedOut { method: method.to_owned(), after: patience });
            }
            let found = state.borrow().clone();
            if found.phase == Phase::Closed {
                return Err(CallError::Closed(found.reason.unwrap_or(CloseReason::Asked)));
            }
            if let Some(live) = self.live() {
                return Ok(live);
            }
            // It went down again in between.
            tokio::task::yield_now().await;
        }
    }

    /// Why there is no connection.
    pub(super) fn reason(&self) -> CloseReason {
        self.state.borrow().reason.clone().unwrap_or(CloseReason::EndOfStream)
    }

    /// Fails the calls that have timed out, and cancels them.
    pub(super) fn expire(&self, outbox: &Outbox) {
        let expired = lock(&self.calls).expire(clock::now().into_std());
        for call in expired {
            if call.waiter.is_cancellable {
                let _ = outbox.push(|out| cancelled(out, &call.id, "no answer in time"));
            }
            let _ = call.waiter.answer.send(Err(ExchangeError::TimedOut(call.age)));
        }
    }

    /// Cancels all pending calls, so that the server stops working on them.
    pub(super) fn cancel_all(&self, outbox: &Outbox) {
        for (id, waiter) in lock(&self.calls).drain() {
            if waiter.is_cancellable {
                let _ = outbox.push(|out| cancelled(out, &id, "the client is closing"));
            }
            let _ = waiter.answer.send(Err(ExchangeError::Closed(CloseReason::Asked)));
        }
    }

    /// Spawns a worker that must not outlive the client.
    pub(super) fn spawn(&self, worker: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
        self.workers.spawn(worker)
    }

    /// Reports something that the client could not use.
    pub(super) fn fault(&self, fault: &Fault) {
        tracing::warn!(?fault, "the server sent something unusable");
        if let Some(hook) = &self.profile.on_fault {
            guarded(|| hook(fault));
        }
    }

    /// The pending calls, oldest first.
    pub(super) fn pending(&self) -> Vec<PendingCall> {
        let calls = lock(&self.calls);
        let pending = calls.pending(clock::now().into_std());
        let owned = pending.into_iter().map(|call| PendingCall {
            id: call.id,
            method: call.method.to_owned(),
            age: call.age,
        });
        owned.collect()
    }

    /// The wanted log level.
    pub(super) fn log_level(&self) -> Option<LoggingLevel> {
        LoggingLevel::ALL.get(usize::from(self.log_level.load(Ordering::Relaxed))).copied()
    }

    pub(super) fn set_log_level(&self, level: Option<LoggingLevel>) {
        let index = LoggingLevel::ALL.iter().position(|it| Some(*it) == level);
        let index = index.and_then(|index| u8::try_from(index).ok()).unwrap_or(NO_LEVEL);
        self.log_level.store(index, Ordering::Relaxed);
    }
}

const NO_LEVEL: u8 = u8::MAX;

/// The most permits: each may be a task.
const MOST_PLACES: usize = 1 << 20;

/// An error of the server, as an exchange on a stream has it.
pub(super) fn refused(error: ErrorObject) -> ExchangeError {
    ExchangeError::Rejected(Rejection { status: None, error: Some(error) })
}

/// An answer that cannot be read.
pub(super) fn malformed(method: &str, problem: impl Into<String>) -> ExchangeError {
    ExchangeError::Malformed(DecodeError::new(method, problem))
}

/// Calls a function of the application. A panic in it does not take down the connection.
pub(super) fn guarded(call: impl FnOnce()) {
    if std::panic::catch_unwind(std::panic::AssertUnwindSafe(call)).is_err() {
        tracing::error!("a hook of the application panicked");
    }
}

/// Locks a mutex. No panic leaves its data inconsistent, so poisoning is ignored.
pub(super) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
