//! Answers for web pages of other origins, only when they are asked for.
//!
//! A browser lets a page of another origin read an answer only if the answer says so, and asks
//! before it sends a request of our kind. Whether the page may reach us at all is decided before,
//! by the list of allowed origins; this only tells the browser.

use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, HeaderValue, ORIGIN, VARY,
};
use http::request::Parts;
use http::{Method, StatusCode};

use super::reply::{self, Reply};

/// How long a browser may remember that it may ask.
const MAX_AGE: HeaderValue = HeaderValue::from_static("7200");
const METHODS: HeaderValue = HeaderValue::from_static("GET, POST, DELETE");
/// What a page must be able to read besides the body.
const EXPOSED: HeaderValue =
    HeaderValue::from_static("Mcp-Session-Id, WWW-Authenticate, DPoP-Nonce");

/// Whether a browser asks if it may send a request.
pub(super) fn is_preflight(parts: &Parts) -> bool {
    parts.method == Method::OPTIONS
        && parts.headers.contains_key(ORIGIN)
        && parts.headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}

/// Yes, with whatever headers it wants to send: they are checked when they come.
pub(super) fn preflight(parts: &Parts) -> Reply {
    let mut reply = reply::status(StatusCode::NO_CONTENT);
    let headers = reply.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, METHODS);
    headers.insert(ACCESS_CONTROL_MAX_AGE, MAX_AGE);
    if let Some(wanted) = parts.headers.get(ACCESS_CONTROL_REQUEST_HEADERS) {
        headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, wanted.clone());
    }
    reply
}

/// Lets the page that asked read the answer.
pub(super) fn allow(reply: &mut Reply, origin: Option<&HeaderValue>) {
    let headers = reply.headers_mut();
    headers.append(VARY, HeaderValue::from_static("Origin"));
    if let Some(origin) = origin {
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
    }
}
