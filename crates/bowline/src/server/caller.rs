//! Who is calling: what a handler may know of the client.

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

    /// A client of which nothing is known but what it speaks.
    pub(crate) fn unknown(revision: Revision) -> Self {
        Self { revision, capabilities: ClientCapabilities::default(), info: None, principal: None }
    }
}
