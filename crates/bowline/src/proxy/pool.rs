//! The connections to the upstream server, and which call uses which.
//!
//! All calls share one connection, unless that would leave open whom a question is for: outside the
//! stream of a call, as on a pipe or in HTTP+SSE, nothing says which call a question of a legacy
//! server belongs to. Once a server has asked anything there, each call gets a connection that no
//! other caller uses meanwhile. The first connection is preferred, so that a client that calls
//! alone always meets the same process.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use bowline_proto::error::ErrorObject;
use bowline_proto::method::{LoggingMessage, Notice};
use bowline_proto::model::{ClientCapabilities, LoggingLevel, Root};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::losses::{Loss, Losses};
use super::route::{Route, Routes};
use super::upstream::lock;
use crate::HandlerError;
use crate::client::{Client, ClientBuilder, OpenError, Target};

/// Makes one more client, and says where the server is.
pub(super) type Opener = Arc<dyn Fn() -> (ClientBuilder, Target) + Send + Sync>;

/// How long an additional connection may be idle.
const IDLE: Duration = Duration::from_secs(60);
/// How long a call waits for a connection of its own.
const PATIENCE: Duration = Duration::from_secs(30);

/// How connections are opened, and how many.
pub(super) struct Opening {
    /// What a legacy server hears that it may ask.
    pub(super) capabilities: Option<ClientCapabilities>,
    /// What a legacy server gets that asks for roots, instead of its caller's.
    pub(super) roots: Option<Arc<[Root]>>,
    pub(super) has_one_caller: bool,
    /// Without it there is one connection only.
    pub(super) opener: Option<Opener>,
    /// The most connections.
    pub(super) most: usize,
}

/// A connection to the upstream server.
pub(super) struct Connection {
    pub(super) client: Client,
    pub(super) routes: Arc<Routes>,
    /// The level of log messages that a legacy server was asked for.
    level: Mutex<Option<LoggingLevel>>,
    /// Whose calls it carries: a session in the server belongs to one principal.
    principal: Option<String>,
    last_used: Mutex<Instant>,
}

impl Connection {
    async fn open(
        (client, target): (ClientBuilder, Target),
        opening: &Opening,
        shared: (Arc<Losses>, Arc<AtomicBool>),
        principal: Option<String>,
    ) -> Result<Arc<Self>, OpenError> {
        let (one, roots) = (opening.has_one_caller, opening.roots.clone());
        let mut declared = opening.capabilities.clone();
        if let (Some(declared), Some(_)) = (&mut declared, &roots) {
            declared.roots.get_or_insert_default();
        }
        let routes = Arc::new(Routes::new(one, roots, shared.0, shared.1));
        let (asked, told) = (Arc::clone(&routes), Arc::clone(&routes));
        let client = client
            .on_question(declared, move |question| asked.ask(question))
            .also_on_notification(move |notification| {
                if &*notification.method == LoggingMessage::NAME
                    && let Some(message) = notification.read()
                {
                    told.log(&message);
                }
            });
        let client = client.connect(target).await?;
        let (level, last_used) = (Mutex::default(), Mutex::new(Instant::now()));
        Ok(Arc::new(Self { client, routes, level, principal, last_used }))
    }

    /// Asks a legacy server for log messages from this level on.
    pub(super) async fn want_logs(&self, level: Option<LoggingLevel>) {
        let logs = self.client.peer().is_some_and(|peer| peer.capabilities.logging.is_some());
        let Some(level) = level.filter(|_| logs) else { return };
        {
            let mut known = lock(&self.level);
            if known.is_some_and(|known| known <= level) {
                return;
            }
            *known = Some(level);
        }
        if let Err(error) = self.client.set_log_level(Some(level)).await {
            tracing::debug!(%error, "the upstream server does not take a log level");
        }
    }
}

/// The connections to the upstream server.
pub(super) struct Pool {
    pub(super) first: Arc<Connection>,
    opening: Opening,
    losses: Arc<Losses>,
    /// Whether the server has asked anything outside the stream of a call.
    has_asked: Arc<AtomicBool>,
    more: Mutex<More>,
    /// Told when a call has ended.
    released: Notify,
}

#[derive(Default)]
struct More {
    connections: Vec<Arc<Connection>>,
    /// How many are being opened.
    opening: usize,
}

/// A call's hold on its connection.
pub(super) struct Lease {
    pub(super) connection: Arc<Connection>,
    pool: Weak<Pool>,
    route: Arc<Route>,
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.connection.routes.remove(&self.route);
        *lock(&self.connection.last_used) = Instant::now();
        if let Some(pool) = self.pool.upgrade() {
            pool.released.notify_one();
        }
    }
}

/// A connection that is being opened, or was not.
struct Place<'a>(&'a Pool);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        lock(&self.0.more).opening -= 1;
        self.0.released.notify_one();
    }
}

impl Pool {
    /// Opens the first connection.
    pub(super) async fn open(
        client: ClientBuilder,
        target: Target,
        opening: Opening,
    ) -> Result<Arc<Self>, OpenError> {
        let (losses, has_asked) = (Arc::<Losses>::default(), Arc::<AtomicBool>::default());
        let shared = (Arc::clone(&losses), Arc::clone(&has_asked));
        let first = Connection::open((client, target), &opening, shared, None).await?;
        let (more, released) = (Mutex::default(), Notify::new());
        Ok(Arc::new(Self { first, opening, losses, has_asked, more, released }))
    }

    pub(super) fn losses(&self) -> Arc<Losses> {
        Arc::clone(&self.losses)
    }

    /// A connection for a call.
    pub(super) async fn lease(
        self: &Arc<Self>,
        route: &Arc<Route>,
        is_modern: bool,
    ) -> Result<Lease, HandlerError> {
        let is_shared = is_modern
            || self.opening.has_one_caller
            || self.opening.opener.is_none()
            || !self.has_asked.load(Ordering::Relaxed);
        if is_shared {
            self.first.routes.add(route);
            return Ok(self.leased(&self.first, route));
        }
        let exclusive = self.exclusive(route);
        tokio::time::timeout(PATIENCE, exclusive).await.unwrap_or_else(|_| {
            Err(HandlerError::Refused(ErrorObject::internal(format!(
                "all {} connections to the server carry calls of other callers; help: try again \
                 later",
                self.opening.most
            ))))
        })
    }

    async fn exclusive(self: &Arc<Self>, route: &Arc<Route>) -> Result<Lease, HandlerError> {
        let principal = route.principal();
        loop {
            let place = {
                let mut released = std::pin::pin!(self.released.notified());
                // From here on, every release counts: two of them would leave one note for two
                // that wait.
                released.as_mut().enable();
                if let Some(connection) = self.free(route, principal.as_deref()) {
                    return Ok(self.leased(&connection, route));
                }
                let Some(place) = self.place() else {
                    released.await;
                    continue;
                };
                place
            };
            let opener = self.opening.opener.as_ref().expect("there is one, as `lease` knows");
            let shared = (Arc::clone(&self.losses), Arc::clone(&self.has_asked));
            let opened = Connection::open(opener(), &self.opening, shared, principal.clone()).await;
            let connection = opened.map_err(|error| {
                HandlerError::Refused(ErrorObject::internal(format!(
                    "no further connection to the server: {}",
                    crate::with_causes(&error)
                )))
            })?;
            self.losses.add(Loss::SeparateConnection);
            connection.routes.add(route);
            lock(&self.more).connections.push(Arc::clone(&connection));
            drop(place);
            return Ok(self.leased(&connection, route));
        }
    }

    /// Whether a call that needs a connection of its own would have to wait for one.
    pub(super) fn is_full(&self) -> bool {
        let more = lock(&self.more);
        let count = 1 + more.connections.len() + more.opening;
        let is_idle = |it: &Arc<Connection>| it.routes.is_empty();
        count >= self.opening.most && !is_idle(&self.first) && !more.connections.iter().any(is_idle)
    }

    /// Closes all connections, and waits for that.
    pub(super) async fn close(&self) {
        let more = std::mem::take(&mut lock(&self.more).connections);
        let mut closing = JoinSet::new();
        for connection in more.iter().chain([&self.first]) {
            closing.spawn(connection.client.clone().close());
        }
        while closing.join_next().await.is_some() {}
    }

    fn leased(self: &Arc<Self>, connection: &Arc<Connection>, route: &Arc<Route>) -> Lease {
        let (connection, pool) = (Arc::clone(connection), Arc::downgrade(self));
        Lease { connection, pool, route: Arc::clone(route) }
    }

    /// A connection that nobody else uses, with the call on it.
    fn free(&self, route: &Arc<Route>, principal: Option<&str>) -> Option<Arc<Connection>> {
        // Several calls at a time must not take the same one.
        let more = lock(&self.more);
        let ours = more.connections.iter().filter(|it| it.principal.as_deref() == principal);
        let mut all = std::iter::once(&self.first).chain(ours);
        all.find(|it| it.routes.add_alone(route)).cloned()
    }

    /// Room for one more connection, for which one that nobody uses may have to go.
    fn place(self: &Arc<Self>) -> Option<Place<'_>> {
        let mut more = lock(&self.more);
        if 1 + more.connections.len() + more.opening >= self.opening.most {
            let idle = more.connections.iter().position(|it| it.routes.is_empty())?;
            more.connections.swap_remove(idle);
        }
        more.opening += 1;
        if more.connections.is_empty() && more.opening == 1 {
            tokio::spawn(close_idle(Arc::downgrade(self)));
        }
        Some(Place(self))
    }
}

/// Closes connections that have been idle for long, as long as there are any.
async fn close_idle(pool: Weak<Pool>) {
    loop {
        tokio::time::sleep(IDLE).await;
        let Some(pool) = pool.upgrade() else { return };
        let mut more = lock(&pool.more);
        more.connections.retain(|it| !it.routes.is_empty() || lock(&it.last_used).elapsed() < IDLE);
        if more.connections.is_empty() && more.opening == 0 {
            return;
        }
    }
}
