//! All sessions of a service, limited in number.
//!
//! Anyone can begin a handshake, so a session whose handshake is not complete makes room for a new
//! one: the oldest first. In a fleet, one that nobody uses at the moment does, too, because its
//! next request makes it again.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use bowline_proto::http::SessionId;
use tokio::time::Instant;

use super::HttpSession;
use crate::server::account::Account;
use crate::{Principal, clock, random};

/// The bytes of a session, without what its client chooses.
const SESSION: usize = 1 << 10;

/// The list of sessions that can make room is pruned when it reaches this size, or twice that of
/// the table.
const FEW: usize = 64;

/// All sessions, by id.
pub(in crate::http) struct SessionTable {
    limit: usize,
    idle: Duration,
    sessions: Mutex<Sessions>,
}

#[derive(Default)]
struct Sessions {
    by_id: HashMap<SessionId, Arc<HttpSession>>,
    /// Those that can make room, in the order in which they were opened, or were last passed over.
    /// Some of them have completed their handshake or ended since.
    dispensable: VecDeque<Weak<HttpSession>>,
    /// When idle sessions were last removed.
    swept: Option<Instant>,
}

impl SessionTable {
    pub(in crate::http) fn new(limit: usize, idle: Duration) -> Self {
        Self { limit, idle, sessions: Mutex::default() }
    }

    /// Opens a session whose client describes itself with this many bytes; `None` if there are too
    /// many sessions, and none can make room.
    pub(in crate::http) fn open(&self, session: HttpSession, identity: usize) -> Option<SessionId> {
        let token = random::token();
        let id = SessionId::parse(&token).expect("hexadecimal digits are visible ASCII");
        self.put(&id, session, identity).map(|_| id)
    }

    /// The same with an id that is known. If there is such a session by now, it is that one.
    pub(in crate::http) fn put(
        &self,
        id: &SessionId,
        session: HttpSession,
        identity: usize,
    ) -> Option<Arc<HttpSession>> {
        let mut sessions = self.lock();
        if let Some(found) = sessions.by_id.get(id) {
            return Some(Arc::clone(found));
        }
        if sessions.by_id.len() >= self.limit {
            sessions.make_room(self.idle);
        }
        while sessions.by_id.len() >= self.limit {
            sessions.evict(None)?;
        }
        // Twice, because values take more memory than their text.
        loop {
            let reserved = session.lock().reserve(SESSION + 2 * identity);
            let Err(spent) = reserved else { break };
            let account = Arc::clone(session.lock().reserved.account());
            sessions.evict(Some(&account).filter(|_| spent.is_own))?;
        }
        session.session.set_id(id.as_str().to_owned());
        let session = Arc::new(session);
        sessions.dispensable.push_back(Arc::downgrade(&session));
        sessions.by_id.insert(id.clone(), Arc::clone(&session));
        if sessions.dispensable.len() > FEW.max(2 * sessions.by_id.len()) {
            sessions.prune();
        }
        Some(session)
    }

    /// The session with this id, whoever asks.
    pub(in crate::http) fn peek(&self, id: &SessionId) -> Option<Arc<HttpSession>> {
        self.lock().by_id.get(id).cloned()
    }

    /// The session with this key in the store of a fleet.
    pub(in crate::http) fn find_key(&self, key: &str) -> Option<(SessionId, Arc<HttpSession>)> {
        let sessions = self.lock();
        let found = sessions.by_id.iter().find(|(_, session)| session.key() == Some(key));
        found.map(|(id, session)| (id.clone(), Arc::clone(session)))
    }

    /// The keys of all sessions in the store of a fleet.
    pub(in crate::http) fn keys(&self) -> Vec<String> {
        let sessions = self.lock();
        sessions.by_id.values().filter_map(|it| it.key().map(str::to_owned)).collect()
    }

    /// Ends a session here that has ended elsewhere.
    pub(in crate::http) fn end(&self, id: &SessionId) {
        let ended = self.lock().by_id.remove(id);
        if let Some(session) = ended {
            session.close("deleted");
        }
    }

    /// Removes idle sessions, but not on every attempt: scanning all of them each time would make
    /// floods expensive.
    pub(in crate::http) fn make_room(&self) {
        self.lock().make_room(self.idle);
    }

    /// Makes room for one more session of an account. Returns whether there is some now.
    pub(in crate::http) fn make_room_of(&self, account: &Arc<Account>) -> bool {
        self.lock().evict(Some(account)).is_some()
    }

    /// The session with this id. For other principals it does not exist.
    pub(in crate::http) fn find(
        &self,
        id: &SessionId,
        principal: Option<&Principal>,
    ) -> Option<Arc<HttpSession>> {
        let mut sessions = self.lock();
        let session =
            sessions.by_id.get(id).filter(|it| it.profile().principal.as_ref() == principal)?;
        let session = Arc::clone(session);
        if !session.lock().touch(self.idle) {
            sessions.by_id.remove(id);
            session.close("idle");
            return None;
        }
        Some(session)
    }

    /// Closes a session. Returns whether it existed for this principal.
    pub(in crate::http) fn close(&self, id: &SessionId, principal: Option<&Principal>) -> bool {
        let Some(session) = self.find(id, principal) else { return false };
        self.lock().by_id.remove(id);
        session.close("deleted");
        true
    }

    /// Removes idle sessions.
    pub(in crate::http) fn sweep(&self) {
        self.lock().sweep(self.idle);
    }

    fn lock(&self) -> MutexGuard<'_, Sessions> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sessions {
    fn make_room(&mut self, idle: Duration) {
        let soon = idle.min(Duration::from_secs(1));
        if self.swept.is_none_or(|swept| swept.elapsed() >= soon) {
            self.sweep(idle);
        }
    }

    /// Ends the oldest session that can make room, of an account or of all, if there is one.
    /// Those go first that keep nothing for clients that resume a stream.
    fn evict(&mut self, account: Option<&Arc<Account>>) -> Option<()> {
        [true, false].into_iter().find_map(|spares| self.evict_one(account, spares))
    }

    fn evict_one(&mut self, account: Option<&Arc<Account>>, spares: bool) -> Option<()> {
        let is_meant = |session: &Weak<HttpSession>| {
            let Some(session) = session.upgrade() else { return false };
            // A request or a stream would hold on to it, beside the table and this function.
            let is_unused = session.key().is_some() && Arc::strong_count(&session) == 2;
            let state = session.lock();
            let is_its = |account| Arc::ptr_eq(state.reserved.account(), account);
            let is_free = is_unused && !(spares && state.keeps_events());
            (state.is_half_open() || is_free) && account.is_none_or(is_its)
        };
        let place = self.dispensable.iter().position(is_meant)?;
        let session = self.dispensable.remove(place)?.upgrade()?;
        if account.is_none() {
            // Those before it have completed their handshake, or ended, or are in use.
            let passed: Vec<_> = self.dispensable.drain(..place).collect();
            self.dispensable.extend(passed.into_iter().filter(can_make_room));
        }
        let id = session.session.id().and_then(SessionId::parse)?;
        self.by_id.remove(&id);
        session.close("evicted");
        Some(())
    }

    /// Forgets sessions that cannot make room any more.
    fn prune(&mut self) {
        self.dispensable.retain(can_make_room);
        self.dispensable.shrink_to_fit();
    }

    fn sweep(&mut self, idle: Duration) {
        let now = clock::now();
        self.swept = Some(now);
        self.by_id.retain(|_, session| {
            let mut state = session.lock();
            let is_idle = state.is_idle_for(idle, now);
            if is_idle {
                drop(state);
                session.close("idle");
            } else {
                state.expire(now);
            }
            !is_idle
        });
        self.by_id.shrink_to_fit();
        self.prune();
    }
}

/// Whether a session may have to make room at some time.
fn can_make_room(session: &Weak<HttpSession>) -> bool {
    session.upgrade().is_some_and(|it| it.key().is_some() || it.lock().is_half_open())
}
