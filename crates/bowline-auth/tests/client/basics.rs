//! Discovery, registration and login, in every way that the official suite plays through.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use bowline_auth::client::{Client, Hook, MemoryStore, OAuth, Reason, Redirected, Step};
use http::StatusCode;
use serde_json::json;
use tokio::sync::Semaphore;

use crate::browse::{REDIRECT, call_with, counted, person, refuse, visit};
use crate::site::Reply;
use crate::world::{Iss, Prm, Rules, World};

const ROOT: &str = "/.well-known/oauth-protected-resource";
const TENANT: &str = "/tenant1";

/// A login, a list, a call; what must be true of all of them.
async fn check(rules: Rules) -> World {
    let world = World::new(rules).await;
    let auth = world.login();
    for operation in ["open", "list", "call"] {
        assert_eq!(world.call(&auth, operation).await.unwrap(), StatusCode::OK);
    }
    assert_eq!(world.logins(), 1);
    assert_eq!(world.token_requests().len(), 1);
    world.check();
    world
}

/// The resource is the same, to the byte, in metadata and in both requests.
fn check_resource(world: &World, expected: &str) {
    let guard = &world.guards[0];
    let (authorize, token) = (&guard.below("/authorize")[0], &guard.below("/token")[0]);
    assert_eq!(authorize.query("resource").as_deref(), Some(expected));
    assert_eq!(token.form("resource").as_deref(), Some(expected));
}

#[tokio::test]
async fn metadata_default() {
    let world = check(Rules::default()).await;
    check_resource(&world, &world.mcp());
    assert!(world.server.asked(ROOT).is_empty());
}

#[tokio::test]
async fn metadata_at_the_openid_address_and_unnamed() {
    let world = check(Rules {
        prm: Prm::WellKnown("/.well-known/oauth-protected-resource/mcp"),
        metadata_at: Some("/.well-known/openid-configuration"),
        ..Rules::default()
    })
    .await;
    check_resource(&world, &world.mcp());
    assert!(world.server.asked(ROOT).is_empty());
}

#[tokio::test]
async fn metadata_at_the_root_and_a_tenant() {
    let world = check(Rules {
        prm: Prm::WellKnown(ROOT),
        issuer_path: TENANT,
        metadata_at: Some("/.well-known/oauth-authorization-server/tenant1"),
        ..Rules::default()
    })
    .await;
    check_resource(&world, &world.server.url);
    assert!(world.guards[0].asked("/.well-known/oauth-authorization-server").is_empty());
}

#[tokio::test]
async fn metadata_anywhere_and_a_tenant_of_openid() {
    let world = check(Rules {
        prm: Prm::Named("/custom/metadata/location.json"),
        issuer_path: TENANT,
        metadata_at: Some("/tenant1/.well-known/openid-configuration"),
        ..Rules::default()
    })
    .await;
    check_resource(&world, &world.mcp());
    let asked: Vec<_> = world.guards[0].log().into_iter().take(3).map(|asked| asked.path).collect();
    assert_eq!(
        asked,
        [
            "/.well-known/oauth-authorization-server/tenant1",
            "/.well-known/openid-configuration/tenant1",
            "/tenant1/.well-known/openid-configuration"
        ]
    );
}

#[tokio::test]
async fn client_id_documents() {
    let document = "https://conformance-test.local/client-metadata.json";
    let rules = Rules {
        edit_metadata: Box::new(|it| it["client_id_metadata_document_supported"] = json!(true)),
        ..Rules::default()
    };
    let world = World::new(rules).await;
    let auth = world.login_with(person()).client_id_document(document).build().unwrap();
    assert_eq!(world.call(&auth, "list").await.unwrap(), StatusCode::OK);
    assert!(world.guards[0].asked("/register").is_empty());
    let seen = world.guards[0].asked("/authorize")[0].query("client_id");
    assert_eq!(seen.as_deref(), Some(document));
    world.check();

    // A server that reads no documents gets a registration.
    let world = World::new(Rules::default()).await;
    let auth = world.login_with(person()).client_id_document(document).build().unwrap();
    assert_eq!(world.call(&auth, "list").await.unwrap(), StatusCode::OK);
    assert_eq!(world.guards[0].asked("/register").len(), 1);
    world.check();
}

#[tokio::test]
async fn the_token_endpoint_s_own_method() {
    for methods in [&["client_secret_basic"], &["client_secret_post"], &["none"]] {
        let world = check(Rules { methods, ..Rules::default() }).await;
        let document = world.guards[0].asked("/register")[0].json();
        assert_eq!(document["token_endpoint_auth_method"], methods[0]);
    }
}

#[tokio::test]
async fn registered_by_hand() {
    let rules = Rules {
        known: "by-hand:pass:word%",
        methods: &["client_secret_basic"],
        edit_metadata: Box::new(|it| {
            drop(it.as_object_mut().unwrap().remove("registration_endpoint"));
        }),
        ..Rules::default()
    };
    let world = World::new(rules).await;
    let client = Client::new("by-hand").secret("pass:word%");
    let auth = world.login_with(person()).client(client).build().unwrap();
    assert_eq!(world.call(&auth, "list").await.unwrap(), StatusCode::OK);
    let asked = &world.token_requests()[0];
    assert!(asked.header("authorization").unwrap().starts_with("Basic "));
    // Some servers look up the client by the form, whatever the method.
    assert_eq!(asked.form("client_id").as_deref(), Some("by-hand"));
    assert_eq!(asked.form("client_secret"), None);
    world.check();
}

#[tokio::test]
async fn registration_says_what_the_client_is() {
    let world = check(Rules::default()).await;
    let document = world.guards[0].asked("/register")[0].json();
    assert_eq!(document["application_type"], "native");
    assert_eq!(document["client_name"], "A test");
    assert_eq!(document["grant_types"], json!(["authorization_code", "refresh_token"]));
    assert_eq!(document["redirect_uris"], json!([REDIRECT]));
}

#[tokio::test]
async fn issuers_in_redirects() {
    async fn check(iss: Iss, is_promised: bool, is_good: bool) {
        let rules = Rules {
            iss,
            edit_metadata: Box::new(move |it| {
                it["authorization_response_iss_parameter_supported"] = json!(is_promised);
            }),
            ..Rules::default()
        };
        let world = World::new(rules).await;
        let outcome = world.call(&world.login(), "list").await;
        assert_eq!(world.logins(), 1);
        assert_eq!(world.token_requests().len(), usize::from(is_good), "{iss:?} {is_promised}");
        match outcome {
            Ok(status) => assert!(is_good && status == StatusCode::OK),
            Err(error) => {
                assert_eq!((error.step(), error.reason()), (Step::Callback, Reason::Unsafe));
                assert!(error.expected().contains(&world.issuer(0)), "{error}");
            }
        }
        world.check();
    }
    check(Iss::Right, true, true).await;
    check(Iss::Right, false, true).await;
    check(Iss::Missing, false, true).await;
    check(Iss::Missing, true, false).await;
    for is_promised in [true, false] {
        check(Iss::Other("https://evil.example.com"), is_promised, false).await;
        check(Iss::WithSlash, is_promised, false).await;
    }
}

#[tokio::test]
async fn a_resource_of_somebody_else() {
    let rules = Rules {
        edit_prm: Box::new(|it| it["resource"] = json!("https://evil.example.com/mcp")),
        ..Rules::default()
    };
    let world = World::new(rules).await;
    let error = world.call(&world.login(), "list").await.unwrap_err();
    assert_eq!((error.step(), error.reason()), (Step::ResourceMetadata, Reason::Unsafe));
    assert!(error.received().contains("https://evil.example.com/mcp"), "{error}");
    assert!(error.expected().contains(&world.mcp()), "{error}");
    assert!(world.guards[0].log().is_empty());
    world.check();
}

#[tokio::test]
async fn another_issuer_than_promised() {
    let rules = Rules {
        edit_metadata: Box::new(|it| it["issuer"] = json!("https://evil.example.com")),
        ..Rules::default()
    };
    let world = World::new(rules).await;
    let error = world.call(&world.login(), "list").await.unwrap_err();
    assert_eq!((error.step(), error.reason()), (Step::ServerMetadata, Reason::Unsafe));
    let asked: Vec<_> = world.guards[0].log().into_iter().map(|asked| asked.path).collect();
    assert_eq!(asked, ["/.well-known/oauth-authorization-server"]);
}

#[tokio::test]
async fn moving_to_another_authorization_server() {
    let world = World::new(Rules::default()).await;
    let auth = world.login();
    assert_eq!(world.call(&auth, "list").await.unwrap(), StatusCode::OK);
    world.rules().guard = 1;
    assert_eq!(world.call(&auth, "call").await.unwrap(), StatusCode::OK);
    assert_eq!(world.guards[1].asked("/register").len(), 1);
    let first = world.guards[0].asked("/authorize")[0].query("client_id").unwrap();
    for asked in world.guards[1].log() {
        assert!(!asked.all().contains(&first), "{}", asked.all());
    }
    // Not even the refresh token was tried: the server was asked first.
    assert_eq!(world.guards[0].asked("/token").len(), 1);
    world.check();
}

#[tokio::test]
async fn a_client_by_hand_stays_with_its_server() {
    for client in [Client::new("by-hand"), Client::new("by-hand").issuer("https://as.example")] {
        let rules = Rules { known: "by-hand:", ..Rules::default() };
        let is_bound = format!("{client:?}").contains("as.example");
        let world = World::new(rules).await;
        let auth = world.login_with(person()).client(client).build().unwrap();
        if !is_bound {
            assert_eq!(world.call(&auth, "list").await.unwrap(), StatusCode::OK);
            world.rules().guard = 1;
        }
        let error = world.call(&auth, "list").await.unwrap_err();
        assert_eq!((error.step(), error.reason()), (Step::ServerChoice, Reason::Settings));
        assert!(world.guards[1].log().is_empty());
        world.check();
    }
}

#[tokio::test]
async fn many_refusals_are_one_login() {
    let world = World::new(Rules::default()).await;
    let (login, count) = counted();
    let auth = world.login_with(login).build().unwrap();
    let calls: Vec<_> = (0..20)
        .map(|_| {
            let (auth, url) = (auth.clone(), world.mcp());
            tokio::spawn(async move { call_with(&auth, &url, "call").await })
        })
        .collect();
    for call in calls {
        assert_eq!(call.await.unwrap().unwrap(), StatusCode::OK);
    }
    assert_eq!(count.load(Ordering::SeqCst), 1);
    assert_eq!(world.server.asked("/.well-known/oauth-protected-resource/mcp").len(), 1);
    // All of those waiters count as one: the next refusal is met as the first was.
    world.revoke();
    assert_eq!(world.call(&auth, "call").await.unwrap(), StatusCode::OK);
    world.check();
}

/// Whoever waits for a login that fails is not asked again for each request.
#[tokio::test]
async fn many_refusals_are_one_failure() {
    let world = World::new(Rules::default()).await;
    let (asked, gate) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let (seen, opened) = (Arc::clone(&asked), Arc::clone(&gate));
    let login = Hook::new(REDIRECT, move |_| {
        let (seen, opened) = (Arc::clone(&seen), Arc::clone(&opened));
        async move {
            seen.add_permits(1);
            opened.acquire().await.unwrap().forget();
            Err("not today".into())
        }
    });
    let auth = world.login_with(login).build().unwrap();
    let url = world.mcp();
    let refusal = || refuse(&auth, &url, "Bearer");
    // All of them wait before the person is even asked.
    let opening = async {
        asked.acquire().await.unwrap().forget();
        gate.add_permits(5);
    };
    let (one, two, three, ()) = tokio::join!(refusal(), refusal(), refusal(), opening);
    for outcome in [one, two, three] {
        let error = outcome.unwrap_err();
        assert_eq!((error.step(), error.reason()), (Step::Login, Reason::Abandoned));
        assert!(error.received().contains("not today"), "{error}");
    }
    assert_eq!(asked.available_permits(), 0, "asked more than once");
}

#[tokio::test]
async fn what_was_got_is_found_again() {
    let world = World::new(Rules::default()).await;
    let store = MemoryStore::new();
    let build = || world.login_with(person()).store(store.clone()).build().unwrap();
    assert_eq!(world.call(&build(), "list").await.unwrap(), StatusCode::OK);
    let again = build();
    assert_eq!(world.call(&again, "list").await.unwrap(), StatusCode::OK);
    assert_eq!(world.logins(), 1);
    // Another account, another login, but the same client.
    let other = world.login_with(person()).store(store.clone()).account("bob").build().unwrap();
    assert_eq!(world.call(&other, "list").await.unwrap(), StatusCode::OK);
    assert_eq!(world.logins(), 2);
    assert_eq!(world.guards[0].asked("/register").len(), 1);
    again.forget().await.unwrap();
    assert_eq!(world.call(&build(), "list").await.unwrap(), StatusCode::OK);
    assert_eq!(world.logins(), 3);
    world.check();
}

#[tokio::test]
async fn a_state_is_good_once() {
    let world = World::new(Rules { refreshes: false, ..Rules::default() }).await;
    let first = Arc::new(Mutex::new(None::<String>));
    let login = Hook::new(REDIRECT, move |page| {
        let first = Arc::clone(&first);
        async move {
            let location = visit(&page).await;
            let mut first = first.lock().unwrap();
            Ok(Redirected::at(first.get_or_insert(location)))
        }
    });
    let auth = world.login_with(login).build().unwrap();
    assert_eq!(world.call(&auth, "list").await.unwrap(), StatusCode::OK);
    world.revoke();
    let error = world.call(&auth, "list").await.unwrap_err();
    assert_eq!((error.step(), error.reason()), (Step::Callback, Reason::Unsafe));
    assert_eq!(world.token_requests().len(), 1);
}

#[tokio::test]
async fn a_forgotten_client_registers_anew() {
    let rules = Rules {
        first: Box::new(|asked| {
            (asked.path == "/token").then(|| Reply::error(401, "invalid_client"))
        }),
        ..Rules::default()
    };
    let world = World::new(rules).await;
    let auth = world.login();
    let error = world.call(&auth, "list").await.unwrap_err();
    assert_eq!(error.code(), Some("invalid_client"));
    world.rules().first = Box::new(|_| None);
    assert_eq!(world.call(&auth, "list").await.unwrap(), StatusCode::OK);
    assert_eq!(world.guards[0].asked("/register").len(), 2);
}

#[tokio::test]
async fn tokens_stay_at_home() {
    let world = World::new(Rules::default()).await;
    let auth = world.login();
    assert_eq!(world.call(&auth, "list").await.unwrap(), StatusCode::OK);
    let other = crate::site::Site::serve(crate::site::Site::bind().await, |_| {
        Reply::status(401).with("www-authenticate", "Bearer")
    });
    let localhost = world.mcp().replace("127.0.0.1", "localhost");
    for url in [format!("{}/mcp", other.url), localhost] {
        assert_eq!(call_with(&auth, &url, "list").await.unwrap(), StatusCode::UNAUTHORIZED);
    }
    assert!(other.log().iter().all(|asked| asked.header("authorization").is_none()));
    assert_eq!(world.logins(), 1);
    world.check();
}

#[test]
fn settings_that_cannot_work() {
    fn check(server: &str, expected: &str) {
        let error = OAuth::login(server, person()).build().unwrap_err();
        assert_eq!((error.step(), error.reason()), (Step::Setup, Reason::Settings));
        assert!(error.to_string().contains(expected), "{error}");
    }
    check("mcp.example.com", "absolute");
    check("http://mcp.example.com/mcp", "unencrypted");
    check("https://user:pass@mcp.example.com/", "without a user");
    check("file:///etc/passwd", "absolute");
    let with = |document: &str| {
        OAuth::login("https://a.example", person()).client_id_document(document).build()
    };
    assert!(with("http://app.example/client.json").is_err());
    assert!(with("https://app.example/").is_err());
    assert!(with("https://app.example/client.json").is_ok());
    let trusting = |host: &str| OAuth::login("http://mcp:8000/mcp", person()).trust(host).build();
    assert!(trusting("mcp:8000").is_ok());
    assert!(trusting("other:8000").is_err());
    assert!(trusting("not a host").is_err());
}

#[tokio::test]
async fn a_redirect_in_the_clear_is_refused() {
    let world = World::new(Rules::default()).await;
    let login = Hook::new("http://app.example/callback", |_| async { Err("never".into()) });
    let error = world.call(&world.login_with(login).build().unwrap(), "list").await.unwrap_err();
    assert_eq!((error.step(), error.reason()), (Step::Login, Reason::Settings));
}
