//! The holder of a token, and what the token allows.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::{Map, Value};

/// The holder of a verified token.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub struct Identity {
    /// Who issued the token.
    pub issuer: Option<String>,
    /// The user or client that the token stands for; unique within its issuer.
    pub subject: String,
    /// The client that got the token.
    pub client_id: Option<String>,
    /// What the token allows.
    pub scopes: BTreeSet<String>,
    /// The resources that the token was issued for. `None` if the verifier guarantees that it is
    /// for this server.
    pub audiences: Option<Vec<String>>,
    /// When the token expires, in seconds since 1970.
    pub expires: Option<u64>,
    /// The digest of the key that the token is bound to (RFC 9449).
    pub key_thumbprint: Option<String>,
    /// All claims of the issuer.
    pub claims: Map<String, Value>,
}

impl Identity {
    /// An identity without scopes.
    pub fn new(subject: impl Into<String>) -> Self {
        Self {
            issuer: None,
            subject: subject.into(),
            client_id: None,
            scopes: BTreeSet::new(),
            audiences: None,
            expires: None,
            key_thumbprint: None,
            claims: Map::new(),
        }
    }

    /// Adds a scope.
    #[must_use]
    pub fn scope(mut self, scope: impl Into<String>) -> Self {
        self.scopes.insert(scope.into());
        self
    }

    /// Sets the client.
    #[must_use]
    pub fn client(mut self, client_id: impl Into<String>) -> Self {
        self.client_id = Some(client_id.into());
        self
    }

    /// A name that no two identities share, whatever their issuers put into them. Sessions and
    /// request states are bound to it.
    #[must_use]
    pub fn unique_name(&self) -> String {
        serde_json::json!([self.issuer, self.subject, self.client_id]).to_string()
    }
}

/// Shows only the names of claims: their values may be confidential.
impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity")
            .field("issuer", &self.issuer)
            .field("subject", &self.subject)
            .field("client_id", &self.client_id)
            .field("scopes", &self.scopes)
            .field("claims", &self.claims.keys().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}
