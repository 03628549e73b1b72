//! Admission: which requests may reach the server, who sends them, and which scopes they lack.

use std::sync::Arc;

use bowline_proto::error::ErrorObject;
use bowline_proto::http::{Denied, Fields};
use bowline_proto::line;
use bowline_proto::revision::Revision;
use bowline_proto::wire::{Id, Message, parse_batch};
use bytes::Bytes;
use http::header::{HeaderValue, WWW_AUTHENTICATE};
use http::request::Parts;
use http::uri::Authority;
use http::{HeaderMap, StatusCode};

use super::remembered::Remembered;
use super::reply::{self, Reply};
use super::service::HttpService;
#[cfg(feature = "auth")]
use crate::server::account::network;
use crate::server::account::places::{Kind, Place};
use crate::server::account::{Account, Party, Reservation, Spent};
use crate::server::audit::{self, Origin};
use crate::server::{Asker, HttpHead, Peer, Scopes, dispatch};
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
    /// Holds the memory of a long one.
    pub(super) held: Option<Reservation>,
}

/// A frame whose sender has the scopes for it. Only [`HttpService::permit_frame`] makes one, here
/// or on the node of a fleet that passed it on.
pub(super) struct Permitted {
    frame: Bytes,
    held: Option<Reservation>,
}

impl Permitted {
    /// A frame that another node has permitted and sealed.
    pub(super) fn by_another_node(frame: Bytes) -> Self {
        Self { frame, held: None }
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.frame
    }

    /// The frame as one line, and what holds its memory.
    pub(super) fn into_line(self) -> (Vec<u8>, Option<Reservation>) {
        // Nothing is copied if nothing else refers to it.
        let mut line = Vec::from(self.frame);
        line::finish_frame(&mut line, 0);
        (line, self.held)
    }
}

impl<'a> Head<'a> {
    /// Of a sender that is not known yet.
    pub(super) fn new(
        shared: &'a Arc<HttpHead>,
        fields: &'a Fields<'a>,
        remembered: &'a Remembered,
    ) -> Self {
        let parts = &shared.parts;
        Self { parts, shared, fields, remembered, principal: None, account: None, held: None }
    }

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

    /// Makes a long head count. Until its sender is known, it counts against the address.
    ///
    /// # Errors
    /// When there is no memory left for it; this is the answer.
    pub(super) fn hold_head(&self, head: &mut Head<'_>) -> Result<(), Reply> {
        let uri = head.parts.uri.path_and_query().map_or(0, |it| it.as_str().len());
        let length = head.fields.length() + uri;
        if length > super::patience::UNCOUNTED {
            let address = head.shared.peer_addr.map(|address| address.ip());
            let account = self.inner.core.accounts.find(Party::of(None, address));
            let mut held = Reservation::new(account);
            // Twice, because buffers double as they grow, and handlers may get a copy.
            held.resize(2 * length).map_err(no_room_for_head)?;
            head.held = Some(held);
        }
        Ok(())
    }

    /// Lets other parties go first, if the sender of a request asks a lot. From here on, all of
    /// the request counts against its sender.
    ///
    /// # Errors
    /// When the sender has no memory left for the head; this is the answer.
    pub(super) async fn take_turn(&self, head: &mut Head<'_>) -> Result<(), Reply> {
        let account = self.account(head);
        if account.must_wait() {
            Box::pin(account.wait()).await;
        }
        if let Some(held) = head.held.take() {
            head.shared.hold_head(held.moved_to(&account).map_err(no_room_for_head)?);
        }
        head.account = Some(account);
        Ok(())
    }

    /// The same before a refusal. Whoever it is, it counts as its address.
    pub(super) async fn take_turn_refused(&self, head: &Head<'_>) {
        let address = head.shared.peer_addr.map(|address| address.ip());
        let account = self.inner.core.accounts.find(Party::of(None, address));
        if account.must_wait() {
            account.wait().await;
        }
    }

    /// Checks whether one more call may run, before it starts.
    pub(super) fn check_calls(&self, head: &Head<'_>, method: &str) -> Result<(), Failure> {
        let Some(account) = &head.account else { return Ok(()) };
        Place::check_call(account, self.inner.limits.most(Kind::Calls), method)
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
        held: Reservation,
    ) -> Result<Permitted, Reply> {
        let permitted = |frame| Permitted { frame, held: Some(held) };
        if !self.inner.core.registry.tables().has_scopes {
            return Ok(permitted(frame));
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
        Ok(permitted(frame))
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

fn no_room_for_head(spent: Spent) -> Reply {
    reply::busy(&format!("the head of the request: {spent}"))
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
