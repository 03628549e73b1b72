//! Tokens that only their issuer understands: asked for each of them (RFC 7662).

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

/// Checks tokens by asking their issuer, and remembers the answer for a while.
///
/// A token that was revoked is refused as soon as the answer is asked for again.
pub struct Introspection {
    endpoint: Url,
    credentials: HeaderValue,
    issuer: Option<String>,
    web: Web,
    cache: Duration,
    needs_audience: bool,
    answers: Mutex<HashMap<[u8; 32], Remembered>>,
}

struct Remembered {
    until: Instant,
    identity: Option<Identity>,
}

/// Most answers that are remembered.
const MAX_ANSWERS: usize = 10_000;
/// The longest token that is asked about.
const MAX_TOKEN: usize = 16 << 10;
const SKEW: u64 = 60;

impl Introspection {
    /// Asks at this endpoint, as this client.
    ///
    /// # Errors
    /// When it is no URL of `https` (or `http` on this machine).
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
            answers: Mutex::default(),
        })
    }

    /// The issuer, which clients are sent to, and which answers must name if they name any.
    ///
    /// # Errors
    /// When it is no URL of `https` (or `http` on this machine).
    pub fn issuer(mut self, issuer: &str) -> Result<Self, SetupError> {
        trusted(issuer)?;
        self.issuer = Some(issuer.to_owned());
        Ok(self)
    }

    /// For how long an answer is believed: 30 seconds. That is how long a revoked token may live.
    #[must_use]
    pub fn cache(mut self, time: Duration) -> Self {
        self.cache = time;
        self
    }

    /// Another HTTP client, for certificates or a proxy of one's own.
    #[must_use]
    pub fn web(mut self, web: Web) -> Self {
        self.web = web;
        self
    }

    /// Believes answers that do not say for whom the token is. Only where the issuer gives tokens
    /// for this server alone: otherwise a token for any server would be good here.
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
            // It may have expired while it was remembered.
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
        let answer = self.web.fetch(request).await.map_err(VerifyError::unavailable)?;
        let strange = |what: &'static str| {
            tracing::warn!(endpoint = %self.endpoint.host(), what, "introspection failed");
            VerifyError::unavailable(what)
        };
        if answer.status() == StatusCode::BAD_REQUEST && is_of_another_kind(answer.body()) {
            return Ok(None);
        }
        if answer.status() != StatusCode::OK {
            return Err(strange("the issuer does not answer with 200"));
        }
        let claims = object(answer.body()).ok_or_else(|| strange("the answer is not JSON"))?;
        match claims.get("active") {
            Some(Value::Bool(true)) => {}
            Some(Value::Bool(false)) => return Ok(None),
            _ => return Err(strange("the answer does not say whether the token is active")),
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
        let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let found = answers.get(name).filter(|it| it.until > Instant::now())?;
        Some(found.identity.clone())
    }

    fn remember(&self, name: [u8; 32], identity: Option<Identity>) {
        let now = Instant::now();
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        if answers.len() >= MAX_ANSWERS {
            answers.retain(|_, it| it.until > now);
        }
        // Whoever floods us with tokens makes us forget, and only that.
        if answers.len() >= MAX_ANSWERS {
            answers.clear();
        }
        answers.insert(name, Remembered { until: now + self.cache, identity });
    }
}

/// Whether the issuer says that it cannot have issued such a token for us: some answer so to a JWT
/// where they issue others, with the code that RFC 7009 has for it.
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
