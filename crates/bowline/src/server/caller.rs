//! Who is calling: what a handler may know of the client.

use std::sync::{Arc, Mutex, PoisonError};

use bowline_proto::decode::decode;
use bowline_proto::error::ErrorObject;
use bowline_proto::model::{ClientCapabilities, Implementation};
use bowline_proto::params::Params;
use bowline_proto::revision::{Era, Revision};

use super::principal::Principal;

/// The client of a request.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The revision that the request is written in.
    pub revision: Revision,
    /// What the client can do, as it declared for this request or this session.
    pub capabilities: ClientCapabilities,
    /// Who it says it is. For people and logs, never a reason to trust.
    pub info: Option<Implementation>,
    /// Who it is, where the transport authenticated it.
    pub principal: Option<Principal>,
}

impl Caller {
    /// Which era the request belongs to.
    pub fn era(&self) -> Era {
        self.revision.era()
    }

    /// The same client, as whoever it shows itself to be now: tokens change while sessions last.
    #[cfg(feature = "http")]
    pub(crate) fn now(self: &Arc<Self>, principal: Option<Principal>) -> Arc<Self> {
        if Principal::are_alike(self.principal.as_ref(), principal.as_ref()) {
            return Arc::clone(self);
        }
        Arc::new(Self { principal, ..Self::clone(self) })
    }

    /// A client of which nothing is known but what it speaks.
    pub(crate) fn unknown(revision: Revision) -> Self {
        Self { revision, capabilities: ClientCapabilities::default(), info: None, principal: None }
    }
}

/// Who sends modern requests. Clients say the same of themselves in every request, so the last one
/// is kept and only compared.
#[derive(Default)]
pub(crate) struct Callers(Mutex<Option<Known>>);

struct Known {
    described: [Option<String>; 2],
    caller: Arc<Caller>,
}

impl Callers {
    /// The sender of a request with these parameters.
    ///
    /// # Errors
    /// When it does not describe itself properly.
    pub(crate) fn caller(
        &self,
        revision: Revision,
        params: &Params<'_>,
        principal: Option<Principal>,
    ) -> Result<Arc<Caller>, ErrorObject> {
        let described = params.sender();
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = last.as_ref()
            && known.caller.revision == revision
            && Principal::are_alike(known.caller.principal.as_ref(), principal.as_ref())
            && known.described.each_ref().map(Option::as_deref) == described
        {
            return Ok(Arc::clone(&known.caller));
        }
        let [capabilities, info] = described;
        let what = "params._meta";
        let caller = Arc::new(Caller {
            revision,
            capabilities: decode(what, "clientCapabilities", capabilities.unwrap_or("{}"))?,
            info: info.map(|info| decode(what, "clientInfo", info)).transpose()?,
            principal,
        });
        let described = described.map(|text| text.map(str::to_owned));
        *last = Some(Known { described, caller: Arc::clone(&caller) });
        Ok(caller)
    }
}
