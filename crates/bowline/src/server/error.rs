//! Errors of handlers, and mistakes in a server that are found before it runs.

use std::fmt;

use bowline_proto::error::{ErrorCode, ErrorObject};

use super::ask::AskError;

/// Why a handler failed, for handlers that can also reject the request itself.
///
/// A tool may return any error that can be displayed: it becomes a result with `isError`, which the
/// model reads and can act on. Use this type to return a protocol error instead.
#[derive(Debug)]
pub enum HandlerError {
    /// The work failed. A tool returns `isError`; a prompt or resource an internal error.
    Failed(String),
    /// The request is rejected with a protocol error.
    Refused(ErrorObject),
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

    /// The protocol error, for methods that have no other way to fail.
    pub(crate) fn into_error_object(self) -> ErrorObject {
        match self {
            Self::Failed(message) => ErrorObject::internal(message),
            Self::Refused(error) => error,
        }
    }

    /// Converts any error; those of this crate keep their meaning.
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
        // The alternate form prints the whole chain, for error types that have one.
        Self::Failed(error.map_or_else(String::new, |error| format!("{error:#}")))
    }
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

/// A mistake in a tool, prompt or resource, found before any client can use it.
#[derive(Debug, thiserror::Error)]
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
    /// More than [`Limits::registry`](crate::Limits::registry) of one kind.
    #[error("more than {limit} {kind}s")]
    TooMany {
        /// What they are.
        kind: &'static str,
        /// The limit.
        limit: usize,
    },
}
