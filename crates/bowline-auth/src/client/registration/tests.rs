//! Methods by what a server takes; documents out; answers in.

use super::*;

fn server(methods: Option<&[&str]>) -> ServerMetadata {
    let methods = methods.map(|methods| methods.iter().map(|&name| name.to_owned()).collect());
    ServerMetadata { token_endpoint_auth_methods_supported: methods, ..ServerMetadata::default() }
}

fn key() -> SigningKey {
    SigningKey::from_pkcs8(&SigningKey::generate_pkcs8()).unwrap()
}

#[test]
fn methods_of_registered_clients() {
    fn check(client: &Client, methods: Option<&[&str]>, expected: Option<Method>) {
        let known = client.known_to(&server(methods));
        assert_eq!(known.ok().map(|known| known.method), expected, "{client:?} {methods:?}");
    }
    let (public, secret) = (Client::new("a"), Client::new("a").secret("b"));
    let signed = Client::new("a").private_key(key());
    check(&public, None, Some(Method::None));
    check(&public, Some(&["none"]), Some(Method::None));
    check(&public, Some(&["client_secret_basic"]), Some(Method::None));
    check(&secret, None, Some(Method::Basic));
    check(&secret, Some(&["client_secret_post"]), Some(Method::Post));
    check(&secret, Some(&["client_secret_post", "client_secret_basic"]), Some(Method::Basic));
    check(&secret, Some(&["none"]), None);
    check(&signed, None, Some(Method::PrivateKey));
    check(&signed, Some(&["private_key_jwt"]), Some(Method::PrivateKey));
    check(&signed, Some(&["client_secret_basic"]), None);
}

#[test]
fn the_document() {
    fn check(redirect: &str, methods: Option<&[&str]>, kind: &str, method: &str) {
        let document = request(&server(methods), "An app", redirect, false).unwrap();
        assert_eq!(document["application_type"], kind);
        assert_eq!(document["token_endpoint_auth_method"], method);
        assert_eq!(document["redirect_uris"], json!([redirect]));
        assert_eq!(document["grant_types"], json!(["authorization_code", "refresh_token"]));
        assert_eq!(document.get("dpop_bound_access_tokens"), None);
    }
    check("http://127.0.0.1:1/callback", Some(&["none"]), "native", "none");
    check("http://localhost:1/", None, "native", "client_secret_basic");
    check("com.example.app:/back", Some(&["client_secret_post"]), "native", "client_secret_post");
    check("https://app.example/back", Some(&["client_secret_basic", "none"]), "web", "none");
    assert!(request(&server(Some(&["tls_client_auth"])), "a", "https://b/", false).is_err());
    let bound = request(&server(None), "a", "https://b/", true).unwrap();
    assert_eq!(bound["dpop_bound_access_tokens"], true);
}

#[test]
fn responses() {
    fn check(body: &str, methods: Option<&[&str]>, expected: Result<Method, &str>) {
        let outcome = parse_response(body.as_bytes(), &server(methods), "http://localhost/");
        match (outcome, expected) {
            (Ok(registered), Ok(method)) => assert_eq!(registered.method, method, "{body}"),
            (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{body}: {error}"),
            (outcome, _) => panic!("{body}: {outcome:?}"),
        }
    }
    check(r#"{"client_id": "a"}"#, None, Ok(Method::None));
    check(r#"{"client_id": "a", "client_secret": "s"}"#, None, Ok(Method::Basic));
    let post: &[&str] = &["client_secret_post"];
    check(r#"{"client_id": "a", "client_secret": "s"}"#, Some(post), Ok(Method::Post));
    let none = r#"{"client_id": "a", "client_secret": "s", "token_endpoint_auth_method": "none"}"#;
    check(none, Some(post), Ok(Method::None));
    check(r#"{"client_id": "a", "token_endpoint_auth_method": "x"}"#, None, Err("\"x\""));
    let basic = r#"{"client_id": "a", "token_endpoint_auth_method": "client_secret_basic"}"#;
    check(basic, None, Err("no secret"));
    check(r#"{"client_id": ""}"#, None, Err("empty client_id"));
    check(r#"{"client_secret": "hidden"}"#, None, Err("client_id"));
    check("<html>", None, Err("not valid"));
}

#[test]
fn when_a_registration_is_used_again() {
    fn check(body: &str, redirect: &str, now: u64, expected: bool) {
        let registered =
            parse_response(body.as_bytes(), &server(None), "http://127.0.0.1:7/").unwrap();
        assert_eq!(registered.is_good_for(redirect, now), expected, "{body} {redirect}");
    }
    let dated = r#"{"client_id": "a", "client_secret": "s", "client_secret_expires_at": 100}"#;
    check(dated, "http://127.0.0.1:7/", 99, true);
    check(dated, "http://127.0.0.1:7/", 100, false);
    check(dated, "http://127.0.0.1:8/", 99, false);
    check(r#"{"client_id": "a", "client_secret_expires_at": 0}"#, "http://127.0.0.1:7/", 9, true);
}

#[test]
fn proofs_of_identity() {
    fn check(client: &Client, methods: &[&str], expected: &str, header: Option<&str>) {
        let mut headers = HeaderMap::new();
        let known = client.known_to(&server(Some(methods))).unwrap();
        let key = client.key().map(AsRef::as_ref);
        let form = known.sign_in(Form::new(), &mut headers, key, ("https://as", 1)).unwrap();
        assert!(form.encode().starts_with(expected), "{form:?}");
        assert_eq!(
            form.encode().contains("client_secret"),
            header.is_none() && expected.contains("secret")
        );
        assert_eq!(headers.get(AUTHORIZATION).map(|value| value.to_str().unwrap()), header);
    }
    check(&Client::new("a b"), &["none"], "client_id=a%20b", None);
    let secret = Client::new("a").secret("p:w");
    check(&secret, &["client_secret_post"], "client_id=a&client_secret=p%3Aw", None);
    let basic = format!("Basic {}", STANDARD.encode(b"a:p%3Aw"));
    check(&secret, &["client_secret_basic"], "client_id=a", Some(&basic));
    let signed = Client::new("a").private_key(key());
    let start = "client_id=a&client_assertion_type=urn%3Aietf%3Aparams%3Aoauth%3Aclient-assertion-type%3Ajwt-bearer&client_assertion=ey";
    check(&signed, &["private_key_jwt"], start, None);
}
