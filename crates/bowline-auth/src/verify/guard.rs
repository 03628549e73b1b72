//! The guard of a resource: decides which requests are accepted.

mod refuse;

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use http::header::AUTHORIZATION;
use http::request::Parts;
use http::{HeaderMap, StatusCode};

use super::challenge::Denial;
use super::dpop::{self, Dpop, DpopLimits, ProofError, Subject};
use super::location::{SetupError, is_same, scope, trusted, without_query};
use super::metadata::ResourceMetadata;
use super::{Identity, Verify, VerifyError};

/// Checks every request for one resource.
pub struct Guard {
    resource: String,
    /// Scheme, host and port of the resource.
    origin: String,
    /// The resource's path, empty for the root.
    path: String,
    verifier: Arc<dyn Verify>,
    authorization_servers: Vec<String>,
    audiences: Vec<String>,
    scopes: Vec<String>,
    offered: Vec<String>,
    implied: Vec<(String, String)>,
    dpop: Dpop,
    offers_dpop: bool,
    requires_dpop: bool,
    name: Option<String>,
    documentation: Option<String>,
}

/// How a token was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scheme {
    Bearer,
    Dpop,
}

impl Guard {
    /// A guard for the resource at this URL, as its clients use it, such as
    /// `https://mcp.example.com/mcp`. Tokens must have been issued for exactly this URL. The
    /// verifier is one of this module or, as in the example of [`Verify`], a function.
    ///
    /// # Errors
    /// When the URL is not valid.
    pub fn new(resource: &str, verifier: impl Verify + 'static) -> Result<Self, SetupError> {
        let url = without_query(resource)?;
        Ok(Self {
            resource: resource.to_owned(),
            origin: url.root().to_owned(),
            path: url.path().trim_end_matches('/').to_owned(),
            authorization_servers: verifier.issuers(),
            verifier: Arc::new(verifier),
            audiences: Vec::new(),
            scopes: Vec::new(),
            offered: Vec::new(),
            implied: Vec::new(),
            dpop: Dpop::new(),
            offers_dpop: false,
            requires_dpop: false,
            name: None,
            documentation: None,
        })
    }

    /// Another authorization server that clients may use, besides the verifier's.
    ///
    /// # Errors
    /// When it is not an `https` URL (or `http` on this machine).
    pub fn authorization_server(mut self, url: &str) -> Result<Self, SetupError> {
        trusted(url)?;
        self.authorization_servers.push(url.to_owned());
        Ok(self)
    }

    /// Another accepted audience, for issuers with their own name for the resource.
    #[must_use]
    pub fn audience(mut self, audience: impl Into<String>) -> Self {
        self.audiences.push(audience.into());
        self
    }

    /// Scopes that every request needs.
    ///
    /// # Errors
    /// When one of them is not a scope.
    pub fn scopes<S: Into<String>>(
        mut self,
        scopes: impl IntoIterator<Item = S>,
    ) -> Result<Self, SetupError> {
        for word in scopes {
            self.scopes.push(scope(word.into())?);
        }
        Ok(self)
    }

    /// Scopes to advertise although not every request needs them. The fewer the better: some
    /// clients request all of them.
    ///
    /// # Errors
    /// When one of them is not a scope.
    pub fn offer_scopes<S: Into<String>>(
        mut self,
        scopes: impl IntoIterator<Item = S>,
    ) -> Result<Self, SetupError> {
        for word in scopes {
            self.offered.push(scope(word.into())?);
        }
        Ok(self)
    }

    /// The first scope includes the second one: `implies("files:write", "files:read")`.
    #[must_use]
    pub fn implies(mut self, wide: impl Into<String>, narrow: impl Into<String>) -> Self {
        self.implied.push((wide.into(), narrow.into()));
        self
    }

    /// Advertises that tokens may be bound to a key (DPoP). Bound tokens are checked in any case.
    #[must_use]
    pub fn offer_dpop(mut self) -> Self {
        self.offers_dpop = true;
        self
    }

    /// Rejects tokens that are not bound to a key (DPoP).
    #[must_use]
    pub fn require_dpop(mut self) -> Self {
        (self.offers_dpop, self.requires_dpop) = (true, true);
        self
    }

    /// Requires a nonce of this server in every proof, so that proofs cannot be made in advance.
    #[must_use]
    pub fn dpop_nonces(mut self) -> Self {
        self.dpop.wants_nonces = true;
        self
    }

    /// How long a proof is valid, and how many are remembered.
    #[must_use]
    pub fn dpop_limits(mut self, limits: DpopLimits) -> Self {
        self.dpop.limits = limits;
        self
    }

    /// The resource's name, for people.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// The URL of the resource's documentation.
    #[must_use]
    pub fn documentation(mut self, url: impl Into<String>) -> Self {
        self.documentation = Some(url.into());
        self
    }

    /// Checks the head of a request.
    ///
    /// # Errors
    /// The response to send when the request is rejected.
    pub async fn check(&self, request: &Parts) -> Result<Identity, Denial> {
        self.check_from(request, None).await
    }

    /// The same for a request that came from this address or network, if that is known: see
    /// [`Verify::verify_from`].
    ///
    /// # Errors
    /// The response to send when the request is rejected.
    pub async fn check_from(
        &self,
        request: &Parts,
        from: Option<IpAddr>,
    ) -> Result<Identity, Denial> {
        let (scheme, token) = self.presented(request)?;
        let mut identity = match self.verifier.verify_from(token, from).await {
            Ok(identity) => identity,
            Err(VerifyError::Invalid(why)) => return Err(self.invalid_token(scheme, why)),
            Err(error @ VerifyError::Unavailable(_)) => {
                let denial = Denial::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string());
                return Err(denial.retry_soon());
            }
        };
        if !self.is_for_us(&identity) {
            return Err(self.invalid_token(scheme, "the token was issued for another resource"));
        }
        self.check_binding(request, scheme, token, &identity)?;
        self.widen(&mut identity);
        if !self.scopes.iter().all(|needed| identity.scopes.contains(needed)) {
            return Err(self.insufficient_scope(&[]));
        }
        Ok(identity)
    }

    /// The metadata, if there is an authorization server.
    pub fn metadata(&self) -> Option<ResourceMetadata> {
        if self.authorization_servers.is_empty() {
            return None;
        }
        let mut scopes: Vec<String> = Vec::new();
        for scope in self.scopes.iter().chain(&self.offered) {
            if !scopes.contains(scope) {
                scopes.push(scope.clone());
            }
        }
        Some(ResourceMetadata {
            resource: self.resource.clone(),
            authorization_servers: self.authorization_servers.clone(),
            scopes_supported: scopes,
            bearer_methods_supported: vec!["header"],
            resource_name: self.name.clone(),
            resource_documentation: self.documentation.clone(),
            dpop_signing_alg_values_supported: if self.offers_dpop {
                dpop::algorithms()
            } else {
                Vec::new()
            },
            dpop_bound_access_tokens_required: self.requires_dpop,
        })
    }

    /// The host of the resource, with its port if it has one.
    #[must_use]
    pub fn authority(&self) -> &str {
        self.origin.split_once("://").map_or("", |(_, authority)| authority)
    }

    /// The paths of the metadata; none if there is no authorization server.
    #[must_use]
    pub fn metadata_paths(&self) -> Vec<String> {
        if self.authorization_servers.is_empty() {
            return Vec::new();
        }
        let mut paths = vec![WELL_KNOWN.to_owned()];
        if !self.path.is_empty() {
            paths.push(format!("{WELL_KNOWN}{}", self.path));
        }
        paths
    }

    /// Whether this is the path of the metadata: the well-known path, alone or followed by the
    /// resource's path.
    pub fn is_metadata_path(&self, path: &str) -> bool {
        path.strip_prefix(WELL_KNOWN)
            .is_some_and(|rest| rest.is_empty() || rest.trim_end_matches('/') == self.path)
    }

    /// Takes the token from a request.
    fn presented<'a>(&self, request: &'a Parts) -> Result<(Scheme, &'a str), Denial> {
        let in_query = |query: &str| query.split('&').any(|it| it.starts_with("access_token="));
        if request.uri.query().is_some_and(in_query) {
            return Err(self.bad_request("a token must not be sent in the URL"));
        }
        let mut values = request.headers.get_all(AUTHORIZATION).iter();
        let Some(value) = values.next() else { return Err(self.no_token()) };
        if values.next().is_some() {
            return Err(self.bad_request("the header Authorization is repeated"));
        }
        let text = value
            .to_str()
            .map_err(|_| self.bad_request("the header Authorization is malformed"))?;
        let (scheme, token) = text.split_once(' ').unwrap_or((text, ""));
        let scheme = match scheme {
            _ if scheme.eq_ignore_ascii_case("bearer") => Scheme::Bearer,
            _ if scheme.eq_ignore_ascii_case("dpop") => Scheme::Dpop,
            _ => return Err(self.no_token()),
        };
        let token = token.trim_matches(' ');
        if !is_token(token) {
            return Err(self.bad_request("the header Authorization has no token"));
        }
        if self.requires_dpop && scheme == Scheme::Bearer {
            return Err(self.invalid_token(scheme, "the token must be sent with DPoP"));
        }
        Ok((scheme, token))
    }

    fn is_for_us(&self, identity: &Identity) -> bool {
        let Some(audiences) = &identity.audiences else { return true };
        audiences.iter().any(|audience| {
            audience == &self.resource
                || self.audiences.contains(audience)
                // Only the same URL: neither a parent nor a child of it.
                || is_same_resource(audience, &self.resource)
        })
    }

    fn check_binding(
        &self,
        request: &Parts,
        scheme: Scheme,
        token: &str,
        identity: &Identity,
    ) -> Result<(), Denial> {
        let thumbprint = match (&identity.key_thumbprint, scheme) {
            (None, Scheme::Bearer) => return Ok(()),
            (None, Scheme::Dpop) => {
                return Err(self.invalid_token(scheme, "the token is not bound to a key"));
            }
            (Some(_), Scheme::Bearer) => {
                let why = "the token is bound to a key and must be sent with DPoP";
                return Err(self.invalid_token(Scheme::Dpop, why));
            }
            (Some(thumbprint), Scheme::Dpop) => thumbprint,
        };
        let proof = single(&request.headers, "dpop").map_err(|why| self.invalid_proof(why))?;
        // Proxies, and frameworks that nest a service, may have changed the path.
        let here = format!("{}{}", self.origin, request.uri.path());
        let urls = [here.as_str(), &self.resource];
        let principal = identity.unique_name();
        let principal = principal.as_str();
        let subject = Subject { method: &request.method, urls, token, principal, thumbprint };
        match self.dpop.check(proof, &subject) {
            Ok(()) => Ok(()),
            Err(ProofError::Invalid(why)) => Err(self.invalid_proof(why)),
            Err(ProofError::WantsNonce) => Err(self.wants_nonce()),
            Err(ProofError::Full) => {
                let denial = Denial::new(StatusCode::SERVICE_UNAVAILABLE, "too many proofs");
                Err(denial.retry_soon())
            }
        }
    }

    /// Adds the scopes that a token's scopes include, directly or indirectly.
    fn widen(&self, identity: &mut Identity) {
        let mut count = 0;
        while count != identity.scopes.len() {
            count = identity.scopes.len();
            for (wide, narrow) in &self.implied {
                if identity.scopes.contains(wide) {
                    identity.scopes.insert(narrow.clone());
                }
            }
        }
    }
}

/// The path of metadata, before the path of the resource.
const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard")
            .field("resource", &self.resource)
            .field("authorization_servers", &self.authorization_servers)
            .field("scopes", &self.scopes)
            .finish_non_exhaustive()
    }
}

fn single<'a>(headers: &'a HeaderMap, name: &str) -> Result<&'a str, &'static str> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Err("the header DPoP is missing: the token needs a proof"),
        (Some(_), Some(_)) => Err("the header DPoP is repeated"),
        (Some(value), None) => value.to_str().map_err(|_| "the proof is malformed"),
    }
}

/// The characters of a token (RFC 6750, section 2.1).
fn is_token(text: &str) -> bool {
    let body = text.trim_end_matches('=');
    !body.is_empty()
        && body.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~+/".contains(&byte))
}

/// Ignores trailing slashes.
fn is_same_resource(one: &str, other: &str) -> bool {
    !one.contains(['?', '#']) && is_same(one.trim_end_matches('/'), other.trim_end_matches('/'))
}
