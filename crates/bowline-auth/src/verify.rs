//! Verifies tokens for servers.
//!
//! A [`Guard`] protects a resource: it takes the token from a request, has it verified by an
//! implementation of [`Verify`], checks the token's audience and scopes, and rejects requests in
//! the terms that OAuth clients understand. Verifiers: [`JwtVerifier`], [`Introspection`],
//! [`StaticTokens`], or any function.
//!
//! A token is for this resource only. It is not kept, and handlers cannot see it: they see the
//! [`Identity`], so that a token is never passed on upstream.

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
mod replay;
mod statics;

use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;

pub use self::challenge::Denial;
pub use self::dpop::DpopLimits;
pub use self::guard::Guard;
pub use self::identity::Identity;
pub use self::introspect::{Introspection, IntrospectionLimits};
pub use self::jwt::JwtVerifier;
pub use self::keys::KeyLimits;
pub use self::location::SetupError;
pub use self::metadata::ResourceMetadata;
pub use self::statics::StaticTokens;
use crate::jws::JwsError;
pub use bowline_web::Cause;

/// Verifies tokens.
///
/// Implemented by the verifiers here, and by functions: for keys in a database, for a service of
/// one's own.
///
/// ```
/// use bowline_auth::verify::{Guard, Identity, VerifyError};
///
/// # async fn find_user(key: &str) -> Result<Option<String>, std::io::Error> { Ok(None) }
/// # fn main() -> Result<(), bowline_auth::verify::SetupError> {
/// let verify = |token: String| async move {
///     match find_user(&token).await {
///         Ok(Some(user)) => Ok(Identity::new(user).scope("notes:read")),
///         Ok(None) => Err(VerifyError::Invalid("the key is unknown or was withdrawn")),
///         Err(error) => Err(VerifyError::unavailable(error)),
///     }
/// };
/// let guard = Guard::new("https://mcp.example.com/mcp", verify)?;
/// # Ok(())
/// # }
/// ```
pub trait Verify: Send + Sync {
    /// Returns the identity of the token's holder.
    fn verify<'a>(&'a self, token: &'a str) -> Verifying<'a>;

    /// The same for a token that came from this address or network, if that is known. A verifier
    /// that is limited in what it can do at a time tells callers apart by it.
    fn verify_from<'a>(&'a self, token: &'a str, _from: Option<IpAddr>) -> Verifying<'a> {
        self.verify(token)
    }

    /// The authorization servers whose tokens are accepted, for the metadata.
    fn issuers(&self) -> Vec<String> {
        Vec::new()
    }
}

/// What [`Verify::verify`] returns.
pub type Verifying<'a> = Pin<Box<dyn Future<Output = Result<Identity, VerifyError>> + Send + 'a>>;

/// Why a token is not accepted.
#[derive(Clone, thiserror::Error)]
#[non_exhaustive]
pub enum VerifyError {
    /// The token is invalid. The client should get another.
    #[error("{0}")]
    Invalid(&'static str),
    /// The token could not be verified. The client should try again with it.
    #[error("the token cannot be verified right now")]
    Unavailable(#[source] Cause),
}

bowline_proto::debug_as_sentence!(VerifyError);

impl VerifyError {
    /// The token could not be verified, because of this error.
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

    fn verify_from<'a>(&'a self, token: &'a str, from: Option<IpAddr>) -> Verifying<'a> {
        (**self).verify_from(token, from)
    }

    fn issuers(&self) -> Vec<String> {
        (**self).issuers()
    }
}
