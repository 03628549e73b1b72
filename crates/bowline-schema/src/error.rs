//! Why a schema cannot be used.

use std::fmt;

use crate::words::shorten;

/// Why a schema was rejected. Locations are JSON pointers into the schema.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SchemaError {
    /// A keyword has an invalid value. The author must fix the schema.
    Malformed {
        /// Where.
        at: String,
        /// What is wrong there.
        message: String,
    },
    /// `$schema` names a dialect other than 2020-12, draft-07 or draft-06.
    Dialect(String),
    /// A reference points outside the document, or to nothing. Schemas are never fetched.
    Reference {
        /// Where.
        at: String,
        /// The reference as written.
        reference: String,
    },
    /// A pattern is invalid, or cannot be matched in linear time.
    Pattern {
        /// Where.
        at: String,
        /// The pattern as written.
        pattern: String,
        /// What is wrong with it.
        message: String,
    },
    /// A subschema applies itself to the same value endlessly.
    Endless {
        /// Where.
        at: String,
    },
    /// The schema exceeds a limit. If its author is trusted, [`Limits`](crate::Limits) can be
    /// raised.
    TooBig {
        /// Where.
        at: String,
        /// What exceeds which limit.
        message: String,
    },
}

impl SchemaError {
    pub(crate) fn malformed(at: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Malformed { at: at.into(), message: message.into() }
    }

    pub(crate) fn too_big(at: impl Into<String>, message: impl Into<String>) -> Self {
        Self::TooBig { at: at.into(), message: message.into() }
    }
}

impl fmt::Display for SchemaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed { at, message } | Self::TooBig { at, message } => {
                write!(f, "schema {at}: {message}")
            }
            Self::Dialect(name) => write!(
                f,
                "schema #/$schema: {} is not supported; expected 2020-12, draft-07 or draft-06",
                shorten(name)
            ),
            Self::Reference { at, reference } => write!(
                f,
                "schema {at}: {} is not in this document, and schemas are never fetched",
                shorten(reference)
            ),
            Self::Pattern { at, pattern, message } => {
                write!(f, "schema {at}: pattern {} cannot be used: {message}", shorten(pattern))
            }
            Self::Endless { at } => {
                write!(f, "schema {at}: applies itself to the same value endlessly")
            }
        }
    }
}

impl std::error::Error for SchemaError {}
