//! Tokens that end: renewed once, by one of many, and by a person only if nothing else helps.

use std::process::Stdio;

use bowline_auth::client::{
    FileStore, Hook, MemoryStore, OAuth, Reason, Secret, Step, Store, StoreLock, Stored,
};
use http::StatusCode;
use tokio::process::Command;

use crate::browse::{REDIRECT, call_with, person, web};
use crate::site::{Asked, Reply};
use crate::world::{Rules, World};

fn grants(world: &World) -> Vec<String> {
    world.token_requests().iter().filter_map(|asked| asked.form("grant_type")).collect()
}

#[tokio::test]
async fn renewed_before_it_is_refused() {
    let world = World::new(Rules { expires_in: 0, ..Rules::default() }).await;
    let auth = world.login();
    let refused = world.server.asked("/mcp").len();
    assert_eq!(world.call(&auth, "list").await.unwrap(), StatusCode::OK);
    assert_eq!(grants(&world), ["authorization_code", "refresh_token"]);
    assert_eq!(world.token_requests()[1].form("resource"), Some(world.mcp()));
    // Once without a token, once with one that is good.
    assert_eq!(world.server.asked("/mcp").len() - refused, 2);
    world.rules().expires_in = 3600;
    assert_eq!(world.call(&auth, "list").await.unwrap(), StatusCode::OK);
    assert_eq!(world.call(&auth, "list").await.unwrap(), StatusCode::OK);
    assert_eq!(grants(&world).len(), 3);
    world.check();
}

#[tokio::test]
async fn renewed_after_it_is_refused() {
    let world = World::new(Rules::default()).await;
    let auth = world.login();
    assert_eq!(world.call(&auth, "list").await.unwrap(), StatusCode::OK);
    for round in 2..5 {
        world.revoke();
        assert_eq!(world.call(&auth, "list").await.unwrap(), StatusCode::OK);
        assert_eq!(grants(&world).len(), round);
    }
    assert_eq!(world.logins(), 1);
    world.check();
}

#[tokio::test]
async fn a_login_when_nothing_else_helps() {
    for refreshes in [true, false] {
        let world = World::new(Rules { refreshes, ..Rules::default() }).await;
        let auth = world.login();
        assert_eq!(world.call(&auth, "list").await.unwrap(), StatusCode::OK);
        world.revoke();
        world.revoke_refresh();
        assert_eq!(world.call(&auth, "list").await.unwrap(), StatusCode::OK);
        assert_eq!(world.logins(), 2);
        world.check();
    }
}

#[tokio::test]
async fn a_login_anew_that_fails_leaves_the_tokens() {
    let world = World::new(Rules::default()).await;
    let store = MemoryStore::new();
    let login = || world.login_with(person()).store(store.clone());
    assert_eq!(world.call(&login().build().unwrap(), "list").await.unwrap(), StatusCode::OK);
    world.rules().first =
        Box::new(|asked: &Asked| asked.form("grant_type").map(|_| Reply::status(503)));
    let anew = login().anew().build().unwrap();
    let error = world.call(&anew, "list").await.unwrap_err();
    assert_eq!(error.reason(), Reason::Unavailable);
    world.rules().first = Box::new(|_| None);
    assert_eq!(world.call(&login().build().unwrap(), "list").await.unwrap(), StatusCode::OK);
    assert_eq!(world.logins(), 2, "the earlier tokens are still good");
    // One that succeeds replaces them, and is used from then on.
    assert_eq!(world.call(&anew, "list").await.unwrap(), StatusCode::OK);
    assert_eq!(world.call(&anew, "list").await.unwrap(), StatusCode::OK);
    assert_eq!(world.call(&login().build().unwrap(), "list").await.unwrap(), StatusCode::OK);
    assert_eq!(world.logins(), 3);
    world.check();
}

#[tokio::test]
async fn many_requests_one_refresh() {
    let world = World::new(Rules { expires_in: 0, ..Rules::default() }).await;
    let store = MemoryStore::new();
    let first = world.login_with(person()).store(store.clone()).build().unwrap();
    // Ends with an unused token that is over.
    world.rules().first = Box::new(|asked: &Asked| {
        let is_refresh = asked.form("grant_type").as_deref() == Some("refresh_token");
        is_refresh.then(|| Reply::status(503))
    });
    let error = world.call(&first, "list").await.unwrap_err();
    assert_eq!((error.step(), error.reason()), (Step::Refresh, Reason::Unavailable));
    world.rules().first = Box::new(|_| None);
    world.rules().expires_in = 3600;
    let before = grants(&world).len();
    // Two programs with one store, ten requests each.
    let second = world.login_with(person()).store(store).build().unwrap();
    let calls: Vec<_> = (0..20)
        .map(|n| {
            let (auth, url) = (if n % 2 == 0 { &first } else { &second }.clone(), world.mcp());
            tokio::spawn(async move { call_with(&auth, &url, "call").await })
        })
        .collect();
    for call in calls {
        assert_eq!(call.await.unwrap().unwrap(), StatusCode::OK);
    }
    assert_eq!(grants(&world).len(), before + 1);
    assert_eq!(world.logins(), 1);
    world.check();
}

/// A request that is dropped while it refreshes does not lose the new refresh token.
#[tokio::test]
async fn a_dropped_request_does_not_tear_a_refresh() {
    let world = World::new(Rules { expires_in: 0, ..Rules::default() }).await;
    let auth = world.login();
    assert_eq!(world.call(&auth, "list").await.unwrap(), StatusCode::OK);
    world.rules().expires_in = 3600;
    let before = grants(&world).len();
    let (task, url) = (auth.clone(), world.mcp());
    let call = tokio::spawn(async move { call_with(&task, &url, "list").await });
    while grants(&world).len() == before {
        tokio::task::yield_now().await;
    }
    call.abort();
    assert_eq!(world.call(&auth, "list").await.unwrap(), StatusCode::OK);
    assert_eq!(grants(&world).len(), before + 1);
    assert_eq!(world.logins(), 1);
    world.check();
}

/// A refresh goes where the login went, whatever the metadata says by now; and a server that
/// refuses every token is given up.
#[tokio::test]
async fn refresh_tokens_go_where_they_came_from() {
    let world = World::new(Rules { expires_in: 0, ..Rules::default() }).await;
    let auth = world.login();
    assert_eq!(world.call(&auth, "list").await.unwrap(), StatusCode::OK);
    let canary = world.canary.url.clone();
    world.rules().edit_metadata =
        Box::new(move |it| it["token_endpoint"] = format!("{canary}/token").into());
    assert_eq!(world.call(&auth, "list").await.unwrap(), StatusCode::OK);
    world.check();
}

#[tokio::test]
async fn a_server_that_refuses_everything() {
    let rules = Rules {
        first: Box::new(|asked| {
            let reply =
                || Reply::status(401).with("www-authenticate", r#"Bearer error="invalid_token""#);
            (asked.path == "/mcp").then(reply)
        }),
        prm: crate::world::Prm::WellKnown("/.well-known/oauth-protected-resource/mcp"),
        ..Rules::default()
    };
    let world = World::new(rules).await;
    let error = world.call(&world.login(), "list").await.unwrap_err();
    assert_eq!((error.step(), error.reason()), (Step::Request, Reason::Refused));
    assert!(error.received().contains("invalid_token"), "{error}");
    assert_eq!(world.logins(), 1);
    assert_eq!(grants(&world), ["authorization_code", "refresh_token"]);
}

/// A store on a full disk.
#[derive(Default)]
struct Full(MemoryStore);

impl Store for Full {
    fn load<'a>(&'a self, key: &'a str) -> Stored<'a, Option<Secret>> {
        self.0.load(key)
    }

    fn save<'a>(&'a self, _: &'a str, _: &'a Secret) -> Stored<'a, ()> {
        Box::pin(async { Err("no space left".into()) })
    }

    fn remove<'a>(&'a self, key: &'a str) -> Stored<'a, ()> {
        self.0.remove(key)
    }

    fn lock<'a>(&'a self, key: &'a str) -> Stored<'a, StoreLock> {
        self.0.lock(key)
    }
}

#[tokio::test]
async fn a_store_that_keeps_nothing() {
    let world = World::new(Rules { expires_in: 0, ..Rules::default() }).await;
    let auth = world.login_with(person()).store(Full::default()).build().unwrap();
    for _ in 0..2 {
        assert_eq!(world.call(&auth, "list").await.unwrap(), StatusCode::OK);
    }
    world.revoke();
    assert_eq!(world.call(&auth, "list").await.unwrap(), StatusCode::OK);
    assert_eq!(world.logins(), 1);
    world.check();
}

/// A client that is forgotten while its tokens are still there.
#[tokio::test]
async fn a_client_that_was_forgotten() {
    let world = World::new(Rules::default()).await;
    let auth = world.login();
    assert_eq!(world.call(&auth, "list").await.unwrap(), StatusCode::OK);
    world.revoke();
    world.rules().first = Box::new(|asked| {
        let is_refresh = asked.form("grant_type").as_deref() == Some("refresh_token");
        is_refresh.then(|| Reply::error(401, "invalid_client"))
    });
    assert_eq!(world.call(&auth, "list").await.unwrap(), StatusCode::OK);
    assert_eq!(world.guards[0].asked("/register").len(), 2);
    world.check();
}

const CHILD: &str = "BOWLINE_AUTH_CHILD";

/// Four processes find the same token over at the same time. A refresh token is good once: if two
/// of them used it, one would have to ask a person, and there is none.
#[tokio::test(flavor = "multi_thread")]
async fn four_processes_one_refresh() {
    let world = World::new(Rules { expires_in: 0, ..Rules::default() }).await;
    let folder = std::env::temp_dir().join(format!("bowline-auth-{}", std::process::id()));
    let store = FileStore::open(&folder).unwrap();
    let auth = world.login_with(person()).store(store).build().unwrap();
    assert_eq!(world.call(&auth, "list").await.unwrap(), StatusCode::OK);
    world.rules().expires_in = 3600;
    let before = grants(&world).len();
    let children: Vec<_> = (0..4)
        .map(|_| {
            Command::new(std::env::current_exe().unwrap())
                .args(["renewal::child", "--exact", "--nocapture"])
                .env(CHILD, format!("{} {}", world.mcp(), folder.display()))
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .kill_on_drop(true)
                .spawn()
                .unwrap()
        })
        .collect();
    for child in children {
        let output = child.wait_with_output().await.unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{said}{text}");
        assert!(said.contains("1 passed"), "{said}");
    }
    assert_eq!(grants(&world).len(), before + 1);
    assert_eq!(world.logins(), 1);
    std::fs::remove_dir_all(&folder).unwrap();
    world.check();
}

/// What each of the four does; nothing by itself.
#[tokio::test]
async fn child() {
    let Ok(task) = std::env::var(CHILD) else {
        return;
    };
    let (url, folder) = task.split_once(' ').unwrap();
    let nobody = Hook::new(REDIRECT, |_| async { Err("there is nobody".into()) });
    let auth = OAuth::login(url, nobody).store(FileStore::open(folder).unwrap()).web(web());
    let status = call_with(&auth.build().unwrap(), url, "list").await.unwrap();
    assert_eq!(status, StatusCode::OK);
}
