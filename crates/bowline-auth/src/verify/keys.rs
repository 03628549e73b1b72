//! An issuer's keys: fetched when needed, cached, and fetched again when they rotate.
//!
//! However many tokens name unknown keys, the issuer is asked once per cool-down, and once at a
//! time. While it cannot be reached, the old keys stay valid, but not forever: a key that was
//! withdrawn because it leaked must not live for as long as an attacker can silence its issuer.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use bowline_proto::causes::with_causes;
use bowline_web::{Url, Web, WebError};
use bytes::Bytes;
use http::{Request, StatusCode};
use serde_json::{Map, Value};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::location::{SetupError, trusted, trusted_with_query};
use super::{Cause, VerifyError};
use crate::client::ServerMetadata;
use crate::jws::{JwkError, JwkSet, object};

/// How long keys are valid, and how often they are fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyLimits {
    /// How long keys are used without fetching them again: 10 minutes.
    pub fresh: Duration,
    /// How much longer they are used while the issuer cannot be reached: an hour.
    pub stale: Duration,
    /// How soon keys are fetched again because a token names an unknown key: 30 seconds.
    pub cool_down: Duration,
    /// How soon keys are fetched again after a failure: 5 seconds.
    pub retry: Duration,
}

impl Default for KeyLimits {
    fn default() -> Self {
        Self {
            fresh: Duration::from_secs(600),
            stale: Duration::from_secs(3600),
            cool_down: Duration::from_secs(30),
            retry: Duration::from_secs(5),
        }
    }
}

/// Where keys come from.
#[derive(Debug, Clone)]
pub(super) enum KeySource {
    Given(Arc<JwkSet>),
    At(Url),
    /// From the `jwks_uri` in this issuer's metadata.
    Issuer(String),
}

/// The keys of one issuer.
pub(super) struct Keys {
    source: KeySource,
    web: Web,
    limits: KeyLimits,
    cache: Arc<Mutex<Cache>>,
}

#[derive(Default)]
struct Cache {
    known: Option<FetchedKeys>,
    /// When the keys were last fetched, and what went wrong.
    attempt: Option<(Instant, Option<Cause>)>,
    /// Open while the keys are being fetched.
    flight: Option<watch::Receiver<()>>,
    tasks: JoinSet<()>,
}

#[derive(Clone)]
struct FetchedKeys {
    keys: Arc<JwkSet>,
    fetched: Instant,
}

impl Keys {
    pub(super) fn new(source: KeySource, web: Web, limits: KeyLimits) -> Self {
        Self { source, web, limits, cache: Arc::default() }
    }

    pub(super) fn source(&self) -> &KeySource {
        &self.source
    }

    pub(super) fn web(&self) -> &Web {
        &self.web
    }

    pub(super) fn limits(&self) -> KeyLimits {
        self.limits
    }

    /// The current keys.
    pub(super) async fn current(&self) -> Result<Arc<JwkSet>, VerifyError> {
        if let KeySource::Given(keys) = &self.source {
            return Ok(Arc::clone(keys));
        }
        if let Some(keys) = self.known_within(self.limits.fresh) {
            return Ok(keys);
        }
        self.refresh().await;
        if let Some(keys) = self.known_within(self.limits.fresh + self.limits.stale) {
            return Ok(keys);
        }
        let failure = self.lock().attempt.as_ref().and_then(|(_, failure)| failure.clone());
        Err(VerifyError::Unavailable(
            failure.unwrap_or_else(|| Arc::new(FetchError::NotAsked) as Cause),
        ))
    }

    /// Newer keys than these, if there are any.
    pub(super) async fn newer(&self, than: &Arc<JwkSet>) -> Option<Arc<JwkSet>> {
        if matches!(self.source, KeySource::Given(_)) {
            return None;
        }
        let other = |keys: Option<FetchedKeys>| {
            keys.map(|known| known.keys).filter(|keys| !Arc::ptr_eq(keys, than))
        };
        let known = self.lock().known.clone();
        if let Some(keys) = other(known) {
            return Some(keys);
        }
        self.refresh().await;
        let known = self.lock().known.clone();
        other(known)
    }

    fn known_within(&self, age: Duration) -> Option<Arc<JwkSet>> {
        let state = self.lock();
        let known = state.known.as_ref().filter(|known| known.fetched.elapsed() < age)?;
        Some(Arc::clone(&known.keys))
    }

    /// Fetches the keys, unless that was done a moment ago; joins a fetch that is already running.
    ///
    /// # Cancel safety
    /// The fetch continues without its waiters.
    async fn refresh(&self) {
        let Some(mut flight) = self.join_or_start() else { return };
        // Fails when the sender is dropped, which is how the fetch signals its end.
        while flight.changed().await.is_ok() {}
    }

    fn join_or_start(&self) -> Option<watch::Receiver<()>> {
        let mut state = self.lock();
        if let Some(flight) = state.flight.as_ref().filter(|flight| flight.has_changed().is_ok()) {
            return Some(flight.clone());
        }
        let wait = |failed| if failed { self.limits.retry } else { self.limits.cool_down };
        let attempt = state.attempt.as_ref();
        if attempt.is_some_and(|(at, failure)| at.elapsed() < wait(failure.is_some())) {
            return None;
        }
        let (done, flight) = watch::channel(());
        state.flight = Some(flight.clone());
        while state.tasks.try_join_next().is_some() {}
        let (source, web) = (self.source.clone(), self.web.clone());
        let store = Arc::downgrade(&self.cache);
        state.tasks.spawn(async move {
            let fetched = fetch(&source, &web).await;
            if let Err(error) = &fetched {
                tracing::warn!(?source, error = %with_causes(error), "cannot fetch an issuer's keys");
            }
            keep(&store, fetched);
            drop(done);
        });
        Some(flight)
    }

    fn lock(&self) -> MutexGuard<'_, Cache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keys").field("source", &self.source).finish_non_exhaustive()
    }
}

fn keep(store: &Weak<Mutex<Cache>>, fetched: Result<JwkSet, FetchError>) {
    let Some(state) = store.upgrade() else { return };
    let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
    let now = Instant::now();
    match fetched {
        Ok(keys) => {
            state.attempt = Some((now, None));
            // Equal keys stay the same object, so that a failed verification is not repeated in
            // vain.
            let keys = match &state.known {
                Some(known) if *known.keys == keys => Arc::clone(&known.keys),
                _ => Arc::new(keys),
            };
            state.known = Some(FetchedKeys { keys, fetched: now });
        }
        Err(error) => state.attempt = Some((now, Some(Arc::new(error)))),
    }
}

/// Why there are no keys.
#[derive(Debug, thiserror::Error)]
enum FetchError {
    #[error("the keys were not fetched")]
    NotAsked,
    #[error("the issuer does not respond")]
    Web(#[from] WebError),
    #[error("the issuer responds with {0}")]
    Status(StatusCode),
    #[error("the issuer has no valid metadata")]
    Metadata,
    #[error("the metadata belong to another issuer")]
    Issuer,
    #[error("the metadata have no jwks_uri")]
    NoKeys,
    #[error("the URL of the keys cannot be used")]
    Location(#[from] SetupError),
    #[error("the keys are not valid")]
    Keys(#[from] JwkError),
}

async fn fetch(source: &KeySource, web: &Web) -> Result<JwkSet, FetchError> {
    let at = match source {
        KeySource::Given(keys) => return Ok(JwkSet::clone(keys)),
        KeySource::At(url) => url.clone(),
        KeySource::Issuer(issuer) => discover(issuer, web).await?,
    };
    Ok(JwkSet::parse(&get(web, &at).await?)?)
}

/// The URL of the keys, from the issuer's metadata (RFC 8414, OpenID Connect Discovery).
async fn discover(issuer: &str, web: &Web) -> Result<Url, FetchError> {
    let mut last = FetchError::Metadata;
    for url in ServerMetadata::addresses(issuer) {
        let url = trusted(&url)?;
        match get(web, &url).await.and_then(|body| object(&body).ok_or(FetchError::Metadata)) {
            Ok(metadata) => return read_metadata(issuer, &metadata),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn read_metadata(issuer: &str, metadata: &Map<String, Value>) -> Result<Url, FetchError> {
    // Byte for byte: anyone who can publish metadata for one issuer must not speak for another.
    if metadata.get("issuer").and_then(Value::as_str) != Some(issuer) {
        return Err(FetchError::Issuer);
    }
    let keys = metadata.get("jwks_uri").and_then(Value::as_str).ok_or(FetchError::NoKeys)?;
    // Some issuers tell their tenants apart by a query.
    Ok(trusted_with_query(keys)?)
}

async fn get(web: &Web, url: &Url) -> Result<Bytes, FetchError> {
    let mut request = Request::new(Bytes::new());
    *request.uri_mut() = url.uri().clone();
    let accept = http::HeaderValue::from_static("application/json");
    request.headers_mut().insert(http::header::ACCEPT, accept);
    let response = web.fetch(request).await?;
    match response.status() {
        StatusCode::OK => Ok(response.into_body()),
        status => Err(FetchError::Status(status)),
    }
}
