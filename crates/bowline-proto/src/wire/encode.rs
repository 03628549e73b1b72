//! Messages to bytes.
//!
//! Each function appends one whole message, without a line break in or after it, to a buffer that
//! the caller reuses. If a value cannot be encoded, the buffer is left as it was: half a message
//! never reaches a peer.

use std::fmt;

use serde::Serialize;

use super::{Id, Message};
use crate::error::ErrorObject;

/// A value cannot be written as JSON, such as a map whose keys are not strings.
#[derive(Debug)]
pub struct EncodeError {
    what: String,
    source: serde_json::Error,
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} cannot be written as JSON", self.what)
    }
}

impl std::error::Error for EncodeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

/// Appends a request.
///
/// # Errors
/// If `params` cannot be written as JSON.
pub fn encode_request<P: Serialize + ?Sized>(
    out: &mut Vec<u8>,
    id: &Id,
    method: &str,
    params: Option<&P>,
) -> Result<(), EncodeError> {
    whole(out, method, |out| {
        out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
        write(out, id)?;
        method_and_params(out, method, params)
    })
}

/// Appends a request whose parameters, a JSON object, are appended by `fill`.
///
/// For callers that have them as text already. What `fill` writes is not checked.
pub fn encode_request_with(
    out: &mut Vec<u8>,
    id: &Id,
    method: &str,
    fill: impl FnOnce(&mut Vec<u8>),
) {
    whole(out, method, |out| {
        out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
        write(out, id)?;
        out.extend_from_slice(br#","method":"#);
        write(out, method)?;
        out.extend_from_slice(br#","params":"#);
        fill(out);
        out.push(b'}');
        Ok(())
    })
    .expect("an id and a string have a JSON form");
}

/// Appends a notification.
///
/// # Errors
/// If `params` cannot be written as JSON.
pub fn encode_notification<P: Serialize + ?Sized>(
    out: &mut Vec<u8>,
    method: &str,
    params: Option<&P>,
) -> Result<(), EncodeError> {
    whole(out, method, |out| {
        out.extend_from_slice(br#"{"jsonrpc":"2.0""#);
        method_and_params(out, method, params)
    })
}

/// Appends a response with a result.
///
/// # Errors
/// If `result` cannot be written as JSON.
pub fn encode_response<R: Serialize + ?Sized>(
    out: &mut Vec<u8>,
    id: &Id,
    result: &R,
) -> Result<(), EncodeError> {
    encode_response_with(out, id, |out| write(out, result))
}

/// Appends a response whose result, a JSON object, is appended by `fill`.
///
/// For results that write themselves, such as
/// [`CallToolResult::write`](crate::model::CallToolResult::write). What `fill` writes is not
/// checked.
///
/// # Errors
/// If `fill` fails.
pub fn encode_response_with(
    out: &mut Vec<u8>,
    id: &Id,
    fill: impl FnOnce(&mut Vec<u8>) -> Result<(), serde_json::Error>,
) -> Result<(), EncodeError> {
    whole(out, "the result", |out| {
        out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
        write(out, id)?;
        out.extend_from_slice(br#","result":"#);
        fill(out)?;
        out.push(b'}');
        Ok(())
    })
}

/// Appends a response with an error.
pub fn encode_error(out: &mut Vec<u8>, id: &Id, error: &ErrorObject) {
    error_response(out, Some(id), error);
}

/// Appends a fault: an error without a request.
///
/// JSON-RPC requires `"id":null`; the schemas from 2025-11-25 on allow it to be absent. Peers of
/// all revisions accept `null`.
pub fn encode_fault(out: &mut Vec<u8>, error: &ErrorObject) {
    error_response(out, None, error);
}

fn error_response(out: &mut Vec<u8>, id: Option<&Id>, error: &ErrorObject) {
    whole(out, "the error", |out| {
        out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
        write(out, &id)?;
        out.extend_from_slice(br#","error":"#);
        write(out, error)?;
        out.push(b'}');
        Ok(())
    })
    .expect("an id, a number, a string and JSON text all have a JSON form");
}

impl Message<'_> {
    /// Appends the message, with `params` and `result` verbatim.
    ///
    /// # Errors
    /// Never for a parsed message.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        match self {
            Self::Request(request) => {
                encode_request(out, &request.id, &request.method, request.params.raw().as_ref())
            }
            Self::Notification(notification) => {
                encode_notification(out, &notification.method, notification.params.as_ref())
            }
            Self::Response(response) => match &response.outcome {
                Ok(result) => encode_response(out, &response.id, result),
                Err(error) => {
                    encode_error(out, &response.id, error);
                    Ok(())
                }
            },
            Self::Fault(error) => {
                encode_fault(out, error);
                Ok(())
            }
        }
    }
}

fn method_and_params<P: Serialize + ?Sized>(
    out: &mut Vec<u8>,
    method: &str,
    params: Option<&P>,
) -> Result<(), serde_json::Error> {
    out.extend_from_slice(br#","method":"#);
    write(out, method)?;
    if let Some(params) = params {
        out.extend_from_slice(br#","params":"#);
        write(out, params)?;
    }
    out.push(b'}');
    Ok(())
}

fn write<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) -> Result<(), serde_json::Error> {
    serde_json::to_writer(out, value)
}

/// Appends everything or nothing.
fn whole(
    out: &mut Vec<u8>,
    what: &str,
    fill: impl FnOnce(&mut Vec<u8>) -> Result<(), serde_json::Error>,
) -> Result<(), EncodeError> {
    let start = out.len();
    fill(out).map_err(|source| {
        out.truncate(start);
        EncodeError { what: what.to_owned(), source }
    })
}
