//! Logging in, with each step shown.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bowline::base64::URL;
use bowline::client::auth::{Browser, Client as OAuthClient, Exchange, Limits, OAuth};
use bowline::with_causes;
use bowline_inspector::{Feed, Keep, Login, Problem};
use serde_json::{Value, json};

use super::link::Link;
use crate::commands::login::{connect, open_store, url_of};
use crate::failure::Failure;
use crate::session::Settings;

/// How long a person may take.
const WAIT: Duration = Duration::from_secs(300);
/// The most exchanges that are shown of a login.
const MOST: usize = 200;

/// Logs in, and reports each step as `auth` and the state of it all as `login`.
pub(super) async fn run(link: &Link, wanted: &Login) -> bool {
    link.feed.forget(&format!("c{}/auth/", link.number));
    let mut told = Told { feed: link.feed.clone(), number: link.number, is_done: false };
    told.say("running", json!({}));
    told.is_done = false;
    match log_in(link, wanted).await {
        Ok(is_logged_in) => {
            let claims = if is_logged_in { claims(link).await } else { None };
            told.say("done", json!({ "isLoggedIn": is_logged_in, "claims": claims }));
            is_logged_in
        }
        Err(failure) => {
            told.say("failed", json!({ "problem": Problem::from(failure) }));
            false
        }
    }
}

/// What pages hear about a login; that it was given up, if nothing else is said last.
struct Told {
    feed: Feed,
    number: u64,
    is_done: bool,
}

impl Told {
    fn say(&mut self, state: &str, more: Value) {
        self.is_done = true;
        say(&self.feed, self.number, state, more);
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        if !self.is_done {
            say(&self.feed, self.number, "cancelled", json!({}));
        }
    }
}

fn say(feed: &Feed, number: u64, state: &str, more: Value) {
    let mut event = json!({ "event": "login", "connection": number, "state": state });
    if let (Value::Object(event), Value::Object(more)) = (&mut event, more) {
        event.extend(more);
    }
    feed.publish(Keep::As(&format!("c{number}/login")), &event);
}

async fn log_in(link: &Link, wanted: &Login) -> Result<bool, Failure> {
    let url = url_of(&link.resolved)?;
    let (feed, number) = (link.feed.clone(), link.number);
    let asking = feed.clone();
    // The page opens the address, when the person wants it to.
    let browser = Browser::new()
        .print()
        .show(move |page| say(&asking, number, "waiting", json!({ "url": page.as_str() })));
    let count = Arc::new(AtomicUsize::new(0));
    let hear = move |exchange: &Exchange| {
        let at = count.fetch_add(1, Ordering::Relaxed);
        if at < MOST {
            let key = format!("c{number}/auth/{at}");
            feed.publish(Keep::Result(&key), &step(number, at, exchange));
        }
    };
    let mut limits = Limits::default();
    limits.login = WAIT;
    let web = link.resolved.web()?.build().map_err(|error| Failure::usage(with_causes(&error)))?;
    let mut builder = OAuth::login(url, browser)
        .client_name("Bowline")
        .store(open_store()?)
        .limits(limits)
        .on_exchange(hear)
        .web(web);
    if !wanted.scopes.is_empty() || wanted.client_id.is_some() {
        // The token that is there would be used as it is.
        builder = builder.anew();
    }
    if !wanted.scopes.is_empty() {
        builder = builder.scopes(&wanted.scopes);
    }
    if let Some(id) = &wanted.client_id {
        let client = OAuthClient::new(id);
        builder = builder.client(match &wanted.client_secret {
            Some(secret) => client.secret(secret),
            None => client,
        });
    }
    let oauth = builder.build().map_err(|error| Failure::usage(error.to_string()))?;
    // It is a session of its own, beside the one that the page shows.
    let settings = Settings { lines: None, ..link.settings.clone() };
    connect(&link.resolved, oauth, &settings, WAIT).await
}

/// A step, as the page shows it. Secrets are masked already.
fn step(number: u64, at: usize, exchange: &Exchange) -> Value {
    let (answer, problem) = match &exchange.answer {
        Ok(it) => {
            let answer = json!({ "status": it.status, "headers": it.headers, "body": it.body });
            (Some(answer), None)
        }
        Err(problem) => (None, Some(problem)),
    };
    json!({
        "event": "auth", "connection": number, "number": at, "step": exchange.step.to_string(),
        "method": exchange.method, "url": exchange.url, "headers": exchange.headers,
        "body": exchange.body, "answer": answer, "problem": problem,
    })
}

/// The claims of the token, if it is a JWT. They are shown, not checked: that is for the server.
async fn claims(link: &Link) -> Option<Value> {
    let url = url_of(&link.resolved).ok()?;
    let (request, ()) = http::Request::post(url).body(()).ok()?.into_parts();
    let headers = link.resolved.authorize()?.headers(&request).await.ok()?;
    claims_of(headers.get(http::header::AUTHORIZATION)?.to_str().ok()?)
}

fn claims_of(authorization: &str) -> Option<Value> {
    let (_, token) = authorization.split_once(' ')?;
    let mut parts = token.split('.');
    let (_, claims, _) = (parts.next()?, parts.next()?, parts.next()?);
    let claims: Value = serde_json::from_slice(&URL.decode(claims)?).ok()?;
    claims.is_object().then_some(claims)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_are_those_of_a_jwt() {
        let claims = URL.encode(br#"{"sub":"ada","exp":1}"#);
        let found = claims_of(&format!("Bearer e30.{}.c2ln", claims.trim_end_matches('=')));
        assert_eq!(found, Some(json!({ "sub": "ada", "exp": 1 })));
        for other in ["Bearer opaque", "Bearer a.b.c", "Bearer", "DPoP e30.W10.x"] {
            assert_eq!(claims_of(other), None, "{other}");
        }
    }
}
