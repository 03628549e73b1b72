//! Why connecting or calling failed.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bowline_proto::debug_as_sentence;
use bowline_proto::decode::DecodeError;
use bowline_proto::error::ErrorObject;
use bowline_proto::revision::{Revision, Unsupported, is_resource_not_found};
use bowline_proto::session::ConnectError;

use super::limits::ClientLimit;

/// Why a call failed.
///
/// A tool that fails is not an error of the call: it returns a result with `is_error`.
#[derive(Clone, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The server answered with an error, which is here as it came.
    #[error("{method}: the server refused: {}", without_method(error, method))]
    Refused {
        /// Which call.
        method: String,
        /// What the server said.
        error: ErrorObject,
    },
    /// The server does not declare the capability that the call needs. Nothing was sent.
    #[error("{method}: the server does not declare {capability:?}, which this call needs")]
    Lacks {
        /// Which call.
        method: String,
        /// The capability that is missing.
        capability: &'static str,
    },
    /// The negotiated revision has no such method. Nothing was sent.
    #[error("{method}: protocol revision {revision} has no such method")]
    NoSuchMethod {
        /// Which call.
        method: String,
        /// The negotiated revision.
        revision: Revision,
    },
    /// The negotiated revision cannot express this. Nothing was sent.
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
    /// The parameters cannot be sent. Nothing was sent.
    #[error("{method}: {problem}")]
    Unsendable {
        /// Which call.
        method: String,
        /// What is wrong with them.
        problem: String,
    },
    /// The server's answer is not a valid result of the method.
    #[error("the server's answer cannot be read: {0}")]
    Malformed(DecodeError),
    /// No answer arrived in time. The server was told to stop, unless the call is a task that was
    /// [started](super::ToolCall::start).
    #[error("{method}: no answer within {after:?}")]
    TimedOut {
        /// Which call.
        method: String,
        /// How long the client waited.
        after: Duration,
    },
    /// The connection ended before the answer arrived.
    #[error("the connection ended: {0}")]
    Closed(CloseReason),
    /// The server asked for something that this client cannot provide.
    #[error("{method}: the server asks for {asked}, {problem}")]
    CannotAnswer {
        /// Which call.
        method: String,
        /// The method of the question.
        asked: String,
        /// Why there is no answer.
        problem: String,
    },
    /// The server exceeded a limit of this client. The limit is ours: raise it by its setting in
    /// [`ClientLimits`](super::ClientLimits). [`ClientLimit::explain`] words it for users of a
    /// program that has settings of its own.
    #[error("{method}: {} (ClientLimits::{})", limit.explain(*most), limit.setting())]
    LimitExceeded {
        /// Which call.
        method: String,
        /// Which limit.
        limit: ClientLimit,
        /// Its value.
        most: u64,
    },
    /// The structured content of a tool does not match its output schema, or the type that the
    /// caller wants.
    #[error("tool {tool:?}: structuredContent: {problem}")]
    InvalidOutput {
        /// Which tool.
        tool: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The tool failed, but the caller wanted its output.
    #[error("tool {tool:?} failed: {message}")]
    ToolFailed {
        /// Which tool.
        tool: String,
        /// What it said.
        message: String,
    },
    /// The call became a task, and the task was cancelled.
    #[error("task {id:?} was cancelled{}", message.as_ref().map(|it| format!(": {it}")).unwrap_or_default())]
    TaskCancelled {
        /// Which task.
        id: String,
        /// What the server said about it.
        message: Option<String>,
    },
    /// The call became a task, which did not end while the server keeps it.
    #[error("task {id:?} did not end within its time to live, {ttl:?}")]
    TaskExpired {
        /// Which task.
        id: String,
        /// How long the server keeps it.
        ttl: Duration,
    },
    /// HTTP failed: the network, a proxy, the server's status.
    #[error("{method}: {problem}")]
    Http {
        /// Which call.
        method: String,
        /// The status, if there was an answer.
        status: Option<u16>,
        /// What went wrong.
        problem: String,
    },
    /// The server rejected the client's credentials, or their absence.
    #[error("{method}: not authorized (HTTP {status}): {problem}")]
    Unauthorized {
        /// Which call.
        method: String,
        /// 401 or 403.
        status: u16,
        /// What the server or the login reported.
        problem: String,
    },
}

impl CallError {
    pub(super) fn unsendable(method: &str, problem: impl fmt::Display) -> Self {
        Self::Unsendable { method: method.to_owned(), problem: problem.to_string() }
    }

    /// The same for others than the server's operator: without what its process wrote to standard
    /// error, which may contain secrets.
    #[must_use]
    pub fn without_stderr(&self) -> Self {
        match self {
            Self::Closed(reason) => Self::Closed(reason.without_stderr()),
            other => other.clone(),
        }
    }

    /// The server's error, if the server answered with one.
    pub fn as_refusal(&self) -> Option<&ErrorObject> {
        match self {
            Self::Refused { error, .. } => Some(error),
            _ => None,
        }
    }

    /// Whether the server says that the resource does not exist. The code for that depends on the
    /// revision: -32002 up to 2025-11-25, -32602 with the URI in its data from 2026-07-28 on.
    pub fn is_resource_not_found(&self) -> bool {
        match self {
            Self::Refused { method, error } => is_resource_not_found(error, method),
            _ => false,
        }
    }
}

impl From<DecodeError> for CallError {
    fn from(error: DecodeError) -> Self {
        Self::Malformed(error)
    }
}

/// Why a connection ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum CloseReason {
    /// This side closed it.
    Asked,
    /// The server closed the stream.
    EndOfStream,
    /// The server's process exited.
    Exited(Arc<Exit>),
    /// Reading or writing failed.
    Failed(String),
    /// It could not be reopened.
    NotReopened(String),
}

/// How the server's process exited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exit {
    /// The exit code, if there is one.
    pub code: Option<i32>,
    /// The exit status in words: `exit status: 1`, `signal: 9 (SIGKILL)`.
    pub status: String,
    /// The last lines that it wrote to standard error.
    pub stderr: Vec<String>,
}

impl CloseReason {
    /// The same for others than the server's operator: without what its process wrote to standard
    /// error, which may contain secrets.
    #[must_use]
    pub fn without_stderr(&self) -> Self {
        match self {
            Self::Exited(exit) => Self::Exited(exit.without_stderr()),
            other => other.clone(),
        }
    }
}

impl Exit {
    fn without_stderr(&self) -> Arc<Self> {
        Arc::new(Self { code: self.code, status: self.status.clone(), stderr: Vec::new() })
    }
}

impl fmt::Display for CloseReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Asked => f.write_str("the client closed it"),
            Self::EndOfStream => f.write_str("the server closed the stream"),
            Self::Exited(exit) => exit.fmt(f),
            Self::Failed(why) => f.write_str(why),
            Self::NotReopened(why) => write!(f, "it could not be reopened: {why}"),
        }
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the server ended ({})", self.status)?;
        let mut said = self.stderr.iter().map(|line| line.trim()).filter(|line| !line.is_empty());
        if let Some(first) = said.next() {
            write!(f, "; its last lines on standard error: {first}")?;
            said.try_for_each(|line| write!(f, " | {line}"))?;
        }
        Ok(())
    }
}

/// Why connecting failed.
#[derive(Clone, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The program could not be started.
    #[error("cannot start {program:?}: {problem}")]
    Spawn {
        /// The program.
        program: String,
        /// Why it could not be started.
        problem: String,
    },
    /// The in-process server could not be built.
    #[error("cannot serve: {0}")]
    Serve(String),
    /// The target is invalid: a malformed URL, an option that does not fit.
    #[error("{0}")]
    Target(String),
    /// No common revision, a rejection, or the connection ended early.
    #[error("cannot connect: {error}{}", told(exit))]
    Connect {
        /// What happened.
        error: ConnectError,
        /// How the process exited, if it did.
        exit: Option<Arc<Exit>>,
    },
    /// The server requires authorization.
    #[error("not authorized (HTTP {status}): {problem}")]
    Unauthorized {
        /// 401 or 403.
        status: u16,
        /// What the server or the login reported.
        problem: String,
    },
    /// Connecting took too long.
    #[error("not connected within {0:?}")]
    TimedOut(Duration),
}

impl OpenError {
    /// The same for others than the server's operator: without what its process wrote to standard
    /// error, which may contain secrets.
    #[must_use]
    pub fn without_stderr(&self) -> Self {
        match self {
            Self::Connect { error, exit } => {
                let exit = exit.as_ref().map(|exit| exit.without_stderr());
                Self::Connect { error: error.clone(), exit }
            }
            other => other.clone(),
        }
    }
}

debug_as_sentence!(CallError, OpenError);

fn told(exit: &Option<Arc<Exit>>) -> String {
    exit.as_ref().map(|exit| format!(": {exit}")).unwrap_or_default()
}

/// What a server said, without the method that its message begins with: it is named already.
fn without_method(error: &ErrorObject, method: &str) -> String {
    let text = error.to_string();
    let rest = text.strip_prefix(method).and_then(|rest| rest.strip_prefix(": "));
    rest.map_or_else(|| text.clone(), str::to_owned)
}
