//! Why an exchange with a server failed, before it is known who asked: a caller, or the search for
//! a common revision.

use std::time::Duration;

use bowline_proto::decode::DecodeError;
use bowline_proto::session::{Event, Question, Rejection};

use crate::client::error::{CallError, CloseReason};
use crate::client::limits::ClientLimit;

/// Why an exchange failed.
#[derive(Debug)]
pub(in crate::client) enum ExchangeError {
    /// An error of the server, or an HTTP status instead of an answer.
    Rejected(Rejection),
    /// The request cannot be sent. Nothing was sent.
    #[cfg(feature = "client-http")]
    Unsendable(String),
    /// The answer cannot be read.
    Malformed(DecodeError),
    /// No answer arrived in time.
    TimedOut(Duration),
    /// The connection ended.
    Closed(CloseReason),
    /// The network failed.
    #[cfg(feature = "client-http")]
    Unreachable(String),
    /// The server requires authorization, and the login did not help.
    #[cfg(feature = "client-http")]
    Unauthorized { status: u16, problem: String },
    /// The answer exceeds a limit of ours.
    TooMuch(ClientLimit, usize),
}

impl ExchangeError {
    /// The error for a caller.
    pub(in crate::client) fn into_call_error(self, method: &str) -> CallError {
        let method = method.to_owned();
        match self {
            Self::Rejected(Rejection { error: Some(error), .. }) => {
                CallError::Refused { error, method }
            }
            Self::Rejected(rejection) => CallError::Http {
                method,
                status: rejection.status,
                problem: format!("the server answered {rejection} without a message"),
            },
            #[cfg(feature = "client-http")]
            Self::Unsendable(problem) => CallError::Unsendable { method, problem },
            Self::Malformed(error) => CallError::Malformed(error),
            Self::TimedOut(after) => CallError::TimedOut { method, after },
            Self::Closed(reason) => CallError::Closed(reason),
            #[cfg(feature = "client-http")]
            Self::Unreachable(problem) => CallError::Http { method, status: None, problem },
            #[cfg(feature = "client-http")]
            Self::Unauthorized { status, problem } => {
                CallError::Unauthorized { method, status, problem }
            }
            Self::TooMuch(limit, most) => {
                CallError::LimitExceeded { method, limit, most: most as u64 }
            }
        }
    }

    /// The event for the search for a common revision.
    pub(in crate::client) fn into_event(self, question: Question) -> Event<'static> {
        match self {
            Self::Rejected(rejection) => Event::Refused(question, rejection),
            Self::Malformed(_) => Event::Malformed(question),
            Self::TimedOut(_) => Event::TimedOut(question),
            Self::Closed(_) => Event::Exited,
            #[cfg(feature = "client-http")]
            Self::Unreachable(problem) => Event::Unreachable(problem),
            #[cfg(feature = "client-http")]
            Self::Unauthorized { status, .. } => {
                let rejection = Rejection { status: Some(status), error: None };
                Event::Refused(question, rejection)
            }
            #[cfg(feature = "client-http")]
            Self::Unsendable(_) => Event::Malformed(question),
            Self::TooMuch(limit, most) => Event::Unreachable(limit.explain(most as u64)),
        }
    }
}
