//! Tokens that were agreed upon beforehand.

use std::fmt;

use ring::hmac::{self, HMAC_SHA256, Key};
use ring::rand::SystemRandom;

use super::{Identity, Verify, VerifyError, Verifying};

/// Checks tokens against a list, in a time that says nothing about them.
///
/// For scripts and for machines among themselves: such tokens do not expire, and no client can get
/// one by itself.
pub struct StaticTokens {
    key: Key,
    /// The tokens are not kept, only what they come to under the key.
    tokens: Vec<(hmac::Tag, Identity)>,
}

impl StaticTokens {
    /// No tokens.
    ///
    /// # Panics
    /// When the system has no randomness to give, without which nothing here is safe.
    #[must_use]
    pub fn new() -> Self {
        let key = Key::generate(HMAC_SHA256, &SystemRandom::new());
        Self { key: key.expect("the system gives random bytes"), tokens: Vec::new() }
    }

    /// One more token, and whose it is.
    #[must_use]
    pub fn token(mut self, token: &str, identity: Identity) -> Self {
        self.tokens.push((hmac::sign(&self.key, token.as_bytes()), identity));
        self
    }

    /// Looks at all of them, whichever it is.
    fn find(&self, token: &str) -> Option<&Identity> {
        let mut found = None;
        for (tag, identity) in &self.tokens {
            if hmac::verify(&self.key, token.as_bytes(), tag.as_ref()).is_ok() {
                found = Some(identity);
            }
        }
        found
    }
}

impl Default for StaticTokens {
    fn default() -> Self {
        Self::new()
    }
}

impl Verify for StaticTokens {
    fn verify<'a>(&'a self, token: &'a str) -> Verifying<'a> {
        let found = self.find(token).cloned();
        Box::pin(std::future::ready(found.ok_or(VerifyError::Invalid("the token is not known"))))
    }
}

impl fmt::Debug for StaticTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let identities: Vec<_> = self.tokens.iter().map(|(_, identity)| identity).collect();
        f.debug_struct("StaticTokens").field("identities", &identities).finish_non_exhaustive()
    }
}
