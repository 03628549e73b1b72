//! Why a request has no result: what ended it, and what its client is told.

use std::fmt;

use bowline_proto::error::ErrorObject;

use super::scopes::Scopes;

/// Why a request has no result.
///
/// Any [`ErrorObject`] converts into one, so `?` works in middleware.
#[derive(Debug, Clone, PartialEq)]
pub struct Failure {
    /// What ended the request.
    pub kind: FailureKind,
    /// What the client is told. Nobody is told anything after a cancellation or a disconnect.
    pub error: ErrorObject,
    scopes: Scopes,
}

/// What ended a request without a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FailureKind {
    /// It was rejected before a handler ran: the method, the name or the parameters are wrong.
    Rejected,
    /// The caller lacks [scopes](Failure::scopes). Over HTTP, the answer has the status 403.
    Forbidden,
    /// The caller, or the server, has as much open or running as a limit allows. Over HTTP, the
    /// answer has the status 503 and says when to come back.
    Busy,
    /// The handler, or middleware, returned an error of the protocol.
    Failed,
    /// The handler panicked. The client is not told the message.
    Panicked,
    /// The handler did not finish in time and was dropped.
    TimedOut,
    /// The client cancelled the request. The handler was dropped.
    Cancelled,
    /// The client disconnected, or the server stopped. The handler was dropped.
    Disconnected,
}

impl FailureKind {
    /// One lowercase word for logs and metrics, such as `timed_out`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Rejected => "rejected",
            Self::Forbidden => "forbidden",
            Self::Busy => "busy",
            Self::Failed => "failed",
            Self::Panicked => "panicked",
            Self::TimedOut => "timed_out",
            Self::Cancelled => "cancelled",
            Self::Disconnected => "disconnected",
        }
    }
}

impl fmt::Display for FailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Failure {
    pub(crate) fn new(kind: FailureKind, error: ErrorObject) -> Self {
        Self { kind, error, scopes: Scopes::default() }
    }

    pub(crate) fn rejected(error: ErrorObject) -> Self {
        Self::new(FailureKind::Rejected, error)
    }

    pub(crate) fn forbidden(needed: &Scopes) -> Self {
        let error = needed.to_error_object();
        Self { kind: FailureKind::Forbidden, error, scopes: needed.clone() }
    }

    /// A limit is reached, which `full` names.
    pub(crate) fn busy(method: &str, full: impl fmt::Display) -> Self {
        Self::new(FailureKind::Busy, ErrorObject::internal(format!("{method}: {full}")))
    }

    /// The scopes that the request needs, if it is [forbidden](FailureKind::Forbidden).
    pub fn scopes(&self) -> impl Iterator<Item = &str> {
        self.scopes.iter()
    }

    #[cfg(feature = "http")]
    pub(crate) fn needed(&self) -> &Scopes {
        &self.scopes
    }
}

/// An error of a handler or of middleware.
impl From<ErrorObject> for Failure {
    fn from(error: ErrorObject) -> Self {
        Self::new(FailureKind::Failed, error)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl std::error::Error for Failure {}
