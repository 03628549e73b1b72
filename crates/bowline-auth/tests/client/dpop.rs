//! Tokens that are bound to a key. The world checks each proof as it comes.

use bowline_auth::client::{Dpop, MemoryStore, Reason, Step};
use http::StatusCode;
use serde_json::json;

use crate::browse::{call_with, person};
use crate::world::{Rules, World};

fn dpop() -> Rules {
    Rules { dpop: true, ..Rules::default() }
}

#[tokio::test]
async fn a_proof_with_each_request() {
    let world = World::new(dpop()).await;
    let auth = world.login();
    for operation in ["list", "call", "call"] {
        assert_eq!(world.call(&auth, operation).await.unwrap(), StatusCode::OK);
    }
    let shown =
        world.server.asked("/mcp").last().unwrap().header("authorization").unwrap().to_owned();
    assert!(shown.starts_with("DPoP "), "{shown}");
    let document = world.guards[0].asked("/register")[0].json();
    assert_eq!(document["dpop_bound_access_tokens"], true);
    world.check();
}

#[tokio::test]
async fn nonces_of_both() {
    let world = World::new(Rules { nonce: Some(false), ..dpop() }).await;
    let auth = world.login();
    for operation in ["list", "call", "call"] {
        assert_eq!(world.call(&auth, operation).await.unwrap(), StatusCode::OK);
    }
    assert_eq!(world.token_requests().len(), 2);
    // Without a token, with one but no nonce, with both; then both from the start.
    assert_eq!(world.server.asked("/mcp").len(), 5);
    assert_eq!(world.logins(), 1);
    world.check();
}

#[tokio::test]
async fn many_requests_want_a_nonce_at_once() {
    let world = World::new(Rules { nonce: Some(false), ..dpop() }).await;
    let auth = world.login();
    let calls: Vec<_> = (0..20)
        .map(|_| {
            let (auth, url) = (auth.clone(), world.mcp());
            tokio::spawn(async move { call_with(&auth, &url, "call").await })
        })
        .collect();
    for call in calls {
        assert_eq!(call.await.unwrap().unwrap(), StatusCode::OK);
    }
    assert_eq!(world.logins(), 1);
    world.check();
}

#[tokio::test]
async fn nonces_without_an_end() {
    let world = World::new(Rules { nonce: Some(true), ..dpop() }).await;
    let error = world.call(&world.login(), "list").await.unwrap_err();
    assert_eq!((error.step(), error.code()), (Step::Token, Some("use_dpop_nonce")));
    assert_eq!(world.token_requests().len(), 3);

    let world = World::new(dpop()).await;
    let auth = world.login();
    assert_eq!(world.call(&auth, "list").await.unwrap(), StatusCode::OK);
    world.rules().nonce = Some(true);
    assert_eq!(world.call(&auth, "list").await.unwrap(), StatusCode::UNAUTHORIZED);
    assert_eq!(world.logins(), 1);
    world.check();
}

#[tokio::test]
async fn the_key_is_kept_for_the_issuer() {
    let world = World::new(dpop()).await;
    let store = MemoryStore::new();
    for account in ["a", "b"] {
        for _ in 0..2 {
            let auth = world.login_with(person()).store(store.clone()).account(account);
            let auth = auth.build().unwrap();
            assert_eq!(world.call(&auth, "list").await.unwrap(), StatusCode::OK);
            world.revoke();
            assert_eq!(world.call(&auth, "list").await.unwrap(), StatusCode::OK);
        }
    }
    let keys: std::collections::HashSet<_> = world
        .token_requests()
        .iter()
        .map(|asked| asked.header("dpop").unwrap().split('.').next().unwrap().to_owned())
        .collect();
    assert_eq!(keys.len(), 1);
    assert_eq!(world.logins(), 2);
    world.check();
}

#[tokio::test]
async fn a_token_that_is_not_bound() {
    let rules = Rules { edit_token: Box::new(|it| it["token_type"] = json!("Bearer")), ..dpop() };
    let world = World::new(rules).await;
    let error = world.call(&world.login(), "list").await.unwrap_err();
    assert_eq!((error.step(), error.reason()), (Step::Token, Reason::Unsafe));
    assert!(world.server.log().iter().all(|asked| asked.header("authorization").is_none()));
}

#[tokio::test]
async fn a_guard_that_cannot_bind() {
    let rules = Rules {
        edit_metadata: Box::new(|it| it["dpop_signing_alg_values_supported"] = json!(["none"])),
        ..dpop()
    };
    let world = World::new(rules).await;
    let error = world.call(&world.login(), "list").await.unwrap_err();
    assert_eq!((error.step(), error.reason()), (Step::ServerMetadata, Reason::Broken));
    assert_eq!(world.logins(), 0);
}

#[tokio::test]
async fn settings() {
    // Always: even where nobody asks for it.
    let rules = Rules {
        edit_metadata: Box::new(|it| it["dpop_signing_alg_values_supported"] = json!(["ES256"])),
        ..Rules::default()
    };
    let world = World::new(rules).await;
    let auth = world.login_with(person()).dpop(Dpop::Always).build().unwrap();
    let error = world.call(&auth, "list").await.unwrap_err();
    assert_eq!((error.step(), error.reason()), (Step::Token, Reason::Unsafe));
    assert!(world.token_requests()[0].header("dpop").is_some());

    // When asked: not for bearers.
    let auth = world.login();
    assert_eq!(world.call(&auth, "list").await.unwrap(), StatusCode::OK);
    assert!(world.token_requests()[1].header("dpop").is_none());

    // When the resource demands it.
    world.rules().edit_prm = Box::new(|it| it["dpop_bound_access_tokens_required"] = json!(true));
    world.revoke();
    world.revoke_refresh();
    let error = world.call(&auth, "list").await.unwrap_err();
    assert_eq!((error.step(), error.reason()), (Step::Token, Reason::Unsafe));
}
