//! Errors of handlers, and mistakes in a server that are found before it runs.

use std::error::Error;
use std::fmt;

use bowline_proto::causes::with_causes;
use bowline_proto::debug_as_sentence;
use bowline_proto::error::{ErrorCode, ErrorObject};
use bowline_proto::revision::Unsupported;

use super::answer::{Answer, Outcome};
#[cfg(doc)]
use super::ask::AskError;
use super::ask::MissingCapability;
use super::state::MissingState;

/// Why a handler failed. Any error converts into it with `?`.
///
/// | error | answer of a tool | answer of a prompt or resource |
/// |---|---|---|
/// | [`ErrorObject`], [`AskError`] for lack of a capability | that error of the protocol | the same |
/// | any other: text, `std::error::Error`, `anyhow::Error` | a result with `isError`, which the model reads | an internal error |
///
/// An error of the first row keeps its meaning wherever it is in the chain of
/// [sources](std::error::Error::source): in a `Box`, in an enum with `#[from]`, in `anyhow::Error`.
/// Only an [`ErrorObject`] that went into `anyhow::Error` without a context becomes text, because
/// it cannot be found there.
///
/// A message to the model contains the error and its causes.
pub enum HandlerError {
    /// The work failed. A tool returns `isError`; a prompt or resource an internal error.
    Failed(String),
    /// The request is rejected with a protocol error.
    Refused(ErrorObject),
    /// The request ends with another answer. Handlers return [`Step::Ask`](crate::Step::Ask) or
    /// [`Verbatim`](crate::Verbatim), which become this.
    Instead(Box<Answer>),
}

impl HandlerError {
    /// The work failed, with a message that the model can act on.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::Failed(message.into())
    }

    /// The resource does not exist.
    pub fn resource_not_found(uri: &str) -> Self {
        Self::Refused(resource_not_found(uri))
    }

    /// What the request ends with, for methods that have no other way to fail.
    pub(crate) fn into_outcome(self) -> Outcome {
        match self {
            Self::Failed(message) => Err(ErrorObject::internal(message).into()),
            Self::Refused(error) => Err(error.into()),
            Self::Instead(answer) => Ok(*answer),
        }
    }
}

/// Not an error itself, so that everything that is one converts into it.
impl<E: Into<Box<dyn Error + Send + Sync>>> From<E> for HandlerError {
    fn from(error: E) -> Self {
        let error = error.into();
        match refusal(error.as_ref()) {
            Some(refusal) => Self::Refused(refusal),
            None => Self::Failed(with_causes(error.as_ref())),
        }
    }
}

/// The protocol error for an error or the first of its causes that has one.
fn refusal(error: &(dyn Error + 'static)) -> Option<ErrorObject> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(refusal) = error.downcast_ref::<ErrorObject>() {
            return Some(refusal.clone());
        }
        // What is in these may be all that can be seen of an `AskError`.
        if let Some(missing) = error.downcast_ref::<MissingCapability>() {
            return Some(missing.to_error_object());
        }
        if let Some(unsupported) = error.downcast_ref::<Unsupported>() {
            return Some(ErrorObject::invalid_request(unsupported.to_string()));
        }
        // The client cannot do anything about it.
        if let Some(missing) = error.downcast_ref::<MissingState>() {
            return Some(ErrorObject::internal(missing.to_string()));
        }
        next = error.source();
    }
    None
}

pub(crate) fn resource_not_found(uri: &str) -> ErrorObject {
    let data = serde_json::json!({ "uri": uri });
    ErrorObject::new(
        ErrorCode::RESOURCE_NOT_FOUND,
        format!("resources/read: unknown resource {uri}"),
    )
    .with_data(data.into())
}

impl fmt::Display for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(message) => f.write_str(message),
            Self::Refused(error) => error.fmt(f),
            Self::Instead(_) => f.write_str("the handler returned another answer"),
        }
    }
}

impl fmt::Debug for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A mistake in a tool, prompt or resource, found before any client can use it.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// Two parts of one kind have the same name.
    #[error("two {kind}s have the name {name:?}")]
    Duplicate {
        /// What they are.
        kind: &'static str,
        /// Their name or URI.
        name: String,
    },
    /// A name is invalid.
    #[error("{kind} {name:?}: {reason}")]
    Name {
        /// What it is.
        kind: &'static str,
        /// The name.
        name: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The schema of a tool's arguments or output is invalid.
    #[error("tool {tool:?}: the {which} schema {reason}")]
    Schema {
        /// Whose schema.
        tool: String,
        /// `input` or `output`.
        which: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// A URI or URI template is invalid.
    #[error("resource {uri:?}: {reason}")]
    Uri {
        /// The template.
        uri: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A scope is invalid.
    #[error(
        "{kind} {name:?}: {scope:?} is not a scope: expected one word of visible ASCII without \" and \\"
    )]
    Scope {
        /// What needs it.
        kind: &'static str,
        /// Its name or URI.
        name: String,
        /// The scope.
        scope: String,
    },
    /// Something needs scopes, but HTTP clients are not authenticated.
    #[error(
        "{kind} {name:?} needs scopes, but clients are not authenticated; help: call \
         `require_auth` or `identify` on the HTTP settings"
    )]
    Unguarded {
        /// What needs them.
        kind: &'static str,
        /// Its name or URI.
        name: String,
    },
    /// Something needs state that the server does not have.
    #[error(
        "{kind} {name:?} needs a state of type {type_name}, but the server has none; help: add it \
         with `Server::state`"
    )]
    State {
        /// What needs it.
        kind: &'static str,
        /// Its name or URI.
        name: String,
        /// The type.
        type_name: &'static str,
    },
    /// A server that is part of another one has a setting that only the outer one can have.
    #[error(
        "server {server:?} is part of another one, and cannot have its own `{setting}`; help: call \
         `{setting}` on the outer server"
    )]
    Nested {
        /// The name of the inner server.
        server: String,
        /// The method that it was set with.
        setting: &'static str,
    },
    /// An extension is invalid, or collides with another one.
    #[error("extension {id:?}: {reason}")]
    Extension {
        /// Its id.
        id: String,
        /// What is wrong with it.
        reason: String,
    },
    /// An app, or a tool's app, could not be shown.
    #[error("{kind} {name:?}: {reason}")]
    App {
        /// Whose app it is, or that it is a resource itself.
        kind: &'static str,
        /// The name of the tool, or the URI of the resource.
        name: String,
        /// What is wrong with it, and what to do.
        reason: String,
    },
    /// A folder of skills cannot be served.
    #[cfg(feature = "skills")]
    #[error("skills: {0}")]
    Skills(crate::skills::SkillsError),
    /// More than [`Limits::registry`](crate::Limits::registry) of one kind.
    #[error("more than {limit} {kind}s")]
    TooMany {
        /// What they are.
        kind: &'static str,
        /// The limit.
        limit: usize,
    },
}

debug_as_sentence!(BuildError);
