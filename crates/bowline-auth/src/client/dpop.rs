//! DPoP (RFC 9449): each request carries a proof that its sender has the token's key.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bowline_proto::base64::URL;
use http::header::{HeaderName, HeaderValue};
use http::{HeaderMap, Method, Uri};
use ring::digest::{SHA256, digest};
use serde_json::{Map, Value, json};

use super::pkce::unguessable;
use super::secret::Secret;
use crate::clock::unix_seconds;
use crate::jws::{KeyError, SigningKey};

/// The header with the proof.
pub(super) const DPOP: HeaderName = HeaderName::from_static("dpop");
const DPOP_NONCE: HeaderName = HeaderName::from_static("dpop-nonce");

/// When tokens are bound to a key.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Dpop {
    /// When the MCP server asks for it.
    #[default]
    WhenAsked,
    /// Always: a token that is not bound is rejected.
    Always,
    /// Never.
    Never,
}

/// The key of one issuer's tokens.
#[derive(Clone)]
pub(super) struct ProofKey {
    key: Arc<SigningKey>,
    pkcs8: Secret,
}

/// What a proof is for.
#[derive(Debug)]
pub(super) struct Occasion<'a> {
    pub(super) method: &'a Method,
    pub(super) uri: &'a Uri,
    pub(super) token: Option<&'a Secret>,
    pub(super) nonce: Option<&'a str>,
}

impl ProofKey {
    pub(super) fn generate() -> Self {
        let der = SigningKey::generate_pkcs8();
        Self::new(&der, Secret::new(URL.encode(&der))).expect("a key that was just generated")
    }

    /// Parses what [`stored`](Self::stored) returned.
    pub(super) fn from_stored(stored: Secret) -> Option<Self> {
        let der = URL.decode(stored.expose())?;
        Self::new(&der, stored).ok()
    }

    fn new(der: &[u8], pkcs8: Secret) -> Result<Self, KeyError> {
        Ok(Self { key: Arc::new(SigningKey::from_pkcs8(der)?), pkcs8 })
    }

    pub(super) fn stored(&self) -> &Secret {
        &self.pkcs8
    }

    /// A new proof, valid for one request.
    pub(super) fn prove(&self, occasion: &Occasion<'_>) -> HeaderValue {
        let header = json!({"typ": "dpop+jwt", "jwk": self.key.public_jwk()});
        let mut claims = json!({
            "jti": unguessable(),
            "htm": occasion.method.as_str(),
            "htu": without_query(occasion.uri),
            "iat": unix_seconds(),
        });
        if let Some(token) = occasion.token {
            let hash = digest(&SHA256, token.expose().as_bytes());
            claims["ath"] = URL.encode(hash.as_ref()).into();
        }
        if let Some(nonce) = occasion.nonce {
            claims["nonce"] = nonce.into();
        }
        let proof = self.key.sign(members(header), &members(claims));
        HeaderValue::try_from(proof).expect("a token is ASCII")
    }
}

fn members(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

fn without_query(uri: &Uri) -> String {
    let text = uri.to_string();
    text.split(['?', '#']).next().unwrap_or_default().to_owned()
}

impl fmt::Debug for ProofKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProofKey(…)")
    }
}

/// The nonces of servers, by the resource or token endpoint they are for.
///
/// A nonce has a depth: how many rejections in a row led to it. That bounds the retries of each
/// request, however many are in flight.
#[derive(Debug, Default)]
pub(super) struct Nonces(Mutex<HashMap<String, VecDeque<Nonce>>>);

#[derive(Debug)]
struct Nonce {
    value: String,
    depth: u32,
}

/// How often in a row a server may ask for another nonce.
const MAX_DEPTH: u32 = 2;
/// The most endpoints that nonces are kept for, and the most of each: old ones may still be in
/// flight.
const MAX_ENDPOINTS: usize = 64;
const MAX_NONCES: usize = 64;

impl Nonces {
    /// The newest.
    pub(super) fn of(&self, endpoint: &str) -> Option<String> {
        self.lock().get(endpoint)?.back().map(|nonce| nonce.value.clone())
    }

    /// Handles the response to a request with this proof. Returns whether the request should be
    /// sent again, because it was rejected for lack of a nonce that is now known.
    pub(super) fn handle(
        &self,
        endpoint: &str,
        proof: Option<&HeaderValue>,
        headers: &HeaderMap,
        is_rejected: bool,
    ) -> bool {
        let sent = nonce_in(proof);
        let mut all = self.lock();
        if all.len() >= MAX_ENDPOINTS && !all.contains_key(endpoint) {
            all.clear();
        }
        let nonces = all.entry(endpoint.to_owned()).or_default();
        let known = nonces.iter_mut().find(|nonce| Some(&nonce.value) == sent.as_ref());
        let depth = match known {
            Some(known) if !is_rejected => {
                known.depth = 0;
                0
            }
            Some(known) => known.depth + 1,
            None => u32::from(is_rejected),
        };
        let value = headers.get(DPOP_NONCE).and_then(|value| value.to_str().ok());
        let Some(value) = value.filter(|value| !value.is_empty()) else {
            return false;
        };
        nonces.retain(|nonce| nonce.value != value);
        if nonces.len() >= MAX_NONCES {
            nonces.pop_front();
        }
        nonces.push_back(Nonce { value: value.to_owned(), depth });
        is_rejected && depth <= MAX_DEPTH
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, VecDeque<Nonce>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn nonce_in(proof: Option<&HeaderValue>) -> Option<String> {
    let claims = proof?.to_str().ok()?.split('.').nth(1)?;
    let claims: Value = serde_json::from_slice(&URL.decode(claims)?).ok()?;
    Some(claims.get("nonce")?.as_str()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(proof: &HeaderValue, index: usize) -> Value {
        let part = proof.to_str().unwrap().split('.').nth(index).unwrap().to_owned();
        serde_json::from_slice(&URL.decode(&part).unwrap()).unwrap()
    }

    #[test]
    fn proofs() {
        let key = ProofKey::generate();
        let uri: Uri = "https://a.example:8/mcp?x=y".parse().unwrap();
        let token = Secret::new("t");
        let occasion =
            Occasion { method: &Method::POST, uri: &uri, token: Some(&token), nonce: Some("n") };
        let (one, two) = (key.prove(&occasion), key.prove(&occasion));
        assert_eq!(part(&one, 0)["typ"], "dpop+jwt");
        assert_eq!(part(&one, 0)["jwk"]["kty"], "EC");
        assert_eq!(part(&one, 0)["jwk"].get("d"), None);
        let claims = part(&one, 1);
        assert_eq!(claims["htm"], "POST");
        assert_eq!(claims["htu"], "https://a.example:8/mcp");
        assert_eq!(claims["nonce"], "n");
        assert_eq!(claims["ath"], "47mKTaMaEn1L3m5DAz9muidMqw636xxw7EFAK_YnPdg");
        assert_ne!(claims["jti"], part(&two, 1)["jti"]);
        assert_eq!(nonce_in(Some(&one)).as_deref(), Some("n"));
    }

    #[test]
    fn keys_survive_the_store() {
        let key = ProofKey::generate();
        let again = ProofKey::from_stored(key.stored().clone()).unwrap();
        assert_eq!(key.key.thumbprint(), again.key.thumbprint());
        assert!(ProofKey::from_stored(Secret::new("junk!")).is_none());
        assert_eq!(format!("{key:?}"), "ProofKey(…)");
    }

    #[test]
    fn nonces_are_followed_but_not_for_ever() {
        let (key, nonces) = (ProofKey::generate(), Nonces::default());
        let headers = |value: &str| HeaderMap::from_iter([(DPOP_NONCE, value.parse().unwrap())]);
        let handle = |sent: Option<&str>, given: &str, is_refused| {
            let uri = Uri::from_static("https://a/");
            let occasion = Occasion { method: &Method::GET, uri: &uri, token: None, nonce: sent };
            nonces.handle("a", Some(&key.prove(&occasion)), &headers(given), is_refused)
        };
        assert!(!nonces.handle("a", None, &HeaderMap::new(), true));
        // Three requests that were sent at once.
        assert!(handle(None, "1", true));
        assert!(handle(None, "2", true));
        assert!(handle(None, "3", true));
        // One of them goes on.
        assert!(handle(Some("1"), "4", true));
        assert!(!handle(Some("4"), "5", true));
        assert!(!handle(Some("5"), "5", false));
        assert!(handle(Some("5"), "6", true));
        // The same nonce again and again is no way out either.
        assert!(handle(Some("6"), "6", true));
        assert!(!handle(Some("6"), "6", true));
        assert_eq!(nonces.of("a").as_deref(), Some("6"));
        assert_eq!(nonces.of("b"), None);
        for n in 0..1000 {
            nonces.handle(&n.to_string(), None, &headers("x"), false);
            nonces.handle("a", None, &headers(&n.to_string()), false);
        }
        assert!(nonces.lock().len() <= MAX_ENDPOINTS);
        assert!(nonces.lock().values().all(|nonces| nonces.len() <= MAX_NONCES));
    }
}
