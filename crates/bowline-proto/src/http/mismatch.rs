//! Headers that contradict the body: error -32020, status 400.
//!
//! A proxy routes, meters and authorizes by the headers while the server acts on the body. Anything
//! that lets the two disagree is rejected, including a repeated header.

use std::borrow::Cow;
use std::fmt;

use ::http::{HeaderMap, HeaderName, HeaderValue};

use super::param::ArgumentsError;
use super::quote;
use super::sentinel::DecodeError;
use crate::error::{ErrorCode, ErrorObject};

/// Which header is wrong, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeaderMismatch {
    /// The name of the header, as the specification or the tool spells it.
    pub header: Cow<'static, str>,
    /// What is wrong with it.
    pub problem: HeaderProblem,
}

/// What is wrong with a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HeaderProblem {
    /// It is missing.
    Missing {
        /// The value in the body.
        body: String,
    },
    /// It is repeated.
    Repeated,
    /// It is malformed.
    Malformed {
        /// The value of the header.
        said: String,
        /// What is wrong with it.
        reason: DecodeError,
    },
    /// It differs from the body.
    Different {
        /// The value of the header.
        said: String,
        /// The value in the body.
        body: String,
    },
    /// The body has nothing that it could repeat.
    Unexpected {
        /// The value of the header.
        said: String,
    },
    /// The arguments in the body are ambiguous.
    Unclear(ArgumentsError),
}

impl HeaderMismatch {
    pub(super) fn new(header: impl Into<Cow<'static, str>>, problem: HeaderProblem) -> Self {
        Self { header: header.into(), problem }
    }

    /// The error to answer with.
    pub fn to_error_object(&self) -> ErrorObject {
        ErrorObject::new(ErrorCode::HEADER_MISMATCH, self.to_string())
    }
}

impl fmt::Display for HeaderMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let header = &self.header;
        match &self.problem {
            HeaderProblem::Missing { body } => {
                write!(f, "header {header} is missing; the body says {}", quote(body))
            }
            HeaderProblem::Repeated => write!(f, "header {header} is given more than once"),
            HeaderProblem::Malformed { said, reason } => {
                write!(f, "header {header}: {}: {reason}", quote(said))
            }
            HeaderProblem::Different { said, body } => {
                write!(f, "header {header} says {}, the body says {}", quote(said), quote(body))
            }
            HeaderProblem::Unexpected { said } => write!(
                f,
                "header {header} says {}, the body has nothing for it to repeat",
                quote(said)
            ),
            HeaderProblem::Unclear(error) => {
                write!(f, "header {header} cannot be checked: {error}")
            }
        }
    }
}

impl std::error::Error for HeaderMismatch {}

/// The only value of a header.
pub(super) fn only<'h>(
    headers: &'h HeaderMap,
    name: &HeaderName,
) -> Result<Option<&'h HeaderValue>, HeaderProblem> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (_, Some(_)) => Err(HeaderProblem::Repeated),
        (value, None) => Ok(value),
    }
}

pub(super) fn malformed(value: &HeaderValue, reason: DecodeError) -> HeaderProblem {
    HeaderProblem::Malformed {
        said: String::from_utf8_lossy(value.as_bytes()).into_owned(),
        reason,
    }
}

/// Checks that a value equals the one in the body.
pub(super) fn same(said: &str, body: &str) -> Result<(), HeaderProblem> {
    if said == body {
        return Ok(());
    }
    Err(HeaderProblem::Different { said: said.to_owned(), body: body.to_owned() })
}
