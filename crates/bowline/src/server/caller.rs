//! What a handler knows about the client.

use std::any::Any;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use bowline_proto::model::{ClientCapabilities, Implementation};
use bowline_proto::revision::{Era, Revision};
#[cfg(feature = "http")]
use {
    super::head::{self, HttpHead},
    http::{Extensions, HeaderMap},
    std::net::SocketAddr,
};

use super::peer::Peer;
use super::principal::Principal;
use super::state::State;

/// The client of a request: its [`Profile`], and the HTTP request that it sent. Cheap to clone.
#[derive(Clone)]
pub struct Caller {
    pub(crate) peer: Arc<Peer>,
    #[cfg(feature = "http")]
    head: Opening,
}

/// The HTTP request that opened a connection, if one did.
#[cfg(feature = "http")]
pub(crate) type Opening = Option<Arc<HttpHead>>;

#[cfg(not(feature = "http"))]
pub(crate) type Opening = ();

/// What is known about a client, as the fields of a [`Caller`].
#[derive(Debug, Clone)]
pub struct Profile {
    /// The revision that the request is written in.
    pub revision: Revision,
    /// What the client can do, as it declared for this request or this session.
    pub capabilities: ClientCapabilities,
    /// How the client introduces itself. For people and logs; never trust it.
    pub info: Option<Implementation>,
    /// The authenticated identity, if the transport has one.
    pub principal: Option<Principal>,
}

/// The sender of a request, borrowed from its transport: a [`Caller`] for whoever needs one.
#[derive(Clone, Copy)]
pub(crate) struct Asker<'a> {
    pub(crate) peer: &'a Arc<Peer>,
    #[cfg(feature = "http")]
    pub(crate) head: Option<&'a Arc<HttpHead>>,
}

impl Profile {
    /// Which era the request belongs to.
    pub fn era(&self) -> Era {
        self.revision.era()
    }

    /// Whether the client declares that it shows [apps](crate::App), for this request or this
    /// session. Many hosts that show them forget to: do not depend on it for what people need.
    pub fn shows_apps(&self) -> bool {
        self.capabilities.shows_apps()
    }

    /// A client of which only the revision is known.
    pub(crate) fn unknown(revision: Revision) -> Self {
        Self { revision, capabilities: ClientCapabilities::default(), info: None, principal: None }
    }
}

impl Caller {
    /// A value of the client's own; see [`Context::session_state`](crate::Context::session_state).
    /// Here it serves rules of visibility.
    pub fn session_state<T>(&self, make: impl FnOnce() -> T) -> Option<State<T>>
    where
        T: Any + Send + Sync,
    {
        let peer = &self.peer;
        if let Some(session) = &peer.member_of {
            return Some(session.states.get_or_make(make));
        }
        let principal = peer.profile.principal.as_ref()?;
        let states = peer.core.principals.states(principal, peer.core.limits.principals);
        Some(states.get_or_make(make))
    }
}

impl Caller {
    /// Whom a request counts against beyond its end: the principal, or where it came from.
    #[cfg(feature = "events")]
    pub(crate) fn owner(&self) -> Option<String> {
        let principal = self.principal.as_ref().map(|it| it.as_str().to_owned());
        principal.or_else(|| self.network())
    }

    /// A digest of the network that the request came from, if that is all there is to know.
    #[cfg_attr(
        not(feature = "http"),
        expect(clippy::unused_self, reason = "only requests over HTTP come from somewhere")
    )]
    pub(crate) fn network(&self) -> Option<String> {
        #[cfg(feature = "http")]
        if self.principal.is_none() {
            let network = super::account::network(self.peer_addr()?.ip());
            let text = format!("{} {network}", self.peer.core.info.name);
            let hash = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
            let hex = hash.as_ref().iter().take(16).map(|byte| format!("{byte:02x}"));
            return Some(format!("anonymous {}", hex.collect::<String>()));
        }
        None
    }
}

#[cfg(feature = "http")]
impl Caller {
    /// The headers of the HTTP request; see [`Context::headers`](crate::Context::headers).
    pub fn headers(&self) -> &HeaderMap {
        match &self.head {
            Some(head) => head.headers(),
            None => head::no_headers(),
        }
    }

    /// What layers added to the HTTP request; see
    /// [`Context::extensions`](crate::Context::extensions).
    pub fn extensions(&self) -> &Extensions {
        match &self.head {
            Some(head) => &head.parts.extensions,
            None => head::no_extensions(),
        }
    }

    /// The address that the HTTP request came from; see
    /// [`Context::peer_addr`](crate::Context::peer_addr).
    pub fn peer_addr(&self) -> Option<SocketAddr> {
        self.head.as_ref()?.peer_addr
    }
}

impl<'a> Asker<'a> {
    /// The sender of requests on a byte stream.
    #[cfg_attr(
        not(feature = "http"),
        expect(unused_variables, reason = "without HTTP, no request opens a connection")
    )]
    pub(crate) fn on_stream(peer: &'a Arc<Peer>, opening: &'a Opening) -> Self {
        Self {
            peer,
            #[cfg(feature = "http")]
            head: opening.as_ref(),
        }
    }

    pub(crate) fn to_caller(self) -> Caller {
        Caller {
            peer: Arc::clone(self.peer),
            #[cfg(feature = "http")]
            head: self.head.cloned(),
        }
    }
}

impl Deref for Caller {
    type Target = Profile;

    fn deref(&self) -> &Profile {
        &self.peer.profile
    }
}

/// Shows the profile only: headers may be confidential.
impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Caller").field(&self.peer.profile).finish()
    }
}
