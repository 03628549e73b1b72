//! Tokens without a person.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bowline_auth::client::{AssertionSource, Client, Enterprise, OAuth, Reason, StaticToken, Step};
use bowline_auth::jws::SigningKey;
use bowline_proto::base64::URL;
use http::StatusCode;
use serde_json::{Value, json};

use crate::browse::{call_with, web};
use crate::site::{Reply, Site};
use crate::world::{Rules, World};

const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";

fn application() -> Rules {
    Rules { known: "app:pass word", methods: &["client_secret_basic"], ..Rules::default() }
}

fn claims(token: &str) -> Value {
    let claims = token.split('.').nth(1).unwrap();
    serde_json::from_slice(&URL.decode(claims).unwrap()).unwrap()
}

#[tokio::test]
async fn client_credentials_with_a_secret() {
    for methods in [&["client_secret_basic"], &["client_secret_post"]] {
        let world = World::new(Rules { methods, ..application() }).await;
        let client = Client::new("app").secret("pass word");
        let auth = OAuth::client_credentials(world.mcp(), client).web(web()).build().unwrap();
        assert_eq!(world.call(&auth, "list").await.unwrap(), StatusCode::OK);
        let request = &world.token_requests()[0];
        assert_eq!(request.form("grant_type").as_deref(), Some("client_credentials"));
        assert_eq!(request.form("resource"), Some(world.mcp()));
        assert_eq!(world.logins(), 0);
        world.check();
    }
}

#[tokio::test]
async fn client_credentials_with_a_key() {
    let rules = Rules { known: "app:", methods: &["private_key_jwt"], ..Rules::default() };
    let world = World::new(rules).await;
    let key = SigningKey::from_pkcs8(&SigningKey::generate_pkcs8()).unwrap();
    let client = Client::new("app").private_key(key);
    let auth = OAuth::client_credentials(world.mcp(), client).web(web()).build().unwrap();
    assert_eq!(world.call(&auth, "list").await.unwrap(), StatusCode::OK);
    world.revoke();
    assert_eq!(world.call(&auth, "list").await.unwrap(), StatusCode::OK);
    let last = world.token_requests().pop().unwrap();
    assert_eq!(last.form("grant_type").as_deref(), Some("client_credentials"));
    let kind = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
    assert_eq!(last.form("client_assertion_type").as_deref(), Some(kind));
    let seen = claims(&last.form("client_assertion").unwrap());
    assert_eq!((&seen["iss"], &seen["sub"]), (&json!("app"), &json!("app")));
    assert_eq!(seen["aud"], world.issuer(0));
    assert!(seen["exp"].as_u64().unwrap() - seen["iat"].as_u64().unwrap() <= 300);
    let first = claims(&world.token_requests()[0].form("client_assertion").unwrap());
    assert_ne!(first["jti"], seen["jti"]);
    world.check();
}

/// An identity provider: gives its word for whoever has the ID token.
async fn provider(kind: &'static str) -> Site {
    Site::serve(Site::bind().await, move |asked| {
        assert_eq!(asked.form("subject_token").as_deref(), Some("id-token-s3cr3t"));
        Reply::json(&json!({
            "access_token": "id-jag-s3cr3t", "issued_token_type": kind, "token_type": "N_A",
        }))
    })
}

#[tokio::test]
async fn enterprise_managed() {
    let provider = provider("urn:ietf:params:oauth:token-type:id-jag").await;
    let world = World::new(application()).await;
    let enterprise = Enterprise::new(
        format!("{}/token", provider.url),
        Client::new("at-the-provider"),
        AssertionSource::fixed("id-token-s3cr3t"),
    );
    let client = Client::new("app").secret("pass word");
    let auth = OAuth::enterprise(world.mcp(), client, enterprise).web(web()).build().unwrap();
    assert_eq!(world.call(&auth, "list").await.unwrap(), StatusCode::OK);
    let exchange = &provider.asked("/token")[0];
    let of = |name| exchange.form(name).unwrap();
    assert_eq!(of("grant_type"), "urn:ietf:params:oauth:grant-type:token-exchange");
    assert_eq!(of("requested_token_type"), "urn:ietf:params:oauth:token-type:id-jag");
    assert_eq!(of("subject_token_type"), "urn:ietf:params:oauth:token-type:id_token");
    assert_eq!((of("audience"), of("resource")), (world.issuer(0), world.mcp()));
    assert_eq!(of("client_id"), "at-the-provider");
    let grant = &world.token_requests()[0];
    assert_eq!(grant.form("grant_type").as_deref(), Some(JWT_BEARER));
    assert_eq!(grant.form("assertion").as_deref(), Some("id-jag-s3cr3t"));
    assert!(grant.header("authorization").unwrap().starts_with("Basic "));
    world.check();
}

#[tokio::test]
async fn a_provider_that_gives_something_else() {
    let provider = provider("urn:ietf:params:oauth:token-type:access_token").await;
    let world = World::new(application()).await;
    let source = AssertionSource::fixed("id-token-s3cr3t");
    let endpoint = format!("{}/token", provider.url);
    let enterprise = Enterprise::new(endpoint, Client::new("x"), source);
    let client = Client::new("app").secret("pass word");
    let auth = OAuth::enterprise(world.mcp(), client, enterprise).web(web()).build().unwrap();
    let error = world.call(&auth, "list").await.unwrap_err();
    assert_eq!((error.step(), error.reason()), (Step::Assertion, Reason::Broken));
    assert!(world.token_requests().is_empty());
}

#[tokio::test]
async fn workload_identity() {
    let world = World::new(Rules { known: "workload:", ..Rules::default() }).await;
    let source = AssertionSource::fixed("workload-s3cr3t");
    let auth = OAuth::workload(world.mcp(), Client::new("workload"), source).web(web());
    assert_eq!(world.call(&auth.build().unwrap(), "list").await.unwrap(), StatusCode::OK);
    let requests = world.token_requests();
    assert_eq!(requests.len(), 1);
    assert_eq!(requests[0].form("grant_type").as_deref(), Some(JWT_BEARER));
    assert_eq!(requests[0].form("assertion").as_deref(), Some("workload-s3cr3t"));
    assert_eq!(requests[0].form("client_id").as_deref(), Some("workload"));
    assert_eq!(requests[0].form("client_secret"), None);
    world.check();
}

/// What was refused is not tried again; what is new is.
#[tokio::test]
async fn a_refused_workload_gives_up() {
    let rules = Rules {
        first: Box::new(|asked| {
            (asked.path == "/token").then(|| Reply::error(400, "invalid_grant"))
        }),
        ..Rules::default()
    };
    let world = World::new(rules).await;
    let count = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&count);
    let source = AssertionSource::from_fn(move || {
        let number = counter.load(Ordering::SeqCst);
        async move { Ok(format!("assertion-{number}").into()) }
    });
    let auth = OAuth::workload(world.mcp(), Client::new("workload"), source).web(web());
    let auth = auth.build().unwrap();
    let error = world.call(&auth, "list").await.unwrap_err();
    assert_eq!(error.code(), Some("invalid_grant"));
    let error = world.call(&auth, "list").await.unwrap_err();
    assert_eq!((error.step(), error.reason()), (Step::Assertion, Reason::Refused));
    assert_eq!(world.token_requests().len(), 1);
    count.store(1, Ordering::SeqCst);
    assert!(world.call(&auth, "list").await.is_err());
    assert_eq!(world.token_requests().len(), 2);
}

#[tokio::test]
async fn assertions_from_a_file() {
    let path = std::env::temp_dir().join(format!("bowline-assertion-{}", std::process::id()));
    let world = World::new(Rules { known: "workload:", ..Rules::default() }).await;
    let source = AssertionSource::from_file(&path);
    let auth = OAuth::workload(world.mcp(), Client::new("workload"), source).web(web());
    let auth = auth.build().unwrap();
    let error = world.call(&auth, "list").await.unwrap_err();
    assert_eq!((error.step(), error.reason()), (Step::Assertion, Reason::Unavailable));
    assert!(error.received().contains("bowline-assertion"), "{error}");
    std::fs::write(&path, "from-a-file\n").unwrap();
    assert_eq!(world.call(&auth, "list").await.unwrap(), StatusCode::OK);
    std::fs::remove_file(&path).unwrap();
    assert_eq!(world.token_requests()[0].form("assertion").as_deref(), Some("from-a-file"));
}

#[tokio::test]
async fn static_tokens() {
    let site = Site::serve(Site::bind().await, |asked| {
        let is_right = asked.header("authorization") == Some("Bearer fixed-s3cr3t");
        Reply::status(if is_right { 200 } else { 401 })
    });
    let other = Site::serve(Site::bind().await, |_| Reply::status(401));
    let url = format!("{}/mcp", site.url);
    let token = StaticToken::new(&url, "fixed-s3cr3t").unwrap();
    assert_eq!(call_with(&token, &url, "list").await.unwrap(), StatusCode::OK);
    assert_eq!(call_with(&token, &other.url, "list").await.unwrap(), StatusCode::UNAUTHORIZED);
    assert_eq!(other.log()[0].header("authorization"), None);
    assert!(!format!("{token:?}").contains("s3cr3t"));
    let error = StaticToken::new("http://mcp.example.com/", "t").unwrap_err();
    assert_eq!((error.step(), error.reason()), (Step::Setup, Reason::Settings));
    assert!(StaticToken::without_tls("http://mcp.example.com/", "t").is_ok());
    assert!(StaticToken::new(&url, "a\nb").is_err());
    assert!(StaticToken::new(&url, "").is_err());
}
