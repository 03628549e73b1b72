//! The metadata of protected resources and authorization servers, and where to find them.
//!
//! Issuers and resources are compared byte by byte; nothing is normalised.

use bowline_web::Url;
use serde::Deserialize;

use super::scope::Scopes;

/// The metadata of a protected resource (RFC 9728), as far as a client needs them.
#[derive(Debug, Clone, Deserialize)]
pub struct ResourceMetadata {
    /// The resource's identifier. Sent to the authorization server exactly like this.
    pub resource: String,
    /// The issuers of its tokens, in order of preference.
    #[serde(default)]
    pub authorization_servers: Vec<String>,
    /// The scopes of this resource.
    pub scopes_supported: Option<Vec<String>>,
    /// Whether only tokens bound to a key are accepted.
    #[serde(default)]
    pub dpop_bound_access_tokens_required: bool,
}

/// The metadata of an authorization server (RFC 8414), as far as a client needs them.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct ServerMetadata {
    /// Its name, compared byte for byte.
    pub issuer: String,
    /// Where users log in.
    pub authorization_endpoint: Option<String>,
    /// Where tokens are issued.
    pub token_endpoint: Option<String>,
    /// Where clients register.
    pub registration_endpoint: Option<String>,
    /// The scopes that it supports.
    pub scopes_supported: Option<Vec<String>>,
    /// How clients may authenticate at the token endpoint.
    pub token_endpoint_auth_methods_supported: Option<Vec<String>>,
    /// The PKCE methods that it checks.
    pub code_challenge_methods_supported: Option<Vec<String>>,
    /// Whether every redirect names the issuer (RFC 9207).
    #[serde(default)]
    pub authorization_response_iss_parameter_supported: bool,
    /// Whether a client id may be the URL of a document.
    #[serde(default)]
    pub client_id_metadata_document_supported: bool,
    /// The algorithms of DPoP proofs that it checks; `None` without DPoP.
    pub dpop_signing_alg_values_supported: Option<Vec<String>>,
}

/// Why a document is not valid metadata.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct MetadataError(String);

impl ResourceMetadata {
    /// Parses a document.
    ///
    /// # Errors
    /// When it is not a JSON object, `resource` is missing, or a member has the wrong type.
    pub fn parse(document: &[u8]) -> Result<Self, MetadataError> {
        parse(document)
    }

    /// Where the metadata of a server may be, if its challenge does not say; empty if the argument
    /// is not a URL.
    pub fn addresses(server: &str) -> Vec<String> {
        Url::parse(server).map(|url| resource_addresses(&url)).unwrap_or_default()
    }

    /// Whether the metadata are valid for a server at this URL.
    pub fn covers(&self, server: &str) -> bool {
        Url::parse(server).is_ok_and(|url| self.is_for(&url))
    }

    /// Whether the resource is this URL, or a parent of it at the same origin.
    ///
    /// A parent is allowed because one resource may have many endpoints; its path must end at a
    /// segment boundary.
    pub(super) fn is_for(&self, server: &Url) -> bool {
        let Ok(resource) = Url::parse(&self.resource) else {
            return false;
        };
        if !resource.is_same_origin(server) {
            return false;
        }
        if resource.query().is_some() {
            return resource.path() == server.path() && resource.query() == server.query();
        }
        let path = resource.path().strip_suffix('/').unwrap_or_else(|| resource.path());
        let below = server.path().strip_prefix(path);
        below.is_some_and(|below| below.is_empty() || below.starts_with('/'))
    }

    pub(super) fn scopes(&self) -> Option<Scopes> {
        self.scopes_supported.as_ref().map(Scopes::of).filter(|scopes| !scopes.is_empty())
    }
}

impl ServerMetadata {
    /// Parses a document.
    ///
    /// # Errors
    /// When it is not a JSON object, `issuer` is missing, or a member has the wrong type.
    pub fn parse(document: &[u8]) -> Result<Self, MetadataError> {
        parse(document)
    }

    /// Where the metadata of an issuer may be; empty if the argument is not a URL.
    pub fn addresses(issuer: &str) -> Vec<String> {
        Url::parse(issuer).map(|url| server_addresses(&url)).unwrap_or_default()
    }

    /// Whether it declares that it checks PKCE with S256.
    pub fn checks_s256(&self) -> bool {
        self.has_s256()
    }

    /// What 2025-03-26 assumes of a server without metadata.
    pub(super) fn assumed(origin: &str) -> Self {
        let at = |path| Some(format!("{origin}{path}"));
        Self {
            issuer: origin.to_owned(),
            authorization_endpoint: at("/authorize"),
            token_endpoint: at("/token"),
            registration_endpoint: at("/register"),
            code_challenge_methods_supported: Some(vec!["S256".to_owned()]),
            ..Self::default()
        }
    }

    pub(super) fn has_s256(&self) -> bool {
        let methods = self.code_challenge_methods_supported.as_deref().unwrap_or_default();
        methods.iter().any(|method| method == "S256")
    }

    /// Whether it checks proofs with the one algorithm that we use.
    pub(super) fn has_dpop(&self) -> bool {
        let algorithms = self.dpop_signing_alg_values_supported.as_deref().unwrap_or_default();
        algorithms.iter().any(|algorithm| algorithm == "ES256")
    }

    pub(super) fn scopes(&self) -> Option<Scopes> {
        self.scopes_supported.as_ref().map(Scopes::of)
    }
}

fn parse<'a, T: Deserialize<'a>>(document: &'a [u8]) -> Result<T, MetadataError> {
    // serde would also accept an array for a struct.
    if document.trim_ascii_start().first() != Some(&b'{') {
        return Err(MetadataError("not a JSON object".to_owned()));
    }
    serde_json::from_slice(document).map_err(|error| MetadataError(error.to_string()))
}

/// Where a protected resource's metadata may be, if its challenge does not say.
pub(super) fn resource_addresses(server: &Url) -> Vec<String> {
    let root = format!("{}/.well-known/oauth-protected-resource", server.root());
    let path = if server.path() == "/" { "" } else { server.path() };
    let query = server.query().map(|query| format!("?{query}")).unwrap_or_default();
    if path.is_empty() && query.is_empty() {
        return vec![root];
    }
    vec![format!("{root}{path}{query}"), root]
}

/// Where an authorization server's metadata may be (2025-11-25, basic/authorization).
pub(super) fn server_addresses(issuer: &Url) -> Vec<String> {
    let origin = issuer.root();
    let path = issuer.path().trim_end_matches('/');
    let oauth = format!("{origin}/.well-known/oauth-authorization-server{path}");
    let openid = format!("{origin}/.well-known/openid-configuration{path}");
    if path.is_empty() {
        return vec![oauth, openid];
    }
    vec![oauth, openid, format!("{origin}{path}/.well-known/openid-configuration")]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_a_resource() {
        fn check(server: &str, expected: &[&str]) {
            let found = resource_addresses(&Url::parse(server).unwrap());
            let expected = expected
                .iter()
                .map(|path| path.replace('*', ".well-known/oauth-protected-resource"));
            assert_eq!(found, expected.collect::<Vec<_>>());
        }
        check("https://a/mcp", &["https://a/*/mcp", "https://a/*"]);
        check("https://a:8/x/y/", &["https://a:8/*/x/y/", "https://a:8/*"]);
        check("https://a/mcp?k=v", &["https://a/*/mcp?k=v", "https://a/*"]);
        check("https://a", &["https://a/*"]);
        check("https://a/", &["https://a/*"]);
    }

    #[test]
    fn addresses_of_a_server() {
        fn check(issuer: &str, expected: &[&str]) {
            assert_eq!(server_addresses(&Url::parse(issuer).unwrap()), expected);
        }
        let root = [
            "https://a/.well-known/oauth-authorization-server",
            "https://a/.well-known/openid-configuration",
        ];
        check("https://a", &root);
        check("https://a/", &root);
        let tenant = [
            "https://a/.well-known/oauth-authorization-server/t/1",
            "https://a/.well-known/openid-configuration/t/1",
            "https://a/t/1/.well-known/openid-configuration",
        ];
        check("https://a/t/1", &tenant);
        check("https://a/t/1/", &tenant);
    }

    #[test]
    fn which_resource_covers_which_address() {
        fn check(resource: &str, server: &str, expected: bool) {
            let metadata = format!(r#"{{"resource": "{resource}"}}"#);
            let metadata = ResourceMetadata::parse(metadata.as_bytes()).unwrap();
            let is_for = metadata.is_for(&Url::parse(server).unwrap());
            assert_eq!(is_for, expected, "{resource} for {server}");
        }
        let server = "https://a.example/api/mcp";
        check("https://a.example/api/mcp", server, true);
        check("https://A.example:443/api/mcp", server, true);
        check("https://a.example/api", server, true);
        check("https://a.example/api/", server, true);
        check("https://a.example", server, true);
        check("https://a.example/", server, true);
        check("https://a.example/ap", server, false);
        check("https://a.example/api/mcp/x", server, false);
        check("https://a.example/API/mcp", server, false);
        check("http://a.example/api/mcp", server, false);
        check("https://a.example:444/api/mcp", server, false);
        check("https://evil.example/api/mcp", server, false);
        check("https://a.example.evil/api/mcp", server, false);
        check("https://a.example@evil/api/mcp", server, false);
        check("https://a.example/api/mcp#x", server, false);
        check("https://a.example/api/mcp?x", server, false);
        check("https://a.example/api/mcp?x", "https://a.example/api/mcp?x", true);
        check("urn:x", server, false);
        check("", server, false);
    }

    #[test]
    fn invalid_documents_are_rejected() {
        for document in [
            "",
            "null",
            "[]",
            "{}",
            "[\"https://a\"]",
            "{\"resource\": 1}",
            "<html>",
            "{\"issuer\": null}",
            r#"{"resource": "a", "authorization_servers": "b", "issuer": 1}"#,
            r#"{"resource": "a", "resource": "b", "issuer": "a", "issuer": "b"}"#,
        ] {
            assert!(ResourceMetadata::parse(document.as_bytes()).is_err(), "{document}");
            assert!(ServerMetadata::parse(document.as_bytes()).is_err(), "{document}");
        }
        let deep = format!("{{\"x\": {}", "[".repeat(100_000));
        assert!(ServerMetadata::parse(deep.as_bytes()).is_err());
    }

    #[test]
    fn pkce_and_dpop_must_be_declared() {
        let parse = |text: &str| ServerMetadata::parse(text.as_bytes()).unwrap();
        assert!(!parse(r#"{"issuer": "a"}"#).has_s256());
        assert!(
            !parse(r#"{"issuer": "a", "code_challenge_methods_supported": ["plain"]}"#).has_s256()
        );
        assert!(
            parse(r#"{"issuer": "a", "code_challenge_methods_supported": ["S256"]}"#).has_s256()
        );
        assert!(
            !parse(r#"{"issuer": "a", "dpop_signing_alg_values_supported": ["none"]}"#).has_dpop()
        );
        assert!(ServerMetadata::assumed("https://a").has_s256());
    }
}
