//! Servers of 2025-03-26, which guard themselves; and who must not be taken for one.

use bowline_auth::client::{Reason, Step};
use http::StatusCode;
use serde_json::json;

use crate::site::Reply;
use crate::world::{Iss, Prm, Rules, World};

fn legacy() -> Rules {
    Rules { prm: Prm::Missing, ..Rules::default() }
}

#[tokio::test]
async fn metadata_at_the_root() {
    for slash in ["", "/"] {
        let rules = Rules {
            issuer_path: "/oauth",
            iss: Iss::Missing,
            edit_metadata: Box::new(move |it| {
                it["issuer"] = json!(format!("{}{slash}", it["issuer"].as_str().unwrap()));
                it["authorization_response_iss_parameter_supported"] = json!(false);
            }),
            ..legacy()
        };
        let world = World::new(rules).await;
        let auth = world.login();
        assert_eq!(world.call(&auth, "list").await.unwrap(), StatusCode::OK);
        assert_eq!(world.server.asked("/oauth/authorize")[0].query("resource"), None);
        // A revoked token is renewed where it came from.
        world.revoke();
        assert_eq!(world.call(&auth, "list").await.unwrap(), StatusCode::OK);
        assert_eq!(world.server.asked("/oauth/authorize").len(), 1);
        assert_eq!(world.server.asked("/oauth/token").len(), 2);
        world.check();
    }
}

#[tokio::test]
async fn no_metadata_at_all() {
    let rules = Rules {
        metadata_at: None,
        methods: &["client_secret_basic"],
        iss: Iss::Missing,
        ..legacy()
    };
    let world = World::new(rules).await;
    assert_eq!(world.call(&world.login(), "list").await.unwrap(), StatusCode::OK);
    for path in ["/register", "/authorize", "/token"] {
        assert_eq!(world.server.asked(path).len(), 1, "{path}");
    }
    world.check();
}

/// A server whose start page answers everything.
#[tokio::test]
async fn web_pages_are_no_metadata() {
    let rules = Rules {
        first: Box::new(|asked| {
            let is_page = asked.path.starts_with("/.well-known/oauth-protected");
            is_page.then(|| Reply { body: "<!doctype html>".to_owned(), ..Reply::status(200) })
        }),
        iss: Iss::Missing,
        edit_metadata: Box::new(|it| {
            it["authorization_response_iss_parameter_supported"] = json!(false);
        }),
        ..legacy()
    };
    let world = World::new(rules).await;
    assert_eq!(world.call(&world.login(), "list").await.unwrap(), StatusCode::OK);
}

/// Whoever can make a server stumble must not choose how a client goes on.
#[tokio::test]
async fn trouble_is_no_reason_to_guess() {
    async fn check(path: &'static str, step: Step) {
        let rules = Rules {
            first: Box::new(move |asked| asked.path.starts_with(path).then(|| Reply::status(503))),
            ..legacy()
        };
        let world = World::new(rules).await;
        let error = world.call(&world.login(), "list").await.unwrap_err();
        assert_eq!((error.step(), error.reason()), (step, Reason::Unavailable), "{error}");
        assert!(error.received().contains("503"), "{error}");
        for path in ["/register", "/authorize", "/token"] {
            assert!(world.server.asked(path).is_empty());
        }
    }
    check("/.well-known/oauth-protected-resource", Step::ResourceMetadata).await;
    check("/.well-known/oauth-authorization-server", Step::ServerMetadata).await;
}

/// A server that guards itself speaks for nobody else.
#[tokio::test]
async fn the_name_of_another() {
    let rules = Rules {
        edit_metadata: Box::new(|it| it["issuer"] = json!("https://login.example.com")),
        ..legacy()
    };
    let world = World::new(rules).await;
    let error = world.call(&world.login(), "list").await.unwrap_err();
    assert_eq!((error.step(), error.reason()), (Step::ServerMetadata, Reason::Unsafe));
    assert!(world.server.asked("/register").is_empty());
}
