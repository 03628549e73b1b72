//! What a fleet keeps of a legacy session beside its id: one record, read with each request.

use std::sync::{Arc, PoisonError, Weak};
use std::time::Duration;

use bowline_proto::http::{Refusal, SessionId};
use bowline_proto::json::Json;
use bowline_proto::model::{ClientCapabilities, Implementation, LoggingLevel};
use bowline_proto::session::{Subscription, Topic};
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};

use super::reply::{self, Reply};
use super::service::Inner;
use super::sessions::HttpSession;
use crate::fleet::Change;
use crate::server::fleet::Joined;
use crate::tasks::{Quota, StoreError, TaskRecord};

/// How long a session lives, in milliseconds: a day, after which its client opens another one.
/// Without a fleet, sessions end when they are idle; here nobody knows when one was last used.
pub(super) const LIFETIME: u64 = 24 * 3_600_000;

#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Client {
    pub(super) capabilities: ClientCapabilities,
    pub(super) info: Option<Implementation>,
}

/// What is kept of a session.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Kept {
    #[serde(default)]
    pub(super) is_ended: bool,
    #[serde(default)]
    pub(super) resources: Vec<String>,
    #[serde(default)]
    pub(super) level: Option<LoggingLevel>,
    /// The stream that belongs to no request: the latest one that was opened.
    #[serde(default)]
    pub(super) standalone: Option<u64>,
    #[serde(default)]
    pub(super) client: Option<Client>,
    /// What a later release keeps there, and this one does not know.
    #[serde(flatten)]
    pub(super) rest: serde_json::Map<String, serde_json::Value>,
}

/// Why a change of a session is not kept.
pub(super) enum NotKept {
    /// The session has ended, and stays so.
    Ended,
    Store(StoreError),
}

impl From<StoreError> for NotKept {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// The key of a session in the store, from which its id cannot be guessed.
pub(super) fn key(id: &str) -> String {
    digest(&SHA256, id.as_bytes()).as_ref()[..16].iter().map(|it| format!("{it:02x}")).collect()
}

/// What the store cannot tell now.
pub(super) fn away(error: &StoreError) -> Reply {
    tracing::warn!(error = %crate::with_causes(error), "the sessions of the fleet cannot be read");
    reply::busy("the store of the fleet does not answer")
}

pub(super) fn unknown() -> Reply {
    reply::refusal(&Refusal::SessionUnknown)
}

impl Inner {
    /// Reads what is kept of a session, and its version.
    pub(super) async fn kept(
        &self,
        joined: &Joined,
        key: &str,
    ) -> Result<Option<(u64, Kept)>, StoreError> {
        let Some(record) = joined.store.load(key).await? else { return Ok(None) };
        let version = record.version();
        let content = TaskRecord::clone(&record).into_content();
        let kept = content.and_then(|content| serde_json::from_str(content.as_str()).ok());
        // What cannot be read any more is over.
        Ok(Some((version, kept.unwrap_or(Kept { is_ended: true, ..Kept::default() }))))
    }

    /// Changes what is kept of a session, and tells the other nodes. Returns what is kept now.
    ///
    /// **Invariant:** nothing is written to a session that has ended.
    pub(super) async fn keep(
        &self,
        joined: &Joined,
        key: &str,
        change: impl Fn(&mut Kept),
    ) -> Result<(u64, Kept), NotKept> {
        loop {
            let (version, mut kept) = match self.kept(joined, key).await? {
                Some((_, kept)) if kept.is_ended => return Err(NotKept::Ended),
                Some((version, kept)) => (Some(version), kept),
                None => (None, Kept::default()),
            };
            change(&mut kept);
            let text = serde_json::to_string(&kept).map_err(StoreError::failed)?;
            let content = Json::from_text(text).map_err(StoreError::failed)?;
            let until = joined.now().saturating_add(LIFETIME);
            let record = TaskRecord::kept("session", key, None, until, content);
            let is_kept = match version {
                Some(version) => {
                    let next = record.at_version(version + 1);
                    joined.store.swap(key, version, Some(Arc::new(next))).await?
                }
                None => {
                    let quota = Quota::of(usize::MAX, usize::MAX);
                    match joined.store.create(Arc::new(record), quota).await {
                        Ok(()) => true,
                        // Another node was faster, or the store fails.
                        Err(error) => match joined.store.load(key).await? {
                            Some(_) => false,
                            None => return Err(error.into()),
                        },
                    }
                }
            };
            if is_kept {
                joined.fleet.announce(Change::of_session(key));
                return Ok((version.map_or(0, |version| version + 1), kept));
            }
        }
    }

    /// Takes in that another node may have changed a session.
    async fn handle_session_change(&self, key: &str) -> Result<(), StoreError> {
        let Some(joined) = &self.core.fleet else { return Ok(()) };
        let Some((id, session)) = self.sessions.find_key(key) else { return Ok(()) };
        match self.kept(joined, key).await? {
            Some((_, kept)) if kept.is_ended => self.sessions.end(&id),
            Some((version, kept)) => session.apply(version, &kept),
            None => {}
        }
        Ok(())
    }

    /// The answer to a request whose change is not kept.
    pub(super) fn not_kept(&self, id: Option<&SessionId>, why: &NotKept) -> Reply {
        match why {
            NotKept::Store(error) => away(error),
            NotKept::Ended => {
                if let Some(id) = id {
                    self.sessions.end(id);
                }
                unknown()
            }
        }
    }
}

/// How long to wait before a session is read again that could not be read when it had changed.
const PAUSE: Duration = Duration::from_millis(500);

/// Listens for changes of sessions.
pub(super) fn join(inner: &Arc<Inner>) {
    let Some(joined) = &inner.core.fleet else { return };
    let weak: Weak<Inner> = Arc::downgrade(inner);
    let _ = joined.sessions.set(Box::new(move |key| {
        let weak = Weak::clone(&weak);
        Box::pin(async move {
            let Some(inner) = weak.upgrade() else { return };
            let keys = key.map_or_else(|| inner.sessions.keys(), |key| vec![key]);
            for key in keys {
                if inner.handle_session_change(&key).await.is_err() {
                    let mut tasks = inner.tasks.lock().unwrap_or_else(PoisonError::into_inner);
                    tasks.spawn(handle_later(Weak::clone(&weak), key));
                }
            }
        })
    }));
}

/// Takes in a change of a session once the store can be read again: its streams must not outlive
/// its end.
async fn handle_later(weak: Weak<Inner>, key: String) {
    loop {
        tokio::time::sleep(PAUSE).await;
        let Some(inner) = weak.upgrade().filter(|inner| !inner.stop.is_stopping()) else { return };
        if inner.handle_session_change(&key).await.is_ok() {
            return;
        }
    }
}

impl HttpSession {
    /// Takes in what is kept of the session, if that is news.
    pub(super) fn apply(&self, version: u64, kept: &Kept) {
        self.take_in(version, || self.take_over(kept));
    }

    fn take_over(&self, kept: &Kept) {
        if let Some(level) = kept.level {
            self.session.set_log_level(level);
        }
        let own = self.subscribed();
        for uri in own.iter().filter(|uri| !kept.resources.contains(uri)) {
            self.sink.with(None, |subscription| subscription.unsubscribe(uri));
        }
        for uri in kept.resources.iter().filter(|uri| !own.contains(uri)) {
            let _ = self.sink.subscribe(uri);
        }
        if let Some(latest) = kept.standalone {
            self.yield_standalone(latest);
        }
    }

    /// The resources that it is subscribed to.
    fn subscribed(&self) -> Vec<String> {
        let uri = |topic: &Topic| match topic {
            Topic::Resource(uri) => Some(uri.to_string()),
            _ => None,
        };
        let granted = |subscription: &mut Subscription| {
            subscription.granted().filter_map(uri).collect::<Vec<_>>()
        };
        self.sink.with(None, granted).unwrap_or_default()
    }
}
