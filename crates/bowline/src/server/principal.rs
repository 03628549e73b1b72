//! Who a client is, where the transport found out.

use std::collections::BTreeSet;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use serde_json::{Map, Value};

/// An authenticated identity, and what it may do.
///
/// Two are equal when they have the same name, whatever each may do: sessions and request states
/// are bound to the name, and outlive the token that began them.
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
    /// An identity, by a name that is unique among all that the server can meet.
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

    /// The same, by the names that its issuer has for it and for its program.
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

    /// The same, allowed these things.
    #[must_use]
    pub fn with_scopes<S: Into<String>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        Arc::make_mut(&mut self.0).scopes = scopes.into_iter().map(Into::into).collect();
        self
    }

    /// The same, known until then, in seconds since 1970. Streams that would go on for ever end
    /// at that time.
    #[must_use]
    pub fn with_expiry(mut self, expires: impl Into<Option<u64>>) -> Self {
        Arc::make_mut(&mut self.0).expires = expires.into();
        self
    }

    /// The same, of whom this is known as well.
    #[must_use]
    pub fn with_claims(mut self, claims: Map<String, Value>) -> Self {
        Arc::make_mut(&mut self.0).claims = claims;
        self
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0.name
    }

    /// Who says so.
    pub fn issuer(&self) -> Option<&str> {
        self.0.issuer.as_deref()
    }

    /// Whom the client speaks for: as its issuer calls them, or the name.
    pub fn subject(&self) -> &str {
        self.0.subject.as_deref().unwrap_or(&self.0.name)
    }

    /// The program that the client is, as its issuer calls it.
    pub fn client_id(&self) -> Option<&str> {
        self.0.client_id.as_deref()
    }

    /// What it may do.
    pub fn scopes(&self) -> impl Iterator<Item = &str> {
        self.0.scopes.iter().map(String::as_str)
    }

    /// Whether it may do this.
    pub fn has_scope(&self, scope: &str) -> bool {
        self.0.scopes.contains(scope)
    }

    /// Until when that is so, in seconds since 1970.
    pub fn expires(&self) -> Option<u64> {
        self.0.expires
    }

    /// What else its issuer says of it.
    pub fn claims(&self) -> &Map<String, Value> {
        &self.0.claims
    }

    /// Whether they are the same in everything, not in name alone.
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

/// Of the claims the names only: the rest may be nobody's business.
impl fmt::Debug for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Principal")
            .field("name", &self.0.name)
            .field("scopes", &self.0.scopes)
            .field("claims", &self.0.claims.keys().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}
