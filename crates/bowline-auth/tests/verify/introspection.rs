//! Opaque tokens: the issuer is asked, and believed for a while.

use std::future::poll_fn;
use std::net::IpAddr;
use std::task::Poll;
use std::time::Duration;

use bowline_auth::verify::{Guard, Introspection, IntrospectionLimits, Verify, VerifyError};
use serde_json::{Value, json};

use crate::world::{RESOURCE, Site, now, present, web};

async fn site(answer: Value) -> Site {
    let site = Site::open().await;
    site.show("/introspect", 200, answer);
    site
}

fn introspection(site: &Site) -> Introspection {
    let url = format!("{}/introspect", site.url);
    Introspection::new(&url, "mcp server", "se/cret+").unwrap().web(web()).cache(Duration::ZERO)
}

fn active() -> Value {
    json!({"active": true, "sub": "alice", "aud": RESOURCE, "scope": "mcp", "exp": now() + 300})
}

#[tokio::test]
async fn the_issuer_is_asked_as_the_standard_says() {
    let site = site(active()).await;
    let identity = introspection(&site).verify("a~b+c/d==").await.unwrap();
    assert_eq!(identity.subject, "alice");
    let request = &site.asked()[0];
    assert!(request.starts_with("POST /introspect HTTP/1.1\r\n"), "{request}");
    // The halves are form-encoded before they are joined (RFC 6749, section 2.3.1).
    let credentials = bowline_proto::base64::STANDARD.encode(b"mcp+server:se%2Fcret%2B");
    assert!(request.contains(&format!("authorization: Basic {credentials}\r\n")), "{request}");
    assert!(request.contains("content-type: application/x-www-form-urlencoded\r\n"), "{request}");
    let body = request.split("\r\n\r\n").nth(1).unwrap();
    assert_eq!(body, "token=a%7Eb%2Bc%2Fd%3D%3D&token_type_hint=access_token");
}

#[tokio::test]
async fn a_revoked_token_lives_as_long_as_the_answer() {
    let site = site(active()).await;
    let forgetful = introspection(&site);
    let long = introspection(&site).cache(Duration::from_secs(3600));
    forgetful.verify("t").await.unwrap();
    long.verify("t").await.unwrap();
    site.show("/introspect", 200, json!({"active": false}));
    let error = forgetful.verify("t").await.unwrap_err();
    assert!(matches!(error, VerifyError::Invalid("the token is not active")), "{error:?}");
    assert_eq!(site.asked().len(), 3);
    long.verify("t").await.unwrap();
    assert_eq!(site.asked().len(), 3);
    // Another token is another question; a refusal is remembered as well.
    long.verify("u").await.unwrap_err();
    long.verify("u").await.unwrap_err();
    assert_eq!(site.asked().len(), 4);
}

#[tokio::test]
async fn answers_that_are_no_yes() {
    let invalid = [
        json!({"active": false, "sub": "alice", "aud": RESOURCE}),
        json!({"active": true, "aud": RESOURCE}),
        json!({"active": true, "sub": "alice", "exp": now() - 100}),
        json!({"active": true, "sub": "alice", "nbf": now() + 100}),
        json!({"active": true, "sub": "alice", "iss": "https://evil.example.com"}),
    ];
    for answer in invalid {
        let site = site(answer.clone()).await;
        let verifier = introspection(&site).issuer("https://login.example.com").unwrap();
        let error = verifier.verify("t").await.unwrap_err();
        assert!(matches!(error, VerifyError::Invalid(_)), "{answer}: {error:?}");
    }
    // Some issuers answer so to a JWT, whoever made it.
    let site = Site::open().await;
    site.show("/introspect", 400, json!({"error": "unsupported_token_type"}));
    let error = introspection(&site).verify("t").await.unwrap_err();
    assert!(matches!(error, VerifyError::Invalid(_)), "{error:?}");
    let broken = [
        (200, "{}"),
        (200, r#"{"active":"true"}"#),
        (200, "x"),
        (400, r#"{"error":"invalid_request"}"#),
        (401, r#"{"error":"unsupported_token_type"}"#),
        (500, ""),
    ];
    for (status, answer) in broken {
        let site = Site::open().await;
        site.show("/introspect", status, answer);
        let error = introspection(&site).verify("t").await.unwrap_err();
        assert!(matches!(error, VerifyError::Unavailable(_)), "{answer}: {error:?}");
    }
}

#[tokio::test]
async fn the_audience_counts_here_too() {
    let cases = [
        (json!({"active": true, "sub": "a", "aud": RESOURCE}), true, true),
        (json!({"active": true, "sub": "a", "aud": "https://other.example.com"}), false, false),
        (json!({"active": true, "sub": "a"}), false, true),
    ];
    for (answer, strict, lenient) in cases {
        let site = site(answer.clone()).await;
        let guard = Guard::new(RESOURCE, introspection(&site)).unwrap();
        assert_eq!(present(&guard, "t").await.is_ok(), strict, "{answer}");
        let verifier = introspection(&site).allow_missing_audience();
        let guard = Guard::new(RESOURCE, verifier).unwrap();
        assert_eq!(present(&guard, "t").await.is_ok(), lenient, "{answer}");
    }
}

#[tokio::test]
async fn an_issuer_that_is_away_is_not_the_clients_fault() {
    let verifier = Introspection::new("http://127.0.0.1:1/introspect", "a", "b").unwrap();
    let guard = Guard::new(RESOURCE, verifier.web(web())).unwrap();
    let denial = present(&guard, "t").await.unwrap_err();
    assert_eq!(denial.status, 503);
    assert_eq!(denial.headers.get("retry-after").unwrap(), "5");
    assert!(denial.headers.get("www-authenticate").is_none());
}

/// One question for each token, however many requests carry it.
#[tokio::test]
async fn a_token_is_asked_about_once_at_a_time() {
    let site = site(active()).await;
    let verifier = introspection(&site).cache(Duration::from_secs(60));
    let all = futures_util::future::join_all((0..50).map(|_| verifier.verify("t"))).await;
    assert!(all.into_iter().all(|outcome| outcome.is_ok()));
    assert_eq!(site.asked().len(), 1);
    // A request that goes away takes nothing with it.
    let verifier = introspection(&site).cache(Duration::from_secs(60));
    let (mut first, mut second) = (verifier.verify("t"), verifier.verify("t"));
    for waits in [&mut first, &mut second] {
        let is_pending = poll_fn(|cx| Poll::Ready(waits.as_mut().poll(cx).is_pending())).await;
        assert!(is_pending);
    }
    drop(first);
    assert_eq!(second.await.unwrap().subject, "alice");
}

#[tokio::test]
async fn only_so_many_tokens_are_asked_about_at_a_time() {
    let site = site(active()).await;
    let limits = IntrospectionLimits { in_flight: 2, ..IntrospectionLimits::default() };
    let verifier = introspection(&site).limits(limits);
    let all = ["a", "b", "c", "b"].map(|token| verifier.verify(token));
    let all = futures_util::future::join_all(all).await;
    let kinds: Vec<_> = all.iter().map(Result::is_ok).collect();
    assert_eq!(kinds, [true, true, false, true]);
    assert!(matches!(all[2], Err(VerifyError::Unavailable(_))));
    assert!(verifier.verify("c").await.is_ok());
}

/// Invented tokens neither reach the issuer for ever nor drive out those that are good.
#[tokio::test]
async fn a_flood_of_invented_tokens_harms_nobody_else() {
    let site = site(active()).await;
    let limits = IntrospectionLimits {
        rejected: 5,
        // So slow that this test cannot see it.
        rejected_per_second: 1,
        ..IntrospectionLimits::default()
    };
    let verifier = introspection(&site).cache(Duration::from_secs(3600)).limits(limits);
    verifier.verify("good").await.unwrap();
    site.show("/introspect", 200, json!({"active": false}));
    let mut refused = 0;
    for number in 0..200 {
        let error = verifier.verify(&format!("junk-{number}")).await.unwrap_err();
        refused += usize::from(matches!(error, VerifyError::Unavailable(_)));
    }
    // Ten at once, and one for every second that this takes.
    assert!(refused >= 100, "{refused} of 200");
    assert!(site.asked().len() <= 101, "{}", site.asked().len());
    assert_eq!(verifier.verify("good").await.unwrap().subject, "alice");
}

#[tokio::test]
async fn a_flood_from_one_address_does_not_shut_out_another() {
    let at = |last| Some(IpAddr::from([192, 0, 2, last]));
    let site = site(json!({"active": false})).await;
    let limits = IntrospectionLimits { rejected_per_second: 4, ..IntrospectionLimits::default() };
    let verifier = introspection(&site).limits(limits);
    let mut refused = 0;
    for number in 0..100 {
        let error = verifier.verify_from(&format!("junk-{number}"), at(1)).await.unwrap_err();
        refused += usize::from(matches!(error, VerifyError::Unavailable(_)));
    }
    // A quarter of forty at once, and one for every second that this takes.
    assert!(refused >= 50, "{refused} of 100");
    site.show("/introspect", 200, active());
    assert_eq!(verifier.verify_from("good", at(2)).await.unwrap().subject, "alice");
}

#[tokio::test]
async fn one_address_asks_about_half_of_what_is_asked_at_a_time() {
    let at = |last| Some(IpAddr::from([192, 0, 2, last]));
    let site = site(active()).await;
    let limits = IntrospectionLimits { in_flight: 4, ..IntrospectionLimits::default() };
    let verifier = introspection(&site).limits(limits);
    let asked = [("a", 1), ("b", 1), ("c", 1), ("d", 2), ("e", 2), ("f", 3)];
    let all = asked.map(|(token, last)| verifier.verify_from(token, at(last)));
    let all = futures_util::future::join_all(all).await;
    let kinds: Vec<_> = all.iter().map(Result::is_ok).collect();
    assert_eq!(kinds, [true, true, false, true, true, false]);
}
