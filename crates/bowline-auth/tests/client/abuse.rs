//! Servers, guards and redirects that are up to no good. Each is refused, the refusal says where,
//! and nothing confidential leaves for a place where it does not belong.

use bowline_auth::client::Reason::{
    self, Abandoned, Broken, Refused, Settings, Unavailable, Unsafe,
};
use bowline_auth::client::Step::{
    self, Callback, Registration, Request, ResourceMetadata, ServerMetadata, Token,
};
use serde_json::{Value, json};

use crate::browse::forger;
use crate::site::Reply;
use crate::world::{Iss, Prm, Rules, World};

/// What is wrong, in one of the places where something can be.
enum Wrong {
    /// A member of the resource's metadata; null takes it away.
    Prm(&'static str, Value),
    /// A member of the guard's metadata.
    Guard(&'static str, Value),
    /// A member of the answer to a registration.
    Client(&'static str, Value),
    /// A member of the answer to a token request.
    Token(&'static str, Value),
    /// The answer at a path: a status and a body.
    Reply(&'static str, u16, &'static str),
    /// A redirect from a path, to the canary (`*`) or elsewhere.
    Redirect(&'static str, u16, &'static str),
    /// What comes back from the login.
    Forged(fn(String) -> String),
    /// Something else.
    Rules(fn(&mut Rules)),
}

use Wrong::{Client, Forged, Guard, Prm as Resource, Redirect, Reply as Answer, Rules as Rule};

const PRM: &str = "/.well-known/oauth-protected-resource/mcp";
const METADATA: &str = "/.well-known/oauth-authorization-server";

fn set(member: &'static str, value: Value) -> Box<dyn Fn(&mut Value) + Send + Sync> {
    Box::new(move |document| {
        let members = document.as_object_mut().unwrap();
        match &value {
            Value::Null => drop(members.remove(member)),
            value => drop(members.insert(member.to_owned(), value.clone())),
        }
    })
}

async fn check(wrong: Wrong, step: Step, reason: Reason, says: &str) {
    let world = World::new(Rules::default()).await;
    let canary = world.canary.url.clone();
    let mut forge: fn(String) -> String = |location| location;
    {
        let mut rules = world.rules();
        match wrong {
            Resource(member, value) => rules.edit_prm = set(member, value),
            Guard(member, value) => rules.edit_metadata = set(member, value),
            Client(member, value) => rules.edit_registration = set(member, value),
            Wrong::Token(member, value) => rules.edit_token = set(member, value),
            Answer(path, status, body) => {
                rules.first = Box::new(move |asked| {
                    let reply = || Reply { body: body.to_owned(), ..Reply::status(status) };
                    (asked.path == path).then(reply)
                });
            }
            Redirect(path, status, to) => {
                let to = to.replace('*', &canary);
                rules.first = Box::new(move |asked| {
                    (asked.path == path).then(|| Reply::redirect(status, &to))
                });
            }
            Forged(function) => forge = function,
            Rule(change) => change(&mut rules),
        }
    }
    let auth = world.login_with(forger(forge)).build().unwrap();
    let error = world.call(&auth, "list").await.unwrap_err();
    let text = format!("{error} {error:?}");
    assert_eq!((error.step(), error.reason()), (step, reason), "{error}");
    assert!(text.contains(says), "{says}: {error}");
    assert!(!error.received().is_empty() && !error.expected().is_empty());
    assert!(!text.contains("s3cr3t"), "{text}");
    if step != Token && step != Request {
        assert!(world.token_requests().is_empty(), "{error}");
    }
    if step != Token && step != Request && step != Callback {
        assert_eq!(world.logins(), 0, "{error}");
    }
    if step != Request {
        let shown = |asked: &crate::site::Asked| asked.header("authorization").is_some();
        assert!(!world.server.log().iter().any(shown), "{error}");
    }
    world.check();
}

#[tokio::test]
async fn resources_that_are_not_ours() {
    for (resource, says) in [
        ("https://evil.example.com/mcp", "evil.example.com"),
        ("http://127.0.0.1:1/mcp", ":1/mcp"),
        ("http://127.0.0.1/mcp", "127.0.0.1/mcp"),
        ("http://localhost/mcp", "localhost"),
        ("urn:mcp", "urn:mcp"),
        ("", "resource \"\""),
        ("*", "resource \"*\""),
    ] {
        check(Resource("resource", json!(resource)), ResourceMetadata, Unsafe, says).await;
    }
    check(Resource("resource", Value::Null), ResourceMetadata, Broken, "resource").await;
    check(Resource("resource", json!(["a"])), ResourceMetadata, Broken, "expected").await;
    check(Resource("authorization_servers", Value::Null), ResourceMetadata, Broken, "at least one")
        .await;
    check(Resource("authorization_servers", json!([])), ResourceMetadata, Broken, "at least one")
        .await;
    check(Resource("authorization_servers", json!("https://a")), ResourceMetadata, Broken, "")
        .await;
    check(Answer(PRM, 200, "[]"), ResourceMetadata, Broken, "not a JSON object").await;
    check(Answer(PRM, 200, "<html>"), ResourceMetadata, Broken, "not a JSON object").await;
    check(Answer(PRM, 404, ""), ResourceMetadata, Broken, "status 404").await;
    check(Answer(PRM, 500, ""), ResourceMetadata, Unavailable, "status 500").await;
    check(Redirect(PRM, 302, "*/x"), ResourceMetadata, Unsafe, "same origin").await;
    check(Redirect(PRM, 307, PRM), ResourceMetadata, Broken, "at most 3 redirects").await;
    check(Redirect(PRM, 301, "file:///etc/passwd"), ResourceMetadata, Unsafe, "file:").await;
}

#[tokio::test]
async fn issuers_that_nobody_should_go_to() {
    for (issuer, says) in [
        ("http://as.example.com", "https, or http on this machine"),
        ("javascript:alert(1)", "absolute http or https"),
        ("file:///etc", "absolute http or https"),
        ("https://user:pw@as.example.com", "without a user"),
        ("https://as.example.com/#x", "without a fragment"),
        ("", "absolute"),
    ] {
        check(Resource("authorization_servers", json!([issuer])), ServerMetadata, Unsafe, says)
            .await;
    }
    let queried = json!(["http://localhost:1/?tenant=x"]);
    check(Resource("authorization_servers", queried), ServerMetadata, Broken, "without a query")
        .await;
}

#[tokio::test]
async fn guards_that_are_somebody_else() {
    for issuer in ["https://evil.example.com", "", "http://127.0.0.1", "HTTP://127.0.0.1"] {
        check(Guard("issuer", json!(issuer)), ServerMetadata, Unsafe, "byte for byte").await;
    }
    check(
        Rule(|rules| {
            rules.edit_metadata =
                Box::new(|it| it["issuer"] = json!(format!("{}/", it["issuer"].as_str().unwrap())));
        }),
        ServerMetadata,
        Unsafe,
        "byte for byte",
    )
    .await;
    check(Guard("issuer", Value::Null), ServerMetadata, Broken, "issuer").await;
    check(Answer(METADATA, 200, "{"), ServerMetadata, Broken, "EOF").await;
    check(Answer(METADATA, 200, "[]"), ServerMetadata, Broken, "status 404").await;
    check(Answer(METADATA, 500, ""), ServerMetadata, Unavailable, "status 500").await;
    check(Rule(|rules| rules.metadata_at = None), ServerMetadata, Broken, "status 404").await;
    check(Redirect(METADATA, 302, "*/x"), ServerMetadata, Unsafe, "same origin").await;
    check(Redirect(METADATA, 302, METADATA), ServerMetadata, Broken, "redirects").await;
}

#[tokio::test]
async fn guards_that_are_careless() {
    let methods = "code_challenge_methods_supported";
    check(Guard(methods, Value::Null), ServerMetadata, Unsafe, "S256").await;
    check(Guard(methods, json!([])), ServerMetadata, Unsafe, "S256").await;
    check(Guard(methods, json!(["plain"])), ServerMetadata, Unsafe, "plain").await;
    check(Guard(methods, json!(["s256"])), ServerMetadata, Unsafe, "s256").await;
    for name in ["authorization_endpoint", "token_endpoint"] {
        check(Guard(name, Value::Null), ServerMetadata, Broken, name).await;
    }
    for name in ["authorization_endpoint", "token_endpoint", "registration_endpoint"] {
        for address in [
            "http://evil.example.com/x",
            "javascript:alert(1)",
            "data:text/html,x",
            "file:///x",
            "https://a@b/",
        ] {
            check(Guard(name, json!(address)), ServerMetadata, Unsafe, "").await;
        }
    }
}

#[tokio::test]
async fn registrations_that_fail() {
    check(
        Answer("/register", 400, r#"{"error": "invalid_redirect_uri"}"#),
        Registration,
        Refused,
        "invalid_redirect_uri",
    )
    .await;
    check(Answer("/register", 500, ""), Registration, Unavailable, "500").await;
    check(Answer("/register", 200, "<html>"), Registration, Broken, "client_id").await;
    check(Redirect("/register", 307, "*/register"), Registration, Unsafe, "not sent on").await;
    check(Client("client_id", Value::Null), Registration, Broken, "client_id").await;
    check(
        Client("token_endpoint_auth_method", json!("tls_client_auth")),
        Registration,
        Broken,
        "tls_client_auth",
    )
    .await;
    check(Guard("registration_endpoint", Value::Null), Registration, Settings, "by hand").await;
    let methods = json!(["private_key_jwt"]);
    check(
        Guard("token_endpoint_auth_methods_supported", methods),
        Registration,
        Settings,
        "private_key_jwt",
    )
    .await;
}

#[tokio::test]
async fn redirects_that_are_forged() {
    check(Forged(|_| String::new()), Callback, Unsafe, "no state").await;
    check(Forged(|it| it.replace("state=", "other=")), Callback, Unsafe, "no state").await;
    check(Forged(|it| it.replace("state=", "state=x")), Callback, Unsafe, "another state").await;
    check(
        Forged(|it| it.to_uppercase().replace("STATE=", "state=")),
        Callback,
        Unsafe,
        "another state",
    )
    .await;
    check(Forged(|it| it + "&state=x"), Callback, Broken, "repeated").await;
    check(Forged(|it| it + "&code=evil"), Callback, Broken, "repeated").await;
    check(Forged(|it| it + "&iss=https://evil.example"), Callback, Broken, "repeated").await;
    check(Forged(|it| it.replace("code=", "cod=")), Callback, Broken, "neither").await;
    check(
        Forged(|it| it.replace("code=", "error=access_denied&x=")),
        Callback,
        Abandoned,
        "access_denied",
    )
    .await;
    check(
        Forged(|it| it.replace("code=", "error=server_error&x=")),
        Callback,
        Refused,
        "server_error",
    )
    .await;
    check(Forged(|it| it.replace("code=", "error=x&code=")), Callback, Refused, "error").await;
    check(Forged(|it| it.replace("code=", "code=%zz")), Callback, Broken, "decoded").await;
    check(Rule(|rules| rules.iss = Iss::Missing), Callback, Unsafe, "no `iss`").await;
    check(Rule(|rules| rules.iss = Iss::WithSlash), Callback, Unsafe, "`iss`").await;
    check(Rule(|rules| rules.iss = Iss::Other("https://evil.example")), Callback, Unsafe, "evil")
        .await;
    check(
        Rule(|rules| {
            rules.iss = Iss::Other("https://evil.example");
            rules.edit_metadata =
                set("authorization_response_iss_parameter_supported", Value::Null);
        }),
        Callback,
        Unsafe,
        "evil",
    )
    .await;
}

#[tokio::test]
async fn tokens_that_are_none() {
    check(Redirect("/token", 307, "*/token"), Token, Unsafe, "not sent on").await;
    check(Redirect("/token", 302, "*/token"), Token, Unsafe, "not sent on").await;
    check(Answer("/token", 200, "<html>"), Token, Broken, "not valid").await;
    check(Answer("/token", 400, r#"{"error": "invalid_grant"}"#), Token, Refused, "invalid_grant")
        .await;
    check(Answer("/token", 503, ""), Token, Unavailable, "503").await;
    check(Wrong::Token("access_token", Value::Null), Token, Broken, "not valid").await;
    check(Wrong::Token("access_token", json!("a\r\nx-evil: 1")), Token, Broken, "in a header")
        .await;
    check(Wrong::Token("access_token", json!("")), Token, Broken, "in a header").await;
    check(Wrong::Token("token_type", json!("mac")), Token, Broken, "mac").await;
    check(Wrong::Token("token_type", json!("DPoP")), Token, Unsafe, "no proof was sent").await;
    check(Wrong::Token("token_type", json!("N_A")), Token, Unsafe, "N_A").await;
    check(Wrong::Token("token_type", Value::Null), Token, Broken, "not valid").await;
    let huge = "x".repeat(2 << 20);
    check(Wrong::Token("access_token", json!(huge)), Token, Broken, "bytes").await;
    // A complaint that repeats what it was sent.
    check(
        Rule(|rules| {
            rules.first = Box::new(|asked| {
                let code = asked.form("code")?;
                let body =
                    json!({"error": "invalid_grant", "error_description": format!("bad {code}")});
                Some(Reply { body: body.to_string(), ..Reply::status(400) })
            });
        }),
        Token,
        Refused,
        "bad …",
    )
    .await;
}

/// Tokens that are never good: an end is found without a second login.
#[tokio::test]
async fn a_server_that_wants_another_token_for_ever() {
    check(
        Rule(|rules| {
            rules.prm = Prm::WellKnown(PRM);
            rules.first = Box::new(|asked| {
                let reply = Reply::status(401).with("www-authenticate", "Bearer");
                (asked.path == "/mcp").then_some(reply)
            });
        }),
        Request,
        Refused,
        "2 new tokens",
    )
    .await;
}
