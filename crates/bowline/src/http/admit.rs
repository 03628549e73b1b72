//! Admission: which requests may reach the server, who sends them, and which scopes they lack.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bowline_proto::error::ErrorObject;
use bowline_proto::http::{Denied, Fields};
use bowline_proto::method::{CallTool, Complete, GetPrompt, Method as _, ReadResource};
use bowline_proto::revision::Revision;
use bowline_proto::wire::{Id, Message, parse_batch};
use bytes::Bytes;
use http::header::{HeaderValue, WWW_AUTHENTICATE};
use http::request::Parts;
use http::uri::Authority;
use http::{HeaderMap, StatusCode};

use super::reply::{self, Reply};
use super::service::HttpService;
#[cfg(feature = "auth")]
use crate::server::account::network;
use crate::server::account::places::{Kind, Place};
use crate::server::account::{Account, Accounts, Party};
use crate::server::audit::{self, Origin};
use crate::server::{Asker, Core, HttpHead, LastPeer, Peer, Scopes, Sender, Via, dispatch};
use crate::{Failure, Principal, Profile, Transport};

/// The head of a request that was admitted.
pub(super) struct Head<'a> {
    pub(super) parts: &'a Parts,
    /// The same, for handlers.
    pub(super) shared: &'a Arc<HttpHead>,
    pub(super) fields: &'a Fields<'a>,
    /// What its connection remembers of earlier requests.
    pub(super) remembered: &'a Remembered,
    /// The authenticated sender, if there is one.
    pub(super) principal: Option<Principal>,
    /// What it counts against, once that is known.
    pub(super) account: Option<Arc<Account>>,
}

/// What a connection remembers of earlier requests. Clients say the same in every request, so what
/// was checked or decoded once is only compared from then on.
#[derive(Default)]
pub(super) struct Remembered {
    /// The first `Host` that was admitted.
    host: OnceLock<Box<[u8]>>,
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
    fn account(
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

/// A frame whose sender has the scopes for it. Only [`HttpService::permit_frame`] makes one, here
/// or on the node of a fleet that passed it on.
pub(super) struct Permitted(Bytes);

impl Permitted {
    /// A frame that another node has permitted and sealed.
    pub(super) fn by_another_node(frame: Bytes) -> Self {
        Self(frame)
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl<'a> Head<'a> {
    /// A client of which only the principal is known.
    pub(super) fn stranger(&self, revision: Revision) -> Profile {
        Profile { principal: self.principal.clone(), ..Profile::unknown(revision) }
    }

    /// Where it comes from, for the audit.
    pub(super) fn origin(&self) -> Origin<'_> {
        let address = self.shared.peer_addr;
        Origin { principal: self.principal.as_ref(), address, transport: Transport::Http }
    }

    /// Reports a request that was refused to the audit.
    pub(super) fn audited(&self, reply: Reply) -> Reply {
        if let Some(why) = reply.why()
            && audit::is_on()
        {
            let reason = reply.message();
            let parts = self.parts;
            audit::refused_http(self.origin(), parts, reply.status(), why, reason.as_deref());
        }
        reply
    }

    /// The sender of a request with this head.
    pub(super) fn asker<'b>(&'b self, peer: &'b Arc<Peer>) -> Asker<'b>
    where
        'a: 'b,
    {
        Asker { peer, head: Some(self.shared) }
    }
}

impl HttpService {
    /// Checks whether a request may reach the server at all.
    pub(super) fn let_in(
        &self,
        parts: &Parts,
        fields: &Fields<'_>,
        remembered: &Remembered,
    ) -> Result<(), Denied> {
        let authority = parts.uri.authority().map(Authority::as_str);
        let host = fields.host_alone().filter(|_| authority.is_none());
        if host.is_some_and(|host| remembered.host.get().is_some_and(|known| **known == *host)) {
            return Ok(());
        }
        self.inner.access.check(authority, fields)?;
        // An ordinary name: many connections keep one.
        if let Some(host) = host.filter(|host| host.len() <= 256) {
            // Only the first one is kept.
            let _ = remembered.host.set(host.into());
        }
        Ok(())
    }

    /// What a request counts against, once its sender is known.
    pub(super) fn account(&self, head: &Head<'_>) -> Arc<Account> {
        if let Some(account) = &head.account {
            return Arc::clone(account);
        }
        let address = head.shared.peer_addr.map(|address| address.ip());
        head.remembered.account(&self.inner.core.accounts, head.principal.as_ref(), address)
    }

    /// Lets other parties go first, if the sender of a request asks a lot.
    pub(super) async fn take_turn(&self, head: &mut Head<'_>) {
        let account = self.account(head);
        if account.must_wait() {
            Box::pin(account.wait()).await;
        }
        head.account = Some(account);
    }

    /// The same before a refusal. Whoever it is, it counts as its address.
    pub(super) async fn take_turn_refused(&self, head: &Head<'_>) {
        let address = head.shared.peer_addr.map(|address| address.ip());
        let account = self.inner.core.accounts.find(Party::of(None, address));
        if account.must_wait() {
            account.wait().await;
        }
    }

    /// Checks whether one more call may run, before it starts. Requests that are answered at once
    /// always may.
    pub(super) fn check_calls(&self, head: &Head<'_>, method: &str) -> Result<(), Failure> {
        let Some(account) = &head.account else { return Ok(()) };
        let checked = Place::check(account, self.inner.limits.most(Kind::Calls));
        let may_take_long = [CallTool::NAME, GetPrompt::NAME, ReadResource::NAME, Complete::NAME];
        checked.or_else(|full| match may_take_long.contains(&method) {
            true => Err(Failure::busy(method, full)),
            false => Ok(()),
        })
    }

    /// Authenticates the sender of a request.
    ///
    /// # Errors
    /// When it is rejected; this is the answer.
    #[cfg(feature = "auth")]
    pub(super) async fn authenticate(&self, head: &Head<'_>) -> Result<Option<Principal>, Reply> {
        let from = || head.shared.peer_addr.map(|address| network(address.ip()));
        match &self.inner.guard {
            None => Ok(self.identified(head.parts)),
            // Boxed so that services without a guard do not pay for it.
            Some(guard) => match Box::pin(guard.check_from(head.parts, from())).await {
                Ok(identity) => Ok(Some(identity.into())),
                Err(denial) => {
                    let is_known = denial.status == StatusCode::FORBIDDEN;
                    let why = if is_known { audit::Why::Scopes } else { audit::Why::Token };
                    Err(denied(None, denial).because(why))
                }
            },
        }
    }

    #[cfg(not(feature = "auth"))]
    pub(super) async fn authenticate(&self, head: &Head<'_>) -> Result<Option<Principal>, Reply> {
        Ok(self.identified(head.parts))
    }

    fn identified(&self, parts: &Parts) -> Option<Principal> {
        self.inner.identify.as_ref().and_then(|identify| identify(parts))
    }

    /// Permits messages that are served together: all of them, or none. Middleware sees the
    /// refusal, but cannot replace it.
    ///
    /// # Errors
    /// When the caller lacks scopes; the answer names everything that all of them need.
    pub(super) async fn permit_all(
        &self,
        asker: Asker<'_>,
        messages: &[Message<'_>],
    ) -> Result<(), Reply> {
        let requests = || {
            messages.iter().filter_map(|message| match message {
                Message::Request(asked) => Some(asked),
                _ => None,
            })
        };
        let mut needed = Scopes::default();
        for asked in requests() {
            let asked = dispatch::Request { asker, asked, headers: None };
            if let Some(missing) = dispatch::missing_scopes(&asked) {
                needed.extend(missing.scopes());
            }
        }
        if needed.is_empty() {
            return Ok(());
        }
        needed.sort();
        for asked in requests() {
            let asked = dispatch::Request { asker, asked, headers: None };
            let _ = self.surround(&asked, Err(Failure::forbidden(&needed))).await;
        }
        Err(self.insufficient(None, &needed))
    }

    /// Permits a frame of HTTP+SSE, which another task serves. One that cannot be read is
    /// permitted, because that task rejects it anyway. Middleware sees a refusal, but cannot
    /// replace it.
    ///
    /// # Errors
    /// When the caller lacks scopes.
    pub(super) async fn permit_frame(
        &self,
        head: &Head<'_>,
        frame: Bytes,
    ) -> Result<Permitted, Reply> {
        if !self.inner.core.registry.tables().has_scopes {
            return Ok(Permitted(frame));
        }
        let peer = self.outsider(head.stranger(Revision::HTTP_SSE));
        let asker = head.asker(&peer);
        if let Ok(messages) = parse_batch(&frame, self.inner.core.limits.batch) {
            self.permit_all(asker, &messages).await?;
        } else if let Ok(Message::Request(asked)) = Message::parse(&frame) {
            let request = dispatch::Request { asker, asked: &asked, headers: None };
            if let Some(missing) = dispatch::missing_scopes(&request) {
                let _ = self.surround(&request, Err(missing.clone())).await;
                return Err(self.insufficient(Some(&asked.id), missing.needed()));
            }
        }
        Ok(Permitted(frame))
    }

    /// The answer to a caller that lacks scopes: 403, with everything that the request needs.
    #[cfg_attr(
        not(feature = "auth"),
        expect(clippy::unused_self, reason = "with `auth` it uses the guard")
    )]
    pub(super) fn insufficient(&self, id: Option<&Id>, needed: &Scopes) -> Reply {
        #[cfg(feature = "auth")]
        if let Some(guard) = &self.inner.guard {
            return denied(id, guard.insufficient_scope(needed.as_slice()));
        }
        let scopes = needed.as_slice().join(" ");
        let challenge = format!(r#"Bearer error="insufficient_scope", scope="{scopes}""#);
        let mut headers = HeaderMap::new();
        // The scopes were checked when the server was built.
        if let Ok(challenge) = HeaderValue::try_from(challenge) {
            headers.insert(WWW_AUTHENTICATE, challenge);
        }
        let message = format!("insufficient scope: this needs {scopes}");
        refused(StatusCode::FORBIDDEN, id, headers, message)
    }

    /// The metadata of the protected resource, which is public.
    #[cfg(feature = "auth")]
    pub(super) fn describe(&self, parts: &Parts) -> Option<Reply> {
        use http::Method;
        use http::header::{
            ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
            ACCESS_CONTROL_ALLOW_ORIGIN, CACHE_CONTROL,
        };

        let guard = self.inner.guard.as_ref()?;
        if !guard.is_metadata_path(parts.uri.path()) {
            return None;
        }
        let metadata = guard.metadata()?;
        let mut reply = match parts.method {
            Method::GET | Method::HEAD => {
                reply::json(StatusCode::OK, serde_json::to_vec(&metadata).unwrap_or_default())
            }
            Method::OPTIONS => reply::status(StatusCode::NO_CONTENT),
            _ => {
                let refusal = bowline_proto::http::Refusal::Method { allow: "GET, HEAD, OPTIONS" };
                reply::refusal(&refusal)
            }
        };
        let headers = reply.headers_mut();
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
        headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET"));
        headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static("*"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=300"));
        Some(reply)
    }
}

fn refused(status: StatusCode, id: Option<&Id>, headers: HeaderMap, message: String) -> Reply {
    let mut reply = reply::error(status, id, &ErrorObject::invalid_request(message));
    reply.headers_mut().extend(headers);
    reply
}

#[cfg(feature = "auth")]
fn denied(id: Option<&Id>, denial: bowline_auth::verify::Denial) -> Reply {
    refused(denial.status, id, *denial.headers, denial.message)
}

#[cfg(feature = "auth")]
impl From<bowline_auth::verify::Identity> for Principal {
    fn from(identity: bowline_auth::verify::Identity) -> Self {
        Self::new(identity.unique_name())
            .with_scopes(identity.scopes)
            .with_expiry(identity.expires)
            .with_claims(identity.claims)
            .issued_by(identity.issuer, identity.subject, identity.client_id)
    }
}
