//! Opaque tokens, verified by asking their issuer (RFC 7662).

mod flights;
mod memory;

use std::fmt;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bowline_proto::base64::STANDARD;
use bowline_web::{Url, Web};
use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use http::{Request, StatusCode};
use ring::digest::{SHA256, digest};
use serde_json::Value;

use self::flights::{Flights, Said};
use self::memory::{Memory, Name};
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
    limits: IntrospectionLimits,
    memory: Mutex<Memory>,
    flights: Flights,
}

/// What an [`Introspection`] remembers, and how often it asks.
///
/// Each token is asked about once at a time, however many requests carry it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IntrospectionLimits {
    /// How many accepted tokens are cached: 10,000. Beyond it the oldest is forgotten.
    pub accepted: usize,
    /// Bytes of the issuer's responses that are cached with them: 16 MiB.
    pub accepted_bytes: usize,
    /// How many rejected tokens are cached: 10,000. They have their own place, so that invented
    /// tokens do not drive out good ones.
    pub rejected: usize,
    /// How many tokens are asked about at a time: 64, and half as many of one address. Others are
    /// rejected with 503 meanwhile.
    pub in_flight: usize,
    /// How many tokens the issuer may reject per second: 100, a quarter as many of one address, and
    /// ten times as many at once. Beyond it only cached tokens are accepted, and others only from
    /// addresses that had none rejected lately; the rest is rejected with 503. So a flood of
    /// invented tokens does not reach the issuer, and does not shut out anybody else.
    pub rejected_per_second: u32,
}

impl Default for IntrospectionLimits {
    fn default() -> Self {
        Self {
            accepted: 10_000,
            accepted_bytes: 16 << 20,
            rejected: 10_000,
            in_flight: 64,
            rejected_per_second: 100,
        }
    }
}

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
            limits: IntrospectionLimits::default(),
            memory: Mutex::default(),
            flights: Flights::default(),
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

    /// What is remembered, and how often the issuer is asked.
    #[must_use]
    pub fn limits(mut self, limits: IntrospectionLimits) -> Self {
        self.limits = limits;
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

    async fn check(&self, token: &str, from: Option<IpAddr>) -> Result<Identity, VerifyError> {
        let unknown = VerifyError::Invalid("the token is not active");
        if token.len() > MAX_TOKEN {
            return Err(VerifyError::Invalid("the token is too long"));
        }
        let name: Name =
            digest(&SHA256, token.as_bytes()).as_ref().try_into().expect("SHA-256 has 32 bytes");
        if let Some(remembered) = self.memory().find(&name) {
            // It may have expired while it was cached.
            return remembered.filter(|it| !has_expired(it)).ok_or(unknown);
        }
        if self.memory().is_flooded(from, &self.limits) {
            return Err(VerifyError::unavailable("too many invalid tokens are being presented"));
        }
        let asked = self.flights.join((name, from), self.limits.in_flight, async {
            let said = self.ask(token).await;
            if let Ok(known) = &said {
                let mut memory = self.memory();
                if known.0.is_none() {
                    memory.reject(from, &self.limits);
                }
                memory.keep(name, known.clone(), self.cache, &self.limits);
            }
            said
        });
        let busy = || VerifyError::unavailable("too many tokens are being verified at a time");
        let (identity, _) = asked.await.ok_or_else(busy)??;
        identity.ok_or(unknown)
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn ask(&self, token: &str) -> Said {
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
            return Ok((None, 0));
        }
        if response.status() != StatusCode::OK {
            return Err(strange("the issuer's response is not 200"));
        }
        let claims =
            object(response.body()).ok_or_else(|| strange("the issuer's response is not JSON"))?;
        match claims.get("active") {
            Some(Value::Bool(true)) => {}
            Some(Value::Bool(false)) => return Ok((None, 0)),
            _ => return Err(strange("the issuer's response has no member `active`")),
        }
        let now = Now { seconds: clock::unix_seconds(), skew: SKEW };
        let Ok(mut identity) = claims::read(claims, now) else { return Ok((None, 0)) };
        if self.issuer.is_some() && identity.issuer.is_some() && identity.issuer != self.issuer {
            return Ok((None, 0));
        }
        identity.issuer = identity.issuer.or_else(|| self.issuer.clone());
        if !self.needs_audience && identity.audiences.as_ref().is_some_and(Vec::is_empty) {
            identity.audiences = None;
        }
        Ok((Some(identity), response.body().len()))
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
        Box::pin(self.check(token, None))
    }

    fn verify_from<'a>(&'a self, token: &'a str, from: Option<IpAddr>) -> Verifying<'a> {
        Box::pin(self.check(token, from))
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
