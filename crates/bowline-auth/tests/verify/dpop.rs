//! Tokens that are bound to a key, and proofs of having it.

use std::sync::Arc;

use bowline_auth::verify::{Denial, DpopLimits, Guard};
use bowline_proto::base64::URL;
use http::Request;
use http::request::Parts;
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};

use crate::world::{RESOURCE, Signer, challenges, now, request, verifier, with};

struct Bound {
    guard: Arc<Guard>,
    issuer: Arc<Signer>,
    key: Arc<Signer>,
    token: String,
}

impl Bound {
    fn new(change: impl FnOnce(Guard) -> Guard) -> Self {
        let [issuer, key] = ["k", ""].map(|name| Arc::new(Signer::new(name, "ES256")));
        let guard = Arc::new(change(Guard::new(RESOURCE, verifier(&[&issuer])).unwrap()));
        let token = issuer.sign(&with(json!({"cnf": {"jkt": key.thumbprint()}})));
        Self { guard, issuer, key, token }
    }

    /// Somebody else with the same key and the same guard.
    fn of(&self, subject: &str) -> Self {
        let guard = Arc::clone(&self.guard);
        let (issuer, key) = (Arc::clone(&self.issuer), Arc::clone(&self.key));
        let claims = with(json!({"sub": subject, "cnf": {"jkt": key.thumbprint()}}));
        let token = issuer.sign(&claims);
        Self { guard, issuer, key, token }
    }

    fn claims(&self, id: &str) -> Value {
        let ath = URL.encode(digest(&SHA256, self.token.as_bytes()).as_ref());
        json!({"htm": "POST", "htu": RESOURCE, "iat": now(), "jti": id, "ath": ath})
    }

    fn proof(&self, claims: &Value) -> String {
        prove(&self.key, "dpop+jwt", claims)
    }

    fn request(&self, proofs: &[&str]) -> Parts {
        let mut request =
            Request::post("/mcp").header("authorization", format!("DPoP {}", self.token));
        for proof in proofs {
            request = request.header("dpop", *proof);
        }
        request.body(()).unwrap().into_parts().0
    }

    async fn send(&self, proof: &str) -> Result<String, Denial> {
        self.guard.check(&self.request(&[proof])).await.map(|identity| identity.subject)
    }
}

fn prove(key: &Signer, kind: &str, claims: &Value) -> String {
    let mut jwk = key.jwk();
    jwk.as_object_mut().unwrap().remove("kid");
    let header = json!({"typ": kind, "alg": key.algorithm, "jwk": jwk});
    key.sign_raw(&header.to_string(), &claims.to_string())
}

#[tokio::test]
async fn a_proof_is_good_once() {
    let bound = Bound::new(|guard| guard);
    let proof = bound.proof(&bound.claims("1"));
    assert_eq!(bound.send(&proof).await.unwrap(), "alice");
    let denial = bound.send(&proof).await.unwrap_err();
    assert_eq!(
        (denial.status.as_u16(), denial.message.as_str()),
        (401, "the proof was used before")
    );
    let challenge = challenges(&denial)[0];
    assert!(challenge.starts_with("DPoP algs=\"ES256 "), "{challenge}");
    assert!(challenge.contains(r#"error="invalid_dpop_proof""#), "{challenge}");
    // Made anew, but under the old name.
    let mut again = bound.claims("1");
    again["iat"] = json!(now() - 1);
    assert!(bound.send(&bound.proof(&again)).await.is_err());
    assert_eq!(bound.send(&bound.proof(&bound.claims("2"))).await.unwrap(), "alice");
}

#[tokio::test]
async fn proofs_that_prove_nothing() {
    let bound = Bound::new(|guard| guard);
    let changed = |changes: Value| {
        let mut claims = bound.claims("x");
        for (name, value) in changes.as_object().unwrap() {
            claims[name] = value.clone();
        }
        bound.proof(&claims)
    };
    let good = bound.claims("x");
    let cases = [
        (changed(json!({"htm": "GET"})), "the proof is for another method"),
        (changed(json!({"htm": "post"})), "the proof is for another method"),
        (changed(json!({"htu": "https://mcp.example.com/other"})), "the proof is for another URL"),
        (changed(json!({"htu": "http://mcp.example.com/mcp"})), "the proof is for another URL"),
        (changed(json!({"htu": "https://evil.example.com/mcp"})), "the proof is for another URL"),
        (changed(json!({"htu": "/mcp"})), "the proof is for another URL"),
        (changed(json!({"htu": 7})), "the proof is for another URL"),
        (changed(json!({"ath": "x"})), "the proof is for another token"),
        (changed(json!({"ath": null})), "the proof is for another token"),
        (changed(json!({"iat": now() - 302})), "the proof is too old or from the future"),
        (changed(json!({"iat": now() + 120})), "the proof is too old or from the future"),
        (changed(json!({"iat": "now"})), "the proof has no iat"),
        (changed(json!({"jti": ""})), "the proof has no jti"),
        (changed(json!({"jti": null})), "the proof has no jti"),
        (changed(json!({"jti": "x".repeat(257)})), "the proof has no jti"),
    ];
    check(&bound, cases).await;
    // None of them has used up the name that the honest proof has.
    bound.send(&bound.proof(&good)).await.unwrap();
    // Behind a proxy that changes paths it is the public URL that counts.
    let proof = changed(json!({"jti": "z"}));
    let mut request = bound.request(&[&proof]);
    request.uri = "/inside".parse().unwrap();
    bound.guard.check(&request).await.unwrap();
    // The query is not part of what is proved, and spelling does not matter.
    bound
        .send(&changed(json!({"jti": "y", "htu": "HTTPS://MCP.EXAMPLE.COM:443/mcp?x#y"})))
        .await
        .unwrap();
}

#[tokio::test]
async fn proofs_that_are_forged() {
    let bound = Bound::new(|guard| guard);
    let stranger = Signer::new("", "ES256");
    let good = bound.claims("x");
    let symmetric = {
        let header = URL.encode(br#"{"typ":"dpop+jwt","alg":"HS256"}"#);
        format!("{header}.{}.AAAA", URL.encode(good.to_string().as_bytes()))
    };
    let unsigned = symmetric.replace(
        &URL.encode(br#"{"typ":"dpop+jwt","alg":"HS256"}"#),
        &URL.encode(br#"{"typ":"dpop+jwt","alg":"none"}"#),
    );
    let forged = {
        let proof = bound.proof(&good);
        let (signed, _) = proof.rsplit_once('.').unwrap();
        format!("{signed}.{}", URL.encode(&stranger.sign_bytes(signed.as_bytes())))
    };
    let private = {
        let mut jwk = bound.key.jwk();
        jwk["d"] = json!("AAAA");
        let header = json!({"typ": "dpop+jwt", "alg": "ES256", "jwk": jwk});
        bound.key.sign_raw(&header.to_string(), &good.to_string())
    };
    let keyless = bound.key.sign_raw(r#"{"typ":"dpop+jwt","alg":"ES256"}"#, &good.to_string());
    let cases = [
        (prove(&bound.key, "jwt", &good), "the proof is not of type dpop+jwt"),
        (prove(&bound.key, "at+jwt", &good), "the proof is not of type dpop+jwt"),
        (
            prove(&stranger, "dpop+jwt", &good),
            "the proof was signed with another key than the token's",
        ),
        (forged, "the proof's signature is invalid"),
        (symmetric, "the proof's algorithm is not allowed"),
        (unsigned, "the proof's algorithm is not allowed"),
        (private, "the proof is malformed"),
        (keyless, "the proof has no key"),
        ("x".to_owned(), "the proof is malformed"),
        (bound.token.clone(), "the proof is not of type dpop+jwt"),
    ];
    check(&bound, cases).await;
}

async fn check(bound: &Bound, cases: impl IntoIterator<Item = (String, &str)>) {
    for (proof, expected) in cases {
        let denial = bound.send(&proof).await.unwrap_err();
        assert_eq!((denial.status.as_u16(), denial.message.as_str()), (401, expected));
        assert!(challenges(&denial)[0].contains(r#"error="invalid_dpop_proof""#));
    }
}

#[tokio::test]
async fn how_a_bound_token_must_be_sent() {
    let bound = Bound::new(|guard| guard);
    let bearer = request(&[&format!("Bearer {}", bound.token)]);
    let denial = bound.guard.check(&bearer).await.unwrap_err();
    assert_eq!(denial.message, "the token is bound to a key and must be sent with DPoP");
    assert!(challenges(&denial)[0].starts_with("DPoP "));
    let denial = bound.guard.check(&bound.request(&[])).await.unwrap_err();
    assert_eq!(denial.message, "the header DPoP is missing: the token needs a proof");
    let (one, two) = (bound.proof(&bound.claims("1")), bound.proof(&bound.claims("2")));
    let denial = bound.guard.check(&bound.request(&[&one, &two])).await.unwrap_err();
    assert_eq!(denial.message, "the header DPoP is repeated");

    let issuer = Signer::new("k", "ES256");
    let unbound = issuer.sign(&with(json!({})));
    let guard = Guard::new(RESOURCE, verifier(&[&issuer])).unwrap();
    let denial = guard.check(&request(&[&format!("DPoP {unbound}")])).await.unwrap_err();
    assert_eq!(denial.message, "the token is not bound to a key");
    guard.check(&request(&[&format!("Bearer {unbound}")])).await.unwrap();

    let guard = Guard::new(RESOURCE, verifier(&[&issuer])).unwrap().require_dpop();
    let denial = guard.check(&request(&[&format!("Bearer {unbound}")])).await.unwrap_err();
    assert_eq!(denial.status, 401);
    let denial = guard.check(&request(&[])).await.unwrap_err();
    let told = challenges(&denial);
    assert!(told.len() == 1 && told[0].starts_with("DPoP "), "{told:?}");
    let guard = Guard::new(RESOURCE, verifier(&[&issuer])).unwrap().offer_dpop();
    let denial = guard.check(&request(&[])).await.unwrap_err();
    let schemes: Vec<_> = challenges(&denial).iter().map(|it| &it[..4]).collect();
    assert_eq!(schemes, ["Bear", "DPoP"]);
}

#[tokio::test]
async fn nonces_are_given_out_and_grow_old() {
    let bound = Bound::new(Guard::dpop_nonces);
    let denial = bound.send(&bound.proof(&bound.claims("1"))).await.unwrap_err();
    assert!(challenges(&denial)[0].contains(r#"error="use_dpop_nonce""#));
    let nonce = denial.headers.get("dpop-nonce").unwrap().to_str().unwrap().to_owned();
    let with_nonce = |id: &str, nonce: &str| {
        let mut claims = bound.claims(id);
        claims["nonce"] = json!(nonce);
        bound.proof(&claims)
    };
    // The name was not used up by the proof that lacked a nonce.
    assert_eq!(bound.send(&with_nonce("1", &nonce)).await.unwrap(), "alice");
    let mut other = nonce.clone().into_bytes();
    other[20] = if other[20] == b'A' { b'B' } else { b'A' };
    let old = "AAAAAAAAAAA".to_owned() + &nonce[11..];
    for wrong in [String::from_utf8(other).unwrap(), old, String::new(), "x".into()] {
        let denial = bound.send(&with_nonce("2", &wrong)).await.unwrap_err();
        assert!(challenges(&denial)[0].contains(r#"error="use_dpop_nonce""#), "{wrong}");
    }
    // That of another server, or of this one before it started anew.
    let another = Bound::new(Guard::dpop_nonces);
    let denial = another.send(&another.proof(&another.claims("1"))).await.unwrap_err();
    let foreign = denial.headers.get("dpop-nonce").unwrap().to_str().unwrap();
    assert!(bound.send(&with_nonce("3", foreign)).await.is_err());
}

#[tokio::test]
async fn the_memory_for_proofs_is_bounded() {
    let limits = DpopLimits { remembered: 2, ..DpopLimits::default() };
    let bound = Bound::new(|guard| guard.dpop_limits(limits));
    for id in ["1", "2"] {
        bound.send(&bound.proof(&bound.claims(id))).await.unwrap();
    }
    let denial = bound.send(&bound.proof(&bound.claims("3"))).await.unwrap_err();
    assert_eq!(denial.status, 503);
    // Full is no reason to forget.
    assert_eq!(bound.send(&bound.proof(&bound.claims("1"))).await.unwrap_err().status, 401);
}

#[tokio::test]
async fn one_principal_cannot_use_up_the_memory_for_proofs() {
    let limits = DpopLimits { remembered_per_principal: 2, ..DpopLimits::default() };
    let bound = Bound::new(|guard| guard.dpop_limits(limits));
    for id in ["1", "2"] {
        bound.send(&bound.proof(&bound.claims(id))).await.unwrap();
    }
    assert_eq!(bound.send(&bound.proof(&bound.claims("3"))).await.unwrap_err().status, 503);
    let other = bound.of("bob");
    assert_eq!(other.send(&other.proof(&other.claims("3"))).await.unwrap(), "bob");
}
