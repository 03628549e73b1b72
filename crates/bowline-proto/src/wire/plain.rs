//! Messages as peers write them: the envelope, found in one walk.

use std::borrow::Cow;

use super::{Id, Message, Notification, Request, Response};
use crate::params::Params;
use crate::raw::{Cursor, Odd, Walk, fill};

/// Reads the one message of a frame, if it is plain.
///
/// Accepts nothing that [`parse_one`](super::parse_one) would not, and reads it as that would.
#[inline]
pub(super) fn parse(frame: &[u8]) -> Result<Message<'_>, Odd> {
    let mut cursor = Cursor::new(std::str::from_utf8(frame).map_err(|_| Odd)?);
    let mut members = Walk::new(&mut cursor)?;
    let (mut version, mut id, mut method, mut result) = (None, None, None, None);
    let mut params = Params::default();
    while let Some(key) = members.next()? {
        match key {
            "jsonrpc" => fill(&mut version, members.string()?)?,
            "id" => fill(&mut id, Id::walk(&mut members)?)?,
            "method" => fill(&mut method, members.string()?)?,
            "params" => params.walk(&mut members)?,
            "result" => fill(&mut result, members.value()?)?,
            "error" => return Err(Odd),
            _ => drop(members.value()?),
        }
    }
    if !cursor.is_at_end() || version != Some("2.0") {
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
