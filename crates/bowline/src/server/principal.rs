//! The authenticated identity of a client.

use std::collections::BTreeSet;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use serde_json::{Map, Value};

/// An authenticated identity with its scopes.
///
/// Two are equal when they have the same name, whatever their scopes: sessions and request states
/// are bound to the name, and outlive the token that they started with.
#[derive(Clone)]
pub struct Principal(Arc<Inner>);

#[derive(Clone, PartialEq)]
struct Inner {
    name: String,
    issuer: Option<String>,
    subject: Option<String>,
    client_id: Option<String>,
    scopes: BTreeSet<String>,
    expires: Option<u64>,
    claims: Map<String, Value>,
}

impl Principal {
    /// Creates an identity with a name that is unique on this server.
    pub fn new(name: impl Into<String>) -> Self {
        Self(Arc::new(Inner {
            name: name.into(),
            issuer: None,
            subject: None,
            client_id: None,
            scopes: BTreeSet::new(),
            expires: None,
            claims: Map::new(),
        }))
    }

    /// Sets the issuer of the token, and its names for the user and the client program.
    #[must_use]
    pub fn issued_by(
        mut self,
        issuer: Option<String>,
        subject: impl Into<String>,
        client_id: Option<String>,
    ) -> Self {
        let inner = Arc::make_mut(&mut self.0);
        (inner.issuer, inner.client_id) = (issuer, client_id);
        inner.subject = Some(subject.into());
        self
    }

    /// Sets the scopes.
    #[must_use]
    pub fn with_scopes<S: Into<String>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        Arc::make_mut(&mut self.0).scopes = scopes.into_iter().map(Into::into).collect();
        self
    }

    /// Sets when the token expires, in seconds since 1970. Listening streams end at that time.
    #[must_use]
    pub fn with_expiry(mut self, expires: impl Into<Option<u64>>) -> Self {
        Arc::make_mut(&mut self.0).expires = expires.into();
        self
    }

    /// Sets the other claims of the token.
    #[must_use]
    pub fn with_claims(mut self, claims: Map<String, Value>) -> Self {
        Arc::make_mut(&mut self.0).claims = claims;
        self
    }

    /// The unique name.
    pub fn as_str(&self) -> &str {
        &self.0.name
    }

    /// The issuer of the token.
    pub fn issuer(&self) -> Option<&str> {
        self.0.issuer.as_deref()
    }

    /// The user that the client acts for: the issuer's name for them, or else the unique name.
    pub fn subject(&self) -> &str {
        self.0.subject.as_deref().unwrap_or(&self.0.name)
    }

    /// The issuer's name for the client program.
    pub fn client_id(&self) -> Option<&str> {
        self.0.client_id.as_deref()
    }

    /// The scopes.
    pub fn scopes(&self) -> impl Iterator<Item = &str> {
        self.0.scopes.iter().map(String::as_str)
    }

    /// Whether it has a scope.
    pub fn has_scope(&self, scope: &str) -> bool {
        self.0.scopes.contains(scope)
    }

    /// When the token expires, in seconds since 1970.
    pub fn expires(&self) -> Option<u64> {
        self.0.expires
    }

    /// The other claims of the token.
    pub fn claims(&self) -> &Map<String, Value> {
        &self.0.claims
    }

    /// Whether both are the same in every respect, not only in name.
    pub(crate) fn are_alike(one: Option<&Self>, other: Option<&Self>) -> bool {
        match (one, other) {
            (Some(one), Some(other)) => Arc::ptr_eq(&one.0, &other.0) || one.0 == other.0,
            (None, None) => true,
            _ => false,
        }
    }
}

impl PartialEq for Principal {
    fn eq(&self, other: &Self) -> bool {
        self.0.name == other.0.name
    }
}

impl Eq for Principal {}

impl Hash for Principal {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.name.hash(state);
    }
}

/// Shows only the names of the claims: their values may be confidential.
impl fmt::Debug for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Principal")
            .field("name", &self.0.name)
            .field("scopes", &self.0.scopes)
            .field("claims", &self.0.claims.keys().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}
