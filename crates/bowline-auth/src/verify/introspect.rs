//! Opaque tokens, verified by asking their issuer (RFC 7662).

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bowline_proto::base64::STANDARD;
use bowline_web::{Url, Web};
use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use http::{Request, StatusCode};
use ring::digest::{SHA256, digest};
use serde_json::Value;
use tokio::time::Instant;

use super::claims::{self, Now};
use super::location::{SetupError, trusted};
use super::{Identity, Verify, VerifyError, Verifying};
use crate::clock;
use crate::jws::object;

/// Verifies tokens by asking their issuer, and caches the response for a while.
///
/// A revoked token is rejected as soon as its cached response expires.
pub struct Introspection {
    endpoint: Url,
    credentials: HeaderValue,
    issuer: Option<String>,
    web: Web,
    cache: Duration,
    needs_audience: bool,
    cached: Mutex<HashMap<[u8; 32], CachedResponse>>,
}

struct CachedResponse {
    until: Instant,
    identity: Option<Identity>,
}

/// The most responses that are cached.
const MAX_CACHED: usize = 10_000;
/// The longest token, in bytes.
const MAX_TOKEN: usize = 16 << 10;
const SKEW: u64 = 60;

impl Introspection {
    /// Asks this endpoint, as this client.
    ///
    /// # Errors
    /// When it is not an `https` URL (or `http` on this machine).
    pub fn new(endpoint: &str, client_id: &str, secret: &str) -> Result<Self, SetupError> {
        let pair = format!("{}:{}", form_encoded(client_id), form_encoded(secret));
        let credentials = format!("Basic {}", STANDARD.encode(pair.as_bytes()));
        let mut credentials = HeaderValue::try_from(credentials).expect("base64 is visible ASCII");
        credentials.set_sensitive(true);
        Ok(Self {
            endpoint: trusted(endpoint)?,
            credentials,
            issuer: None,
            web: Web::builder().build()?,
            cache: Duration::from_secs(30),
            needs_audience: true,
            cached: Mutex::default(),
        })
    }

    /// The issuer: advertised to clients, and required of responses that name an issuer.
    ///
    /// # Errors
    /// When it is not an `https` URL (or `http` on this machine).
    pub fn issuer(mut self, issuer: &str) -> Result<Self, SetupError> {
        trusted(issuer)?;
        self.issuer = Some(issuer.to_owned());
        Ok(self)
    }

    /// How long a response is cached: 30 seconds. A revoked token stays valid that long.
    #[must_use]
    pub fn cache(mut self, time: Duration) -> Self {
        self.cache = time;
        self
    }

    /// Another HTTP client, with other certificates or another proxy.
    #[must_use]
    pub fn web(mut self, web: Web) -> Self {
        self.web = web;
        self
    }

    /// Accepts responses without an audience. Only for issuers that issue tokens for this server
    /// alone: otherwise a token for any server would be accepted here.
    #[must_use]
    pub fn allow_missing_audience(mut self) -> Self {
        self.needs_audience = false;
        self
    }

    async fn check(&self, token: &str) -> Result<Identity, VerifyError> {
        let unknown = VerifyError::Invalid("the token is not active");
        if token.len() > MAX_TOKEN {
            return Err(VerifyError::Invalid("the token is too long"));
        }
        let name: [u8; 32] =
            digest(&SHA256, token.as_bytes()).as_ref().try_into().expect("SHA-256 has 32 bytes");
        if let Some(remembered) = self.remembered(&name) {
            // It may have expired while it was cached.
            return remembered.filter(|it| !has_expired(it)).ok_or(unknown);
        }
        let identity = self.ask(token).await?;
        self.remember(name, identity.clone());
        identity.ok_or(unknown)
    }

    async fn ask(&self, token: &str) -> Result<Option<Identity>, VerifyError> {
        let body = format!("token={}&token_type_hint=access_token", form_encoded(token));
        let mut request = Request::post(self.endpoint.uri())
            .body(Bytes::from(body))
            .map_err(VerifyError::unavailable)?;
        let headers = request.headers_mut();
        headers.insert(AUTHORIZATION, self.credentials.clone());
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        let form = HeaderValue::from_static("application/x-www-form-urlencoded");
        headers.insert(CONTENT_TYPE, form);
        let response = self.web.fetch(request).await.map_err(VerifyError::unavailable)?;
        let strange = |what: &'static str| {
            tracing::warn!(endpoint = %self.endpoint.host(), what, "introspection failed");
            VerifyError::unavailable(what)
        };
        if response.status() == StatusCode::BAD_REQUEST && is_of_another_kind(response.body()) {
            return Ok(None);
        }
        if response.status() != StatusCode::OK {
            return Err(strange("the issuer's response is not 200"));
        }
        let claims =
            object(response.body()).ok_or_else(|| strange("the issuer's response is not JSON"))?;
        match claims.get("active") {
            Some(Value::Bool(true)) => {}
            Some(Value::Bool(false)) => return Ok(None),
            _ => return Err(strange("the issuer's response has no member `active`")),
        }
        let now = Now { seconds: clock::unix_seconds(), skew: SKEW };
        let Ok(mut identity) = claims::read(claims, now) else { return Ok(None) };
        if self.issuer.is_some() && identity.issuer.is_some() && identity.issuer != self.issuer {
            return Ok(None);
        }
        identity.issuer = identity.issuer.or_else(|| self.issuer.clone());
        if !self.needs_audience && identity.audiences.as_ref().is_some_and(Vec::is_empty) {
            identity.audiences = None;
        }
        Ok(Some(identity))
    }

    fn remembered(&self, name: &[u8; 32]) -> Option<Option<Identity>> {
        let cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        let found = cached.get(name).filter(|it| it.until > Instant::now())?;
        Some(found.identity.clone())
    }

    fn remember(&self, name: [u8; 32], identity: Option<Identity>) {
        let now = Instant::now();
        let mut cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        if cached.len() >= MAX_CACHED {
            cached.retain(|_, it| it.until > now);
        }
        // A flood of tokens empties the cache, and does no other harm.
        if cached.len() >= MAX_CACHED {
            cached.clear();
        }
        cached.insert(name, CachedResponse { until: now + self.cache, identity });
    }
}

/// Whether the issuer says that it cannot have issued such a token: some respond to a JWT with this
/// code of RFC 7009 if they issue opaque tokens.
fn is_of_another_kind(body: &[u8]) -> bool {
    let code = object(body).and_then(|mut it| it.remove("error"));
    code.is_some_and(|code| code == "unsupported_token_type")
}

fn has_expired(identity: &Identity) -> bool {
    identity.expires.is_some_and(|end| clock::unix_seconds() >= end.saturating_add(SKEW))
}

impl Verify for Introspection {
    fn verify<'a>(&'a self, token: &'a str) -> Verifying<'a> {
        Box::pin(self.check(token))
    }

    fn issuers(&self) -> Vec<String> {
        self.issuer.iter().cloned().collect()
    }
}

impl fmt::Debug for Introspection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Introspection")
            .field("endpoint", &self.endpoint)
            .field("issuer", &self.issuer)
            .finish_non_exhaustive()
    }
}

/// As HTML forms encode: a blank is `+`, `~` is escaped (RFC 6749, appendix B).
fn form_encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'*' => {
                encoded.push(char::from(byte));
            }
            b' ' => encoded.push('+'),
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}
