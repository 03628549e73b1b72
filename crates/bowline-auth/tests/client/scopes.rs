//! Which scopes are asked for, how often, and when that ends.

use bowline_auth::client::{Client, Hook, OAuth, Reason, Redirected, Step};
use http::StatusCode;
use serde_json::{Value, json};

use crate::browse::{REDIRECT, person, visit, web};
use crate::site::Reply;
use crate::world::{Rules, World};

fn requested(world: &World) -> Vec<Option<String>> {
    let logins = world.guards[0].asked("/authorize");
    logins.iter().map(|asked| asked.query("scope")).collect()
}

#[tokio::test]
async fn the_first_request() {
    async fn check(
        scope: Option<&'static str>,
        of_resource: Option<Value>,
        of_server: Option<Value>,
        expected: Option<&str>,
    ) {
        let rules = Rules {
            scope,
            edit_prm: Box::new(move |it| {
                if let Some(scopes) = &of_resource {
                    it["scopes_supported"] = scopes.clone();
                }
            }),
            edit_metadata: Box::new(move |it| {
                if let Some(scopes) = &of_server {
                    it["scopes_supported"] = scopes.clone();
                }
            }),
            ..Rules::default()
        };
        let world = World::new(rules).await;
        assert_eq!(world.call(&world.login(), "list").await.unwrap(), StatusCode::OK);
        assert_eq!(requested(&world), [expected.map(str::to_owned)]);
        let prompt = world.guards[0].asked("/authorize")[0].query("prompt");
        let is_offline = expected.is_some_and(|scope| scope.contains("offline_access"));
        assert_eq!(prompt.as_deref(), is_offline.then_some("consent"));
        world.check();
    }
    let all = || Some(json!(["mcp:basic", "mcp:read", "mcp:write"]));
    check(Some("mcp:basic"), all(), None, Some("mcp:basic")).await;
    check(None, all(), None, Some("mcp:basic mcp:read mcp:write")).await;
    check(None, None, None, None).await;
    check(None, Some(json!([])), None, None).await;
    let offline = || Some(json!(["mcp:basic", "offline_access"]));
    check(Some("mcp:basic"), None, offline(), Some("mcp:basic offline_access")).await;
    check(Some("mcp:basic"), None, Some(json!(["mcp:basic"])), Some("mcp:basic")).await;
    check(None, None, offline(), None).await;
}

#[tokio::test]
async fn scopes_of_the_application() {
    let world = World::new(Rules { scope: Some("a"), ..Rules::default() }).await;
    let auth = world.login_with(person()).scopes(["x", "a"]).without_offline_access();
    assert_eq!(world.call(&auth.build().unwrap(), "list").await.unwrap(), StatusCode::OK);
    assert_eq!(requested(&world), [Some("a x".to_owned())]);
}

#[tokio::test]
async fn stepping_up_keeps_what_was_given() {
    let rules = Rules {
        scope: Some("mcp:basic"),
        needs: &[("list", "mcp:basic"), ("call", "mcp:basic mcp:write"), ("wipe", "mcp:wipe")],
        says: None,
        edit_prm: Box::new(|it| it["scopes_supported"] = json!(["mcp:profile"])),
        ..Rules::default()
    };
    let world = World::new(rules).await;
    let auth = world.login();
    assert_eq!(world.call(&auth, "open").await.unwrap(), StatusCode::OK);
    assert_eq!(world.call(&auth, "list").await.unwrap(), StatusCode::OK);
    world.rules().says = Some("mcp:write");
    assert_eq!(world.call(&auth, "call").await.unwrap(), StatusCode::OK);
    assert_eq!(world.call(&auth, "list").await.unwrap(), StatusCode::OK);
    world.rules().says = None;
    assert_eq!(world.call(&auth, "wipe").await.unwrap(), StatusCode::OK);
    let expected = ["mcp:basic", "mcp:basic mcp:write", "mcp:basic mcp:write mcp:wipe"];
    assert_eq!(requested(&world), expected.map(|scope| Some(scope.to_owned())));
    world.check();
}

/// A server that says with a 401 what others say with a 403.
#[tokio::test]
async fn stepping_up_after_a_401() {
    let rules = Rules { scope: Some("a"), needs: &[("call", "b")], ..Rules::default() };
    let world = World::new(rules).await;
    let auth = world.login();
    assert_eq!(world.call(&auth, "list").await.unwrap(), StatusCode::OK);
    let old =
        world.server.asked("/mcp").last().unwrap().header("authorization").unwrap().to_owned();
    world.rules().first = Box::new(move |asked| {
        let challenge = r#"Bearer error="insufficient_scope", scope="b""#;
        let reply = Reply::status(401).with("www-authenticate", challenge);
        (asked.header("authorization") == Some(old.as_str())).then_some(reply)
    });
    assert_eq!(world.call(&auth, "call").await.unwrap(), StatusCode::OK);
    let expected = ["a", "a b"].map(|scope| Some(scope.to_owned()));
    assert_eq!(requested(&world), expected);
}

/// The scope is asked for at once, never given, and the server never content.
#[tokio::test]
async fn what_is_never_given_is_not_asked_for_again() {
    let rules = Rules {
        scope: Some("mcp:admin"),
        needs: &[("list", "mcp:admin")],
        withheld: "mcp:admin",
        ..Rules::default()
    };
    let world = World::new(rules).await;
    let auth = world.login();
    for _ in 0..3 {
        assert_eq!(world.call(&auth, "list").await.unwrap(), StatusCode::FORBIDDEN);
    }
    assert_eq!(world.logins(), 1);
    world.check();
}

/// A server that asks for something else each time.
#[tokio::test]
async fn stepping_up_has_an_end() {
    let rules = Rules {
        scope: Some("s0"),
        first: Box::new(|asked| {
            let count = asked.header("authorization")?.split('-').nth(1)?.to_owned();
            let challenge = format!(r#"Bearer error="insufficient_scope", scope="s{count}""#);
            let reply = Reply::status(403).with("www-authenticate", &challenge);
            (asked.path == "/mcp").then_some(reply)
        }),
        ..Rules::default()
    };
    let world = World::new(rules).await;
    let auth = world.login();
    for _ in 0..3 {
        assert_eq!(world.call(&auth, "list").await.unwrap(), StatusCode::FORBIDDEN);
    }
    assert_eq!(world.logins(), 3);
}

/// A person who does not want to give more is asked once.
#[tokio::test]
async fn a_refused_step_up_is_not_repeated() {
    let rules = Rules { scope: Some("a"), needs: &[("call", "b")], ..Rules::default() };
    let world = World::new(rules).await;
    let login = Hook::new(REDIRECT, |page| async move {
        let location = visit(&page).await;
        let is_more = page.as_str().contains("scope=a%20b");
        let state = page.state().unwrap();
        let iss = location.split_once("&iss=").unwrap().1.to_owned();
        let denied = format!("error=access_denied&state={state}&iss={iss}");
        Ok(Redirected::at(if is_more { &denied } else { &location }))
    });
    let auth = world.login_with(login).build().unwrap();
    assert_eq!(world.call(&auth, "list").await.unwrap(), StatusCode::OK);
    let error = world.call(&auth, "call").await.unwrap_err();
    assert_eq!((error.step(), error.reason()), (Step::Callback, Reason::Abandoned));
    assert_eq!(world.call(&auth, "call").await.unwrap(), StatusCode::FORBIDDEN);
    assert_eq!(world.call(&auth, "list").await.unwrap(), StatusCode::OK);
    assert_eq!(world.logins(), 2);
    world.check();
}

#[tokio::test]
async fn an_application_steps_up_without_a_person() {
    let rules = Rules {
        scope: Some("a"),
        needs: &[("call", "b")],
        known: "app:pw",
        methods: &["client_secret_basic"],
        ..Rules::default()
    };
    let world = World::new(rules).await;
    let client = Client::new("app").secret("pw");
    let auth = OAuth::client_credentials(world.mcp(), client).web(web()).build().unwrap();
    assert_eq!(world.call(&auth, "call").await.unwrap(), StatusCode::OK);
    let scopes: Vec<_> = world.token_requests().iter().map(|asked| asked.form("scope")).collect();
    assert_eq!(scopes, [Some("a".to_owned()), Some("a b".to_owned())]);
    world.check();
}
