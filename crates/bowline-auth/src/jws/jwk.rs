//! Public keys as JSON (RFC 7517), alone and in sets.

use std::fmt;

use bowline_proto::base64::URL;
use ring::digest::{SHA256, digest};
use serde_json::{Map, Value};

use super::object;
use super::verify::Algorithm;

/// A public key for verifying signatures.
#[derive(Clone, PartialEq, Eq)]
pub struct Jwk {
    kid: Option<String>,
    algorithm: Option<String>,
    is_for_verifying: bool,
    pub(super) material: Material,
}

/// The numbers of a key.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum Material {
    Rsa {
        modulus: Vec<u8>,
        exponent: Vec<u8>,
    },
    /// An uncompressed point.
    P256(Vec<u8>),
    P384(Vec<u8>),
    Ed25519(Vec<u8>),
}

/// Why a key cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JwkError {
    /// Not a JSON object with unique members of the right types.
    #[error("the key is not a valid JSON object")]
    Form,
    /// Of an unsupported kind, such as a symmetric key.
    #[error("the key's type is not supported")]
    Kind,
    /// A number is missing, malformed, or of the wrong length.
    #[error("the key's member `{0}` is missing or invalid")]
    Member(&'static str),
    /// It contains the private key, which must not be published.
    #[error("the key is private")]
    Private,
}

impl Jwk {
    /// Parses one key.
    ///
    /// # Errors
    /// When it is not a public key of a supported type.
    pub fn parse(json: &[u8]) -> Result<Self, JwkError> {
        Self::from_members(&object(json).ok_or(JwkError::Form)?)
    }

    pub(super) fn from_members(members: &Map<String, Value>) -> Result<Self, JwkError> {
        let kind = text(members, "kty")?.ok_or(JwkError::Kind)?;
        if ["d", "p", "q", "dp", "dq", "qi", "oth", "k"].iter().any(|it| members.contains_key(*it))
        {
            return Err(if kind == "oct" { JwkError::Kind } else { JwkError::Private });
        }
        let material = match (kind, text(members, "crv")?) {
            ("RSA", _) => rsa(members)?,
            ("EC", Some("P-256")) => Material::P256(point(members, 32)?),
            ("EC", Some("P-384")) => Material::P384(point(members, 48)?),
            ("OKP", Some("Ed25519")) => Material::Ed25519(number(members, "x", 32)?),
            _ => return Err(JwkError::Kind),
        };
        let operations = match members.get("key_ops") {
            None => None,
            Some(Value::Array(all)) => Some(all.iter().any(|it| it == "verify")),
            Some(_) => return Err(JwkError::Form),
        };
        let usage = text(members, "use")?;
        Ok(Self {
            kid: text(members, "kid")?.map(str::to_owned),
            algorithm: text(members, "alg")?.map(str::to_owned),
            is_for_verifying: usage.is_none_or(|it| it == "sig") && operations.unwrap_or(true),
            material,
        })
    }

    /// Its name.
    #[must_use]
    pub fn kid(&self) -> Option<&str> {
        self.kid.as_deref()
    }

    /// Whether it may verify signatures of this algorithm.
    #[must_use]
    pub fn fits(&self, algorithm: Algorithm) -> bool {
        let kinds_agree = match &self.material {
            Material::Rsa { .. } => algorithm.is_rsa(),
            Material::P256(_) => algorithm == Algorithm::Es256,
            Material::P384(_) => algorithm == Algorithm::Es384,
            Material::Ed25519(_) => algorithm == Algorithm::EdDsa,
        };
        let named = self.algorithm.as_deref();
        kinds_agree
            && self.is_for_verifying
            && named.is_none_or(|name| Algorithm::named(name) == Some(algorithm))
    }

    /// The thumbprint of the key (RFC 7638, SHA-256).
    #[must_use]
    pub fn thumbprint(&self) -> String {
        // Members in lexical order, without spaces; their values need no escapes.
        let canonical = match &self.material {
            Material::Rsa { modulus, exponent } => {
                let (n, e) = (URL.encode(modulus), URL.encode(exponent));
                format!(r#"{{"e":"{e}","kty":"RSA","n":"{n}"}}"#)
            }
            Material::P256(point) => ec_canonical("P-256", point),
            Material::P384(point) => ec_canonical("P-384", point),
            Material::Ed25519(x) => {
                format!(r#"{{"crv":"Ed25519","kty":"OKP","x":"{}"}}"#, URL.encode(x))
            }
        };
        URL.encode(digest(&SHA256, canonical.as_bytes()).as_ref())
    }
}

/// Shows only the name: keys are long.
impl fmt::Debug for Jwk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Jwk").field("kid", &self.kid).finish_non_exhaustive()
    }
}

fn ec_canonical(curve: &str, point: &[u8]) -> String {
    let (x, y) = point[1..].split_at(point.len() / 2);
    let (x, y) = (URL.encode(x), URL.encode(y));
    format!(r#"{{"crv":"{curve}","kty":"EC","x":"{x}","y":"{y}"}}"#)
}

fn rsa(members: &Map<String, Value>) -> Result<Material, JwkError> {
    let modulus = decoded(members, "n")?;
    let exponent = decoded(members, "e")?;
    // Shorter keys can be broken; longer ones are too expensive to verify with.
    if !(256..=1024).contains(&modulus.len()) {
        return Err(JwkError::Member("n"));
    }
    if exponent.is_empty() || exponent.len() > 5 {
        return Err(JwkError::Member("e"));
    }
    Ok(Material::Rsa { modulus, exponent })
}

fn point(members: &Map<String, Value>, length: usize) -> Result<Vec<u8>, JwkError> {
    let mut point = vec![4];
    point.extend(number(members, "x", length)?);
    point.extend(number(members, "y", length)?);
    Ok(point)
}

fn number(
    members: &Map<String, Value>,
    name: &'static str,
    length: usize,
) -> Result<Vec<u8>, JwkError> {
    let bytes = match text(members, name)? {
        Some(text) => URL.decode(text),
        None => None,
    };
    bytes.filter(|bytes| bytes.len() == length).ok_or(JwkError::Member(name))
}

/// A number without leading zeros, which some issuers write.
fn decoded(members: &Map<String, Value>, name: &'static str) -> Result<Vec<u8>, JwkError> {
    let text = text(members, name)?.ok_or(JwkError::Member(name))?;
    let bytes = URL.decode(text).ok_or(JwkError::Member(name))?;
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    Ok(bytes[zeros..].to_vec())
}

fn text<'a>(members: &'a Map<String, Value>, name: &str) -> Result<Option<&'a str>, JwkError> {
    match members.get(name) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(JwkError::Form),
    }
}

/// The keys that an issuer publishes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JwkSet(Vec<Jwk>);

/// The most keys of a set that are used.
const MAX_KEYS: usize = 100;

impl JwkSet {
    /// Parses a set. Keys that cannot be used are skipped, as RFC 7517 requires.
    ///
    /// # Errors
    /// When it is not a set of keys.
    pub fn parse(json: &[u8]) -> Result<Self, JwkError> {
        let members = object(json).ok_or(JwkError::Form)?;
        let Some(Value::Array(keys)) = members.get("keys") else { return Err(JwkError::Form) };
        let keys = keys.iter().take(MAX_KEYS).filter_map(Value::as_object);
        Ok(Self(keys.filter_map(|key| Jwk::from_members(key).ok()).collect()))
    }

    /// The keys that may verify a signature of this algorithm: those with this name, or all if the
    /// signature names no key.
    pub fn candidates<'a>(
        &'a self,
        kid: Option<&'a str>,
        algorithm: Algorithm,
    ) -> impl Iterator<Item = &'a Jwk> {
        self.0
            .iter()
            .filter(move |key| kid.is_none() || key.kid() == kid)
            .filter(move |key| key.fits(algorithm))
    }
}

impl FromIterator<Jwk> for JwkSet {
    fn from_iter<I: IntoIterator<Item = Jwk>>(keys: I) -> Self {
        Self(keys.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 7638, section 3.1.
    const RSA: &str = r#"{"kty":"RSA","n":"0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw","e":"AQAB","alg":"RS256","kid":"2011-04-29"}"#;
    /// The example of RFC 8037, appendix A.2.
    const ED: &str =
        r#"{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}"#;
    /// The public half of the example of RFC 7517, appendix A.1.
    const EC: &str = r#"{"kty":"EC","crv":"P-256","x":"MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4","y":"4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM","use":"enc","kid":"1"}"#;

    fn changed(json: &str, change: &[(&str, &str)]) -> String {
        let mut value: Value = serde_json::from_str(json).unwrap();
        for (name, text) in change {
            value[name] = serde_json::from_str(text).unwrap();
        }
        value.to_string()
    }

    #[test]
    fn thumbprints_of_the_standards() {
        let print = |json: &str| Jwk::parse(json.as_bytes()).unwrap().thumbprint();
        assert_eq!(print(RSA), "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs");
        assert_eq!(print(ED), "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k");
    }

    #[test]
    fn what_a_key_is_for() {
        let fits = |json: &str, algorithm| Jwk::parse(json.as_bytes()).unwrap().fits(algorithm);
        assert!(fits(RSA, Algorithm::Rs256));
        for algorithm in [Algorithm::Ps256, Algorithm::Rs512, Algorithm::Es256, Algorithm::EdDsa] {
            assert!(!fits(RSA, algorithm), "{algorithm:?}");
        }
        assert!(fits(ED, Algorithm::EdDsa) && !fits(ED, Algorithm::Es256));
        // For encryption.
        assert!(!fits(EC, Algorithm::Es256));
        assert!(fits(&changed(EC, &[("use", r#""sig""#)]), Algorithm::Es256));
        let signs = changed(EC, &[("use", r#""sig""#), ("key_ops", r#"["sign"]"#)]);
        assert!(!fits(&signs, Algorithm::Es256));
    }

    #[test]
    fn what_is_no_key() {
        let cases: &[(String, JwkError)] = &[
            ("[]".into(), JwkError::Form),
            (r#"{"kty":1}"#.into(), JwkError::Form),
            (r#"{"kty":"EC","kty":"EC"}"#.into(), JwkError::Form),
            ("{}".into(), JwkError::Kind),
            (r#"{"kty":"oct","k":"AAAA"}"#.into(), JwkError::Kind),
            (changed(EC, &[("crv", r#""P-521""#)]), JwkError::Kind),
            (changed(EC, &[("d", r#""AAAA""#)]), JwkError::Private),
            (changed(EC, &[("x", r#""AAAA""#)]), JwkError::Member("x")),
            (changed(EC, &[("y", r#""====""#)]), JwkError::Member("y")),
            (changed(EC, &[("kid", "7")]), JwkError::Form),
            (changed(RSA, &[("n", r#""AQAB""#)]), JwkError::Member("n")),
            (changed(RSA, &[("e", r#""""#)]), JwkError::Member("e")),
            (changed(RSA, &[("e", r#""AQABAQABAQAB""#)]), JwkError::Member("e")),
            (changed(RSA, &[("p", r#""AQAB""#)]), JwkError::Private),
            (changed(ED, &[("x", r#""AQAB""#)]), JwkError::Member("x")),
        ];
        for (json, expected) in cases {
            assert_eq!(Jwk::parse(json.as_bytes()).unwrap_err(), *expected, "{json}");
        }
    }

    #[test]
    fn sets_leave_out_what_they_must() {
        let set = format!(r#"{{"keys":[{RSA},{{"kty":"new"}},7,{ED}]}}"#);
        let set = JwkSet::parse(set.as_bytes()).unwrap();
        assert_eq!(set.0.len(), 2);
        assert_eq!(set.candidates(Some("2011-04-29"), Algorithm::Rs256).count(), 1);
        assert_eq!(set.candidates(Some("other"), Algorithm::Rs256).count(), 0);
        assert_eq!(set.candidates(None, Algorithm::EdDsa).count(), 1);
        for none in ["", "[]", "{}", r#"{"keys":{}}"#, r#"{"keys":[],"keys":[]}"#] {
            assert!(JwkSet::parse(none.as_bytes()).is_err(), "{none}");
        }
    }
}
