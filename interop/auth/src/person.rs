//! A user with a browser that follows redirects.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bowline::client::auth::{AuthorizationUrl, Hook, Login, Redirected};
use bowline_web::Web;
use bytes::Bytes;
use http::{Request, header};

use crate::BoxError;

/// The redirect URI. Nothing needs to listen there: the browser stops before it.
const REDIRECT: &str = "http://127.0.0.1:7/callback";

/// More pages than a login takes.
const MOST_PAGES: usize = 12;

/// A user who logs in, with the cookies of their browser.
#[derive(Clone)]
pub(crate) struct Person {
    web: Web,
    cookies: Arc<Mutex<HashMap<String, String>>>,
    visits: Arc<AtomicU32>,
    carry: fn(String) -> String,
}

impl Person {
    pub(crate) fn new(web: &Web) -> Self {
        Self {
            web: web.clone(),
            cookies: Arc::default(),
            visits: Arc::default(),
            carry: |address| address,
        }
    }

    /// A user who returns with a forged address.
    pub(crate) fn forging(web: &Web, carry: fn(String) -> String) -> Self {
        Self { carry, ..Self::new(web) }
    }

    /// How often the user was asked to log in.
    pub(crate) fn visits(&self) -> u32 {
        self.visits.load(Ordering::SeqCst)
    }

    pub(crate) fn login(&self) -> impl Login + use<> {
        let person = self.clone();
        Hook::new(REDIRECT, move |page: AuthorizationUrl| {
            let person = person.clone();
            async move {
                person.visits.fetch_add(1, Ordering::SeqCst);
                let address = person.browse(page.as_str().to_owned()).await?;
                Ok(Redirected::at(&(person.carry)(address)))
            }
        })
    }

    /// Follows redirects up to the redirect URI.
    async fn browse(&self, mut address: String) -> Result<String, BoxError> {
        for _ in 0..MOST_PAGES {
            if address.starts_with(REDIRECT) {
                return Ok(address);
            }
            let request = Request::get(&address).header(header::COOKIE, self.cookies());
            let answer = self.web.fetch(request.body(Bytes::new())?).await?;
            self.remember(answer.headers());
            let next = answer.headers().get(header::LOCATION);
            let Some(next) = next else {
                let body = String::from_utf8_lossy(answer.body()).into_owned();
                return Err(format!("a page without a redirect: {body}").into());
            };
            let next = next.to_str()?;
            let is_path = next.starts_with('/');
            address = if is_path { origin(&address) + next } else { next.to_owned() };
        }
        Err("too many redirects".into())
    }

    fn cookies(&self) -> String {
        let cookies = self.cookies.lock().unwrap_or_else(PoisonError::into_inner);
        let pairs = cookies.iter().map(|(name, value)| format!("{name}={value}"));
        pairs.collect::<Vec<_>>().join("; ")
    }

    fn remember(&self, headers: &http::HeaderMap) {
        let mut cookies = self.cookies.lock().unwrap_or_else(PoisonError::into_inner);
        let set = headers.get_all(header::SET_COOKIE).iter().filter_map(|it| it.to_str().ok());
        for (name, rest) in set.filter_map(|cookie| cookie.split_once('=')) {
            match rest.split(';').next().unwrap_or_default() {
                "" => drop(cookies.remove(name)),
                value => drop(cookies.insert(name.to_owned(), value.to_owned())),
            }
        }
    }
}

/// The scheme, host and port of an address.
fn origin(address: &str) -> String {
    address.split('/').take(3).collect::<Vec<_>>().join("/")
}
