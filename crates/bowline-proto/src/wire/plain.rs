//! Messages as peers write them: the envelope, found in one walk.

use super::{Envelope, Message};
use crate::params::Params;
use crate::raw::{Cursor, Odd, Walk, fill, text};

/// Reads the one message of a frame, if it is plain.
///
/// Accepts nothing that [`parse_one`](super::parse_one) would not, and reads it as that would.
pub(super) fn parse(frame: &[u8]) -> Result<Message<'_>, Odd> {
    let mut cursor = Cursor::new(std::str::from_utf8(frame).map_err(|_| Odd)?);
    let mut members = Walk::new(&mut cursor)?;
    let (mut version, mut method) = (None, None);
    let (mut id, mut params, mut result) = (None, None, None);
    while let Some(key) = members.next()? {
        match key {
            "jsonrpc" => fill(&mut version, members.value()?)?,
            "id" => fill(&mut id, members.value()?)?,
            "method" => fill(&mut method, text(members.value()?)?)?,
            "params" => fill(&mut params, Params::walk(&mut members)?)?,
            "result" => fill(&mut result, members.value()?)?,
            "error" => return Err(Odd),
            _ => drop(members.value()?),
        }
    }
    if !cursor.is_at_end() {
        return Err(Odd);
    }
    let version = version.is_some_and(|version| version.get() == r#""2.0""#);
    let params = params.unwrap_or_default();
    Envelope { version, id, method, params, result, error: None }.into_message().map_err(|_| Odd)
}
