//! Text that must not appear in logs.

use std::fmt;

use serde::{Deserialize, Serializer};

/// A token, a password or a key. Only [`expose`](Self::expose) shows it; `Debug` does not.
#[derive(Clone, PartialEq, Eq, Hash, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// Wraps text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself. The caller must not log it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl<T: Into<String>> From<T> for Secret {
    fn from(text: T) -> Self {
        Self::new(text)
    }
}

/// Serializes a secret for a store. There is no `Serialize`: nothing else may contain one.
pub(super) fn write<S: Serializer>(secret: &Secret, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&secret.0)
}

/// As [`write`], for an optional secret.
pub(super) fn write_some<S: Serializer>(
    secret: &Option<Secret>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match secret {
        Some(secret) => serializer.serialize_some(&secret.0),
        None => serializer.serialize_none(),
    }
}
