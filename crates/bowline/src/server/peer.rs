//! Where requests come from: what all those of one sender share.

use std::sync::Arc;

use bowline_proto::decode::decode;
use bowline_proto::error::ErrorObject;
use bowline_proto::params::Params;
use bowline_proto::revision::Revision;

use super::caller::Caller;
use super::core::Core;
use super::principal::Principal;
use super::session::Session;

/// What all requests of one sender share: each holds on to this one instead of all that is in it.
pub(crate) struct Peer {
    pub(crate) core: Arc<Core>,
    pub(crate) caller: Caller,
    /// The legacy session, which can ask the client. `None` in the modern era.
    pub(crate) session: Option<Arc<Session>>,
}

impl Peer {
    /// The same, as whoever it shows itself to be now: tokens change while sessions last.
    #[cfg(feature = "http")]
    pub(crate) fn now(self: &Arc<Self>, principal: Option<&Principal>) -> Arc<Self> {
        if Principal::are_alike(self.caller.principal.as_ref(), principal) {
            return Arc::clone(self);
        }
        let caller = Caller { principal: principal.cloned(), ..self.caller.clone() };
        Arc::new(Self { core: Arc::clone(&self.core), caller, session: self.session.clone() })
    }
}

/// Who sends modern requests. Clients say the same of themselves in every request, so the last one
/// is kept and only compared.
#[derive(Default)]
pub(crate) struct LastPeer(Option<Known>);

struct Known {
    described: [Option<String>; 2],
    peer: Arc<Peer>,
}

impl LastPeer {
    /// The sender of a request with these parameters.
    ///
    /// # Errors
    /// When it does not describe itself properly.
    pub(crate) fn meet(
        &mut self,
        core: &Arc<Core>,
        revision: Revision,
        params: &Params<'_>,
        principal: Option<&Principal>,
    ) -> Result<&Arc<Peer>, ErrorObject> {
        let described = params.sender();
        let is_known = self.0.as_ref().is_some_and(|known| {
            let caller = &known.peer.caller;
            caller.revision == revision
                && Principal::are_alike(caller.principal.as_ref(), principal)
                && known.described.each_ref().map(Option::as_deref) == described
        });
        if !is_known {
            self.0 = None;
        }
        match &mut self.0 {
            Some(known) => Ok(&known.peer),
            unknown => {
                let [capabilities, info] = described;
                let what = "params._meta";
                let caller = Caller {
                    revision,
                    capabilities: decode(what, "clientCapabilities", capabilities.unwrap_or("{}"))?,
                    info: info.map(|info| decode(what, "clientInfo", info)).transpose()?,
                    principal: principal.cloned(),
                };
                let peer = Arc::new(Peer { core: Arc::clone(core), caller, session: None });
                let described = described.map(|text| text.map(str::to_owned));
                Ok(&unknown.insert(Known { described, peer }).peer)
            }
        }
    }

    /// Who was met last.
    pub(crate) fn get(&self) -> Option<&Arc<Peer>> {
        self.0.as_ref().map(|known| &known.peer)
    }
}
