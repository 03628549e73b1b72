//! What a handler knows about the client.

use bowline_proto::model::{ClientCapabilities, Implementation};
use bowline_proto::revision::{Era, Revision};

use super::principal::Principal;

/// The client of a request.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The revision that the request is written in.
    pub revision: Revision,
    /// What the client can do, as it declared for this request or this session.
    pub capabilities: ClientCapabilities,
    /// How the client introduces itself. For people and logs; never trust it.
    pub info: Option<Implementation>,
    /// The authenticated identity, if the transport has one.
    pub principal: Option<Principal>,
}

impl Caller {
    /// Which era the request belongs to.
    pub fn era(&self) -> Era {
        self.revision.era()
    }

    /// A client of which only the revision is known.
    pub(crate) fn unknown(revision: Revision) -> Self {
        Self { revision, capabilities: ClientCapabilities::default(), info: None, principal: None }
    }
}
