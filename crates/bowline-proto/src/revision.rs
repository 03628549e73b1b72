//! The revisions of the protocol, and every difference between them.
//!
//! The [`model`](crate::model) is neutral. A value meets a revision twice: [`Adapt`] adapts it to a
//! peer just before it is encoded (members are dropped, wrapped, renamed or added), and
//! [`decode_outcome`] and [`neutral_error`] read a peer's answer back into the neutral form. Which
//! methods a revision has is in the table of [`method`](crate::method), and which other features it
//! has is answered by the predicates of [`Revision`].
//!
//! **Invariant:** the schema of a revision names everything that `Adapt` leaves in a value. What
//! the revision cannot express is [`Unsupported`] and never sent.

mod adapt;
mod answer;
mod error;
mod feature;
mod negotiate;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

pub use self::adapt::{Adapt, Unsupported, describes_object};
pub use self::answer::{Outcome, decode_outcome};
pub use self::error::{adapt_error, crossed_error, is_resource_not_found, neutral_error};
pub use self::negotiate::{NoCommonRevision, Offer, Revisions};

/// A revision of the specification, named by its date. Later revisions are greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Revision {
    /// Handshake; HTTP+SSE.
    #[serde(rename = "2024-11-05")]
    V2024_11_05,
    /// Streamable HTTP, batches, tool annotations, audio.
    #[serde(rename = "2025-03-26")]
    V2025_03_26,
    /// Structured tool output, elicitation, resource links; no more batches.
    #[serde(rename = "2025-06-18")]
    V2025_06_18,
    /// Icons, URL elicitation, sampling with tools, experimental tasks.
    #[serde(rename = "2025-11-25")]
    V2025_11_25,
    /// Stateless: no handshake, no session, everything in the request.
    #[serde(rename = "2026-07-28")]
    V2026_07_28,
}

/// The two kinds of conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Era {
    /// A handshake opens a session; both sides may ask.
    Legacy,
    /// Each request stands alone; only the client asks.
    Modern,
}

impl Revision {
    /// All of them, oldest first.
    pub const ALL: [Self; 5] = [
        Self::V2024_11_05,
        Self::V2025_03_26,
        Self::V2025_06_18,
        Self::V2025_11_25,
        Self::V2026_07_28,
    ];
    /// The newest.
    pub const LATEST: Self = Self::V2026_07_28;
    /// The newest that opens with a handshake.
    pub const LATEST_LEGACY: Self = Self::V2025_11_25;

    /// The date that names it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// The era it belongs to.
    pub const fn era(self) -> Era {
        match self {
            Self::V2026_07_28 => Era::Modern,
            _ => Era::Legacy,
        }
    }

    /// Whether it belongs to the modern era.
    pub const fn is_modern(self) -> bool {
        matches!(self.era(), Era::Modern)
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The text is not a known revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownRevision(pub String);

impl fmt::Display for UnknownRevision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = Revision::ALL.map(Revision::as_str).join(", ");
        write!(f, "unknown protocol revision {:?}; expected one of {known}", self.0)
    }
}

impl std::error::Error for UnknownRevision {}

impl FromStr for Revision {
    type Err = UnknownRevision;

    fn from_str(text: &str) -> Result<Self, UnknownRevision> {
        Self::ALL
            .into_iter()
            .find(|revision| revision.as_str() == text)
            .ok_or_else(|| UnknownRevision(text.to_owned()))
    }
}
