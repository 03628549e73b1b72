//! Tokens that were agreed on in advance.

use std::fmt;

use ring::hmac::{self, HMAC_SHA256, Key};
use ring::rand::SystemRandom;

use super::{Identity, Verify, VerifyError, Verifying};

/// Compares tokens with a list, in constant time.
///
/// For scripts and for machine-to-machine use: such tokens do not expire, and clients cannot get
/// one automatically.
pub struct StaticTokens {
    key: Key,
    /// Keyed hashes of the tokens, which are not kept.
    tokens: Vec<(hmac::Tag, Identity)>,
}

impl StaticTokens {
    /// An empty list.
    ///
    /// # Panics
    /// When the system has no random bytes.
    #[must_use]
    pub fn new() -> Self {
        let key = Key::generate(HMAC_SHA256, &SystemRandom::new());
        Self { key: key.expect("the system has random bytes"), tokens: Vec::new() }
    }

    /// Adds a token and the identity of its holder.
    #[must_use]
    pub fn token(mut self, token: &str, identity: Identity) -> Self {
        self.tokens.push((hmac::sign(&self.key, token.as_bytes()), identity));
        self
    }

    /// Compares all tokens, so that the time does not depend on the match.
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
        Box::pin(std::future::ready(found.ok_or(VerifyError::Invalid("the token is unknown"))))
    }
}

impl fmt::Debug for StaticTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let identities: Vec<_> = self.tokens.iter().map(|(_, identity)| identity).collect();
        f.debug_struct("StaticTokens").field("identities", &identities).finish_non_exhaustive()
    }
}
