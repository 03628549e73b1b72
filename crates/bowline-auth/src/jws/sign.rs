//! Private keys, and signing JSON Web Tokens.

use std::fmt;

use bowline_proto::base64::{STANDARD, URL};
use ring::digest::{SHA256, digest};
use ring::rand::SystemRandom;
use ring::rsa::PublicKeyComponents;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair,
    KeyPair, RSA_PKCS1_SHA256, RsaKeyPair,
};
use serde_json::{Map, Value};

/// A private key: P-256 (ES256), P-384 (ES384), Ed25519 (`EdDSA`) or RSA (RS256).
pub struct SigningKey {
    pair: Pair,
    id: Option<String>,
}

enum Pair {
    P256(EcdsaKeyPair),
    P384(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
    Rsa(Box<RsaKeyPair>),
}

/// Why a private key cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0}; expected an unencrypted PKCS#8 private key: P-256, P-384, Ed25519, or RSA of 2048 bits or more"
)]
pub struct KeyError(&'static str);

impl SigningKey {
    /// Parses a key from PEM: `PRIVATE KEY` (PKCS#8) or `RSA PRIVATE KEY`.
    ///
    /// # Errors
    /// When it is not PEM, or the key is of an unsupported type, encrypted, or damaged.
    pub fn from_pem(pem: &str) -> Result<Self, KeyError> {
        let (_, rest) = pem.split_once("-----BEGIN ").ok_or(KeyError("not PEM"))?;
        let (label, rest) = rest.split_once("-----").ok_or(KeyError("PEM without a label"))?;
        let end = format!("-----END {label}-----");
        let (body, _) = rest.split_once(end.as_str()).ok_or(KeyError("PEM without an end"))?;
        let body: String = body.chars().filter(|c| !c.is_ascii_whitespace()).collect();
        let der = STANDARD.decode(&body).ok_or(KeyError("PEM that is not base64"))?;
        match label {
            "PRIVATE KEY" => Self::from_pkcs8(&der),
            "RSA PRIVATE KEY" => {
                let pair = RsaKeyPair::from_der(&der).map_err(|_| KeyError("a damaged RSA key"))?;
                Ok(Self::new(Pair::Rsa(Box::new(pair))))
            }
            "EC PRIVATE KEY" => Err(KeyError("an EC key that is not PKCS#8")),
            "ENCRYPTED PRIVATE KEY" => Err(KeyError("an encrypted key")),
            _ => Err(KeyError("PEM that is not a private key")),
        }
    }

    /// Parses a key from PKCS#8 in DER.
    ///
    /// # Errors
    /// When the key is of an unsupported type or damaged.
    pub fn from_pkcs8(der: &[u8]) -> Result<Self, KeyError> {
        let random = SystemRandom::new();
        let p256 = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, der, &random);
        let p384 = || EcdsaKeyPair::from_pkcs8(&ECDSA_P384_SHA384_FIXED_SIGNING, der, &random);
        let pair = p256
            .map(Pair::P256)
            .or_else(|_| p384().map(Pair::P384))
            .or_else(|_| Ed25519KeyPair::from_pkcs8_maybe_unchecked(der).map(Pair::Ed25519))
            .or_else(|_| RsaKeyPair::from_pkcs8(der).map(|pair| Pair::Rsa(Box::new(pair))));
        pair.map(Self::new).map_err(|_| KeyError("a key of an unsupported type, or a damaged one"))
    }

    /// A new P-256 key, as PKCS#8 in DER.
    ///
    /// # Panics
    /// When the operating system has no random bytes.
    pub fn generate_pkcs8() -> Vec<u8> {
        let random = SystemRandom::new();
        EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random)
            .expect("the operating system has random bytes")
            .as_ref()
            .to_vec()
    }

    fn new(pair: Pair) -> Self {
        Self { pair, id: None }
    }

    /// The same key with a name (`kid`) for the header of its signatures.
    #[must_use]
    pub fn with_id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// The algorithm, as headers name it.
    pub fn algorithm(&self) -> &'static str {
        match self.pair {
            Pair::P256(_) => "ES256",
            Pair::P384(_) => "ES384",
            Pair::Ed25519(_) => "EdDSA",
            Pair::Rsa(_) => "RS256",
        }
    }

    /// The public key as a JSON Web Key, with the members of its thumbprint in order.
    pub fn public_jwk(&self) -> Map<String, Value> {
        let point = |pair: &EcdsaKeyPair, curve: &str| {
            // Uncompressed: the byte 4, then both coordinates.
            let coordinates = &pair.public_key().as_ref()[1..];
            let (x, y) = coordinates.split_at(coordinates.len() / 2);
            vec![
                ("crv", curve.to_owned()),
                ("kty", "EC".to_owned()),
                ("x", URL.encode(x)),
                ("y", URL.encode(y)),
            ]
        };
        let members = match &self.pair {
            Pair::P256(pair) => point(pair, "P-256"),
            Pair::P384(pair) => point(pair, "P-384"),
            Pair::Ed25519(pair) => {
                let x = URL.encode(pair.public_key().as_ref());
                vec![("crv", "Ed25519".to_owned()), ("kty", "OKP".to_owned()), ("x", x)]
            }
            Pair::Rsa(pair) => {
                let key: PublicKeyComponents<Vec<u8>> = pair.public().into();
                let (e, n) = (URL.encode(&key.e), URL.encode(&key.n));
                vec![("e", e), ("kty", "RSA".to_owned()), ("n", n)]
            }
        };
        members.into_iter().map(|(name, value)| (name.to_owned(), Value::String(value))).collect()
    }

    /// The thumbprint of the public key (RFC 7638): `jkt` of tokens that are bound to it.
    pub fn thumbprint(&self) -> String {
        let jwk = Value::Object(self.public_jwk()).to_string();
        URL.encode(digest(&SHA256, jwk.as_bytes()).as_ref())
    }

    /// Signs claims. `alg` and `kid` are added at the front of the header.
    ///
    /// # Panics
    /// When the operating system has no random bytes.
    pub fn sign(&self, header: Map<String, Value>, claims: &Map<String, Value>) -> String {
        let mut full = Map::new();
        full.insert("alg".to_owned(), self.algorithm().into());
        if let Some(id) = &self.id {
            full.insert("kid".to_owned(), id.as_str().into());
        }
        full.extend(header);
        let part = |members: &Map<String, Value>| {
            let text = serde_json::to_vec(members).expect("a map of values can be serialized");
            URL.encode(&text)
        };
        let text = format!("{}.{}", part(&full), part(claims));
        let signature = self.sign_bytes(text.as_bytes());
        format!("{text}.{}", URL.encode(&signature))
    }

    fn sign_bytes(&self, bytes: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        match &self.pair {
            Pair::P256(pair) | Pair::P384(pair) => {
                let signature = pair.sign(&random, bytes);
                signature.expect("the operating system has random bytes").as_ref().to_vec()
            }
            Pair::Ed25519(pair) => pair.sign(bytes).as_ref().to_vec(),
            Pair::Rsa(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &random, bytes, &mut signature)
                    .expect("the signature is as long as the modulus");
                signature
            }
        }
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey({}, {})", self.algorithm(), self.id.as_deref().unwrap_or("no id"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ring::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};

    /// Checks a token with the public half alone.
    fn verify(jwk: &Map<String, Value>, token: &str) -> bool {
        let (text, signature) = token.rsplit_once('.').unwrap();
        let coordinate = |name: &str| URL.decode(jwk[name].as_str().unwrap()).unwrap();
        let point = [vec![4], coordinate("x"), coordinate("y")].concat();
        let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point);
        key.verify(text.as_bytes(), &URL.decode(signature).unwrap()).is_ok()
    }

    #[test]
    fn signs_what_the_public_half_confirms() {
        let der = SigningKey::generate_pkcs8();
        let key = SigningKey::from_pkcs8(&der).unwrap().with_id("k1");
        let claims: Map<_, _> = [("iss".to_owned(), "me".into())].into_iter().collect();
        let token = key.sign(Map::new(), &claims);
        assert!(verify(&key.public_jwk(), &token));
        let other = SigningKey::from_pkcs8(&SigningKey::generate_pkcs8()).unwrap();
        assert!(!verify(&other.public_jwk(), &token));
        let header = URL.decode(token.split('.').next().unwrap()).unwrap();
        assert_eq!(String::from_utf8(header).unwrap(), r#"{"alg":"ES256","kid":"k1"}"#);
        assert_ne!(key.thumbprint(), other.thumbprint());
    }

    #[test]
    fn keys_from_pem() {
        let der = SigningKey::generate_pkcs8();
        let pem = |label: &str| {
            format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", STANDARD.encode(&der))
        };
        assert_eq!(SigningKey::from_pem(&pem("PRIVATE KEY")).unwrap().algorithm(), "ES256");
        for bad in [
            "",
            "x",
            "-----BEGIN PRIVATE KEY-----",
            &pem("EC PRIVATE KEY"),
            &pem("CERTIFICATE"),
            &pem("ENCRYPTED PRIVATE KEY"),
            &pem("RSA PRIVATE KEY"),
            "-----BEGIN PRIVATE KEY-----\n!\n-----END PRIVATE KEY-----",
        ] {
            let error = SigningKey::from_pem(bad).unwrap_err().to_string();
            assert!(error.contains("PKCS#8"), "{error}");
        }
    }

    #[test]
    fn debug_shows_no_key() {
        let der = SigningKey::generate_pkcs8();
        let key = SigningKey::from_pkcs8(&der).unwrap();
        assert_eq!(format!("{key:?}"), "SigningKey(ES256, no id)");
    }
}
