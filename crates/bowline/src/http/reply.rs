//! Replies: JSON, errors, streams.

use std::sync::Arc;

use bowline_proto::error::{ErrorCode, ErrorObject};
use bowline_proto::http::{
    Denied, EVENT_STREAM, JSON, RaisedBy, Refusal, X_ACCEL_BUFFERING, error_status,
};
use bowline_proto::revision::{Revision, adapt_error};
use bowline_proto::wire::{Id, encode_error, encode_fault};
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use http::{HeaderMap, Response, StatusCode};

use super::body::{Body, Source, hold};
use crate::server::Core;
use crate::server::account::{Account, UNCOUNTED};
use crate::server::audit::Why;
use crate::{Failure, FailureKind, Outcome};

/// A response before its headers are put together. It is moved often, and is a quarter of the size
/// of an [`http::Response`].
pub(super) struct Reply {
    status: StatusCode,
    content: Content,
    /// Besides those of the content.
    headers: Option<Box<HeaderMap>>,
    /// Why the request was refused, if it never reached the middleware.
    why: Option<Why>,
    /// What its bytes count against, if they are many.
    account: Option<Arc<Account>>,
}

enum Content {
    Empty,
    Json(Vec<u8>),
    /// One JSON text that is written bit by bit.
    Streamed(Box<dyn Source>),
    Events(Box<dyn Source>),
}

impl Reply {
    fn new(status: StatusCode, content: Content) -> Self {
        Self { status, content, headers: None, why: None, account: None }
    }

    /// The same as the refusal of something that never becomes a request.
    pub(super) fn because(mut self, why: Why) -> Self {
        self.why = Some(why);
        self
    }

    /// Why the request was refused, if it never reached the middleware.
    pub(super) fn why(&self) -> Option<Why> {
        self.why
    }

    pub(super) fn status(&self) -> StatusCode {
        self.status
    }

    /// What an error says, except about messages: those may quote what only the sender may see.
    pub(super) fn message(&self) -> Option<String> {
        let Content::Json(bytes) = &self.content else { return None };
        let mut body: serde_json::Value = serde_json::from_slice(bytes).ok()?;
        let error = body["error"].take();
        let text = if self.why == Some(Why::Message) { None } else { error["message"].as_str() };
        text.map(str::to_owned)
    }

    /// Makes what waits to be sent count, if it may be long.
    pub(super) fn counted(mut self, account: impl FnOnce() -> Arc<Account>) -> Self {
        let is_short = match &self.content {
            Content::Empty => true,
            Content::Json(bytes) => bytes.len() <= UNCOUNTED,
            Content::Streamed(_) | Content::Events(_) => false,
        };
        if !is_short {
            self.account = Some(account());
        }
        self
    }

    /// The headers besides those of the content.
    pub(super) fn headers_mut(&mut self) -> &mut HeaderMap {
        self.headers.get_or_insert_default()
    }

    /// Converts it into a response; `wrap` wraps its body. `used` are the headers of the request:
    /// their memory is reused, here and by `hyper` for the next request.
    pub(super) fn into_response<B>(
        self,
        used: HeaderMap,
        wrap: impl FnOnce(Body) -> B,
    ) -> Response<B> {
        let mut headers = match self.headers {
            Some(headers) => *headers,
            None => emptied(used),
        };
        let body = match (self.content, self.account) {
            (Content::Empty, _) => Body::empty(),
            (Content::Json(bytes), None) => {
                headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
                Body::bytes(bytes)
            }
            (Content::Json(bytes), Some(account)) => match hold(bytes.into(), account) {
                Ok(bytes) => {
                    headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
                    Body::bytes(bytes)
                }
                Err(spent) => {
                    let refused = busy(&format!("the answer to the request: {spent}"));
                    return refused.into_response(headers, wrap);
                }
            },
            (Content::Streamed(source), account) => {
                headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
                Body::stream(source, account)
            }
            (Content::Events(source), account) => {
                headers.insert(CONTENT_TYPE, HeaderValue::from_static(EVENT_STREAM));
                headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
                headers.insert(X_ACCEL_BUFFERING, HeaderValue::from_static("no"));
                Body::stream(source, account)
            }
        };
        let mut response = Response::new(wrap(body));
        *response.status_mut() = self.status;
        *response.headers_mut() = headers;
        response
    }
}

/// An empty map in the memory of another one, unless that is unusually large: an idle connection
/// keeps it.
fn emptied(mut headers: HeaderMap) -> HeaderMap {
    const USUAL: usize = 64;
    if headers.capacity() > USUAL {
        return HeaderMap::new();
    }
    headers.clear();
    headers
}

/// A status without a body.
pub(super) fn status(status: StatusCode) -> Reply {
    Reply::new(status, Content::Empty)
}

/// One JSON-RPC message.
pub(super) fn json(status: StatusCode, bytes: Vec<u8>) -> Reply {
    Reply::new(status, Content::Json(bytes))
}

/// A stream of events.
pub(super) fn stream(source: impl Source + 'static) -> Reply {
    Reply::new(StatusCode::OK, Content::Events(Box::new(source)))
}

/// One JSON text, written bit by bit.
pub(super) fn streamed(source: impl Source + 'static) -> Reply {
    Reply::new(StatusCode::OK, Content::Streamed(Box::new(source)))
}

/// An error, under the id of its request if there is one.
pub(super) fn error(status: StatusCode, id: Option<&Id>, error: &ErrorObject) -> Reply {
    let mut bytes = Vec::new();
    match id {
        Some(id) => encode_error(&mut bytes, id, error),
        None => encode_fault(&mut bytes, error),
    }
    json(status, bytes)
}

/// The answer to a request that is rejected because of its head.
pub(super) fn refusal(refusal: &Refusal) -> Reply {
    let reply = error(refusal.status(), None, &refusal.to_error_object());
    with_allow(reply, refusal).because(why(refusal))
}

fn why(refusal: &Refusal) -> Why {
    match refusal {
        Refusal::Access(
            Denied::Origin(_) | Denied::CrossSite(_) | Denied::Malformed { header: "Origin", .. },
        ) => Why::Origin,
        Refusal::Access(_) => Why::Host,
        Refusal::TooLarge(_) => Why::Body,
        Refusal::SessionMissing | Refusal::SessionMalformed | Refusal::SessionUnknown => {
            Why::Session
        }
        _ => Why::Head,
    }
}

/// The same, where a client may be finding out which transport there is: an MCP message would look
/// like the answer of a server that takes messages here.
pub(super) fn refusal_in_words(refusal: &Refusal) -> Reply {
    let body = serde_json::json!({ "error": refusal.to_string() });
    let reply = json(refusal.status(), body.to_string().into_bytes());
    with_allow(reply, refusal).because(why(refusal))
}

fn with_allow(mut reply: Reply, refusal: &Refusal) -> Reply {
    if let Refusal::Method { allow } = refusal {
        reply.headers_mut().insert(ALLOW, HeaderValue::from_static(allow));
    }
    reply
}

/// 503 with `Retry-After`.
pub(super) fn busy(message: &str) -> Reply {
    busy_with(None, &ErrorObject::internal(message)).because(Why::Limit)
}

/// The same as the answer to a request.
pub(super) fn busy_with(id: Option<&Id>, answer: &ErrorObject) -> Reply {
    let mut reply = error(StatusCode::SERVICE_UNAVAILABLE, id, answer);
    reply.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("5"));
    reply
}

/// The outcome of a request as one JSON body.
pub(super) fn outcome(core: &Core, id: &Id, revision: Revision, mut outcome: Outcome) -> Reply {
    let status = match &outcome {
        Ok(_) => StatusCode::OK,
        Err(Failure { kind, error, .. }) => {
            let raised_by = match kind {
                FailureKind::Rejected => RaisedBy::Dispatch,
                _ => RaisedBy::Handler,
            };
            error_status(revision.era(), written_code(error, revision), raised_by)
        }
    };
    let mut bytes = Vec::with_capacity(512);
    core.signature.encode(&mut bytes, id, revision, &mut outcome);
    json(status, bytes)
}

/// The code as the revision writes it, which determines the status.
fn written_code(error: &ErrorObject, revision: Revision) -> ErrorCode {
    let mut written = ErrorObject::new(error.code, "");
    adapt_error(&mut written, revision);
    written.code
}
