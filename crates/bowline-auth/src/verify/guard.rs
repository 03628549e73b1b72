//! The guard in front of a resource: who is let in.

mod refuse;

use std::fmt;
use std::sync::Arc;

use http::header::AUTHORIZATION;
use http::request::Parts;
use http::{HeaderMap, StatusCode};

use super::challenge::Denial;
use super::dpop::{self, Dpop, DpopLimits, ProofError, Subject};
use super::location::{SetupError, is_same, scope, trusted, without_query};
use super::metadata::ResourceMetadata;
use super::{Identity, Verify, VerifyError};

/// Stands in front of one resource and checks every request for it.
pub struct Guard {
    resource: String,
    /// Scheme, host and port of the resource.
    origin: String,
    /// Its path, empty for the root.
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
    /// A guard for a resource, by the URL that its clients use, such as
    /// `https://mcp.example.com/mcp`. Tokens must have been issued for exactly this.
    ///
    /// # Errors
    /// When it is no URL.
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

    /// One more authorization server that clients are sent to. The verifier's own is known already.
    ///
    /// # Errors
    /// When it is no URL of `https` (or `http` on this machine).
    pub fn authorization_server(mut self, url: &str) -> Result<Self, SetupError> {
        trusted(url)?;
        self.authorization_servers.push(url.to_owned());
        Ok(self)
    }

    /// Another audience that is good, for issuers that call the resource by a name of their own.
    #[must_use]
    pub fn audience(mut self, audience: impl Into<String>) -> Self {
        self.audiences.push(audience.into());
        self
    }

    /// Scopes that every request needs.
    ///
    /// # Errors
    /// When one of them is not a word.
    pub fn scopes<S: Into<String>>(
        mut self,
        scopes: impl IntoIterator<Item = S>,
    ) -> Result<Self, SetupError> {
        for word in scopes {
            self.scopes.push(scope(word.into())?);
        }
        Ok(self)
    }

    /// Scopes that clients are told of, though not every request needs them. The fewer the better:
    /// clients that are told of nothing else ask for all of them.
    ///
    /// # Errors
    /// When one of them is not a word.
    pub fn offer_scopes<S: Into<String>>(
        mut self,
        scopes: impl IntoIterator<Item = S>,
    ) -> Result<Self, SetupError> {
        for word in scopes {
            self.offered.push(scope(word.into())?);
        }
        Ok(self)
    }

    /// Whoever has the first scope has the second one too: `implies("files:write", "files:read")`.
    #[must_use]
    pub fn implies(mut self, wide: impl Into<String>, narrow: impl Into<String>) -> Self {
        self.implied.push((wide.into(), narrow.into()));
        self
    }

    /// Tells clients that they may bind tokens to a key (DPoP). Tokens that are bound are checked
    /// whether it is told or not.
    #[must_use]
    pub fn offer_dpop(mut self) -> Self {
        self.offers_dpop = true;
        self
    }

    /// Lets in no token that is not bound to a key (DPoP).
    #[must_use]
    pub fn require_dpop(mut self) -> Self {
        (self.offers_dpop, self.requires_dpop) = (true, true);
        self
    }

    /// Wants a nonce of its own in every proof, so that none can be made in advance.
    #[must_use]
    pub fn dpop_nonces(mut self) -> Self {
        self.dpop.wants_nonces = true;
        self
    }

    /// How long a proof is good, and how many are remembered.
    #[must_use]
    pub fn dpop_limits(mut self, limits: DpopLimits) -> Self {
        self.dpop.limits = limits;
        self
    }

    /// What people call the resource.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Where people can read about the resource.
    #[must_use]
    pub fn documentation(mut self, url: impl Into<String>) -> Self {
        self.documentation = Some(url.into());
        self
    }

    /// Checks the head of a request.
    ///
    /// # Errors
    /// What the client is told when it is not let in.
    pub async fn check(&self, request: &Parts) -> Result<Identity, Denial> {
        let (scheme, token) = self.presented(request)?;
        let mut identity = match self.verifier.verify(token).await {
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

    /// The metadata, if there is an authorization server to send clients to.
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

    /// Whether the metadata are asked for under this path: with the path of the resource, or at the
    /// root, since there is no other resource.
    pub fn is_metadata_path(&self, path: &str) -> bool {
        path.strip_prefix(WELL_KNOWN)
            .is_some_and(|rest| rest.is_empty() || rest.trim_end_matches('/') == self.path)
    }

    /// Takes the token out of a request.
    fn presented<'a>(&self, request: &'a Parts) -> Result<(Scheme, &'a str), Denial> {
        let in_query = |query: &str| query.split('&').any(|it| it.starts_with("access_token="));
        if request.uri.query().is_some_and(in_query) {
            return Err(self.bad_request("a token must not be sent in the URL"));
        }
        let mut values = request.headers.get_all(AUTHORIZATION).iter();
        let Some(value) = values.next() else { return Err(self.no_token()) };
        if values.next().is_some() {
            return Err(self.bad_request("Authorization is there more than once"));
        }
        let text = value.to_str().map_err(|_| self.bad_request("Authorization is malformed"))?;
        let (scheme, token) = text.split_once(' ').unwrap_or((text, ""));
        let scheme = match scheme {
            _ if scheme.eq_ignore_ascii_case("bearer") => Scheme::Bearer,
            _ if scheme.eq_ignore_ascii_case("dpop") => Scheme::Dpop,
            _ => return Err(self.no_token()),
        };
        let token = token.trim_matches(' ');
        if !is_token(token) {
            return Err(self.bad_request("Authorization holds no token"));
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
                // Only what is the same URL: nothing below or above it.
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
        // Proxies, and frameworks that nest a service, may have changed the path on its way here.
        let here = format!("{}{}", self.origin, request.uri.path());
        let urls = [here.as_str(), &self.resource];
        let subject = Subject { method: &request.method, urls, token, thumbprint };
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

    /// Adds what the scopes of a token include, and what those include.
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

/// Where metadata are, in front of the path of the resource.
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
        (None, _) => Err("a proof is needed in the header DPoP"),
        (Some(_), Some(_)) => Err("the header DPoP is there more than once"),
        (Some(value), None) => value.to_str().map_err(|_| "the proof is malformed"),
    }
}

/// The characters of a token (RFC 6750, section 2.1).
fn is_token(text: &str) -> bool {
    let body = text.trim_end_matches('=');
    !body.is_empty()
        && body.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~+/".contains(&byte))
}

/// With or without the slash of an empty path.
fn is_same_resource(one: &str, other: &str) -> bool {
    !one.contains(['?', '#']) && is_same(one.trim_end_matches('/'), other.trim_end_matches('/'))
}
