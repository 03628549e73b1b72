//! What a connection remembers of earlier requests.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bowline_proto::error::ErrorObject;
use http::HeaderMap;

use crate::Principal;
use crate::server::account::{Account, Accounts, Party};
use crate::server::{Core, HttpHead, LastPeer, Peer, Sender, Via};

/// What a connection remembers of earlier requests. Clients say the same in every request, so what
/// was checked or decoded once is only compared from then on.
#[derive(Default)]
pub(super) struct Remembered {
    /// The first `Host` that was admitted.
    pub(super) host: OnceLock<Box<[u8]>>,
    /// The sender of the last modern request.
    sender: Mutex<LastPeer>,
    /// What the last request counted against.
    account: Mutex<Option<Arc<Account>>>,
    /// The memory that held the head of an earlier request.
    spare: Mutex<Option<Arc<HttpHead>>>,
}

impl Remembered {
    /// The sender of a modern request.
    ///
    /// # Errors
    /// When its description of itself is malformed.
    pub(super) fn sender(
        &self,
        core: &Arc<Core>,
        sender: &Sender<'_>,
    ) -> Result<Arc<Peer>, ErrorObject> {
        let last = || self.sender.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(peer) = last().find(sender) {
            return Ok(Arc::clone(peer));
        }
        // Without the lock: HTTP/2 and proxies send requests from several clients at once.
        let peer = sender.decode(core, Via::HTTP)?;
        last().keep(sender, &peer);
        Ok(peer)
    }

    /// The account of a sender.
    pub(super) fn account(
        &self,
        accounts: &Accounts,
        principal: Option<&Principal>,
        address: Option<IpAddr>,
    ) -> Arc<Account> {
        let mut last = self.account.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some(account) if account.is_of(principal, address) => Arc::clone(account),
            _ => {
                let account = accounts.find(Party::of(principal, address));
                *last = Some(Arc::clone(&account));
                account
            }
        }
    }

    /// Makes the head of a request one that handlers can share.
    pub(super) fn share(&self, head: HttpHead) -> Arc<HttpHead> {
        // Another request may use the spare memory right now; then there is none.
        let spare = self.spare.try_lock().ok().and_then(|mut spare| spare.take());
        match spare {
            Some(mut shared) => {
                // Memory is spare only while nothing else refers to it.
                if let Some(place) = Arc::get_mut(&mut shared) {
                    *place = head;
                    return shared;
                }
                Arc::new(head)
            }
            None => Arc::new(head),
        }
    }

    /// Takes back the head of a request that is answered. Returns its headers, for their memory;
    /// empty if a handler still refers to them.
    pub(super) fn take_back(&self, mut shared: Arc<HttpHead>) -> HeaderMap {
        let Some(head) = Arc::get_mut(&mut shared) else { return HeaderMap::new() };
        // The rest is dropped now: it refers to the connection's buffer, and to what layers added.
        let headers = head.clear();
        if let Ok(mut spare) = self.spare.try_lock() {
            *spare = Some(shared);
        }
        headers
    }
}
