//! What a client does to find out what a server speaks, and what may become of it.

use std::time::Duration;

use super::{ConnectError, Rejection};
use crate::revision::{Era, Revision, Revisions};

/// Which revisions a user wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Preference {
    /// The newest that both sides speak.
    #[default]
    Auto,
    /// A handshake at once.
    LegacyOnly,
    /// No handshake.
    ModernOnly,
    /// This one or none.
    Pin(Revision),
}

impl Preference {
    /// What is left of `enabled`.
    pub fn narrow(self, enabled: Revisions) -> Revisions {
        match self {
            Self::Auto => enabled,
            Self::LegacyOnly => enabled.of_era(Era::Legacy),
            Self::ModernOnly => enabled.of_era(Era::Modern),
            Self::Pin(revision) => enabled.common(revision.into()),
        }
    }
}

/// What to do next.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Send `server/discover` in this revision.
    Discover {
        /// What the request claims.
        revision: Revision,
        /// Its own deadline. On HTTP, and where the legacy era would not do, there is none beyond
        /// the usual: a timeout proves nothing.
        timeout: Option<Duration>,
    },
    /// Send `initialize` asking for this revision.
    Initialize(Revision),
    /// Start the process again, and send it `initialize` asking for this revision.
    Respawn(Revision),
    /// GET the URL and see whether the first event is `endpoint`, as HTTP+SSE has it.
    OpenSse,
    /// Nothing: the event was not, or no longer, waited for.
    Wait,
    /// Both sides speak this. If it is legacy, `notifications/initialized` is now due.
    Done(Revision),
    /// Give up.
    Failed(ConnectError),
}

/// What became of an action.
#[derive(Debug, Clone, PartialEq)]
pub enum Event<'a> {
    /// The result of `server/discover`, with its `supportedVersions`.
    Discovered(&'a [String]),
    /// The result of `initialize`, with its `protocolVersion`.
    Initialized(&'a str),
    /// The first event was `endpoint`: further messages go there.
    EndpointFound,
    /// An error instead of a result.
    Refused(Question, Rejection),
    /// An answer that is no answer.
    Malformed(Question),
    /// No answer.
    TimedOut(Question),
    /// The process ended, or the stream closed.
    Exited,
    /// The network failed.
    Unreachable(String),
    /// A request showed, after the end, that what is assumed of the server is wrong.
    Contradicted,
}

/// What an event is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Question {
    /// `server/discover`.
    Discover,
    /// `initialize`.
    Initialize,
    /// The GET of HTTP+SSE.
    Endpoint,
}
