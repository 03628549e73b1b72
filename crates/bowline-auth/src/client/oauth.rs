//! What an HTTP client uses: headers before each request, a look at each response.
//!
//! **Invariant:** one errand at a time. A request that is rejected while an errand runs waits for
//! it and shares its outcome. An errand runs in its own task: dropping a request does not interrupt
//! a refresh, which would lose the new token.

use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bowline_web::{Authorize, AuthorizeFuture, Next, Origin};
use http::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use http::request::Parts;
use http::{StatusCode, Uri};
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};
use tokio::time::Instant;

use super::challenge::Demand;
use super::dpop::{DPOP, Occasion};
use super::error::{AuthError, Reason, Step, quote};
use super::flow::{Engine, Errand, Held};
use super::grant::Way;
use super::scope::Scopes;
use super::token::TokenType;
use crate::clock::unix_seconds;

/// OAuth for one MCP server: discovers the authorization server, gets tokens, refreshes them and
/// steps up their scopes automatically.
///
/// Clones share their tokens. Hand one to the HTTP client as its
/// [`Authorize`](bowline_web::Authorize):
///
/// ```no_run
/// use bowline_auth::client::{Browser, FileStore, OAuth};
///
/// let auth = OAuth::login("https://mcp.example.com/mcp", Browser::new())
///     .client_name("My agent")
///     .store(FileStore::open("credentials")?)
///     .build()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct OAuth(Arc<Shared>);

struct Shared {
    engine: Engine,
    state: Mutex<TokenState>,
    flight: Arc<AsyncMutex<()>>,
}

#[derive(Default)]
struct TokenState {
    held: Option<Arc<Held>>,
    is_loaded: bool,
    /// How many tokens in a row were rejected, and when the last one was.
    refusals: u32,
    refused_at: Option<Instant>,
    step_ups: u32,
    /// Scopes that were requested in vain.
    tried: Scopes,
    /// How many errands failed, and the last error.
    failures: u64,
    failure: Option<AuthError>,
}

impl TokenState {
    /// Records the outcome of an errand.
    fn note(
        &mut self,
        missing: Option<Scopes>,
        entered: Result<Held, AuthError>,
    ) -> Result<(), AuthError> {
        match missing {
            Some(missing) => {
                self.step_ups += 1;
                if entered.is_err() {
                    self.tried = std::mem::take(&mut self.tried).union(&missing);
                }
            }
            None if entered.is_ok() => {
                self.refusals += 1;
                self.refused_at = Some(Instant::now());
            }
            None => {}
        }
        self.held = Some(Arc::new(entered?));
        Ok(())
    }
}

/// How long rejections count.
const FORGIVE: Duration = Duration::from_secs(60);

impl OAuth {
    pub(super) fn new(engine: Engine) -> Self {
        let (state, flight) = (Mutex::default(), Arc::default());
        Self(Arc::new(Shared { engine, state, flight }))
    }

    /// Forgets the tokens of this server, here and in the store. The next request logs in again.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn forget(&self) -> Result<(), AuthError> {
        let _flight = self.0.flight.lock().await;
        *self.state() = TokenState { is_loaded: true, ..TokenState::default() };
        self.0.engine.forget().await
    }

    fn state(&self) -> MutexGuard<'_, TokenState> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn held(&self) -> Option<Arc<Held>> {
        self.state().held.clone()
    }

    /// Whether a request goes to the server that tokens are for. **Invariant:** no other server
    /// ever sees one.
    fn is_home(&self, uri: &Uri) -> bool {
        Origin::of(uri).as_ref() == Ok(self.0.engine.settings.home.origin())
    }

    /// Usable tokens, refreshed if they have expired.
    async fn usable(&self) -> Result<Option<Arc<Held>>, AuthError> {
        if !self.state().is_loaded {
            let _flight = self.0.flight.lock().await;
            if !self.state().is_loaded {
                let held = self.0.engine.load().await?.map(Arc::new);
                let mut state = self.state();
                state.held = held;
                state.is_loaded = true;
            }
        }
        match self.held() {
            Some(held) if held.tokens.is_over(unix_seconds()) => self.renew(held).await,
            held => Ok(held),
        }
    }

    async fn renew(&self, over: Arc<Held>) -> Result<Option<Arc<Held>>, AuthError> {
        let this = self.clone();
        let stale = Some(Arc::clone(&over));
        self.fly(stale, async move {
            let renewed = this.0.engine.renew(&over).await?;
            this.state().held = renewed.map(Arc::new);
            Ok(())
        })
        .await?;
        Ok(self.held())
    }

    async fn write_headers(&self, request: &Parts) -> Result<HeaderMap, AuthError> {
        let mut headers = HeaderMap::new();
        if !self.is_home(&request.uri) {
            tracing::debug!("a request to another origin gets no token");
            return Ok(headers);
        }
        let Some(held) = self.usable().await? else {
            return Ok(headers);
        };
        let token = &held.tokens.access_token;
        let text = format!("{} {}", held.tokens.kind.name(), token.expose());
        let mut value = HeaderValue::try_from(text).expect("checked when the token was received");
        value.set_sensitive(true);
        headers.insert(AUTHORIZATION, value);
        if let (TokenType::Dpop, Some(key)) = (held.tokens.kind, &held.proof) {
            let nonce = self.0.engine.nonces.of(self.0.engine.settings.home.as_str());
            let proof = key.prove(&Occasion {
                method: &request.method,
                uri: &request.uri,
                token: Some(token),
                nonce: nonce.as_deref(),
            });
            headers.insert(DPOP, proof);
        }
        Ok(headers)
    }

    async fn judge(
        &self,
        sent: &Parts,
        status: StatusCode,
        headers: &HeaderMap,
    ) -> Result<Next, AuthError> {
        if !self.is_home(&sent.uri) {
            return Ok(Next::Use);
        }
        let is_refused = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
        let demand = if is_refused { Demand::of(headers) } else { Demand::default() };
        let (home, proof) = (self.0.engine.settings.home.as_str(), sent.headers.get(DPOP));
        let wants_nonce = proof.is_some() && demand.is("use_dpop_nonce");
        if self.0.engine.nonces.handle(home, proof, headers, wants_nonce) {
            return Ok(Next::SendAgain);
        }
        let shown = sent.headers.get(AUTHORIZATION);
        let held = self.held();
        let is_shown = held.as_ref().is_some_and(|held| is_token_of(held, shown));
        match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN if wants_nonce => Ok(Next::Use),
            // Some servers respond with 401.
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN
                if demand.is("insufficient_scope") && shown.is_some() =>
            {
                match held {
                    Some(held) if is_shown => self.handle_insufficient(held, demand).await,
                    held => Ok(if held.is_some() { Next::SendAgain } else { Next::Use }),
                }
            }
            // Another request has got new tokens in the meantime.
            StatusCode::UNAUTHORIZED if held.is_some() && !is_shown => Ok(Next::SendAgain),
            StatusCode::UNAUTHORIZED => self.handle_unauthorized(held, demand).await,
            _ => {
                if is_shown && !is_refused && !status.is_server_error() {
                    let mut state = self.state();
                    (state.refusals, state.step_ups) = (0, 0);
                }
                Ok(Next::Use)
            }
        }
    }

    async fn handle_unauthorized(
        &self,
        held: Option<Arc<Held>>,
        demand: Demand,
    ) -> Result<Next, AuthError> {
        let limit = self.0.engine.settings.limits.refusals;
        let refusals = {
            let mut state = self.state();
            if state.refused_at.is_some_and(|at| at.elapsed() > FORGIVE) {
                state.refusals = 0;
            }
            state.refusals
        };
        if refusals >= limit {
            let received = format!("status 401 after {refusals} new tokens in a row");
            let error = demand.error.as_deref().map(|error| format!(" ({})", quote(error)));
            let expected = "the token to be accepted";
            let received = received + &error.unwrap_or_default();
            return Err(AuthError::new(Step::Request, Reason::Refused, received, expected));
        }
        let errand = Errand { demand, held: held.clone(), missing: None };
        self.enter(held, errand).await?;
        Ok(Next::SendAgain)
    }

    async fn handle_insufficient(
        &self,
        held: Arc<Held>,
        mut demand: Demand,
    ) -> Result<Next, AuthError> {
        let Some(missing) = demand.scopes.take() else {
            return Ok(Next::Use);
        };
        let settings = &self.0.engine.settings;
        let is_workload = matches!(settings.way, Way::Workload(_));
        {
            let state = self.state();
            // Scopes that were requested and not granted are not requested again, and the number
            // of scopes is bounded.
            let asked = held.tokens.requested.clone().union(&state.tried);
            let is_known = asked.covers(&missing) || !asked.union(&missing).covers(&missing);
            if is_workload || is_known || state.step_ups >= settings.limits.step_ups {
                return Ok(Next::Use);
            }
        }
        let errand = Errand { demand, held: Some(Arc::clone(&held)), missing: Some(missing) };
        self.enter(Some(held), errand).await?;
        Ok(Next::SendAgain)
    }

    async fn enter(&self, stale: Option<Arc<Held>>, errand: Errand) -> Result<(), AuthError> {
        let this = self.clone();
        self.fly(stale, async move {
            let entered = this.0.engine.enter(&errand).await;
            this.state().note(errand.missing, entered)
        })
        .await
    }

    /// Runs an errand, unless one that was already running has settled the matter: the tokens are
    /// no longer the stale ones, or it failed.
    async fn fly(
        &self,
        stale: Option<Arc<Held>>,
        errand: impl Future<Output = Result<(), AuthError>> + Send + 'static,
    ) -> Result<(), AuthError> {
        let failures = self.state().failures;
        let flight: OwnedMutexGuard<()> = Arc::clone(&self.0.flight).lock_owned().await;
        {
            let state = self.state();
            let is_same = match (&state.held, &stale) {
                (Some(held), Some(stale)) => Arc::ptr_eq(held, stale),
                (None, None) => true,
                _ => false,
            };
            if !is_same {
                return Ok(());
            }
            if let Some(failure) = state.failure.as_ref().filter(|_| state.failures > failures) {
                return Err(failure.clone());
            }
        }
        let this = self.clone();
        let task = tokio::spawn(async move {
            let outcome = errand.await;
            if let Err(error) = &outcome {
                tracing::debug!(%error, "no token");
                let mut state = this.state();
                state.failures += 1;
                state.failure = Some(error.clone());
            }
            drop(flight);
            outcome
        });
        task.await.unwrap_or_else(|error| {
            let received = format!("a failed task: {error}");
            Err(AuthError::new(Step::Login, Reason::Abandoned, received, "an outcome"))
        })
    }
}

fn is_token_of(held: &Held, shown: Option<&HeaderValue>) -> bool {
    let shown = shown.and_then(|value| value.to_str().ok());
    let token = shown.and_then(|text| text.split_once(' ')).map(|(_, token)| token);
    token == Some(held.tokens.access_token.expose())
}

impl Authorize for OAuth {
    fn headers<'a>(&'a self, request: &'a Parts) -> AuthorizeFuture<'a, HeaderMap> {
        Box::pin(async move { Ok(self.write_headers(request).await?) })
    }

    fn handle_answer<'a>(
        &'a self,
        sent: &'a Parts,
        status: StatusCode,
        headers: &'a HeaderMap,
    ) -> AuthorizeFuture<'a, Next> {
        Box::pin(async move { Ok(self.judge(sent, status, headers).await?) })
    }
}

impl fmt::Debug for OAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("OAuth");
        shown.field("settings", &self.0.engine.settings).field("held", &self.held());
        shown.finish_non_exhaustive()
    }
}
