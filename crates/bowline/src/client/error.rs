//! Why a client has no connection, or a call no result.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bowline_proto::decode::DecodeError;
use bowline_proto::error::ErrorObject;
use bowline_proto::revision::{Revision, Unsupported};
use bowline_proto::session::ConnectError;

/// Why a call has no result.
///
/// A tool that fails is no error of a call: that is a result with `is_error`.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The server answered with an error.
    #[error("{method}: the server refused: {error}")]
    Refused {
        /// Which call.
        method: String,
        /// What the server said.
        error: ErrorObject,
    },
    /// The server did not declare what the call needs. Nothing was sent.
    #[error("{method}: the server declares no {capability:?}, which this needs")]
    Lacks {
        /// Which call.
        method: String,
        /// The capability that is missing.
        capability: &'static str,
    },
    /// The revision that is spoken has no such method. Nothing was sent.
    #[error("{method}: protocol revision {revision} has no such method")]
    NoSuchMethod {
        /// Which call.
        method: String,
        /// What is spoken with this server.
        revision: Revision,
    },
    /// The revision that is spoken cannot say this. Nothing was sent.
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
    /// The server's answer is not what the method answers.
    #[error("the server's answer cannot be read: {0}")]
    Malformed(DecodeError),
    /// No answer in time. The server was told to stop.
    #[error("{method}: no answer within {after:?}")]
    TimedOut {
        /// Which call.
        method: String,
        /// How long it was waited for.
        after: Duration,
    },
    /// The connection ended before the answer came.
    #[error("the connection ended: {0}")]
    Closed(CloseReason),
    /// The server asked for something that this client does not give.
    #[error("{method}: the server asks for {asked}, {problem}")]
    CannotAnswer {
        /// Which call.
        method: String,
        /// The method of the question.
        asked: String,
        /// Why it has no answer.
        problem: String,
    },
    /// The server went beyond a limit.
    #[error("{method}: {what} exceeds the limit of {limit}")]
    LimitExceeded {
        /// Which call.
        method: String,
        /// What there was too much of, and which setting bounds it.
        what: &'static str,
        /// The limit.
        limit: u64,
    },
    /// A tool's structured content is not what its output schema promises, or not of the type that
    /// the caller wants.
    #[error("tool {tool:?}: structuredContent: {problem}")]
    InvalidOutput {
        /// Which tool.
        tool: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The tool failed, where its output was wanted.
    #[error("tool {tool:?} failed: {message}")]
    ToolFailed {
        /// Which tool.
        tool: String,
        /// What it said.
        message: String,
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
    /// The server does not let this client in.
    #[error("{method}: not authorized (HTTP {status}): {problem}")]
    Unauthorized {
        /// Which call.
        method: String,
        /// 401 or 403.
        status: u16,
        /// What the server or the login said.
        problem: String,
    },
}

impl CallError {
    pub(super) fn unsendable(method: &str, problem: impl fmt::Display) -> Self {
        Self::Unsendable { method: method.to_owned(), problem: problem.to_string() }
    }

    /// The server's error, if it was one.
    pub fn as_refusal(&self) -> Option<&ErrorObject> {
        match self {
            Self::Refused { error, .. } => Some(error),
            _ => None,
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
    /// The server's process ended.
    Exited(Arc<Exit>),
    /// Reading or writing failed.
    Failed(String),
    /// It could not be opened again.
    NotReopened(String),
}

/// How a server's process ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exit {
    /// Its exit code, where it has one.
    pub code: Option<i32>,
    /// How it ended, in words: `exit status: 1`, `signal: 9 (SIGKILL)`.
    pub status: String,
    /// The last lines that it wrote to standard error.
    pub stderr: Vec<String>,
}

impl fmt::Display for CloseReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Asked => f.write_str("it was closed"),
            Self::EndOfStream => f.write_str("the server closed the stream"),
            Self::Exited(exit) => exit.fmt(f),
            Self::Failed(why) => f.write_str(why),
            Self::NotReopened(why) => write!(f, "it could not be opened again: {why}"),
        }
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the server ended ({})", self.status)?;
        if !self.stderr.is_empty() {
            write!(f, "; its last words: {}", self.stderr.join(" | "))?;
        }
        Ok(())
    }
}

/// Why there is no connection.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The program could not be started.
    #[error("cannot start {program:?}: {problem}")]
    Spawn {
        /// What was to be started.
        program: String,
        /// Why it was not.
        problem: String,
    },
    /// The server in memory could not be built.
    #[error("cannot serve: {0}")]
    Serve(String),
    /// The target is not one: a malformed URL, an option that does not fit.
    #[error("{0}")]
    Target(String),
    /// No common revision, a refusal, an end before the answer.
    #[error("cannot connect: {error}{}", told(exit))]
    Connect {
        /// What became of the attempt.
        error: ConnectError,
        /// How the process ended, if there was one and it did.
        exit: Option<Arc<Exit>>,
    },
    /// The server wants to know who we are first.
    #[error("not authorized (HTTP {status}): {problem}")]
    Unauthorized {
        /// 401 or 403.
        status: u16,
        /// What the server or the login said.
        problem: String,
    },
    /// It took too long in all.
    #[error("not connected within {0:?}")]
    TimedOut(Duration),
}

fn told(exit: &Option<Arc<Exit>>) -> String {
    exit.as_ref().map(|exit| format!(": {exit}")).unwrap_or_default()
}
