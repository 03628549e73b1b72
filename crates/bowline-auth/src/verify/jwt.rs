//! Tokens signed by their issuer (RFC 7519, RFC 9068).

use std::sync::Arc;
use std::time::Duration;

use bowline_web::Web;

use super::claims::{self, Now};
use super::keys::{KeyLimits, KeySource, Keys};
use super::location::{SetupError, trusted};
use super::{Identity, Verify, VerifyError, Verifying};
use crate::clock;
use crate::jws::{Algorithm, Compact, JwkSet, JwsError};

/// Verifies tokens that one issuer signs. Its keys are discovered, and followed when they rotate.
///
/// ```no_run
/// use bowline_auth::verify::{Guard, JwtVerifier};
///
/// # fn main() -> Result<(), bowline_auth::verify::SetupError> {
/// let tokens = JwtVerifier::new("https://login.example.com")?;
/// let guard = Guard::new("https://mcp.example.com/mcp", tokens)?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct JwtVerifier {
    issuer: String,
    keys: Keys,
    algorithms: Vec<Algorithm>,
    skew: Duration,
    max_length: usize,
}

impl JwtVerifier {
    /// Verifies tokens of this issuer, written exactly as in their claim `iss`.
    ///
    /// # Errors
    /// When it is not an `https` URL (or `http` on this machine).
    pub fn new(issuer: &str) -> Result<Self, SetupError> {
        trusted(issuer)?;
        let source = KeySource::Issuer(issuer.to_owned());
        Ok(Self {
            issuer: issuer.to_owned(),
            keys: Keys::new(source, Web::builder().build()?, KeyLimits::default()),
            algorithms: Algorithm::ALL.to_vec(),
            skew: Duration::from_secs(60),
            max_length: 16 << 10,
        })
    }

    /// Fetches the keys from this URL, whatever the issuer's metadata say.
    ///
    /// # Errors
    /// When it is not an `https` URL (or `http` on this machine).
    pub fn keys_at(self, url: &str) -> Result<Self, SetupError> {
        let source = KeySource::At(trusted(url)?);
        Ok(Self { keys: Keys::new(source, self.keys.web().clone(), self.keys.limits()), ..self })
    }

    /// Uses these keys, and does not fetch any.
    #[must_use]
    pub fn keys(self, keys: JwkSet) -> Self {
        let source = KeySource::Given(Arc::new(keys));
        Self { keys: Keys::new(source, self.keys.web().clone(), self.keys.limits()), ..self }
    }

    /// Another HTTP client, with other certificates or another proxy.
    #[must_use]
    pub fn web(self, web: Web) -> Self {
        Self { keys: Keys::new(self.keys.source().clone(), web, self.keys.limits()), ..self }
    }

    /// How long keys are valid, and how often they are fetched.
    #[must_use]
    pub fn key_limits(self, limits: KeyLimits) -> Self {
        let (source, web) = (self.keys.source().clone(), self.keys.web().clone());
        Self { keys: Keys::new(source, web, limits), ..self }
    }

    /// Allows only these algorithms.
    #[must_use]
    pub fn algorithms(mut self, algorithms: impl IntoIterator<Item = Algorithm>) -> Self {
        self.algorithms = algorithms.into_iter().collect();
        self
    }

    /// How far the issuer's clock and ours may differ: a minute.
    #[must_use]
    pub fn clock_skew(mut self, skew: Duration) -> Self {
        self.skew = skew;
        self
    }

    /// The longest token, in bytes: 16 KiB.
    #[must_use]
    pub fn max_length(mut self, bytes: usize) -> Self {
        self.max_length = bytes;
        self
    }

    async fn check(&self, token: &str) -> Result<Identity, VerifyError> {
        let compact = Compact::parse(token, self.max_length)?;
        let header = compact.header();
        if !self.algorithms.contains(&header.algorithm) {
            return Err(JwsError::Algorithm.into());
        }
        // Proofs, assertions and logout tokens are signed with the same keys and must be rejected.
        if !matches!(header.kind.as_deref(), None | Some("at+jwt" | "jwt")) {
            return Err(VerifyError::Invalid("the token is not an access token"));
        }
        let claims = self.verified(&compact).await?;
        if claims::text(&claims, "iss")? != Some(&self.issuer) {
            return Err(VerifyError::Invalid("the token is from another issuer"));
        }
        if !claims.contains_key("exp") {
            return Err(VerifyError::Invalid("the token never expires"));
        }
        let now = Now { seconds: clock::unix_seconds(), skew: self.skew.as_secs() };
        claims::read(claims, now)
    }

    async fn verified(
        &self,
        compact: &Compact<'_>,
    ) -> Result<serde_json::Map<String, serde_json::Value>, VerifyError> {
        let header = compact.header();
        let verify = |keys: &JwkSet| {
            compact.verify(keys.candidates(header.kid.as_deref(), header.algorithm))
        };
        let keys = self.keys.current().await?;
        let error = match verify(&keys) {
            Ok(claims) => return Ok(claims),
            Err(error) => error,
        };
        // The key may be new, or an old one may have changed under its name.
        match (error, self.keys.newer(&keys).await) {
            (JwsError::UnknownKey | JwsError::Signature, Some(newer)) => Ok(verify(&newer)?),
            (error, _) => Err(error.into()),
        }
    }
}

impl Verify for JwtVerifier {
    fn verify<'a>(&'a self, token: &'a str) -> Verifying<'a> {
        Box::pin(self.check(token))
    }

    fn issuers(&self) -> Vec<String> {
        vec![self.issuer.clone()]
    }
}
