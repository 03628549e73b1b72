//! JSON-RPC 2.0 messages as they cross the wire.
//!
//! A frame contains one [`Message`]. Parsing reads the envelope and stops there: `params` and
//! `result` stay raw JSON, borrowed from the frame, because only the side that knows the method (a
//! handler) or made the call (a caller) knows their type. Nothing here guesses.
//!
//! Frames that are not plain messages:
//!
//! | frame | outcome |
//! |---|---|
//! | not UTF-8, not JSON, truncated, followed by garbage | parse error, -32700 |
//! | a leading byte order mark | skipped |
//! | a duplicate envelope member, or one of the wrong type | -32600 |
//! | nested deeper than [`MAX_DEPTH`] | -32600 |
//! | an `id` that is null, a fraction, or beyond 64 bits | -32600 without id |
//! | `params` or `result` that is not an object | -32600 |
//! | an array | -32600; batches have their own entry point, [`parse_batch`] |
//! | other members | ignored; `Method` is not `method` |
//! | line breaks between tokens | allowed; [`line`](crate::line) never writes one |
//!
//! Every error carries the id if one could be read, so that it can be answered.

mod batch;
mod encode;
mod id;
mod plain;
mod salvage;

use std::borrow::Cow;
use std::fmt;

use crate::raw::Raw;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, de};

pub use self::batch::{BatchError, parse_batch};
pub use self::encode::{
    EncodeError, encode_error, encode_fault, encode_notification, encode_request,
    encode_request_with, encode_response, encode_response_with,
};
pub use self::id::Id;
use self::plain::Plain;
use crate::decode::without_position;
use crate::error::{ErrorCode, ErrorObject};
use crate::params::Params;

/// How deeply arrays and objects may nest in a frame.
///
/// This is the limit that `serde_json` applies when it reads into types. Applying it to the whole
/// frame ensures that no later reader rejects what this one accepted.
pub const MAX_DEPTH: usize = 127;

/// One message.
#[derive(Debug, Clone, PartialEq)]
pub enum Message<'a> {
    /// A message that awaits an answer.
    Request(Request<'a>),
    /// A message that awaits none.
    Notification(Notification<'a>),
    /// The answer to one request.
    Response(Response<'a>),
    /// An error without a request: the sender could not read an id.
    Fault(ErrorObject),
}

/// A message that must be answered exactly once, under its id.
#[derive(Debug, Clone, PartialEq)]
pub struct Request<'a> {
    /// The id that the answer must carry.
    pub id: Id,
    /// The method.
    pub method: Cow<'a, str>,
    /// The parameters, always an object, already scanned.
    pub params: Params<'a>,
}

/// A message that is never answered.
#[derive(Debug, Clone, PartialEq)]
pub struct Notification<'a> {
    /// The method.
    pub method: Cow<'a, str>,
    /// The parameters, always an object.
    pub params: Option<Raw<'a>>,
}

/// An answer: a result or an error, never both, never neither.
#[derive(Debug, Clone, PartialEq)]
pub struct Response<'a> {
    /// The id of the request.
    pub id: Id,
    /// The result, always an object, or the error.
    pub outcome: Result<Raw<'a>, ErrorObject>,
}

/// Why a frame is not a message.
#[derive(Debug, Clone, PartialEq)]
pub struct ParseError {
    /// Either [`ErrorCode::PARSE_ERROR`] or [`ErrorCode::INVALID_REQUEST`].
    pub code: ErrorCode,
    /// What is wrong.
    pub message: String,
    /// The id, if one could be read.
    pub id: Option<Id>,
    /// Whether the frame was a request or a notification, because it named a method.
    ///
    /// A server answers such a frame. A client that reads one it cannot answer must stay silent, or
    /// two peers could send each other errors forever.
    pub has_method: bool,
}

impl<'a> Message<'a> {
    /// Parses a frame as one message.
    ///
    /// # Errors
    /// If the frame is not one message; the table in [this module](self) lists the cases.
    pub fn parse(frame: &'a [u8]) -> Result<Self, ParseError> {
        let mut plain = Plain::default();
        if plain.walk(frame).is_ok() {
            let Plain { id, method, params, result, .. } = plain;
            match (method.map(Cow::Borrowed), result, id) {
                (Some(method), None, Some(id)) => {
                    return Ok(Self::Request(Request { id, method, params }));
                }
                (Some(method), None, None) => {
                    let params = params.raw();
                    return Ok(Self::Notification(Notification { method, params }));
                }
                (None, Some(result), Some(id)) if result.is_object() => {
                    return Ok(Self::Response(Response { id, outcome: Ok(result) }));
                }
                _ => {}
            }
        }
        let text = read_text(frame)?;
        if text.trim_ascii_start().starts_with('[') {
            return Err(ParseError::shape("expected one message, found a batch"));
        }
        parse_one(text).map_err(|error| error.salvaged(frame))
    }

    /// The method of a request or notification.
    pub fn method(&self) -> Option<&str> {
        match self {
            Self::Request(request) => Some(&request.method),
            Self::Notification(notification) => Some(&notification.method),
            Self::Response(_) | Self::Fault(_) => None,
        }
    }
}

impl ParseError {
    fn shape(message: impl Into<String>) -> Self {
        Self {
            code: ErrorCode::INVALID_REQUEST,
            message: message.into(),
            id: None,
            has_method: false,
        }
    }

    fn syntax(message: impl Into<String>) -> Self {
        Self { code: ErrorCode::PARSE_ERROR, ..Self::shape(message) }
    }

    /// The error for a frame longer than `limit`, of which only the first bytes were kept.
    ///
    /// An id among them is answered. A second id beyond them would go unnoticed, which does little
    /// harm: nothing in the frame is executed.
    pub fn too_long(limit: usize, prefix: &[u8]) -> Self {
        Self::shape(format!("the message is longer than {limit} bytes")).salvaged(prefix)
    }

    /// Fills in what can be recovered from a frame that could not be parsed.
    fn salvaged(mut self, frame: &[u8]) -> Self {
        let found = salvage::envelope(frame);
        self.id = found.id;
        self.has_method = found.has_method;
        self
    }

    /// The error to answer with; a fault if the id could not be read.
    pub fn to_error_object(&self) -> ErrorObject {
        ErrorObject::new(self.code, self.message.clone())
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ParseError {}

/// The frame as text, after the checks that `serde_json` does not make.
fn read_text(frame: &[u8]) -> Result<&str, ParseError> {
    let frame = frame.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(frame);
    let text = std::str::from_utf8(frame).map_err(|error| {
        ParseError::syntax(format!("invalid UTF-8 at byte {}", error.valid_up_to())).salvaged(frame)
    })?;
    if is_deeper_than(frame, MAX_DEPTH) {
        let message = format!("nested more than {MAX_DEPTH} levels deep");
        return Err(ParseError::shape(message).salvaged(frame));
    }
    Ok(text)
}

fn parse_one(text: &str) -> Result<Message<'_>, ParseError> {
    let envelope: Envelope<'_> = serde_json::from_str(text).map_err(|error| {
        if error.is_data() {
            ParseError::shape(describe(&error))
        } else {
            ParseError::syntax(format!("not JSON: {error}"))
        }
    })?;
    envelope.into_message()
}

/// The message of `serde_json` without the position, which means nothing to the sender of a single
/// line.
fn describe(error: &serde_json::Error) -> String {
    without_position(&error.to_string()).to_owned()
}

/// Whether arrays and objects nest deeper than `limit`.
fn is_deeper_than(frame: &[u8], limit: usize) -> bool {
    // Most frames have fewer brackets than the limit, and counting bytes is much cheaper than
    // finding strings.
    let opened = frame.iter().filter(|&&byte| byte == b'{' || byte == b'[').count();
    opened > limit && deepest(frame) > limit
}

fn deepest(frame: &[u8]) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    let (mut in_string, mut escaped) = (false, false);
    for &byte in frame {
        if in_string {
            in_string = escaped || byte != b'"';
            escaped = !escaped && byte == b'\\';
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'{' | b'[' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// Every member that a message can have. Which of them are present decides what kind it is.
struct Envelope<'a> {
    version: bool,
    id: Option<Raw<'a>>,
    method: Option<Cow<'a, str>>,
    params: Params<'a>,
    result: Option<Raw<'a>>,
    error: Option<Raw<'a>>,
}

impl<'a> Envelope<'a> {
    fn into_message(self) -> Result<Message<'a>, ParseError> {
        if !self.version {
            return Err(ParseError::shape(r#"jsonrpc must be "2.0""#));
        }
        let params = self.params;
        object("params", params.raw())?;
        match (self.method, self.result, self.error) {
            (Some(method), None, None) => match self.id {
                Some(id) => Ok(Message::Request(Request { id: read_id(id)?, method, params })),
                None => Ok(Message::Notification(Notification { method, params: params.raw() })),
            },
            (None, Some(_), None) => {
                let id = self.id.ok_or_else(|| ParseError::shape("a result without an id"))?;
                let result = object("result", self.result)?.expect("it is there");
                Ok(Message::Response(Response { id: read_id(id)?, outcome: Ok(result) }))
            }
            (None, None, Some(error)) => {
                let error = read_error(error)?;
                match self.id.filter(|id| id.get() != "null") {
                    Some(id) => {
                        Ok(Message::Response(Response { id: read_id(id)?, outcome: Err(error) }))
                    }
                    None => Ok(Message::Fault(error)),
                }
            }
            (None, None, None) => Err(ParseError::shape("method is missing")),
            (None, Some(_), Some(_)) => Err(ParseError::shape("both a result and an error")),
            (Some(_), ..) => Err(ParseError::shape("both a method and a result or error")),
        }
    }
}

fn read_id(raw: Raw<'_>) -> Result<Id, ParseError> {
    serde_json::from_str(raw.get()).map_err(|_| {
        let is_long = raw.get().starts_with('"') && raw.get().len() > Id::LONGEST;
        ParseError::shape(match is_long {
            true => format!("id has more than {} bytes", Id::LONGEST),
            false => "id must be a string or a 64-bit integer".to_owned(),
        })
    })
}

fn read_error(raw: Raw<'_>) -> Result<ErrorObject, ParseError> {
    serde_json::from_str(raw.get())
        .map_err(|error| ParseError::shape(format!("error: {}", describe(&error))))
}

fn object<'a>(name: &str, raw: Option<Raw<'a>>) -> Result<Option<Raw<'a>>, ParseError> {
    match raw {
        Some(raw) if !raw.is_object() => {
            Err(ParseError::shape(format!("{name} must be an object")))
        }
        raw => Ok(raw),
    }
}

// Written by hand because the derived form has three problems: it reads an array as if its items
// were the members in order; it reads `"id":null` as no id, which would turn an invalid request
// into a silent notification; and it copies every `Option<Cow<str>>`.
impl<'de: 'a, 'a> Deserialize<'de> for Envelope<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(EnvelopeVisitor)
    }
}

struct EnvelopeVisitor;

impl<'de> Visitor<'de> for EnvelopeVisitor {
    type Value = Envelope<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON-RPC message, which is an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut version = None;
        let (mut id, mut params, mut result, mut error) = (None, None, None, None);
        let mut method = None;
        while let Some(Text(key)) = map.next_key()? {
            match key.as_ref() {
                "jsonrpc" => once("jsonrpc", &mut version, map.next_value()?)?,
                "id" => once("id", &mut id, map.next_value()?)?,
                "method" => once("method", &mut method, map.next_value::<Text<'_>>()?.0)?,
                "params" => once("params", &mut params, map.next_value()?)?,
                "result" => once("result", &mut result, map.next_value()?)?,
                "error" => once("error", &mut error, map.next_value()?)?,
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        let version = version.is_some_and(|Text(version)| version == "2.0");
        let params = Params::of(params);
        Ok(Envelope { version, id, method, params, result, error })
    }
}

/// Fills a slot, and fails if it is filled already.
pub(crate) fn once<T, E: de::Error>(
    name: &'static str,
    slot: &mut Option<T>,
    value: T,
) -> Result<(), E> {
    match slot.replace(value) {
        Some(_) => Err(E::duplicate_field(name)),
        None => Ok(()),
    }
}

/// A string, borrowed from the frame if it has no escapes.
///
/// Serde copies a `Cow` unless it is a direct field of a derived struct (serde #928, #2016).
#[derive(Deserialize)]
#[serde(transparent)]
pub(crate) struct Text<'a>(#[serde(borrow)] pub(crate) Cow<'a, str>);

#[cfg(test)]
mod tests;
