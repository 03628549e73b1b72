//! People in front of browsers and terminals.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bowline_auth::client::{AuthorizationUrl, Browser, Hook, Limits, Paste, Reason, Step};
use bytes::Bytes;
use http::{Request, StatusCode};
use serde_json::json;

use crate::browse::{REDIRECT, visit, web};
use crate::world::{Rules, World};

/// A person who opens the page that they are shown, and whose browser follows redirects.
#[tokio::test]
async fn a_browser_on_this_machine() {
    let world = World::new(Rules::default()).await;
    let browser = Browser::new().print().show(|page: &AuthorizationUrl| {
        let page = page.clone();
        tokio::spawn(async move {
            let location = visit(&page).await;
            let answer = web().fetch(Request::get(location).body(Bytes::new()).unwrap()).await;
            assert_eq!(answer.unwrap().status(), StatusCode::OK);
        });
    });
    let auth = world.login_with(browser).build().unwrap();
    assert_eq!(world.call(&auth, "list").await.unwrap(), StatusCode::OK);
    let redirect = world.guards[0].asked("/authorize")[0].query("redirect_uri").unwrap();
    assert!(redirect.starts_with("http://127.0.0.1:"), "{redirect}");
    assert_eq!(world.guards[0].asked("/register")[0].json()["redirect_uris"], json!([redirect]));
    // The next login has another port, and says so to the authorization server.
    auth.forget().await.unwrap();
    assert_eq!(world.call(&auth, "list").await.unwrap(), StatusCode::OK);
    world.check();
}

#[tokio::test]
async fn a_page_that_is_pasted() {
    let world = World::new(Rules::default()).await;
    let (sender, receiver) = std::sync::mpsc::channel::<String>();
    let (receiver, runtime) = (Mutex::new(receiver), tokio::runtime::Handle::current());
    let paste = Paste::new().ask(move |question| {
        let page =
            question.lines().find(|line| line.contains("http://")).unwrap().trim().to_owned();
        let sender = sender.clone();
        runtime.spawn(async move {
            let request = Request::get(page).body(Bytes::new()).unwrap();
            let answer = web().fetch(request).await.unwrap();
            let location = answer.headers()["location"].to_str().unwrap().to_owned();
            sender.send(format!("  {location}\n")).unwrap();
        });
        Ok(receiver.lock().unwrap().recv().unwrap())
    });
    let auth = world.login_with(paste).build().unwrap();
    assert_eq!(world.call(&auth, "list").await.unwrap(), StatusCode::OK);
    world.check();
}

#[tokio::test]
async fn a_person_who_does_not_come_back() {
    let world = World::new(Rules::default()).await;
    let gone = Arc::new(tokio::sync::Notify::new());
    let ended = Arc::clone(&gone);
    let login = Hook::new(REDIRECT, move |_| {
        let ended = Arc::clone(&ended);
        async move {
            let _end = Ended(ended);
            std::future::pending().await
        }
    });
    let mut limits = Limits::default();
    limits.login = Duration::from_millis(30);
    let auth = world.login_with(login).limits(limits).build().unwrap();
    let error = world.call(&auth, "list").await.unwrap_err();
    assert_eq!((error.step(), error.reason()), (Step::Login, Reason::Abandoned));
    assert!(error.received().contains("no redirect within 0.03 s"), "{error}");
    gone.notified().await;
}

/// Tells that it was dropped.
struct Ended(Arc<tokio::sync::Notify>);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}
