//! Checking tokens, for servers.
//!
//! A [`Guard`] stands in front of a resource: it takes the token out of a request, has it checked
//! by whatever implements [`Verify`], checks for whom the token was issued and what it allows, and
//! says no in the words that OAuth clients understand. Verifiers: [`JwtVerifier`],
//! [`Introspection`], [`StaticTokens`], or a function of one's own.
//!
//! A token is for this resource and nobody else. It is not kept, and there is no way to get it out
//! of here again: handlers see the [`Identity`], so that nothing can be passed on upstream.

mod challenge;
mod claims;
mod dpop;
mod guard;
mod identity;
mod introspect;
mod jwt;
mod keys;
mod location;
mod metadata;
mod statics;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

pub use self::challenge::Denial;
pub use self::dpop::DpopLimits;
pub use self::guard::Guard;
pub use self::identity::Identity;
pub use self::introspect::Introspection;
pub use self::jwt::JwtVerifier;
pub use self::keys::KeyLimits;
pub use self::location::SetupError;
pub use self::metadata::ResourceMetadata;
pub use self::statics::StaticTokens;
use crate::jws::JwsError;
pub use bowline_web::Cause;

/// Checks tokens.
///
/// Implemented by the verifiers here and by functions:
/// `|token: String| async move { … Ok(Identity::new("somebody")) }`.
pub trait Verify: Send + Sync {
    /// Tells whose token it is.
    fn verify<'a>(&'a self, token: &'a str) -> Verifying<'a>;

    /// The authorization servers whose tokens are good here, to be told to clients.
    fn issuers(&self) -> Vec<String> {
        Vec::new()
    }
}

/// What [`Verify::verify`] gives.
pub type Verifying<'a> = Pin<Box<dyn Future<Output = Result<Identity, VerifyError>> + Send + 'a>>;

/// Why a token is not good.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum VerifyError {
    /// It is no good, and will not be. The client should get another.
    #[error("{0}")]
    Invalid(&'static str),
    /// It could not be checked. The client should come back with it.
    #[error("the token cannot be checked at the moment")]
    Unavailable(#[source] Cause),
}

impl VerifyError {
    /// It could not be checked, because of this.
    pub fn unavailable(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Unavailable(Arc::from(error.into()))
    }
}

impl From<JwsError> for VerifyError {
    fn from(error: JwsError) -> Self {
        Self::Invalid(error.as_str())
    }
}

impl<F, R> Verify for F
where
    F: Fn(String) -> R + Send + Sync,
    R: Future<Output = Result<Identity, VerifyError>> + Send + 'static,
{
    fn verify<'a>(&'a self, token: &'a str) -> Verifying<'a> {
        Box::pin(self(token.to_owned()))
    }
}

impl<V: Verify + ?Sized> Verify for Arc<V> {
    fn verify<'a>(&'a self, token: &'a str) -> Verifying<'a> {
        (**self).verify(token)
    }

    fn issuers(&self) -> Vec<String> {
        (**self).issuers()
    }
}
