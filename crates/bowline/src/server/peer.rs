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

/// What all requests of one sender share: each holds on to this one instead of all that is in it.
pub(crate) struct Peer {
    pub(crate) core: Arc<Core>,
    pub(crate) profile: Profile,
    pub(crate) rights: Rights,
    /// The legacy session, which can ask the client. `None` in the modern era.
    pub(crate) session: Option<Arc<Session>>,
}

impl Peer {
    /// A sender without a session.
    pub(crate) fn new(core: &Arc<Core>, profile: Profile, rights: Rights) -> Arc<Self> {
        Arc::new(Self { core: Arc::clone(core), profile, rights, session: None })
    }

    /// A sender in a legacy session.
    pub(crate) fn in_session(
        core: &Arc<Core>,
        profile: Profile,
        rights: Rights,
        session: &Arc<Session>,
    ) -> Arc<Self> {
        let (core, session) = (Arc::clone(core), Some(Arc::clone(session)));
        Arc::new(Self { core, profile, rights, session })
    }

    /// The same with its current principal: tokens change while sessions last.
    #[cfg(feature = "http")]
    pub(crate) fn now(self: &Arc<Self>, principal: Option<&Principal>) -> Arc<Self> {
        if Principal::are_alike(self.profile.principal.as_ref(), principal) {
            return Arc::clone(self);
        }
        let profile = Profile { principal: principal.cloned(), ..self.profile.clone() };
        let (core, session) = (Arc::clone(&self.core), self.session.clone());
        Arc::new(Self { core, profile, rights: self.rights, session })
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

    /// Remembers a sender as the last one.
    pub(crate) fn keep(&mut self, sender: &Sender<'_>, peer: &Arc<Peer>) {
        let words = sender.params.sender().map(|text| text.map(str::to_owned));
        self.0 = Some(Described { words, peer: Arc::clone(peer) });
    }
}

impl Sender<'_> {
    /// Decodes what it says about itself.
    ///
    /// # Errors
    /// When that is malformed.
    pub(crate) fn decode(
        &self,
        core: &Arc<Core>,
        rights: Rights,
    ) -> Result<Arc<Peer>, ErrorObject> {
        let [capabilities, info] = self.params.sender();
        let what = "params._meta";
        let profile = Profile {
            revision: self.revision,
            capabilities: decode(what, "clientCapabilities", capabilities.unwrap_or("{}"))?,
            info: info.map(|info| decode(what, "clientInfo", info)).transpose()?,
            principal: self.principal.cloned(),
        };
        Ok(Peer::new(core, profile, rights))
    }
}
