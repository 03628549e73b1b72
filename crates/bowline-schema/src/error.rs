//! Why a schema cannot be used.

use std::fmt;

use crate::words::shorten;

/// Why a schema was refused. Places are JSON pointers into the schema.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SchemaError {
    /// A keyword has a value that it cannot have. The author must mend the schema.
    Malformed {
        /// Where.
        at: String,
        /// What is wrong there.
        message: String,
    },
    /// `$schema` names a dialect other than 2020-12, draft-07 and draft-06.
    Dialect(String),
    /// A reference leads out of the document, or to nothing. Nothing is ever fetched.
    Reference {
        /// Where.
        at: String,
        /// The reference as written.
        reference: String,
    },
    /// A pattern that cannot be matched in linear time or is no pattern at all.
    Pattern {
        /// Where.
        at: String,
        /// The pattern as written.
        pattern: String,
        /// What is wrong with it.
        message: String,
    },
    /// A subschema applies itself to the same value again, for ever.
    Endless {
        /// Where.
        at: String,
    },
    /// A limit is exceeded; raising it in [`Limits`](crate::Limits) may be right if the schema's
    /// author is trusted.
    TooBig {
        /// Where.
        at: String,
        /// What there is too much of, and how much is allowed.
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
                "schema #/$schema: {} is not supported; 2020-12, draft-07 and draft-06 are",
                shorten(name)
            ),
            Self::Reference { at, reference } => write!(
                f,
                "schema {at}: {} is not in this document, and nothing is fetched",
                shorten(reference)
            ),
            Self::Pattern { at, pattern, message } => {
                write!(f, "schema {at}: pattern {} cannot be used: {message}", shorten(pattern))
            }
            Self::Endless { at } => {
                write!(f, "schema {at}: applies itself to the same value without end")
            }
        }
    }
}

impl std::error::Error for SchemaError {}
