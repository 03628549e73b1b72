//! Whose a token is, and what it allows.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::{Map, Value};

/// What is known of the holder of a token that was checked.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub struct Identity {
    /// Who says so.
    pub issuer: Option<String>,
    /// Whom the token speaks for; unique within its issuer.
    pub subject: String,
    /// The program that got the token.
    pub client_id: Option<String>,
    /// What the token allows.
    pub scopes: BTreeSet<String>,
    /// For whom the token was issued. `None` when the verifier vouches that it is for this server.
    pub audiences: Option<Vec<String>>,
    /// When it ends, in seconds since 1970.
    pub expires: Option<u64>,
    /// The digest of the key that whoever uses the token must have (RFC 9449).
    pub key_thumbprint: Option<String>,
    /// Everything the issuer said.
    pub claims: Map<String, Value>,
}

impl Identity {
    /// Somebody by name, who is allowed nothing in particular.
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

    /// Allows something more.
    #[must_use]
    pub fn scope(mut self, scope: impl Into<String>) -> Self {
        self.scopes.insert(scope.into());
        self
    }

    /// Says which program it is.
    #[must_use]
    pub fn client(mut self, client_id: impl Into<String>) -> Self {
        self.client_id = Some(client_id.into());
        self
    }

    /// A name that no two identities share, whatever their issuers put into them: what sessions and
    /// states are bound to.
    #[must_use]
    pub fn unique_name(&self) -> String {
        serde_json::json!([self.issuer, self.subject, self.client_id]).to_string()
    }
}

/// Of the claims the names only: the rest may be nobody's business.
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
