//! Legacy sessions that every node of a fleet can serve, and letters between nodes.
//!
//! The id of a session is a sealed description of its client, so any node can make the session from
//! it. What a session learns later (subscriptions, the log level, that it has ended) is one record
//! in the store of the fleet, which is read with every request: an ended session is ended
//! everywhere. Questions and streams have the number of their node in theirs.

use std::sync::Arc;

use bowline_proto::http::SessionId;
use bowline_proto::session::{Lifecycle, Subscription};
use serde::{Deserialize, Serialize};

use super::admit::Head;
use super::kept::{Client, Kept, LIFETIME, NotKept, away, key, unknown};
use super::reply::{self, Reply};
use super::service::HttpService;
use super::sessions::HttpSession;
use crate::Profile;
use crate::server::account::Reservation;
use crate::server::fleet::Joined;
use crate::server::legacy::SessionChange;
use crate::server::listen;

const SESSION: &str = "fleet session";

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
        let born = joined.now();
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
                let kept = self.inner.keep(joined, &key(&id), keep).await;
                kept.map_err(|why| self.inner.not_kept(None, &why))?;
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
        let found = self.inner.sessions.find(id, head.principal.as_ref());
        // Of a session that is known, too: its key may have been removed since.
        let Some(sealed) = self.unseal(head, joined, id)? else {
            if found.is_some() {
                self.inner.sessions.end(id);
            }
            return Err(unknown());
        };
        let kept = self.unended(joined, id, &key).await?;
        let Some(session) = found else {
            let kept = kept.as_ref().map(|(_, kept)| kept);
            let session = self.make_session(head, joined, (id, sealed), kept)?;
            // Whoever has ended it meanwhile has not found it here.
            if let Some((version, kept)) = self.unended(joined, id, &key).await? {
                session.apply(version, &kept);
            }
            return Ok(session);
        };
        if let Some((version, kept)) = &kept {
            session.apply(*version, kept);
        }
        Ok(session)
    }

    /// What is kept of a session that must not have ended.
    async fn unended(
        &self,
        joined: &Joined,
        id: &SessionId,
        key: &str,
    ) -> Result<Option<(u64, Kept)>, Reply> {
        let kept = self.inner.kept(joined, key).await.map_err(|error| away(&error))?;
        match kept.as_ref().is_some_and(|(_, kept)| kept.is_ended) {
            true => Err(self.inner.not_kept(Some(id), &NotKept::Ended)),
            false => Ok(kept),
        }
    }

    /// What the id of a session says, if it was sealed for this caller and is not too old.
    ///
    /// # Errors
    /// When nobody can know: a node that is not ready may lack the key, and those that are have it.
    fn unseal(
        &self,
        head: &Head<'_>,
        joined: &Joined,
        id: &SessionId,
    ) -> Result<Option<Sealed>, Reply> {
        let opened = self.inner.core.keys.open(SESSION, &binding(head), id.as_str()).ok();
        let sealed: Option<Sealed> = opened.and_then(|text| serde_json::from_slice(&text).ok());
        if sealed.is_none() && !joined.fleet.is_ready() {
            return Err(reply::busy("this node has not read the keys of the fleet lately"));
        }
        let now = joined.now();
        Ok(sealed.filter(|sealed| now <= sealed.born.saturating_add(LIFETIME)))
    }

    /// Makes a session from its id.
    fn make_session(
        &self,
        head: &Head<'_>,
        joined: &Joined,
        (id, sealed): (&SessionId, Sealed),
        kept: Option<&Kept>,
    ) -> Result<Arc<HttpSession>, Reply> {
        let core = &self.inner.core;
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
                if !kept.resources.contains(uri) {
                    kept.resources.push(uri.clone());
                }
            }
        });
        match kept.await {
            // An older record may have undone the change here before it was kept.
            Ok((version, kept)) => session.apply(version, &kept),
            Err(why) => {
                session.doubt();
                let id = session.session.id().and_then(SessionId::parse);
                return Err(self.inner.not_kept(id.as_ref(), &why));
            }
        }
        Ok(())
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
        let kept = self.inner.keep(joined, key, |kept| kept.standalone = Some(stream)).await;
        let id = session.session.id().and_then(SessionId::parse);
        kept.map(|_| ()).map_err(|why| self.inner.not_kept(id.as_ref(), &why))
    }

    /// Ends a session on all nodes.
    pub(super) async fn end_shared(
        &self,
        head: &Head<'_>,
        joined: &Joined,
        id: &SessionId,
    ) -> Result<(), Reply> {
        // It need not be open here, where there may be no place for it.
        self.unseal(head, joined, id)?.ok_or_else(unknown)?;
        let key = key(id.as_str());
        let end = |kept: &mut Kept| *kept = Kept { is_ended: true, ..Kept::default() };
        let ended = self.inner.keep(joined, &key, end).await;
        ended.map_err(|why| self.inner.not_kept(Some(id), &why))?;
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
