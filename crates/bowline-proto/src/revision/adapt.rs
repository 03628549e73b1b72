//! Adapts a value to a peer's revision, in place, just before it is encoded.
//!
//! One rule per line, next to its type. Members that a revision lacks are dropped if the meaning
//! survives without them, converted into something older if it does not, and rejected if neither is
//! possible.

mod capability;
mod content;
mod item;
mod params;
mod question;
mod result;
mod wrap;

use std::fmt;

use self::wrap::WRAPPED;
pub use self::wrap::describes_object;
use super::Revision;

/// A value that can be adapted to a revision.
pub trait Adapt {
    /// Drops, converts or adds what the revision requires. Afterwards the value may only be encoded
    /// for a peer that speaks it.
    ///
    /// # Errors
    /// When the revision cannot express the value.
    fn adapt(&mut self, to: Revision) -> Result<(), Unsupported>;
}

/// Something that a revision cannot express.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unsupported {
    /// What it is.
    pub what: &'static str,
    /// The revision that lacks it.
    pub revision: Revision,
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "protocol revision {} has no {}", self.revision, self.what)
    }
}

impl std::error::Error for Unsupported {}

/// Rejects a value.
fn unsupported(what: &'static str, revision: Revision) -> Result<(), Unsupported> {
    Err(Unsupported { what, revision })
}

/// Drops a member that `first` introduced, for older peers.
fn since<T>(first: Revision, to: Revision, member: &mut Option<T>) {
    if to < first {
        *member = None;
    }
}

/// Drops a member that only `revision` has, for all other peers.
fn only<T>(revision: Revision, to: Revision, member: &mut Option<T>) {
    if to != revision {
        *member = None;
    }
}

impl<T: Adapt> Adapt for Vec<T> {
    fn adapt(&mut self, to: Revision) -> Result<(), Unsupported> {
        self.iter_mut().try_for_each(|item| item.adapt(to))
    }
}

impl<T: Adapt> Adapt for Option<T> {
    fn adapt(&mut self, to: Revision) -> Result<(), Unsupported> {
        self.iter_mut().try_for_each(|item| item.adapt(to))
    }
}

impl<T: Adapt> Adapt for Box<T> {
    fn adapt(&mut self, to: Revision) -> Result<(), Unsupported> {
        self.as_mut().adapt(to)
    }
}
