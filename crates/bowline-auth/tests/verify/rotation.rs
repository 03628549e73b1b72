//! Keys that are published, change, vanish, and cannot be fetched.

use std::sync::Arc;
use std::time::Duration;

use bowline_auth::verify::{JwtVerifier, KeyLimits, Verify, VerifyError};
use serde_json::json;

use crate::world::{Signer, Site, claims, key_set, web};

const AT_ONCE: KeyLimits = KeyLimits {
    fresh: Duration::from_secs(600),
    stale: Duration::from_secs(3600),
    cool_down: Duration::ZERO,
    retry: Duration::ZERO,
};

/// An issuer whose metadata lead to its keys.
async fn issuer(signers: &[&Signer]) -> Site {
    let site = Site::open().await;
    let url = &site.url;
    let metadata = json!({"issuer": url, "jwks_uri": format!("{url}/keys")});
    site.show("/.well-known/openid-configuration", 200, metadata);
    site.show("/keys", 200, key_set(signers));
    site
}

fn token(site: &Site, signer: &Signer) -> String {
    let mut claims = claims();
    claims["iss"] = json!(site.url);
    signer.sign(&claims)
}

fn verifier(site: &Site, limits: KeyLimits) -> JwtVerifier {
    JwtVerifier::new(&site.url).unwrap().web(web()).key_limits(limits)
}

fn fetches(site: &Site) -> usize {
    site.asked().iter().filter(|request| request.starts_with("GET /keys ")).count()
}

#[tokio::test]
async fn keys_are_found_kept_and_followed() {
    let (old, new) = (Signer::new("old", "ES256"), Signer::new("new", "EdDSA"));
    let site = issuer(&[&old]).await;
    let verifier = verifier(&site, AT_ONCE);
    for _ in 0..3 {
        verifier.verify(&token(&site, &old)).await.unwrap();
    }
    assert_eq!(fetches(&site), 1);
    site.show("/keys", 200, key_set(&[&old, &new]));
    verifier.verify(&token(&site, &new)).await.unwrap();
    verifier.verify(&token(&site, &old)).await.unwrap();
    assert_eq!(fetches(&site), 2);
    // Withdrawn, and noticed with the next question.
    site.show("/keys", 200, key_set(&[&new]));
    let stranger = Signer::new("stranger", "ES256");
    verifier.verify(&token(&site, &stranger)).await.unwrap_err();
    let error = verifier.verify(&token(&site, &old)).await.unwrap_err();
    assert!(matches!(error, VerifyError::Invalid("the token's key is unknown")), "{error:?}");
}

#[tokio::test]
async fn unknown_keys_do_not_make_us_a_weapon() {
    let known = Signer::new("known", "ES256");
    let site = issuer(&[&known]).await;
    let limits = KeyLimits { cool_down: Duration::from_secs(3600), ..AT_ONCE };
    let verifier = Arc::new(verifier(&site, limits));
    // Together at first, so that one question answers all of them.
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..50 {
        let (verifier, token) = (Arc::clone(&verifier), token(&site, &known));
        tasks.spawn(async move { verifier.verify(&token).await.map(|it| it.subject) });
    }
    while let Some(verified) = tasks.join_next().await {
        assert_eq!(verified.unwrap().unwrap(), "alice");
    }
    assert_eq!(fetches(&site), 1);
    let stranger = Signer::new("stranger", "ES256");
    for _ in 0..50 {
        verifier.verify(&token(&site, &stranger)).await.unwrap_err();
    }
    assert_eq!(fetches(&site), 1);
}

#[tokio::test]
async fn a_client_that_gives_up_does_not_stop_the_question() {
    let known = Signer::new("known", "ES256");
    let site = issuer(&[&known]).await;
    let limits = KeyLimits { cool_down: Duration::from_secs(3600), ..AT_ONCE };
    let verifier = verifier(&site, limits);
    let token = token(&site, &known);
    // Polled once, which sends the question, then dropped.
    let mut asking = verifier.verify(&token);
    let polled = std::future::poll_fn(|cx| std::task::Poll::Ready(asking.as_mut().poll(cx))).await;
    assert!(polled.is_pending());
    drop(asking);
    verifier.verify(&token).await.unwrap();
    assert_eq!(fetches(&site), 1);
}

#[tokio::test]
async fn old_keys_are_good_while_the_issuer_is_away_but_not_for_ever() {
    let known = Signer::new("known", "ES256");
    let site = issuer(&[&known]).await;
    let limits = KeyLimits { fresh: Duration::ZERO, ..AT_ONCE };
    let patient = verifier(&site, limits);
    let strict = verifier(&site, KeyLimits { stale: Duration::ZERO, ..limits });
    patient.verify(&token(&site, &known)).await.unwrap();
    site.show("/keys", 500, "");
    patient.verify(&token(&site, &known)).await.unwrap();
    assert_eq!(fetches(&site), 2);
    let error = strict.verify(&token(&site, &known)).await.unwrap_err();
    assert!(matches!(error, VerifyError::Unavailable(_)), "{error:?}");
}

#[tokio::test]
async fn issuers_that_cannot_be_believed() {
    let known = Signer::new("known", "ES256");
    let other = "https://other.example.com";
    let metadata = |site: &Site, issuer: &str, keys: &str| {
        let metadata = json!({"issuer": issuer, "jwks_uri": keys});
        site.show("/.well-known/openid-configuration", 200, metadata);
    };
    let site = issuer(&[&known]).await;
    let url = site.url.clone();
    let keys = format!("{url}/keys");
    let cases = [
        (other, keys.as_str(), "the metadata belong to another issuer"),
        (&format!("{url}/"), &keys, "the metadata belong to another issuer"),
        (&url, "http://keys.example.com/", "the URL of the keys cannot be used"),
        (&url, "file:///etc/passwd", "the URL of the keys cannot be used"),
        (&url, &format!("{url}/.well-known/openid-configuration"), "the keys are not valid"),
        (&url, &format!("{url}/nowhere"), "the issuer responds with 404 Not Found"),
    ];
    for (issuer, keys, expected) in cases {
        metadata(&site, issuer, keys);
        let error = verifier(&site, AT_ONCE).verify(&token(&site, &known)).await.unwrap_err();
        let VerifyError::Unavailable(cause) = error else { panic!("{error:?}") };
        assert_eq!(cause.to_string(), expected);
    }
    // The issuer's own metadata come first, whatever OpenID's say.
    let right = json!({"issuer": url, "jwks_uri": keys});
    site.show("/.well-known/oauth-authorization-server", 200, right);
    verifier(&site, AT_ONCE).verify(&token(&site, &known)).await.unwrap();
}

#[test]
fn issuers_must_be_https() {
    for url in ["http://login.example.com", "login.example.com", "https://a.example.com?x"] {
        assert!(JwtVerifier::new(url).is_err(), "{url}");
    }
}
