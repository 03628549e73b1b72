//! Proofs that the sender of a token has the key it is bound to (RFC 9449).

use std::time::Duration;

use bowline_proto::base64::URL;
use http::Method;
use ring::digest::{SHA256, digest};
use ring::hmac::{self, HMAC_SHA256, Key};
use ring::rand::SystemRandom;
use serde_json::{Map, Value};

use super::location::is_same;
use super::replay::{Proof, UseError, Used};
use crate::clock;
use crate::jws::{Algorithm, Compact, JwsError};

/// How long a proof is valid, and how many are remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DpopLimits {
    /// How old a proof may be: 5 minutes.
    pub max_age: Duration,
    /// How far in the future its date may be, because clocks differ: a minute.
    pub clock_skew: Duration,
    /// How long a nonce is valid: 5 minutes.
    pub nonce_age: Duration,
    /// How many proofs are remembered, so that none is valid twice: 100,000, in some 10 MB. While
    /// that many are still valid, further ones are rejected with 503.
    pub remembered: usize,
    /// How many of them may be those of one principal: 10,000, which is some thirty requests a
    /// second. Further ones are rejected with 503; others are not affected.
    pub remembered_per_principal: usize,
}

impl Default for DpopLimits {
    fn default() -> Self {
        Self {
            max_age: Duration::from_secs(300),
            clock_skew: Duration::from_secs(60),
            nonce_age: Duration::from_secs(300),
            remembered: 100_000,
            remembered_per_principal: 10_000,
        }
    }
}

/// Checks proofs.
pub(super) struct Dpop {
    pub(super) limits: DpopLimits,
    pub(super) wants_nonces: bool,
    /// Signs nonces, so that they need not be remembered.
    pub(super) nonce_key: Key,
    used: Used,
}

/// What a proof must match.
pub(super) struct Subject<'a> {
    pub(super) method: &'a Method,
    /// The URLs under which the request may have been sent.
    pub(super) urls: [&'a str; 2],
    pub(super) token: &'a str,
    /// The principal that the token stands for.
    pub(super) principal: &'a str,
    /// The thumbprint of the key that the token is bound to.
    pub(super) thumbprint: &'a str,
}

/// Why a proof is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProofError {
    Invalid(&'static str),
    /// It has no nonce of ours, or an old one.
    WantsNonce,
    /// Too many proofs are remembered already.
    Full,
}

const MAX_PROOF: usize = 8 << 10;
const MAX_ID: usize = 256;

impl Dpop {
    pub(super) fn new() -> Self {
        let key = Key::generate(HMAC_SHA256, &SystemRandom::new());
        Self {
            limits: DpopLimits::default(),
            wants_nonces: false,
            nonce_key: key.expect("the system has random bytes"),
            used: Used::new(),
        }
    }

    pub(super) fn check(&self, proof: &str, subject: &Subject<'_>) -> Result<(), ProofError> {
        self.check_at(proof, subject, clock::unix_seconds())
    }

    fn check_at(&self, proof: &str, subject: &Subject<'_>, now: u64) -> Result<(), ProofError> {
        let invalid = ProofError::Invalid;
        let unreadable = |error: JwsError| match error {
            JwsError::Algorithm => invalid("the proof's algorithm is not allowed"),
            JwsError::Signature => invalid("the proof's signature is invalid"),
            _ => invalid("the proof is malformed"),
        };
        let compact = Compact::parse(proof, MAX_PROOF).map_err(unreadable)?;
        let header = compact.header();
        if header.kind.as_deref() != Some("dpop+jwt") {
            return Err(invalid("the proof is not of type dpop+jwt"));
        }
        let key = header.key.as_ref().ok_or_else(|| invalid("the proof has no key"))?;
        if key.thumbprint() != subject.thumbprint {
            return Err(invalid("the proof was signed with another key than the token's"));
        }
        let claims = compact.verify([key]).map_err(unreadable)?;
        check_claims(&claims, subject)?;
        let made = claims
            .get("iat")
            .and_then(Value::as_u64)
            .ok_or_else(|| invalid("the proof has no iat"))?;
        let end = made.saturating_add(self.limits.max_age.as_secs());
        if now > end || made > now.saturating_add(self.limits.clock_skew.as_secs()) {
            return Err(invalid("the proof is too old or from the future"));
        }
        if self.wants_nonces && !text(&claims, "nonce").is_some_and(|it| self.is_nonce(it, now)) {
            return Err(ProofError::WantsNonce);
        }
        let id = text(&claims, "jti").filter(|id| !id.is_empty() && id.len() <= MAX_ID);
        let id = id.ok_or_else(|| invalid("the proof has no jti"))?;
        let (principal, key) = (subject.principal, subject.thumbprint);
        let DpopLimits { remembered, remembered_per_principal, .. } = self.limits;
        let proof = Proof { principal, key, id, now, end };
        match self.used.insert(&proof, remembered, remembered_per_principal) {
            Ok(()) => Ok(()),
            Err(UseError::Again) => Err(invalid("the proof was used before")),
            Err(UseError::Full) => Err(ProofError::Full),
        }
    }

    /// A nonce for the next proof.
    pub(super) fn nonce(&self) -> String {
        self.nonce_at(clock::unix_seconds())
    }

    fn nonce_at(&self, now: u64) -> String {
        let time = now.to_be_bytes();
        let tag = hmac::sign(&self.nonce_key, &time);
        URL.encode(&[&time, tag.as_ref()].concat())
    }

    fn is_nonce(&self, nonce: &str, now: u64) -> bool {
        let Some(bytes) = URL.decode(nonce) else { return false };
        let Some((time, tag)) = bytes.split_first_chunk::<8>() else { return false };
        let made = u64::from_be_bytes(*time);
        let end = made.saturating_add(self.limits.nonce_age.as_secs());
        hmac::verify(&self.nonce_key, time, tag).is_ok() && now <= end
    }
}

fn check_claims(claims: &Map<String, Value>, subject: &Subject<'_>) -> Result<(), ProofError> {
    if text(claims, "htm") != Some(subject.method.as_str()) {
        return Err(ProofError::Invalid("the proof is for another method"));
    }
    if !text(claims, "htu").is_some_and(|url| subject.urls.iter().any(|it| is_same(url, it))) {
        return Err(ProofError::Invalid("the proof is for another URL"));
    }
    let token = URL.encode(digest(&SHA256, subject.token.as_bytes()).as_ref());
    if text(claims, "ath") != Some(token.as_str()) {
        return Err(ProofError::Invalid("the proof is for another token"));
    }
    Ok(())
}

fn text<'a>(claims: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    claims.get(name).and_then(Value::as_str)
}

/// The names of the algorithms that proofs may be signed with.
pub(super) fn algorithms() -> Vec<&'static str> {
    Algorithm::ALL.iter().map(|algorithm| algorithm.as_str()).collect()
}
