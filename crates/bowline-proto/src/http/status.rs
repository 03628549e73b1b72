//! The HTTP status of responses.
//!
//! A request that reached its handler is a success of the transport: 200, even with an error. A
//! request that is rejected before that gets another status, which is all that a proxy sees.
//! Accepted notifications and responses get 202 without a body. Once a stream has begun, every
//! error is an event in it.

use std::fmt;

use ::http::StatusCode;

use super::access::Denied;
use super::media::Media;
use super::quote;
use crate::error::{ErrorCode, ErrorObject};
use crate::json::Json;
use crate::revision::{Era, Revision};

/// What raised the error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RaisedBy {
    /// The server itself, before any handler ran.
    Dispatch,
    /// The handler of the method.
    Handler,
}

/// The status of an error response.
///
/// In the modern era three codes have a fixed status, whatever raised them, because clients act on
/// it; a handler may be the first to miss a client capability. In the legacy era only a body that
/// is not a message gets 400: legacy clients take 404 for a lost session and start over.
pub fn error_status(era: Era, code: ErrorCode, raised_by: RaisedBy) -> StatusCode {
    match (era, code, raised_by) {
        (
            Era::Modern,
            ErrorCode::HEADER_MISMATCH
            | ErrorCode::MISSING_CLIENT_CAPABILITY
            | ErrorCode::UNSUPPORTED_VERSION,
            _,
        ) => StatusCode::BAD_REQUEST,
        (_, _, RaisedBy::Handler) => StatusCode::OK,
        (_, ErrorCode::PARSE_ERROR | ErrorCode::INVALID_REQUEST, _) => StatusCode::BAD_REQUEST,
        (Era::Legacy, ..) => StatusCode::OK,
        (Era::Modern, ErrorCode::METHOD_NOT_FOUND, _) => StatusCode::NOT_FOUND,
        (Era::Modern, ErrorCode::INTERNAL_ERROR, _) => StatusCode::INTERNAL_SERVER_ERROR,
        (Era::Modern, ..) => StatusCode::BAD_REQUEST,
    }
}

/// Why an HTTP request is rejected because of its head, before the body is read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// It comes from a page, or is addressed to a name, that is not allowed.
    Access(Denied),
    /// The path only allows other methods.
    Method {
        /// The value of the `Allow` header to answer with.
        allow: &'static str,
    },
    /// The body is not declared as JSON, but as this.
    ContentType(Option<String>),
    /// The client does not accept this type of answer.
    Accept(Media),
    /// The body is longer than this many bytes.
    TooLarge(usize),
    /// The revision is not a legacy one.
    Revision(String),
    /// The session id is missing.
    SessionMissing,
    /// The session id is invalid, or there are several.
    SessionMalformed,
    /// The session has ended or never existed. The client opens a new one.
    SessionUnknown,
}

impl Refusal {
    /// The status to answer with.
    pub const fn status(&self) -> StatusCode {
        match self {
            Self::Access(_) => StatusCode::FORBIDDEN,
            Self::Method { .. } => StatusCode::METHOD_NOT_ALLOWED,
            Self::ContentType(_) => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::Accept(_) => StatusCode::NOT_ACCEPTABLE,
            Self::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Revision(_) | Self::SessionMissing | Self::SessionMalformed => {
                StatusCode::BAD_REQUEST
            }
            Self::SessionUnknown => StatusCode::NOT_FOUND,
        }
    }

    /// The body to answer with, as a fault: no id has been read yet.
    pub fn to_error_object(&self) -> ErrorObject {
        // Other SDKs use -32000 and -32001 here, which the specification does not define.
        match (self, Json::new(&self.to_string())) {
            // In the words of the official SDKs: clients such as Google's ADK open a new session
            // only if the message is exactly this.
            (Self::SessionUnknown, Ok(words)) => {
                ErrorObject::invalid_request("Session terminated").with_data(words)
            }
            _ => ErrorObject::invalid_request(self.to_string()),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Access(denied) => denied.fmt(f),
            Self::Method { allow } => write!(f, "only {allow} is allowed here"),
            Self::ContentType(None) => {
                f.write_str("Content-Type is missing; it must be application/json")
            }
            Self::ContentType(Some(seen)) => {
                write!(f, "Content-Type must be application/json, not {}", quote(seen))
            }
            Self::Accept(media) => write!(f, "Accept must allow {}", media.as_str()),
            Self::TooLarge(limit) => write!(f, "the body is longer than {limit} bytes"),
            Self::Revision(seen) => {
                let legacy: Vec<_> = Revision::ALL
                    .into_iter()
                    .filter(|revision| !revision.is_modern())
                    .map(Revision::as_str)
                    .collect();
                write!(
                    f,
                    "MCP-Protocol-Version: {} is not available in a session; expected one of {}",
                    quote(seen),
                    legacy.join(", ")
                )
            }
            Self::SessionMissing => f.write_str("Mcp-Session-Id is missing"),
            Self::SessionMalformed => f.write_str("Mcp-Session-Id must be one id of visible ASCII"),
            Self::SessionUnknown => f.write_str("unknown session; help: initialize a new one"),
        }
    }
}

impl std::error::Error for Refusal {}

impl From<Denied> for Refusal {
    fn from(denied: Denied) -> Self {
        Self::Access(denied)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_of_every_error() {
        // Code, then modern and legacy: found by the server, raised by a handler.
        let table = [
            (-32700, [400, 200], [400, 200]),
            (-32600, [400, 200], [400, 200]),
            (-32601, [404, 200], [200, 200]),
            (-32602, [400, 200], [200, 200]),
            (-32603, [500, 200], [200, 200]),
            (-32020, [400, 400], [200, 200]),
            (-32021, [400, 400], [200, 200]),
            (-32022, [400, 400], [200, 200]),
            (-32002, [400, 200], [200, 200]),
            (-32042, [400, 200], [200, 200]),
            (7, [400, 200], [200, 200]),
        ];
        for (code, modern, legacy) in table {
            for (era, expected) in [(Era::Modern, modern), (Era::Legacy, legacy)] {
                let found = [RaisedBy::Dispatch, RaisedBy::Handler]
                    .map(|raised_by| error_status(era, ErrorCode(code), raised_by).as_u16());
                assert_eq!(found, expected, "{code} {era:?}");
            }
        }
    }

    #[test]
    fn the_status_of_every_refusal() {
        for (refusal, status, text) in [
            (
                Refusal::Access(Denied::Host("evil.example".to_owned())),
                403,
                "Host \"evil.example\"",
            ),
            (Refusal::Method { allow: "POST" }, 405, "only POST"),
            (Refusal::ContentType(None), 415, "Content-Type is missing"),
            (Refusal::ContentType(Some("a\nb".to_owned())), 415, r#"not "a\nb""#),
            (Refusal::Accept(Media::EventStream), 406, "Accept must allow text/event-stream"),
            (Refusal::TooLarge(9), 413, "longer than 9 bytes"),
            (
                Refusal::Revision("1999".to_owned()),
                400,
                "expected one of 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25",
            ),
            (Refusal::SessionMissing, 400, "Mcp-Session-Id is missing"),
            (Refusal::SessionMalformed, 400, "visible ASCII"),
            (Refusal::SessionUnknown, 404, "Session terminated"),
        ] {
            assert_eq!(refusal.status().as_u16(), status);
            let error = refusal.to_error_object();
            assert_eq!(error.code, ErrorCode::INVALID_REQUEST);
            assert!(error.message.contains(text), "{}", error.message);
        }
    }
}
