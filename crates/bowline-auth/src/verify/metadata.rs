//! What a server tells about itself to whoever wants a token for it (RFC 9728).

use serde::Serialize;

/// Protected resource metadata.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ResourceMetadata {
    /// The URL of the resource.
    pub resource: String,
    /// Whose tokens are good.
    pub authorization_servers: Vec<String>,
    /// What a client needs to begin with.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scopes_supported: Vec<String>,
    /// How tokens are sent: in the header alone.
    pub bearer_methods_supported: Vec<&'static str>,
    /// What people call it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_name: Option<String>,
    /// Where people can read about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_documentation: Option<String>,
    /// How proofs may be signed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dpop_signing_alg_values_supported: Vec<&'static str>,
    /// Whether tokens must be bound to a key.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub dpop_bound_access_tokens_required: bool,
}
