//! Tokens in compact form (RFC 7515): parsed, and verified before their claims can be read.

use bowline_proto::base64::URL;
use ring::signature::{self, RsaPublicKeyComponents, UnparsedPublicKey};
use serde_json::{Map, Value};

use super::jwk::{Jwk, Material};
use super::object;

/// A signature algorithm. All of them are asymmetric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Algorithm {
    /// RSA PKCS#1 v1.5 with SHA-256.
    Rs256,
    /// RSA PKCS#1 v1.5 with SHA-384.
    Rs384,
    /// RSA PKCS#1 v1.5 with SHA-512.
    Rs512,
    /// RSA PSS with SHA-256.
    Ps256,
    /// RSA PSS with SHA-384.
    Ps384,
    /// RSA PSS with SHA-512.
    Ps512,
    /// ECDSA on P-256 with SHA-256.
    Es256,
    /// ECDSA on P-384 with SHA-384.
    Es384,
    /// Ed25519.
    EdDsa,
}

impl Algorithm {
    /// All algorithms.
    pub const ALL: &[Self] = &[
        Self::Es256,
        Self::Es384,
        Self::EdDsa,
        Self::Ps256,
        Self::Ps384,
        Self::Ps512,
        Self::Rs256,
        Self::Rs384,
        Self::Rs512,
    ];

    /// The algorithm with this name, if it is supported.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        // RFC 9864 names EdDSA by its curve, of which there is only one here.
        if name == "Ed25519" {
            return Some(Self::EdDsa);
        }
        Self::ALL.iter().copied().find(|algorithm| algorithm.as_str() == name)
    }

    /// The name in headers and metadata.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Rs256 => "RS256",
            Self::Rs384 => "RS384",
            Self::Rs512 => "RS512",
            Self::Ps256 => "PS256",
            Self::Ps384 => "PS384",
            Self::Ps512 => "PS512",
            Self::Es256 => "ES256",
            Self::Es384 => "ES384",
            Self::EdDsa => "EdDSA",
        }
    }

    pub(super) fn is_rsa(self) -> bool {
        !matches!(self, Self::Es256 | Self::Es384 | Self::EdDsa)
    }

    fn is_valid(self, key: &Material, message: &[u8], signature: &[u8]) -> bool {
        let verified = match key {
            Material::Rsa { modulus, exponent } => {
                let parameters = match self {
                    Self::Rs256 => &signature::RSA_PKCS1_2048_8192_SHA256,
                    Self::Rs384 => &signature::RSA_PKCS1_2048_8192_SHA384,
                    Self::Rs512 => &signature::RSA_PKCS1_2048_8192_SHA512,
                    Self::Ps256 => &signature::RSA_PSS_2048_8192_SHA256,
                    Self::Ps384 => &signature::RSA_PSS_2048_8192_SHA384,
                    Self::Ps512 => &signature::RSA_PSS_2048_8192_SHA512,
                    Self::Es256 | Self::Es384 | Self::EdDsa => return false,
                };
                RsaPublicKeyComponents { n: modulus, e: exponent }
                    .verify(parameters, message, signature)
            }
            Material::P256(point) if self == Self::Es256 => {
                UnparsedPublicKey::new(&signature::ECDSA_P256_SHA256_FIXED, point)
                    .verify(message, signature)
            }
            Material::P384(point) if self == Self::Es384 => {
                UnparsedPublicKey::new(&signature::ECDSA_P384_SHA384_FIXED, point)
                    .verify(message, signature)
            }
            Material::Ed25519(point) if self == Self::EdDsa => {
                UnparsedPublicKey::new(&signature::ED25519, point).verify(message, signature)
            }
            _ => return false,
        };
        verified.is_ok()
    }
}

/// A token that was parsed and not yet verified.
#[derive(Debug)]
pub struct Compact<'a> {
    header: Header,
    signed: &'a str,
    payload: Vec<u8>,
    signature: Vec<u8>,
}

/// What a token claims about itself.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Header {
    /// How it claims to be signed.
    pub algorithm: Algorithm,
    /// The name of the key.
    pub kid: Option<String>,
    /// The type of token, in lower case and without `application/`.
    pub kind: Option<String>,
    /// The key itself, which proves only that the sender has it.
    pub key: Option<Jwk>,
}

/// Why a token is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.as_str())]
#[non_exhaustive]
pub enum JwsError {
    /// Longer than allowed.
    TooLong,
    /// Not three parts of base64, or not JSON where it must be.
    Malformed,
    /// Signed in a way that is not allowed.
    Algorithm,
    /// It requires an unsupported extension.
    Critical,
    /// Its key is not among those of the issuer.
    UnknownKey,
    /// It was not signed with that key, or was altered afterwards.
    Signature,
}

impl JwsError {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::TooLong => "the token is too long",
            Self::Malformed => "the token is malformed",
            Self::Algorithm => "the token's algorithm is not allowed",
            Self::Critical => "the token requires an unsupported extension",
            Self::UnknownKey => "the token's key is unknown",
            Self::Signature => "the token's signature is invalid",
        }
    }
}

impl<'a> Compact<'a> {
    /// Parses a token of at most `limit` bytes.
    ///
    /// # Errors
    /// When it is malformed, or could not be verified anyway.
    pub fn parse(token: &'a str, limit: usize) -> Result<Self, JwsError> {
        if token.len() > limit {
            return Err(JwsError::TooLong);
        }
        let (signed, signature) = token.rsplit_once('.').ok_or(JwsError::Malformed)?;
        let (header, payload) = signed.split_once('.').ok_or(JwsError::Malformed)?;
        let decoded = |part: &str| {
            URL.decode(part).filter(|bytes| !bytes.is_empty()).ok_or(JwsError::Malformed)
        };
        let header = Header::parse(&decoded(header)?)?;
        Ok(Self { header, signed, payload: decoded(payload)?, signature: decoded(signature)? })
    }

    /// What it claims about itself. Do not trust it before [`verify`](Self::verify).
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Verifies it with one of several keys, and returns its claims.
    ///
    /// # Errors
    /// When no key fits, or it was not signed with any of them.
    pub fn verify<'k>(
        &self,
        keys: impl IntoIterator<Item = &'k Jwk>,
    ) -> Result<Map<String, Value>, JwsError> {
        let mut error = JwsError::UnknownKey;
        for key in keys.into_iter().filter(|key| key.fits(self.header.algorithm)).take(MAX_TRIED) {
            let message = self.signed.as_bytes();
            if self.header.algorithm.is_valid(&key.material, message, &self.signature) {
                return object(&self.payload).ok_or(JwsError::Malformed);
            }
            error = JwsError::Signature;
        }
        Err(error)
    }
}

/// The most keys that are tried for one token. More share a name only by mistake.
const MAX_TRIED: usize = 8;

impl Header {
    fn parse(json: &[u8]) -> Result<Self, JwsError> {
        let members = object(json).ok_or(JwsError::Malformed)?;
        // Both change what is signed, which is not supported.
        if members.contains_key("crit") || members.contains_key("b64") {
            return Err(JwsError::Critical);
        }
        let text = |name: &str| match members.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.as_str())),
            Some(_) => Err(JwsError::Malformed),
        };
        let algorithm = text("alg")?.ok_or(JwsError::Malformed)?;
        let key = match members.get("jwk") {
            None => None,
            Some(Value::Object(key)) => {
                Some(Jwk::from_members(key).map_err(|_| JwsError::UnknownKey)?)
            }
            Some(_) => return Err(JwsError::Malformed),
        };
        Ok(Self {
            algorithm: Algorithm::named(algorithm).ok_or(JwsError::Algorithm)?,
            kid: text("kid")?.map(str::to_owned),
            kind: text("typ")?.map(|kind| {
                let kind = kind.to_ascii_lowercase();
                kind.strip_prefix("application/").map(str::to_owned).unwrap_or(kind)
            }),
            key,
        })
    }
}
