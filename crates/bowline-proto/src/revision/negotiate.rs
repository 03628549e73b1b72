//! Negotiates the revision that two sides speak.
//!
//! The eras negotiate differently and never mix. A handshake ends in a legacy revision, whatever
//! was requested; a modern request names its revision and is served in it or rejected. So a side is
//! described by the set of revisions that it has enabled.

use std::fmt;

use serde::Serialize;

use super::{Era, Revision};
use crate::error::{ErrorCode, ErrorObject};
use crate::json::Json;

/// A set of revisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Revisions(u8);

impl Revisions {
    /// The empty set.
    pub const NONE: Self = Self(0);
    /// All known revisions.
    pub const ALL: Self = Self(0b1_1111);
    /// Those that open with a handshake.
    pub const LEGACY: Self = Self(0b0_1111);
    /// Those without one.
    pub const MODERN: Self = Self(0b1_0000);

    /// The set of one revision.
    pub const fn only(revision: Revision) -> Self {
        Self(1 << revision as u8)
    }

    /// The set with `revision` in it.
    #[must_use]
    pub const fn with(self, revision: Revision) -> Self {
        Self(self.0 | Self::only(revision).0)
    }

    /// The intersection of both sets.
    #[must_use]
    pub const fn common(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Whether `revision` is in the set.
    pub const fn contains(self, revision: Revision) -> bool {
        self.0 & Self::only(revision).0 != 0
    }

    /// Whether the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The members of one era.
    #[must_use]
    pub const fn of_era(self, era: Era) -> Self {
        match era {
            Era::Legacy => self.common(Self::LEGACY),
            Era::Modern => self.common(Self::MODERN),
        }
    }

    /// The newest member of one era.
    pub fn newest(self, era: Era) -> Option<Revision> {
        self.of_era(era).iter().next_back()
    }

    /// The members, oldest first.
    pub fn iter(self) -> impl DoubleEndedIterator<Item = Revision> {
        Revision::ALL.into_iter().filter(move |revision| self.contains(*revision))
    }

    /// The known revisions in a peer's list.
    pub fn known<S: AsRef<str>>(names: &[S]) -> Self {
        names.iter().filter_map(|name| name.as_ref().parse().ok()).collect()
    }

    /// Reads a server's answer to `initialize`, for a client that has enabled these revisions.
    ///
    /// # Errors
    /// When it is not one of them, or is a modern one.
    pub fn read_initialize_answer(self, answered: &str) -> Result<Revision, NoCommonRevision> {
        answered
            .parse()
            .ok()
            .filter(|revision| self.of_era(Era::Legacy).contains(*revision))
            .ok_or_else(|| NoCommonRevision { ours: self, theirs: vec![answered.to_owned()] })
    }
}

impl FromIterator<Revision> for Revisions {
    fn from_iter<I: IntoIterator<Item = Revision>>(revisions: I) -> Self {
        revisions.into_iter().fold(Self::NONE, Self::with)
    }
}

impl From<Revision> for Revisions {
    fn from(revision: Revision) -> Self {
        Self::only(revision)
    }
}

impl fmt::Display for Revisions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("none");
        }
        for (index, revision) in self.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{revision}")?;
        }
        Ok(())
    }
}

/// The revisions that a server speaks, and those that it lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offer {
    enabled: Revisions,
    listed: Revisions,
}

impl Offer {
    /// Offers `enabled`. Lists the modern revisions, or the legacy ones if there are no others.
    ///
    /// The list in `server/discover` names the revisions that later requests may claim, and these
    /// are modern. A server without modern revisions still lists those of its handshake.
    pub const fn new(enabled: Revisions) -> Self {
        let modern = enabled.of_era(Era::Modern);
        let listed = if modern.is_empty() { enabled } else { modern };
        Self { enabled, listed }
    }

    /// The same offer, but it lists the legacy revisions, too.
    #[must_use]
    pub const fn with_all_listed(self) -> Self {
        Self { enabled: self.enabled, listed: self.enabled }
    }

    /// The revisions that the server speaks.
    pub const fn enabled(self) -> Revisions {
        self.enabled
    }

    /// The revisions in `supportedVersions` of `server/discover` and `data.supported` of an error.
    pub const fn listed(self) -> Revisions {
        self.listed
    }

    /// The revision that answers `initialize`: the requested one, else the newest legacy one.
    ///
    /// A handshake cannot end in a modern revision, so a request for one is treated as unknown.
    ///
    /// # Errors
    /// When the server speaks no legacy revision.
    pub fn answer_initialize(self, requested: &str) -> Result<Revision, ErrorObject> {
        let legacy = self.enabled.of_era(Era::Legacy);
        requested
            .parse()
            .ok()
            .filter(|revision| legacy.contains(*revision))
            .or_else(|| legacy.newest(Era::Legacy))
            .ok_or_else(|| self.unsupported(requested))
    }

    /// The revision of a modern request that claims `claimed`.
    ///
    /// # Errors
    /// When it is not a modern revision that the server speaks.
    pub fn accept_claim(self, claimed: &str) -> Result<Revision, ErrorObject> {
        claimed
            .parse()
            .ok()
            .filter(|revision| self.enabled.of_era(Era::Modern).contains(*revision))
            .ok_or_else(|| self.unsupported(claimed))
    }

    /// The error for an unsupported version. Its message names all that are supported.
    pub fn unsupported(self, requested: &str) -> ErrorObject {
        #[derive(Serialize)]
        struct Data<'a> {
            supported: Vec<&'static str>,
            requested: &'a str,
        }
        let data =
            Data { supported: self.listed.iter().map(Revision::as_str).collect(), requested };
        let message = format!(
            "unsupported protocol version {requested:?}; expected one of {} without a handshake, or \
             one of {} with initialize",
            self.enabled.of_era(Era::Modern),
            self.enabled.of_era(Era::Legacy),
        );
        ErrorObject::new(ErrorCode::UNSUPPORTED_VERSION, message)
            .with_data(Json::new(&data).expect("strings have a JSON form"))
    }
}

impl Default for Offer {
    fn default() -> Self {
        Self::new(Revisions::ALL)
    }
}

/// The two sides have no revision in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoCommonRevision {
    /// The revisions that we speak.
    pub ours: Revisions,
    /// The revisions that the peer says it speaks.
    pub theirs: Vec<String>,
}

impl fmt::Display for NoCommonRevision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let theirs = if self.theirs.is_empty() {
            "nothing we could read".to_owned()
        } else {
            self.theirs.join(", ")
        };
        write!(f, "no common revision: we speak {}", self.ours)?;
        write!(f, ", the server {theirs}")
    }
}

impl std::error::Error for NoCommonRevision {}

#[cfg(test)]
mod tests {
    use super::*;

    const MODERN_AND_OLD: Revisions = Revisions::MODERN.with(Revision::V2025_03_26);

    #[test]
    fn sets_are_what_their_names_say() {
        assert_eq!(Revisions::ALL, Revision::ALL.into_iter().collect());
        for era in [Era::Legacy, Era::Modern] {
            assert!(Revisions::ALL.of_era(era).iter().all(|r| r.era() == era));
        }
        assert_eq!(Revisions::ALL.newest(Era::Legacy), Some(Revision::LATEST_LEGACY));
        assert_eq!(Revisions::LEGACY.newest(Era::Modern), None);
        assert_eq!(MODERN_AND_OLD.to_string(), "2025-03-26, 2026-07-28");
        assert_eq!(Revisions::NONE.to_string(), "none");
        assert_eq!(Revisions::known(&["x", "2025-03-26", "2026-07-28"]), MODERN_AND_OLD);
    }

    #[test]
    fn a_handshake_ends_in_a_legacy_revision() {
        fn check(enabled: Revisions, requested: &str, answer: Option<&str>) {
            let found = Offer::new(enabled).answer_initialize(requested);
            let found = found.ok().map(Revision::as_str);
            assert_eq!(found, answer, "{enabled} asked for {requested}");
        }
        for revision in Revisions::LEGACY.iter() {
            check(Revisions::ALL, revision.as_str(), Some(revision.as_str()));
            check(Revisions::MODERN, revision.as_str(), None);
            check(MODERN_AND_OLD, revision.as_str(), Some("2025-03-26"));
        }
        for requested in ["2026-07-28", "2099-01-01", "1.0", ""] {
            check(Revisions::ALL, requested, Some("2025-11-25"));
            check(MODERN_AND_OLD, requested, Some("2025-03-26"));
            check(Revisions::MODERN, requested, None);
        }
    }

    #[test]
    fn a_claim_is_served_in_its_revision_or_refused() {
        fn check(offer: Offer, claimed: &str, data: Option<&str>) {
            let found = offer.accept_claim(claimed).err();
            if let Some(error) = &found {
                assert_eq!(error.code, ErrorCode::UNSUPPORTED_VERSION);
            }
            let found = found.and_then(|error| error.data);
            assert_eq!(found.as_ref().map(Json::as_str), data, "{claimed}");
        }
        let all = Offer::default();
        check(all, "2026-07-28", None);
        let legacy_claim = r#"{"supported":["2026-07-28"],"requested":"2025-11-25"}"#;
        check(all, "2025-11-25", Some(legacy_claim));
        let listed = Offer::new(MODERN_AND_OLD).with_all_listed();
        let both = r#"{"supported":["2025-03-26","2026-07-28"],"requested":"2099-01-01"}"#;
        check(listed, "2099-01-01", Some(both));
        let old = Offer::new(Revision::V2024_11_05.into());
        let legacy_only = r#"{"supported":["2024-11-05"],"requested":"2026-07-28"}"#;
        check(old, "2026-07-28", Some(legacy_only));
    }

    #[test]
    fn a_client_takes_what_it_enables_and_names_both_sides_otherwise() {
        let ours = MODERN_AND_OLD;
        let old = Ok(Revision::V2025_03_26);
        assert_eq!(ours.read_initialize_answer("2025-03-26"), old);
        for answered in ["2025-11-25", "2026-07-28", "2099-01-01"] {
            let error = ours.read_initialize_answer(answered).unwrap_err();
            let text = error.to_string();
            assert!(text.contains("2025-03-26, 2026-07-28"), "{text}");
            assert!(text.contains(&format!("the server {answered}")), "{text}");
        }
    }
}
