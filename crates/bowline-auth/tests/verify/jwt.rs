//! Signed tokens: one that is good, and every way to forge one.

use bowline_auth::jws::Algorithm;
use bowline_auth::verify::{Guard, Verify, VerifyError};
use bowline_proto::base64::URL;
use ring::hmac;
use serde_json::json;

use crate::world::{RESOURCE, Signer, claims, now, present, verifier, with};

async fn refusal(verifier: &impl Verify, token: &str) -> &'static str {
    match verifier.verify(token).await {
        Err(VerifyError::Invalid(why)) => why,
        other => panic!("{token}: {other:?}"),
    }
}

#[tokio::test]
async fn every_algorithm_is_verified() {
    let names = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA"];
    for name in names {
        let signer = Signer::new("k", name);
        let guard = Guard::new(RESOURCE, verifier(&[&signer])).unwrap();
        let identity = present(&guard, &signer.sign(&claims())).await.unwrap();
        assert_eq!(identity.subject, "alice", "{name}");
        // One bit of the claims or of the signature.
        let token = signer.sign(&claims());
        let (signed, signature) = token.rsplit_once('.').unwrap();
        let mut bytes = URL.decode(signature).unwrap();
        bytes[7] ^= 1;
        let forged = format!("{signed}.{}", URL.encode(&bytes));
        assert_eq!(
            refusal(&verifier(&[&signer]), &forged).await,
            "the token's signature is invalid"
        );
        let (header, _) = signed.split_once('.').unwrap();
        let other = URL.encode(with(json!({"sub": "eve"})).to_string().as_bytes());
        let forged = format!("{header}.{other}.{signature}");
        assert_eq!(
            refusal(&verifier(&[&signer]), &forged).await,
            "the token's signature is invalid"
        );
    }
}

#[tokio::test]
async fn what_the_claims_must_say() {
    let signer = Signer::new("k", "ES256");
    let guard = Guard::new(RESOURCE, verifier(&[&signer])).unwrap();
    let cases = [
        (json!({"iss": "https://evil.example.com"}), "the token is from another issuer"),
        (json!({"iss": "https://login.example.com/"}), "the token is from another issuer"),
        (json!({"iss": null}), "the token is from another issuer"),
        (
            json!({"aud": "https://other.example.com/mcp"}),
            "the token was issued for another resource",
        ),
        (json!({"aud": "https://mcp.example.com"}), "the token was issued for another resource"),
        (
            json!({"aud": "https://mcp.example.com/mcp/x"}),
            "the token was issued for another resource",
        ),
        (
            json!({"aud": "https://mcp.example.com.evil/mcp"}),
            "the token was issued for another resource",
        ),
        (json!({"aud": []}), "the token was issued for another resource"),
        (json!({"aud": null}), "the token was issued for another resource"),
        (json!({"exp": now() - 61}), "the token has expired"),
        (json!({"exp": null}), "the token never expires"),
        (json!({"nbf": now() + 3600}), "the token is not valid yet"),
        (json!({"iat": now() + 3600}), "the token was issued in the future"),
        (json!({"exp": "never"}), "the token contains an invalid date"),
        (json!({"sub": null, "client_id": null}), "the token has no subject"),
        (json!({"cnf": {"x5t#S256": "x"}}), "the token's binding is not supported"),
    ];
    for (changes, expected) in cases {
        let denial = present(&guard, &signer.sign(&with(changes.clone()))).await.unwrap_err();
        assert_eq!((denial.status.as_u16(), denial.message.as_str()), (401, expected), "{changes}");
        let challenge = denial.headers.get("www-authenticate").unwrap().to_str().unwrap();
        assert!(challenge.starts_with(r#"Bearer error="invalid_token""#), "{challenge}");
    }
    for good in
        [json!({"aud": [RESOURCE, "x"]}), json!({"aud": "https://MCP.example.com:443/mcp/"})]
    {
        present(&guard, &signer.sign(&with(good))).await.unwrap();
    }
}

#[tokio::test]
async fn forged_headers() {
    let signer = Signer::new("k", "RS256");
    let good = claims().to_string();
    let verifier = verifier(&[&signer]);
    let cases = [
        (r#"{"alg":"none","kid":"k"}"#.to_owned(), "the token's algorithm is not allowed"),
        (r#"{"alg":"None","kid":"k"}"#.to_owned(), "the token's algorithm is not allowed"),
        (r#"{"alg":"","kid":"k"}"#.to_owned(), "the token's algorithm is not allowed"),
        (r#"{"alg":"HS256","kid":"k"}"#.to_owned(), "the token's algorithm is not allowed"),
        (r#"{"alg":"rs256","kid":"k"}"#.to_owned(), "the token's algorithm is not allowed"),
        (
            r#"{"alg":"RS256","kid":"k","crit":["x"],"x":1}"#.to_owned(),
            "the token requires an unsupported extension",
        ),
        (
            r#"{"alg":"RS256","kid":"k","crit":[]}"#.to_owned(),
            "the token requires an unsupported extension",
        ),
        (
            r#"{"alg":"RS256","kid":"k","b64":false}"#.to_owned(),
            "the token requires an unsupported extension",
        ),
        (r#"{"alg":"RS256","kid":"other"}"#.to_owned(), "the token's key is unknown"),
        (r#"{"alg":"ES256","kid":"k"}"#.to_owned(), "the token's key is unknown"),
        (r#"{"alg":"PS256","kid":"k"}"#.to_owned(), "the token's signature is invalid"),
        (r#"{"alg":"RS256","kid":7}"#.to_owned(), "the token is malformed"),
        (r#"{"alg":"RS256","alg":"RS256","kid":"k"}"#.to_owned(), "the token is malformed"),
        (r#"{"kid":"k"}"#.to_owned(), "the token is malformed"),
        ("[]".to_owned(), "the token is malformed"),
        (
            r#"{"alg":"RS256","kid":"k","typ":"dpop+jwt"}"#.to_owned(),
            "the token is not an access token",
        ),
        (
            r#"{"alg":"RS256","kid":"k","typ":"oauth-id-jag+jwt"}"#.to_owned(),
            "the token is not an access token",
        ),
        (
            r#"{"alg":"RS256","kid":"k","typ":"logout+jwt"}"#.to_owned(),
            "the token is not an access token",
        ),
    ];
    for (header, expected) in cases {
        let token = signer.sign_raw(&header, &good);
        assert_eq!(refusal(&verifier, &token).await, expected, "{header}");
    }
}

#[tokio::test]
async fn keys_that_a_token_brings_along() {
    let (signer, eve) = (Signer::new("k", "RS256"), Signer::new("k", "ES256"));
    let good = claims().to_string();
    let verifier = verifier(&[&signer]);
    // A key that the token brings along is nobody's.
    let header = format!(r#"{{"alg":"ES256","kid":"e","jwk":{}}}"#, eve.jwk());
    assert_eq!(
        refusal(&verifier, &eve.sign_raw(&header, &good)).await,
        "the token's key is unknown"
    );
    let header = r#"{"alg":"ES256","kid":"k","jku":"https://evil.example.com/keys"}"#;
    assert_eq!(
        refusal(&verifier, &eve.sign_raw(header, &good)).await,
        "the token's key is unknown"
    );
    // The public key as the secret of a symmetric algorithm.
    let public = signer.jwk().to_string();
    for secret in [public.as_bytes(), signer.jwk()["n"].as_str().unwrap().as_bytes()] {
        let head = URL.encode(br#"{"alg":"HS256","kid":"k"}"#);
        let signed = format!("{head}.{}", URL.encode(good.as_bytes()));
        let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), signed.as_bytes());
        let token = format!("{signed}.{}", URL.encode(tag.as_ref()));
        assert_eq!(refusal(&verifier, &token).await, "the token's algorithm is not allowed");
    }
}

#[tokio::test]
async fn forged_shapes() {
    let signer = Signer::new("k", "EdDSA");
    let verifier = verifier(&[&signer]);
    let token = signer.sign(&claims());
    let parts: Vec<&str> = token.split('.').collect();
    let malformed = [
        String::new(),
        "x".into(),
        "a.b".into(),
        "..".into(),
        format!("{}.{}.", parts[0], parts[1]),
        format!("{}..{}", parts[0], parts[2]),
        format!(".{}.{}", parts[1], parts[2]),
        format!("{token}."),
        format!("{token}.x"),
        format!("{token}="),
        format!("{}=.{}.{}", parts[0], parts[1], parts[2]),
        format!("{}.{}.{}", parts[0].replace('e', "+"), parts[1], parts[2]),
        signer.sign_raw(r#"{"alg":"EdDSA","kid":"k"}"#, "[]"),
        signer.sign_raw(r#"{"alg":"EdDSA","kid":"k"}"#, "not json"),
        signer.sign_raw(r#"{"alg":"EdDSA","kid":"k"}"#, r#"{"sub":"a","sub":"b"}"#),
        signer.sign_raw(r#"{"alg":"EdDSA","kid":"k"}"#, r#"{"cnf":{"jkt":"a","jkt":"b"}}"#),
    ];
    for token in malformed {
        assert_eq!(refusal(&verifier, &token).await, "the token is malformed", "{token}");
    }
    let long = signer.sign(&with(json!({"x": "y".repeat(16 << 10)})));
    assert_eq!(refusal(&verifier, &long).await, "the token is too long");
    // The signature of another message, and one that is too short.
    let wrong = format!("{}.{}.{}", parts[0], parts[1], URL.encode(&signer.sign_bytes(b"x")));
    assert_eq!(refusal(&verifier, &wrong).await, "the token's signature is invalid");
    let short = format!("{}.{}.{}", parts[0], parts[1], URL.encode(&[0; 63]));
    assert_eq!(refusal(&verifier, &short).await, "the token's signature is invalid");
    // All zeros, which some libraries took for a signature of anything.
    let psychic = Signer::new("k", "ES256");
    let verifier = crate::world::verifier(&[&psychic]);
    let token = psychic.sign(&claims());
    let (signed, _) = token.rsplit_once('.').unwrap();
    let zeros = format!("{signed}.{}", URL.encode(&[0; 64]));
    assert_eq!(refusal(&verifier, &zeros).await, "the token's signature is invalid");
}

#[tokio::test]
async fn algorithms_can_be_left_out() {
    let signer = Signer::new("k", "RS256");
    let verifier = verifier(&[&signer]).algorithms([Algorithm::Es256, Algorithm::EdDsa]);
    let why = refusal(&verifier, &signer.sign(&claims())).await;
    assert_eq!(why, "the token's algorithm is not allowed");
}

#[tokio::test]
async fn a_key_without_a_name_is_found_by_trying() {
    let (one, two) = (Signer::new("1", "ES256"), Signer::new("2", "ES256"));
    let verifier = verifier(&[&one, &two]);
    let token = two.sign_raw(r#"{"alg":"ES256"}"#, &claims().to_string());
    assert_eq!(verifier.verify(&token).await.unwrap().subject, "alice");
    let three = Signer::new("3", "ES256");
    let token = three.sign_raw(r#"{"alg":"ES256"}"#, &claims().to_string());
    assert_eq!(refusal(&verifier, &token).await, "the token's signature is invalid");
    // A name chooses; it is not a hint.
    let token = two.sign_raw(r#"{"alg":"ES256","kid":"1"}"#, &claims().to_string());
    assert_eq!(refusal(&verifier, &token).await, "the token's signature is invalid");
}
