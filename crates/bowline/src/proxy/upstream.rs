//! The upstream server: its client, and the calls to it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bowline_proto::error::ErrorObject;
use bowline_proto::model::LoggingLevel;
use bowline_proto::revision::{Revision, neutral_error};

use super::forward::InFlight;
use super::route::Routes;
use crate::client::{CallError, Client};
use crate::{HandlerError, random, with_causes};

/// The upstream server of one proxy, as its handlers use it.
pub(super) struct Upstream {
    pub(super) client: Client,
    /// Its name, for people.
    pub(super) name: String,
    pub(super) routes: Arc<Routes>,
    /// Calls that wait for their callers to come back, by token.
    parked: Mutex<HashMap<String, InFlight>>,
    /// The level of log messages that a legacy server was asked for.
    level: Mutex<Option<LoggingLevel>>,
}

/// How many calls may wait for their callers to come back.
const MOST_PARKED: usize = 1024;

impl Upstream {
    pub(super) async fn new(client: Client, routes: Arc<Routes>) -> Result<Arc<Self>, CallError> {
        let peer = client.ready("proxy").await?;
        let name = peer.info.as_ref().map_or("the upstream server", |info| info.name.as_str());
        Ok(Arc::new(Self {
            name: name.to_owned(),
            client,
            routes,
            parked: Mutex::default(),
            level: Mutex::default(),
        }))
    }

    /// The revision that the server speaks, once there is a connection.
    pub(super) async fn revision(&self, method: &str) -> Result<Revision, HandlerError> {
        let peer = self.client.ready(method).await.map_err(|error| self.failed(error))?;
        Ok(peer.revision)
    }

    /// The error for a call that failed. The server's own errors pass unchanged, except for a code
    /// that the caller's revision spells differently.
    pub(super) fn failed(&self, error: CallError) -> HandlerError {
        HandlerError::Refused(match error {
            CallError::Refused { error, method } => neutral_error(error, &method),
            error => ErrorObject::internal(format!("{:?}: {}", self.name, with_causes(&error))),
        })
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

    /// Keeps a call until its caller comes back, for at most this long.
    pub(super) fn park(
        self: &Arc<Self>,
        call: InFlight,
        age: Duration,
    ) -> Result<String, HandlerError> {
        let token = random::token();
        let mut parked = lock(&self.parked);
        if parked.len() >= MOST_PARKED {
            let message =
                format!("{:?}: more than {MOST_PARKED} calls wait for answers", self.name);
            return Err(HandlerError::Refused(ErrorObject::internal(message)));
        }
        parked.insert(token.clone(), call);
        let (upstream, key) = (Arc::downgrade(self), token.clone());
        tokio::spawn(async move {
            tokio::time::sleep(age).await;
            // Dropping the call cancels it.
            drop(upstream.upgrade().and_then(|upstream| upstream.unpark(&key)));
        });
        Ok(token)
    }

    pub(super) fn unpark(&self, token: &str) -> Option<InFlight> {
        lock(&self.parked).remove(token)
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
