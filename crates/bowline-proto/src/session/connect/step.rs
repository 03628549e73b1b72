//! The actions of a client that looks for a common revision, and their results.

use std::time::Duration;

use super::{ConnectError, Rejection};
use crate::revision::{Era, Revision, Revisions};

/// The user's preference among revisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Preference {
    /// The newest revision that both sides speak.
    #[default]
    Auto,
    /// Legacy only: a handshake at once.
    Legacy,
    /// Modern only: no handshake.
    Modern,
    /// This revision only.
    Pin(Revision),
}

impl Preference {
    /// The revisions of `enabled` that it allows.
    pub fn narrow(self, enabled: Revisions) -> Revisions {
        match self {
            Self::Auto => enabled,
            Self::Legacy => enabled.of_era(Era::Legacy),
            Self::Modern => enabled.of_era(Era::Modern),
            Self::Pin(revision) => enabled.common(revision.into()),
        }
    }
}

/// What to do next.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Send `server/discover` in this revision.
    Discover {
        /// The revision that the request claims.
        revision: Revision,
        /// A deadline of its own. Over HTTP, and where a legacy server would not do, there is only
        /// the usual one, because a timeout proves nothing.
        timeout: Option<Duration>,
    },
    /// Send `initialize` asking for this revision.
    Initialize(Revision),
    /// Start the process again, and send it `initialize` asking for this revision.
    Respawn(Revision),
    /// GET the URL and check whether the first event is `endpoint`, as in HTTP+SSE.
    OpenSse,
    /// Nothing: the event was not expected, or came too late.
    Wait,
    /// Both sides speak this. If it is legacy, `notifications/initialized` is now due.
    Done(Revision),
    /// Give up.
    Failed(ConnectError),
}

/// The result of an action.
#[derive(Debug, Clone, PartialEq)]
pub enum Event<'a> {
    /// The result of `server/discover`, with its `supportedVersions`.
    Discovered(&'a [String]),
    /// The result of `initialize`, with its `protocolVersion`.
    Initialized(&'a str),
    /// The first event was `endpoint`, to which further messages go.
    EndpointFound,
    /// An error in place of a result.
    Refused(Question, Rejection),
    /// A malformed answer.
    Malformed(Question),
    /// No answer in time.
    TimedOut(Question),
    /// The process exited, or the stream closed.
    Exited,
    /// The network failed.
    Unreachable(String),
    /// A later request showed that the assumed revision is wrong.
    Contradicted,
}

/// The question that an event belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Question {
    /// `server/discover`.
    Discover,
    /// `initialize`.
    Initialize,
    /// The GET of HTTP+SSE.
    Endpoint,
}
