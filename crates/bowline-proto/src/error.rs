//! Errors as they cross the wire: a code, a message, and the data that the code calls for.
//!
//! [`ErrorCode`] is a number with named values, not an enum: a peer may send any code, and it must
//! survive being passed on. Failures on our own side (a timeout, a closed pipe) never use these
//! types; they have their own, so that the two cannot be confused.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::json::Json;

/// The `error` member of a response.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ErrorObject {
    /// The kind of error.
    pub code: ErrorCode,
    /// A sentence for people.
    pub message: String,
    /// The data that the code calls for.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "crate::json::present"
    )]
    pub data: Option<Json>,
}

/// A JSON-RPC or MCP error code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ErrorCode(pub i64);

impl ErrorCode {
    /// The bytes are not JSON.
    pub const PARSE_ERROR: Self = Self(-32700);
    /// The JSON is not a message, or not one that may be sent now.
    pub const INVALID_REQUEST: Self = Self(-32600);
    /// The method is unknown, or belongs to a capability that was not advertised.
    pub const METHOD_NOT_FOUND: Self = Self(-32601);
    /// The method is known and its parameters are wrong.
    pub const INVALID_PARAMS: Self = Self(-32602);
    /// The receiver failed; the sender did nothing wrong.
    pub const INTERNAL_ERROR: Self = Self(-32603);
    /// The resource does not exist. Up to 2025-11-25; later revisions say `INVALID_PARAMS`.
    pub const RESOURCE_NOT_FOUND: Self = Self(-32002);
    /// A header is missing, malformed, or contradicts the body. 2026-07-28.
    pub const HEADER_MISMATCH: Self = Self(-32020);
    /// The request needs a client capability that it did not declare. 2026-07-28.
    pub const MISSING_CLIENT_CAPABILITY: Self = Self(-32021);
    /// The server does not support the protocol version. 2026-07-28.
    pub const UNSUPPORTED_VERSION: Self = Self(-32022);
    /// The user must visit a URL first. 2025-11-25 only.
    pub const URL_ELICITATION_REQUIRED: Self = Self(-32042);
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl ErrorObject {
    /// An error without data.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// The method does not exist.
    pub fn method_not_found(method: &str) -> Self {
        Self::new(ErrorCode::METHOD_NOT_FOUND, format!("{method}: no such method"))
    }

    /// The parameters are wrong; `message` says which and how.
    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::INVALID_PARAMS, message)
    }

    /// The message itself is wrong; `message` says how.
    pub fn invalid_request(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::INVALID_REQUEST, message)
    }

    /// A failure on our side.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::INTERNAL_ERROR, message)
    }

    /// Adds data to the error.
    #[must_use]
    pub fn with_data(mut self, data: Json) -> Self {
        self.data = Some(data);
        self
    }
}

impl fmt::Display for ErrorObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (code {})", self.message, self.code)
    }
}

impl std::error::Error for ErrorObject {}
