//! Unguessable values: PKCE verifiers (RFC 7636), states, ids of proofs.

use bowline_proto::base64::URL;
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom, SystemRandom};

use super::secret::Secret;

/// A verifier and its challenge, method S256.
#[derive(Debug)]
pub(super) struct Pkce {
    pub(super) verifier: Secret,
    pub(super) challenge: String,
}

impl Pkce {
    pub(super) fn new() -> Self {
        Self::of(&unguessable())
    }

    fn of(verifier: &str) -> Self {
        let challenge = URL.encode(digest(&SHA256, verifier.as_bytes()).as_ref());
        Self { verifier: Secret::new(verifier), challenge }
    }
}

/// 256 random bits, as 43 characters that never need escaping.
///
/// # Panics
/// When the operating system has no random bytes.
pub(super) fn unguessable() -> String {
    let mut bytes = [0; 32];
    SystemRandom::new().fill(&mut bytes).expect("the operating system has random bytes");
    URL.encode(&bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 7636, appendix B.
    #[test]
    fn challenge_of_the_specification() {
        let pkce = Pkce::of("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk");
        assert_eq!(pkce.challenge, "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
    }

    #[test]
    fn no_word_comes_twice() {
        let words: std::collections::HashSet<_> = (0..100).map(|_| unguessable()).collect();
        assert_eq!(words.len(), 100);
        assert!(words.iter().all(|word| word.len() == 43));
    }
}
