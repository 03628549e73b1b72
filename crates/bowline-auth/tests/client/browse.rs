//! Clients and people: somebody who calls an MCP server as the SDK does, and somebody who logs in.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bowline_auth::client::{AuthError, AuthorizationUrl, Hook, Login, OAuth, Redirected};
use bowline_web::{Authorize, Next, Proxy, Web};
use bytes::Bytes;
use http::header::LOCATION;
use http::{HeaderMap, Request, StatusCode};

pub(crate) const REDIRECT: &str = "http://localhost:7/callback";

pub(crate) fn web() -> Web {
    Web::builder().only_given_roots().proxy(Proxy::None).build().unwrap()
}

/// A person who says yes to everything, at once.
pub(crate) fn person() -> impl Login {
    Hook::new(REDIRECT, |page| async move { Ok(Redirected::at(&visit(&page).await)) })
}

/// A person who carries back something else than they were given.
pub(crate) fn forger(forge: fn(String) -> String) -> impl Login {
    Hook::new(REDIRECT, move |page| async move { Ok(Redirected::at(&forge(visit(&page).await))) })
}

/// Somebody who counts how often they are asked.
pub(crate) fn counted() -> (impl Login, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&count);
    let login = Hook::new(REDIRECT, move |page: AuthorizationUrl| {
        counter.fetch_add(1, Ordering::SeqCst);
        async move { Ok(Redirected::at(&visit(&page).await)) }
    });
    (login, count)
}

/// Where an authorization server sends a person.
pub(crate) async fn visit(page: &AuthorizationUrl) -> String {
    let request = Request::get(page.as_str()).body(Bytes::new()).unwrap();
    let answer = web().fetch(request).await.unwrap();
    let location = answer.headers().get(LOCATION);
    location.map_or_else(String::new, |value| value.to_str().unwrap().to_owned())
}

/// One request, as often as the authorization wants it sent; more than eight times is a loop.
pub(crate) async fn call_with(
    auth: &dyn Authorize,
    url: &str,
    operation: &str,
) -> Result<StatusCode, AuthError> {
    for _ in 0..8 {
        let request = Request::post(url).header("x-operation", operation);
        let (mut parts, ()) = request.body(()).unwrap().into_parts();
        let more = auth.headers(&parts).await.map_err(known)?;
        parts.headers.extend(more);
        let request = Request::from_parts(parts.clone(), Bytes::from_static(b"{}"));
        let answer = web().fetch(request).await.unwrap();
        let next = auth.handle_answer(&parts, answer.status(), answer.headers()).await;
        if next.map_err(known)? == Next::Use {
            return Ok(answer.status());
        }
    }
    panic!("{operation}: sent again without an end");
}

fn known(error: bowline_web::AuthorizeError) -> AuthError {
    *error.downcast::<AuthError>().unwrap()
}

/// Shows an authorization a refusal that no server sent.
pub(crate) async fn refuse(auth: &OAuth, url: &str, challenge: &str) -> Result<Next, AuthError> {
    let (parts, ()) = Request::post(url).body(()).unwrap().into_parts();
    let mut headers = HeaderMap::new();
    headers.insert("www-authenticate", challenge.parse().unwrap());
    auth.handle_answer(&parts, StatusCode::UNAUTHORIZED, &headers).await.map_err(known)
}
