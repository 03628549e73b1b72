//! Which HTTP status says what.
//!
//! A request that was handed to its handler is a transport success: 200, error or not. What is
//! refused before that gets a status of its own, and the status is all that a proxy sees. Accepted
//! notifications and responses are 202 without a body. The status can only be chosen while nothing
//! has been sent; after the first byte of a stream every error is an event in it.

use std::fmt;

use ::http::StatusCode;

use super::access::Denied;
use super::media::Media;
use super::quote;
use crate::error::{ErrorCode, ErrorObject};
use crate::revision::{Era, Revision};

/// Who found the error that is to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RaisedBy {
    /// The server itself, before any handler ran.
    Dispatch,
    /// The handler of the method.
    Handler,
}

/// The status of a response that is an error.
///
/// Modern, three codes have a fixed status whoever raises them, because clients learn from it; a
/// handler may well be the first to miss a client capability. Legacy, only what is no message at
/// all is a 400: such clients take 404 for a lost session and start over.
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

/// Why an HTTP request is turned away for what its head says, body unread.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// It comes from a page, or was sent to a name, that is not ours.
    Access(Denied),
    /// The path does not take this method, only these.
    Method {
        /// The value of the `Allow` header to answer with.
        allow: &'static str,
    },
    /// The body is not said to be JSON, but this.
    ContentType(Option<String>),
    /// The client does not take this as an answer.
    Accept(Media),
    /// The body is longer than this many bytes.
    TooLarge(usize),
    /// The revision is none that can be spoken in a session.
    Revision(String),
    /// The request belongs to a session and does not say to which.
    SessionMissing,
    /// The session id is no id, or there are several.
    SessionMalformed,
    /// The session has ended or never was. The client opens a new one.
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
        // Other SDKs use -32000 and -32001 here; the specification gives them no meaning.
        ErrorObject::invalid_request(self.to_string())
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
                    "MCP-Protocol-Version: {} cannot be spoken in a session; known are {}",
                    quote(seen),
                    legacy.join(", ")
                )
            }
            Self::SessionMissing => f.write_str("Mcp-Session-Id is missing"),
            Self::SessionMalformed => f.write_str("Mcp-Session-Id must be one id of visible ASCII"),
            Self::SessionUnknown => f.write_str("no such session; initialize a new one"),
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
                "known are 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25",
            ),
            (Refusal::SessionMissing, 400, "Mcp-Session-Id is missing"),
            (Refusal::SessionMalformed, 400, "visible ASCII"),
            (Refusal::SessionUnknown, 404, "no such session"),
        ] {
            assert_eq!(refusal.status().as_u16(), status);
            let error = refusal.to_error_object();
            assert_eq!(error.code, ErrorCode::INVALID_REQUEST);
            assert!(error.message.contains(text), "{}", error.message);
        }
    }
}
