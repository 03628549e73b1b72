//! Why a client could not connect to a server.

use std::fmt;

use crate::error::{ErrorCode, ErrorObject};
use crate::revision::NoCommonRevision;

/// An error in place of a result.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Rejection {
    /// The HTTP status.
    pub status: Option<u16>,
    /// The JSON-RPC error, if the body held one.
    pub error: Option<ErrorObject>,
}

impl Rejection {
    /// The code, if there was a JSON-RPC error.
    pub fn code(&self) -> Option<ErrorCode> {
        self.error.as_ref().map(|error| error.code)
    }

    /// Whether it proves anything about the revisions of the server.
    ///
    /// Authorization, redirects, rate limits and network problems do not.
    pub fn is_evidence(&self) -> bool {
        !matches!(self.status, Some(300..=399 | 401..=403 | 407 | 408 | 421 | 425 | 429 | 500..))
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.status, &self.error) {
            (Some(status), Some(error)) => write!(f, "HTTP {status}, {error}"),
            (Some(status), None) => write!(f, "HTTP {status}"),
            (None, Some(error)) => error.fmt(f),
            (None, None) => f.write_str("no reason given"),
        }
    }
}

/// Why no common revision was found.
#[derive(Debug, Clone, PartialEq)]
pub enum ConnectError {
    /// The two sides have no revision in common. Enable more revisions.
    NoCommonRevision(NoCommonRevision),
    /// The preference leaves no revision. Nothing was sent.
    NothingEnabled,
    /// The server rejected everything that was tried.
    Refused(Rejection),
    /// A rejection for another reason: log in or wait, and connect again.
    Blocked(Rejection),
    /// The server did not answer in time.
    TimedOut,
    /// The answer was malformed.
    Malformed,
    /// The process exited.
    Exited,
    /// The network failed with this error.
    Unreachable(String),
    /// The server contradicts itself.
    Contradicted,
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoCommonRevision(error) => error.fmt(f),
            Self::NothingEnabled => f.write_str("no revision is enabled"),
            Self::Refused(rejection) => write!(f, "the server refused: {rejection}"),
            Self::Blocked(rejection) => write!(f, "could not reach the protocol: {rejection}"),
            Self::TimedOut => f.write_str("no answer in time"),
            Self::Malformed => f.write_str("the answer is not one of this protocol"),
            Self::Exited => f.write_str("the server ended before it answered"),
            Self::Unreachable(why) => write!(f, "unreachable: {why}"),
            Self::Contradicted => f.write_str("the server answers in a revision it denies"),
        }
    }
}

impl std::error::Error for ConnectError {}
