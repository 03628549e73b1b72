//! What a handler can say when it fails, and what can be wrong with a server before it runs.

use std::fmt;

use bowline_proto::error::{ErrorCode, ErrorObject};

use super::ask::AskError;

/// Why a handler did not succeed, where the difference matters.
///
/// A tool may return any error that can be displayed: it becomes an answer with `isError`, which
/// the model reads and can act on. This type is for the other case as well: to refuse the request
/// itself.
#[derive(Debug)]
pub enum HandlerError {
    /// The work failed. A tool answers with `isError`; a prompt or resource with an internal error.
    Failed(String),
    /// The request is refused with an error of the protocol.
    Refused(ErrorObject),
}

impl HandlerError {
    /// The work failed, in a sentence that the model can act on.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::Failed(message.into())
    }

    /// A resource that does not exist.
    pub fn resource_not_found(uri: &str) -> Self {
        Self::Refused(resource_not_found(uri))
    }

    /// The error of the protocol, for methods that have no other way to fail.
    pub(crate) fn into_error_object(self) -> ErrorObject {
        match self {
            Self::Failed(message) => ErrorObject::internal(message),
            Self::Refused(error) => error,
        }
    }

    /// Any error, told apart only if it is one of ours.
    pub(crate) fn of<E: fmt::Display + 'static>(error: E) -> Self {
        let mut error = Some(error);
        let any: &mut dyn std::any::Any = &mut error;
        if let Some(own) = any.downcast_mut::<Option<Self>>() {
            return own.take().expect("it was put there above");
        }
        if let Some(own) = any.downcast_mut::<Option<AskError>>() {
            return own.take().expect("it was put there above").into();
        }
        if let Some(own) = any.downcast_mut::<Option<ErrorObject>>() {
            return Self::Refused(own.take().expect("it was put there above"));
        }
        // The alternate form prints the whole chain of those error types that have one.
        Self::Failed(error.map_or_else(String::new, |error| format!("{error:#}")))
    }
}

pub(crate) fn resource_not_found(uri: &str) -> ErrorObject {
    let data = serde_json::json!({ "uri": uri });
    ErrorObject::new(ErrorCode::RESOURCE_NOT_FOUND, format!("resources/read: no resource {uri}"))
        .with_data(data.into())
}

impl fmt::Display for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(message) => f.write_str(message),
            Self::Refused(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for HandlerError {}

impl From<AskError> for HandlerError {
    fn from(error: AskError) -> Self {
        match error.to_error_object() {
            Some(refusal) => Self::Refused(refusal),
            None => Self::Failed(error.to_string()),
        }
    }
}

impl From<ErrorObject> for HandlerError {
    fn from(error: ErrorObject) -> Self {
        Self::Refused(error)
    }
}

/// What is wrong with a tool, prompt or resource, found before anybody could call it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// Two things of one kind have the same name.
    #[error("two {kind}s are called {name:?}")]
    Duplicate {
        /// What they are.
        kind: &'static str,
        /// Their name or URI.
        name: String,
    },
    /// A name cannot be used.
    #[error("{kind} {name:?}: {reason}")]
    Name {
        /// What it is.
        kind: &'static str,
        /// The name.
        name: String,
        /// Why not.
        reason: &'static str,
    },
    /// The schema of a tool's arguments or output cannot be used.
    #[error("tool {tool:?}: its {which} schema {reason}")]
    Schema {
        /// Whose schema.
        tool: String,
        /// `input` or `output`.
        which: &'static str,
        /// Why not.
        reason: String,
    },
    /// A URI template cannot be used.
    #[error("resource {uri:?}: {reason}")]
    Uri {
        /// The template.
        uri: String,
        /// Why not.
        reason: String,
    },
    /// A scope cannot be used.
    #[error(
        "{kind} {name:?}: {scope:?} is not a scope: one word of visible ASCII without \" and \\"
    )]
    Scope {
        /// What needs it.
        kind: &'static str,
        /// Its name or URI.
        name: String,
        /// The scope.
        scope: String,
    },
    /// Something needs scopes, but over HTTP nobody is asked who they are.
    #[error("{kind} {name:?} needs scopes: call `require_auth` or `identify` on the HTTP settings")]
    Unguarded {
        /// What needs them.
        kind: &'static str,
        /// Its name or URI.
        name: String,
    },
    /// More than [`Limits::registry`](crate::Limits::registry) of one kind.
    #[error("more than {limit} {kind}s")]
    TooMany {
        /// What they are.
        kind: &'static str,
        /// The limit.
        limit: usize,
    },
}
