//! The fast path for messages as most peers write them: one walk over the envelope.

use std::borrow::Cow;

use super::{Id, Message, Notification, Request, Response};
use crate::params::Params;
use crate::raw::{Cursor, Odd, Walk, fill};

/// Parses a frame as one message, if it is plain.
///
/// It accepts only what [`parse_one`](super::parse_one) accepts, with the same result.
#[inline]
pub(super) fn parse(frame: &[u8]) -> Result<Message<'_>, Odd> {
    let mut cursor = Cursor::new(std::str::from_utf8(frame).map_err(|_| Odd)?);
    let mut members = Walk::new(&mut cursor)?;
    let (mut version, mut id, mut method, mut result) = (None, None, None, None);
    let mut params = Params::default();
    while members.has_next()? {
        if members.is("jsonrpc")? {
            fill(&mut version, members.expect("2.0")?)?;
        } else if members.is("id")? {
            fill(&mut id, Id::walk(&mut members)?)?;
        } else if members.is("method")? {
            fill(&mut method, members.string()?)?;
        } else if members.is("params")? {
            params.walk(&mut members)?;
        } else if members.is("result")? {
            fill(&mut result, members.value()?)?;
        } else if members.is("error")? {
            return Err(Odd);
        } else {
            members.skip()?;
        }
    }
    if !cursor.is_at_end() || version.is_none() {
        return Err(Odd);
    }
    match (method.map(Cow::Borrowed), result, id) {
        (Some(method), None, Some(id)) => Ok(Message::Request(Request { id, method, params })),
        (Some(method), None, None) => {
            Ok(Message::Notification(Notification { method, params: params.raw() }))
        }
        (None, Some(result), Some(id)) if result.is_object() => {
            Ok(Message::Response(Response { id, outcome: Ok(result) }))
        }
        _ => Err(Odd),
    }
}
