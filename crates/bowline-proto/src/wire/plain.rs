//! The fast path for messages as most peers write them: one walk over the envelope.

use super::Id;
use crate::params::Params;
use crate::raw::{Cursor, Odd, Raw, Walk, fill};

/// The members of an envelope that is plain.
///
/// It is filled in place, because parameters that were scanned are large.
#[derive(Default)]
pub(super) struct Plain<'a> {
    version: Option<()>,
    pub(super) id: Option<Id>,
    pub(super) method: Option<&'a str>,
    pub(super) params: Params<'a>,
    pub(super) result: Option<Raw<'a>>,
}

impl<'a> Plain<'a> {
    /// Reads a frame, if it is plain. It accepts only what [`parse_one`](super::parse_one) accepts.
    #[inline]
    pub(super) fn walk(&mut self, frame: &'a [u8]) -> Result<(), Odd> {
        let mut cursor = Cursor::new(std::str::from_utf8(frame).map_err(|_| Odd)?);
        let mut members = Walk::new(&mut cursor)?;
        while members.has_next()? {
            if members.is("jsonrpc")? {
                fill(&mut self.version, members.expect("2.0")?)?;
            } else if members.is("id")? {
                fill(&mut self.id, Id::walk(&mut members)?)?;
            } else if members.is("method")? {
                fill(&mut self.method, members.string()?)?;
            } else if members.is("params")? {
                self.params.walk(&mut members)?;
            } else if members.is("result")? {
                fill(&mut self.result, members.value()?)?;
            } else if members.is("error")? {
                return Err(Odd);
            } else {
                members.skip()?;
            }
        }
        let is_whole = cursor.is_at_end() && self.version.is_some();
        if is_whole { Ok(()) } else { Err(Odd) }
    }
}
