//! What a server publishes for clients that need a token (RFC 9728).

use serde::Serialize;

/// Protected resource metadata.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ResourceMetadata {
    /// The URL of the resource.
    pub resource: String,
    /// The issuers of accepted tokens.
    pub authorization_servers: Vec<String>,
    /// The scopes that a client should request first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scopes_supported: Vec<String>,
    /// How tokens are sent: only in the header.
    pub bearer_methods_supported: Vec<&'static str>,
    /// Its name, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_name: Option<String>,
    /// The URL of its documentation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_documentation: Option<String>,
    /// The algorithms for DPoP proofs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dpop_signing_alg_values_supported: Vec<&'static str>,
    /// Whether tokens must be bound to a key.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub dpop_bound_access_tokens_required: bool,
}
