//! Where requests come from: what all those of one sender share.

use std::sync::Arc;

use bowline_proto::decode::decode;
use bowline_proto::error::ErrorObject;
use bowline_proto::params::Params;
use bowline_proto::revision::Revision;

use super::caller::Profile;
use super::core::Core;
use super::principal::Principal;
use super::scopes::Rights;
use super::session::Session;

/// How a request reaches a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Transport {
    /// Standard input and output.
    Stdio,
    /// Another byte stream, such as a socket.
    Stream,
    /// A client in the same process.
    Memory,
    /// HTTP, in any revision.
    Http,
}

impl Transport {
    /// The protocol and what it runs on, in OpenTelemetry's words where there are any.
    pub(crate) const fn network(self) -> [Option<&'static str>; 2] {
        match self {
            Self::Stdio => [None, Some("pipe")],
            Self::Stream => [None, Some("stream")],
            Self::Memory => [None, Some("memory")],
            Self::Http => [Some("http"), Some("tcp")],
        }
    }
}

/// How requests of a sender come, and which scopes that gives them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Via {
    pub(crate) transport: Transport,
    pub(crate) rights: Rights,
}

impl Via {
    /// A byte stream, which carries no tokens: its client may use everything.
    pub(crate) const fn stream(transport: Transport) -> Self {
        Self { transport, rights: Rights::Unlimited }
    }

    /// HTTP, where callers have the scopes of their tokens.
    #[cfg(feature = "http")]
    pub(crate) const HTTP: Self = Self { transport: Transport::Http, rights: Rights::OfPrincipal };
}

/// What all requests of one sender share: each holds on to this one instead of all that is in it.
pub(crate) struct Peer {
    pub(crate) core: Arc<Core>,
    pub(crate) profile: Profile,
    pub(crate) via: Via,
    /// The legacy session, which can ask the client. `None` in the modern era.
    pub(crate) session: Option<Arc<Session>>,
    /// The same for its state. Requests in an HTTP batch have it, although they cannot ask.
    pub(crate) member_of: Option<Arc<Session>>,
}

impl Peer {
    /// A sender without a session.
    pub(crate) fn new(core: &Arc<Core>, profile: Profile, via: Via) -> Arc<Self> {
        Arc::new(Self { core: Arc::clone(core), profile, via, session: None, member_of: None })
    }

    /// A sender in a legacy session.
    pub(crate) fn in_session(
        core: &Arc<Core>,
        profile: Profile,
        via: Via,
        session: &Arc<Session>,
    ) -> Arc<Self> {
        let (core, session) = (Arc::clone(core), Some(Arc::clone(session)));
        Arc::new(Self { core, profile, via, member_of: session.clone(), session })
    }

    /// The same with its current principal: tokens change while sessions last.
    #[cfg(feature = "http")]
    pub(crate) fn now(self: &Arc<Self>, principal: Option<&Principal>) -> Arc<Self> {
        if Principal::are_alike(self.profile.principal.as_ref(), principal) {
            return Arc::clone(self);
        }
        let profile = Profile { principal: principal.cloned(), ..self.profile.clone() };
        let (core, session) = (Arc::clone(&self.core), self.session.clone());
        Arc::new(Self { core, profile, via: self.via, session, member_of: self.member_of.clone() })
    }

    /// The same, but it cannot be asked anything.
    #[cfg(feature = "http")]
    pub(crate) fn silent(&self) -> Arc<Self> {
        let (core, member_of) = (Arc::clone(&self.core), self.member_of.clone());
        let (profile, via) = (self.profile.clone(), self.via);
        Arc::new(Self { core, profile, via, session: None, member_of })
    }
}

/// The sender of the last modern request. Clients describe themselves in every request, and nearly
/// always in the same words: those are compared, and decoded only when they differ.
#[derive(Default)]
pub(crate) struct LastPeer(Option<Described>);

/// A sender and the words that it described itself with.
struct Described {
    words: [Option<String>; 2],
    peer: Arc<Peer>,
}

/// What a modern request says about its sender.
pub(crate) struct Sender<'a> {
    pub(crate) revision: Revision,
    pub(crate) params: &'a Params<'a>,
    pub(crate) principal: Option<&'a Principal>,
}

impl LastPeer {
    /// The sender, if it is the last one.
    pub(crate) fn find(&self, sender: &Sender<'_>) -> Option<&Arc<Peer>> {
        let last = self.0.as_ref()?;
        let known = &last.peer.profile;
        let is_same = known.revision == sender.revision
            && Principal::are_alike(known.principal.as_ref(), sender.principal)
            && last.words.each_ref().map(Option::as_deref) == sender.params.sender();
        is_same.then_some(&last.peer)
    }

    /// Remembers a sender as the last one, unless its description is unusually long: there may be
    /// many connections, and most are idle.
    pub(crate) fn keep(&mut self, sender: &Sender<'_>, peer: &Arc<Peer>) {
        const USUAL: usize = 4 << 10;
        if sender.length() > USUAL {
            self.0 = None;
            return;
        }
        let words = sender.params.sender().map(|text| text.map(str::to_owned));
        self.0 = Some(Described { words, peer: Arc::clone(peer) });
    }
}

impl Sender<'_> {
    /// How long its description of itself is, in bytes.
    fn length(&self) -> usize {
        self.params.sender().into_iter().flatten().map(str::len).sum()
    }

    /// Decodes what it says about itself.
    ///
    /// # Errors
    /// When that is malformed.
    pub(crate) fn decode(&self, core: &Arc<Core>, via: Via) -> Result<Arc<Peer>, ErrorObject> {
        let [capabilities, info] = self.params.sender();
        let what = "params._meta";
        check_length(core, what, self.length())?;
        let profile = Profile {
            revision: self.revision,
            capabilities: decode(what, "clientCapabilities", capabilities.unwrap_or("{}"))?,
            info: info.map(|info| decode(what, "clientInfo", info)).transpose()?,
            principal: self.principal.cloned(),
        };
        Ok(Peer::new(core, profile, via))
    }
}

/// Checks the length of what a client says about itself.
///
/// # Errors
/// When it is too long.
pub(crate) fn check_length(core: &Core, what: &str, length: usize) -> Result<(), ErrorObject> {
    let limit = core.limits.identity;
    if length <= limit {
        return Ok(());
    }
    let message = format!(
        "{what}: the client describes itself with {length} bytes, more than the {limit} that are \
         allowed for clientInfo and capabilities"
    );
    Err(ErrorObject::invalid_params(message))
}
