//! The upstream server: its client, and the calls to it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bowline_proto::error::ErrorObject;
use bowline_proto::model::task_extension;
use bowline_proto::revision::{Revision, neutral_error};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::forward::InFlight;
use super::losses::Loss;
use super::pool::{Lease, Pool};
use super::route::Route;
use crate::client::{CallError, Client, Peer};
use crate::{HandlerError, random, with_causes};

/// What the front calls a tool; `None` if it does not have it.
pub(super) type ToolNames = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// The upstream server of one proxy, as its handlers use it.
pub(super) struct Upstream {
    /// The first connection's.
    pub(super) client: Client,
    /// Its name, for people.
    pub(super) name: String,
    pub(super) pool: Arc<Pool>,
    /// What the front calls each tool, if not the same.
    names: Option<ToolNames>,
    /// Calls that wait for their callers to come back, by token.
    parked: Mutex<HashMap<String, Parked>>,
}

/// A call that waits for its caller to come back.
struct Parked {
    call: InFlight,
    /// Whom it counts against, if that is known.
    owner: Option<String>,
    since: Instant,
    _expiry: Expiry,
}

/// Ends the wait for a caller that does not come back. Goes with the call.
struct Expiry(AbortHandle);

impl Drop for Expiry {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// How many calls may wait for their callers to come back.
const MOST_PARKED: usize = 1024;
/// How many of them may be one caller's.
const MOST_OF_ONE: usize = 128;
/// After how long away a caller has to give its connection to a call that needs one.
const AWAY: Duration = Duration::from_secs(10);
/// How often a call that waits for a connection looks for such callers.
const LOOK: Duration = Duration::from_secs(1);

impl Upstream {
    pub(super) async fn new(
        pool: Arc<Pool>,
        names: Option<ToolNames>,
    ) -> Result<Arc<Self>, CallError> {
        let client = pool.first.client.clone();
        let peer = client.ready("proxy").await?;
        let name = peer.info.as_ref().map_or("the upstream server", |info| info.name.as_str());
        Ok(Arc::new(Self { name: name.to_owned(), client, pool, names, parked: Mutex::default() }))
    }

    /// What the front calls a tool of the server; `None` if it does not have it.
    pub(super) fn name_of(&self, tool: &str) -> Option<String> {
        match &self.names {
            Some(names) => names(tool),
            None => Some(tool.to_owned()),
        }
    }

    /// The revision that the server speaks, once there is a connection.
    pub(super) async fn revision(&self, method: &str) -> Result<Revision, HandlerError> {
        let peer = self.client.ready(method).await.map_err(|error| self.failed(error))?;
        Ok(peer.revision)
    }

    /// Whether calls can become tasks in the manner of the extension.
    pub(super) fn has_tasks(&self) -> bool {
        let has = |peer: Arc<Peer>| peer.capabilities.has_extension(task_extension::ID);
        self.client.peer().is_some_and(has)
    }

    /// The error for a call that failed. The server's own errors pass unchanged, except for a code
    /// that the caller's revision spells differently.
    pub(super) fn failed(&self, error: CallError) -> HandlerError {
        HandlerError::Refused(match error {
            CallError::Refused { error, method } => neutral_error(error, &method),
            error => {
                if matches!(error, CallError::Closed(_)) {
                    self.pool.losses().add(Loss::BrokenCall);
                }
                // Callers are not the server's operator.
                let error = error.without_stderr();
                ErrorObject::internal(format!("{:?}: {}", self.name, with_causes(&error)))
            }
        })
    }

    /// Keeps a call until its caller comes back, for at most this long.
    pub(super) fn park(
        self: &Arc<Self>,
        call: InFlight,
        owner: Option<String>,
        age: Duration,
    ) -> Result<String, HandlerError> {
        let token = random::token();
        let mut parked = lock(&self.parked);
        if parked.len() >= MOST_PARKED {
            let message =
                format!("{:?}: more than {MOST_PARKED} calls wait for answers", self.name);
            return Err(HandlerError::Refused(ErrorObject::internal(message)));
        }
        let is_theirs = |it: &&Parked| it.owner.is_some() && it.owner == owner;
        if parked.values().filter(is_theirs).count() >= MOST_OF_ONE {
            let message = format!(
                "{:?}: {MOST_OF_ONE} of your calls wait for answers; help: answer or cancel some",
                self.name
            );
            return Err(HandlerError::Refused(ErrorObject::internal(message)));
        }
        let (upstream, key) = (Arc::downgrade(self), token.clone());
        let expiry = tokio::spawn(async move {
            tokio::time::sleep(age).await;
            let Some(upstream) = upstream.upgrade() else { return };
            // Dropping the call cancels it.
            if upstream.unpark(&key).is_some() {
                upstream.pool.losses().add(Loss::ExpiredCall);
            }
        });
        let expiry = Expiry(expiry.abort_handle());
        let call = Parked { call, owner, since: Instant::now(), _expiry: expiry };
        parked.insert(token.clone(), call);
        Ok(token)
    }

    /// A connection for a call. Where none is left, callers that are away for long lose theirs.
    pub(super) async fn lease(
        &self,
        route: &Arc<Route>,
        is_modern: bool,
    ) -> Result<Lease, HandlerError> {
        let mut leasing = std::pin::pin!(self.pool.lease(route, is_modern));
        let mut pause = Duration::ZERO;
        loop {
            tokio::select! {
                biased;
                lease = &mut leasing => return lease,
                () = tokio::time::sleep(pause) => pause = LOOK,
            }
            if self.pool.is_full() {
                self.give_up();
            }
        }
    }

    /// Cancels a call whose caller is away for long, if there is one: the oldest of the owner that
    /// has the most of them, so that nobody takes the connections of all others.
    fn give_up(&self) {
        let mut parked = lock(&self.parked);
        let mut counts = HashMap::<_, usize>::new();
        for call in parked.values() {
            *counts.entry(&call.owner).or_default() += 1;
        }
        let away = parked.iter().filter(|(_, it)| it.since.elapsed() >= AWAY);
        let oldest = away.max_by_key(|(_, it)| (counts[&it.owner], it.since.elapsed()));
        let Some(token) = oldest.map(|(token, _)| token.clone()) else { return };
        let call = parked.remove(&token);
        drop(parked);
        // Dropping the call cancels it.
        drop(call);
        self.pool.losses().add(Loss::ExpiredCall);
    }

    pub(super) fn unpark(&self, token: &str) -> Option<InFlight> {
        lock(&self.parked).remove(token).map(|it| it.call)
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
