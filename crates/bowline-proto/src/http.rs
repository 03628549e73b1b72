//! The rules for the headers of an HTTP exchange.
//!
//! Pure functions over [`HeaderMap`](::http::HeaderMap): they read and write headers and never see
//! a socket or a body. A server collects the headers once ([`Fields::read`]), then checks them in
//! this order; the first refusal is the answer:
//!
//! | question | function | refusal |
//! |---|---|---|
//! | may this page or name reach the server? | [`Access::check`] | 403 |
//! | is the body JSON, may the answer be JSON or a stream? | [`check_content_type`], [`check_accept`] | 415, 406 |
//! | modern: do the headers repeat the body? | [`Outline::check`], [`ParamHeaders::check`] | 400, -32020 |
//! | legacy: which revision, which session? | [`legacy_revision`], [`Fields::session_id`] | 400 |
//! | which status does an error get? | [`error_status`] | |
//!
//! A client writes these headers with [`Outline::write`] (and [`ParamHeaders::encode`]) or
//! [`write_legacy`].

mod access;
mod authority;
mod fields;
mod legacy;
mod media;
mod mismatch;
mod outline;
mod param;
mod sentinel;
mod status;

use ::http::HeaderName;

pub use self::access::{Access, AccessError, Denied};
pub use self::fields::Fields;
pub use self::legacy::{MAX_SESSION_ID, SessionId, legacy_revision, write_legacy};
pub use self::media::{Media, check_accept, check_content_type};
pub use self::mismatch::{HeaderMismatch, HeaderProblem};
pub use self::outline::{NameSource, Outline, Unsendable, name_source};
pub use self::param::{AnnotationError, ArgumentsError, ParamHeaders};
pub use self::sentinel::{DecodeError, decode_value, encode_value};
pub use self::status::{RaisedBy, Refusal, error_status};

/// `MCP-Protocol-Version`: the revision, in modern requests and in legacy ones since 2025-06-18.
pub const MCP_PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
/// `Mcp-Method`: the method of a modern request.
pub const MCP_METHOD: HeaderName = HeaderName::from_static("mcp-method");
/// `Mcp-Name`: the tool, prompt, resource or task of a modern request.
pub const MCP_NAME: HeaderName = HeaderName::from_static("mcp-name");
/// The prefix of headers that repeat a tool's argument.
pub const MCP_PARAM_PREFIX: &str = "Mcp-Param-";
/// `Mcp-Session-Id`: the session that a legacy handshake opened.
pub const MCP_SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
/// `Last-Event-ID`: the event after which a legacy stream is resumed.
pub const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// `Sec-Fetch-Site`: how a browser's page relates to the server.
pub const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
/// `X-Accel-Buffering`: `no` on a stream, so that proxies pass events on at once.
pub const X_ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// The media type of a message.
pub const JSON: &str = "application/json";
/// The media type of a stream of messages.
pub const EVENT_STREAM: &str = "text/event-stream";

/// A peer's text for an error message: quoted, escaped, and truncated if it is long.
fn quote(text: &str) -> String {
    const MOST: usize = 80;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{:?}…", &text[..end]),
        None => format!("{text:?}"),
    }
}
