//! Legacy sessions that every node of a fleet can serve, and letters between nodes.
//!
//! The id of a session is a sealed description of its client, so any node can make the session from
//! it. What a session learns later (subscriptions, the log level, that it has ended) is one record
//! in the store of the fleet, which is read with every request: an ended session is ended
//! everywhere. Questions and streams have the number of their node in theirs.

use std::sync::{Arc, Weak};

use bowline_proto::http::{Refusal, SessionId};
use bowline_proto::json::Json;
use bowline_proto::model::{ClientCapabilities, Implementation, LoggingLevel};
use bowline_proto::session::{Lifecycle, Subscription, Topic};
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};

use super::admit::Head;
use super::reply::{self, Reply};
use super::service::{HttpService, Inner};
use super::sessions::HttpSession;
use crate::Profile;
use crate::fleet::Change;
use crate::server::account::Reservation;
use crate::server::fleet::Joined;
use crate::server::legacy::SessionChange;
use crate::server::listen;
use crate::tasks::{Quota, StoreError, TaskRecord};

const SESSION: &str = "fleet session";

/// How long a session lives, in milliseconds: a day. Without a fleet, sessions end when they are
/// idle; here nobody knows when one was last used.
const LIFETIME: u64 = 24 * 3_600_000;
/// The longest id that is sealed; clients that say more about themselves are kept in the store.
const LONGEST: usize = 2_048;

/// What the id of a session says.
#[derive(Serialize, Deserialize)]
struct Sealed {
    born: u64,
    revision: String,
    /// `None` if it is kept in the store.
    client: Option<Client>,
}

#[derive(Clone, Serialize, Deserialize)]
struct Client {
    capabilities: ClientCapabilities,
    info: Option<Implementation>,
}

/// What is kept of a session.
#[derive(Default, Serialize, Deserialize)]
struct Kept {
    #[serde(default)]
    is_ended: bool,
    #[serde(default)]
    resources: Vec<String>,
    #[serde(default)]
    level: Option<LoggingLevel>,
    /// The stream that belongs to no request: the latest one that was opened.
    #[serde(default)]
    standalone: Option<u64>,
    #[serde(default)]
    client: Option<Client>,
}

/// The key of a session in the store, from which its id cannot be guessed.
fn key(id: &str) -> String {
    digest(&SHA256, id.as_bytes()).as_ref()[..16].iter().map(|it| format!("{it:02x}")).collect()
}

/// What the store cannot tell now.
fn away(error: &StoreError) -> Reply {
    tracing::warn!(error = %crate::with_causes(error), "the sessions of the fleet cannot be read");
    reply::busy("the store of the fleet does not answer")
}

fn unknown() -> Reply {
    reply::refusal(&Refusal::SessionUnknown)
}

impl Inner {
    pub(super) fn now(joined: &Joined) -> u64 {
        joined.store.now().unwrap_or_else(crate::clock::unix_millis)
    }

    /// Reads what is kept of a session, and its version.
    async fn kept(&self, joined: &Joined, key: &str) -> Result<Option<(u64, Kept)>, StoreError> {
        let Some(record) = joined.store.load(key).await? else { return Ok(None) };
        let version = record.version();
        let content = TaskRecord::clone(&record).into_content();
        let kept = content.and_then(|content| serde_json::from_str(content.as_str()).ok());
        // What cannot be read any more is over.
        Ok(Some((version, kept.unwrap_or(Kept { is_ended: true, ..Kept::default() }))))
    }

    /// Changes what is kept of a session, and tells the other nodes.
    async fn keep(
        &self,
        joined: &Joined,
        key: &str,
        change: impl Fn(&mut Kept),
    ) -> Result<(), StoreError> {
        loop {
            let (version, mut kept) = match self.kept(joined, key).await? {
                Some((version, kept)) => (Some(version), kept),
                None => (None, Kept::default()),
            };
            change(&mut kept);
            let text = serde_json::to_string(&kept).map_err(StoreError::failed)?;
            let content = Json::from_text(text).map_err(StoreError::failed)?;
            let until = Self::now(joined).saturating_add(LIFETIME);
            let record = TaskRecord::kept("session", key, None, until, content);
            let is_kept = match version {
                Some(version) => {
                    let next = record.at_version(version + 1);
                    joined.store.swap(key, version, Some(Arc::new(next))).await?
                }
                None => {
                    let quota = Quota { all: usize::MAX, each: usize::MAX };
                    match joined.store.create(Arc::new(record), quota).await {
                        Ok(()) => true,
                        // Another node was faster, or the store fails.
                        Err(error) => match joined.store.load(key).await? {
                            Some(_) => false,
                            None => return Err(error),
                        },
                    }
                }
            };
            if is_kept {
                joined.fleet.announce(Change::of_session(key));
                return Ok(());
            }
        }
    }

    /// Takes in that another node may have changed a session.
    async fn handle_session_change(&self, key: &str) {
        let Some(joined) = &self.core.fleet else { return };
        let Some((id, session)) = self.sessions.find_key(key) else { return };
        match self.kept(joined, key).await {
            Ok(Some((_, kept))) if kept.is_ended => self.sessions.end(&id),
            Ok(Some((version, kept))) => session.apply(version, &kept),
            Ok(None) | Err(_) => {}
        }
    }
}

/// Listens for changes of sessions.
pub(super) fn join(inner: &Arc<Inner>) {
    let Some(joined) = &inner.core.fleet else { return };
    let weak: Weak<Inner> = Arc::downgrade(inner);
    let _ = joined.sessions.set(Box::new(move |key| {
        let weak = Weak::clone(&weak);
        Box::pin(async move {
            if let Some(inner) = weak.upgrade() {
                inner.handle_session_change(&key).await;
            }
        })
    }));
}

impl HttpService {
    /// The id of a new session. The session itself is made by the first request that names it.
    pub(super) async fn seal_session(
        &self,
        head: &Head<'_>,
        joined: &Joined,
        profile: &Profile,
    ) -> Result<SessionId, Reply> {
        let client =
            Client { capabilities: profile.capabilities.clone(), info: profile.info.clone() };
        let born = Inner::now(joined);
        let revision = profile.revision.to_string();
        let binding = binding(head);
        let seal = |client: Option<Client>| {
            let sealed = Sealed { born, revision: revision.clone(), client };
            let text = serde_json::to_vec(&sealed).unwrap_or_default();
            self.inner.core.keys.seal(SESSION, &binding, &text).ok()
        };
        let short = seal(Some(client.clone())).filter(|id| id.len() <= LONGEST);
        let id = match short {
            Some(id) => id,
            None => {
                let id = seal(None).ok_or_else(|| reply::busy("initialize: no session id"))?;
                let keep = |kept: &mut Kept| kept.client = Some(client.clone());
                self.inner.keep(joined, &key(&id), keep).await.map_err(|error| away(&error))?;
                id
            }
        };
        SessionId::parse(&id).ok_or_else(|| reply::busy("initialize: no session id"))
    }

    /// The session that a request names, wherever it was opened.
    pub(super) async fn shared_session(
        &self,
        head: &Head<'_>,
        joined: &Joined,
        id: &SessionId,
    ) -> Result<Arc<HttpSession>, Reply> {
        let key = key(id.as_str());
        let kept = self.inner.kept(joined, &key).await.map_err(|error| away(&error))?;
        if kept.as_ref().is_some_and(|(_, kept)| kept.is_ended) {
            self.inner.sessions.end(id);
            return Err(unknown());
        }
        let session = match self.inner.sessions.find(id, head.principal.as_ref()) {
            Some(session) => session,
            None => self.make_session(head, joined, id, kept.as_ref().map(|(_, kept)| kept))?,
        };
        if let Some((version, kept)) = &kept {
            session.apply(*version, kept);
        }
        Ok(session)
    }

    /// Makes a session from its id.
    fn make_session(
        &self,
        head: &Head<'_>,
        joined: &Joined,
        id: &SessionId,
        kept: Option<&Kept>,
    ) -> Result<Arc<HttpSession>, Reply> {
        let core = &self.inner.core;
        let opened = core.keys.open(SESSION, &binding(head), id.as_str());
        let text = opened.map_err(|_| unknown())?;
        let sealed: Sealed = serde_json::from_slice(&text).map_err(|_| unknown())?;
        if Inner::now(joined) > sealed.born.saturating_add(LIFETIME) {
            return Err(unknown());
        }
        let client = sealed.client.or_else(|| kept.and_then(|kept| kept.client.clone()));
        let client = client.ok_or_else(unknown)?;
        let mut lifecycle = Lifecycle::new(core.offer);
        let revision = lifecycle.handle_initialize(&sealed.revision).map_err(|_| unknown())?;
        lifecycle.handle_notification("notifications/initialized");
        let account = self.account(head);
        let sink = core.registry.bus().attach(Arc::clone(&account));
        let full = |error: bowline_proto::error::ErrorObject| reply::busy(&error.message);
        let subscription = Subscription::session(listen::promised(core), listen::limits(core));
        sink.add(None, subscription).map_err(full)?;
        sink.release(None);
        let place = self.session_place(&account);
        let place = place.map_err(|full| reply::busy(&full.to_string()))?;
        let profile = Profile {
            revision,
            capabilities: client.capabilities,
            info: client.info,
            principal: head.principal.clone(),
        };
        let reserved = Reservation::new(account);
        let session = HttpSession::new(core, profile, (lifecycle, sink), reserved)
            .of_node(joined.fleet.node(), key(id.as_str()));
        session.hold(place);
        let made = self.inner.sessions.put(id, session, id.as_str().len());
        let session = made.ok_or_else(|| reply::busy("too many sessions at a time"))?;
        session.session.begin(head.origin(), revision);
        Ok(session)
    }

    /// Keeps what a request has changed in its session.
    pub(super) async fn keep_change(
        &self,
        session: &HttpSession,
        change: SessionChange,
    ) -> Result<(), Reply> {
        let Some((joined, key)) = self.inner.core.fleet.as_ref().zip(session.key()) else {
            return Ok(());
        };
        let kept = self.inner.keep(joined, key, |kept| match &change {
            SessionChange::SetLevel(level) => kept.level = Some(*level),
            SessionChange::Unsubscribe(uri) => kept.resources.retain(|it| it != uri),
            SessionChange::Subscribe(uri) => {
                // Rejected otherwise.
                if session.subscribed().contains(uri) && !kept.resources.contains(uri) {
                    kept.resources.push(uri.clone());
                }
            }
        });
        kept.await.map_err(|error| away(&error))
    }

    /// Makes a stream that belongs to no request the only one of its session.
    pub(super) async fn keep_standalone(
        &self,
        session: &HttpSession,
        stream: u64,
    ) -> Result<(), Reply> {
        let Some((joined, key)) = self.inner.core.fleet.as_ref().zip(session.key()) else {
            return Ok(());
        };
        let kept = self.inner.keep(joined, key, |kept| kept.standalone = Some(stream));
        kept.await.map_err(|error| away(&error))
    }

    /// Ends a session on all nodes.
    pub(super) async fn end_shared(
        &self,
        head: &Head<'_>,
        joined: &Joined,
        id: &SessionId,
    ) -> Result<(), Reply> {
        self.shared_session(head, joined, id).await?;
        let key = key(id.as_str());
        let end = |kept: &mut Kept| *kept = Kept { is_ended: true, ..Kept::default() };
        self.inner.keep(joined, &key, end).await.map_err(|error| away(&error))?;
        self.inner.sessions.end(id);
        Ok(())
    }
}

/// What the id of a session is bound to: whose it is.
fn binding(head: &Head<'_>) -> Vec<u8> {
    match &head.principal {
        Some(principal) => [b"1", principal.as_str().as_bytes()].concat(),
        None => b"0".to_vec(),
    }
}

impl HttpSession {
    /// Takes in what is kept of the session, if that is news.
    fn apply(&self, version: u64, kept: &Kept) {
        if !self.is_news(version) {
            return;
        }
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
