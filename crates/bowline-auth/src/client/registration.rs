//! Clients of an authorization server: registration and authentication.

use std::fmt;
use std::sync::Arc;

use bowline_web::Url;
use http::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use bowline_proto::base64::STANDARD;

use super::error::{AuthError, Reason, Step, quote, quote_all};
use super::form::{self, Form};
use super::metadata::ServerMetadata;
use super::pkce::unguessable;
use super::secret::{self, Secret};
use crate::jws::SigningKey;

/// A client that an authorization server's operator registered by hand.
///
/// ```
/// use bowline_auth::client::Client;
///
/// let client = Client::new("my-app").secret("from the console").issuer("https://as.example");
/// assert!(!format!("{client:?}").contains("console"));
/// ```
#[derive(Clone)]
pub struct Client {
    pub(super) id: String,
    pub(super) proof: Proof,
    pub(super) issuer: Option<String>,
}

#[derive(Clone)]
pub(super) enum Proof {
    None,
    Secret(Secret),
    Key(Arc<SigningKey>),
}

impl Client {
    /// A public client: an id without credentials.
    pub fn new(id: impl Into<String>) -> Self {
        Self { id: id.into(), proof: Proof::None, issuer: None }
    }

    /// Authenticates with a secret.
    #[must_use]
    pub fn secret(mut self, secret: impl Into<Secret>) -> Self {
        self.proof = Proof::Secret(secret.into());
        self
    }

    /// Authenticates with signed assertions (`private_key_jwt`).
    #[must_use]
    pub fn private_key(mut self, key: SigningKey) -> Self {
        self.proof = Proof::Key(Arc::new(key));
        self
    }

    /// Belongs to this authorization server. Otherwise the client belongs to the first server that
    /// it is used with; no other server ever sees it.
    #[must_use]
    pub fn issuer(mut self, issuer: impl Into<String>) -> Self {
        self.issuer = Some(issuer.into());
        self
    }

    pub(super) fn key(&self) -> Option<&Arc<SigningKey>> {
        match &self.proof {
            Proof::Key(key) => Some(key),
            _ => None,
        }
    }

    /// Chooses how to authenticate at a server, if the server accepts its credentials.
    pub(super) fn known_to(&self, server: &ServerMetadata) -> Result<Registered, AuthError> {
        let (secret, methods): (_, &[_]) = match &self.proof {
            Proof::None => (None, &[Method::None]),
            Proof::Secret(secret) => (Some(secret.clone()), &[Method::Basic, Method::Post]),
            Proof::Key(_) => (None, &[Method::PrivateKey]),
        };
        // A public client has nothing else to offer, and not every server lists `none`.
        let is_only = |method: &Method| *method == Method::None;
        let is_taken = |method: &Method| is_only(method) || method.is_taken_by(server);
        let method = methods.iter().copied().find(is_taken);
        let method = method.ok_or_else(|| {
            let names: Vec<_> = methods.iter().map(|method| method.name()).collect();
            let offered = server.token_endpoint_auth_methods_supported.as_deref();
            let received = format!(
                "token_endpoint_auth_methods_supported {}",
                quote_all(offered.unwrap_or_default())
            );
            let expected = format!("one of {} for client {}", names.join(", "), quote(&self.id));
            AuthError::new(Step::Registration, Reason::Settings, received, expected)
        })?;
        let id = self.id.clone();
        Ok(Registered { id, secret, method, expires_at: None, redirects: Vec::new() })
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let proof = match self.proof {
            Proof::None => "none",
            Proof::Secret(_) => "secret",
            Proof::Key(_) => "private key",
        };
        let mut shown = f.debug_struct("Client");
        shown.field("id", &self.id).field("proof", &proof).field("issuer", &self.issuer).finish()
    }
}

/// How a client authenticates at the token endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Method {
    #[serde(rename = "none")]
    None,
    #[serde(rename = "client_secret_basic")]
    Basic,
    #[serde(rename = "client_secret_post")]
    Post,
    #[serde(rename = "private_key_jwt")]
    PrivateKey,
}

impl Method {
    const ALL: [Self; 4] = [Self::None, Self::Basic, Self::Post, Self::PrivateKey];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Basic => "client_secret_basic",
            Self::Post => "client_secret_post",
            Self::PrivateKey => "private_key_jwt",
        }
    }

    fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.name() == name)
    }

    /// A server that declares nothing is assumed to accept everything; if it does not, it says so.
    fn is_taken_by(self, server: &ServerMetadata) -> bool {
        let methods = server.token_endpoint_auth_methods_supported.as_deref();
        methods.is_none_or(|methods| methods.iter().any(|method| method == self.name()))
    }

    /// How a client without a key registers: without a secret if that is allowed.
    fn to_register(server: &ServerMetadata) -> Option<Self> {
        // RFC 8414: a server that declares nothing accepts `client_secret_basic`.
        if server.token_endpoint_auth_methods_supported.is_none() {
            return Some(Self::Basic);
        }
        [Self::None, Self::Basic, Self::Post].into_iter().find(|method| method.is_taken_by(server))
    }
}

/// A client as registered at one authorization server. Stored with its tokens.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Registered {
    pub(super) id: String,
    #[serde(serialize_with = "secret::write_some")]
    pub(super) secret: Option<Secret>,
    pub(super) method: Method,
    /// When the secret expires, in seconds since 1970.
    pub(super) expires_at: Option<u64>,
    /// The registered redirects; empty if we did not register the client.
    #[serde(default)]
    pub(super) redirects: Vec<String>,
}

impl Registered {
    /// A client whose id is the URL of its metadata document.
    pub(super) fn by_document(address: &str) -> Self {
        let id = address.to_owned();
        Self { id, secret: None, method: Method::None, expires_at: None, redirects: Vec::new() }
    }

    /// Whether it can be used for a login with this redirect.
    pub(super) fn is_good_for(&self, redirect: &str, now: u64) -> bool {
        let is_alive = self.expires_at.is_none_or(|end| now < end);
        is_alive && self.redirects.iter().any(|registered| registered == redirect)
    }

    /// Adds client authentication to a token request.
    pub(super) fn sign_in(
        &self,
        form: Form,
        headers: &mut HeaderMap,
        key: Option<&SigningKey>,
        (issuer, now): (&str, u64),
    ) -> Result<Form, AuthError> {
        let missing = |what: &str| {
            let received = format!("client {} without {what}", quote(&self.id));
            let expected = format!("{what} for {}", self.method.name());
            AuthError::new(Step::Registration, Reason::Settings, received, expected)
        };
        let secret = || self.secret.as_ref().ok_or_else(|| missing("a secret"));
        Ok(match self.method {
            Method::None => form.with("client_id", &self.id),
            Method::Post => {
                form.with("client_id", &self.id).with_secret("client_secret", secret()?)
            }
            Method::Basic => {
                let pair =
                    format!("{}:{}", form::encode(&self.id), form::encode(secret()?.expose()));
                let value = format!("Basic {}", STANDARD.encode(pair.as_bytes()));
                let mut value = HeaderValue::try_from(value).expect("base64 is ASCII");
                value.set_sensitive(true);
                headers.insert(AUTHORIZATION, value);
                // Some servers look up the client by the form, whatever the method. An id alone is
                // not a second method of authentication (RFC 6749, 2.3.1 and 4.1.3).
                form.with("client_id", &self.id)
            }
            Method::PrivateKey => {
                let key = key.ok_or_else(|| missing("a private key"))?;
                let kind = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
                let assertion = client_assertion(&self.id, issuer, now, key);
                form.with("client_id", &self.id)
                    .with("client_assertion_type", kind)
                    .with("client_assertion", assertion)
            }
        })
    }
}

/// How long an assertion is valid, in seconds.
const ASSERTION_LIFE: u64 = 60;

/// RFC 7523 as amended: the audience is the issuer, so that no other server can use it.
fn client_assertion(id: &str, issuer: &str, now: u64, key: &SigningKey) -> String {
    let Value::Object(claims) = json!({
        "iss": id,
        "sub": id,
        "aud": issuer,
        "iat": now,
        "exp": now + ASSERTION_LIFE,
        "jti": unguessable(),
    }) else {
        unreachable!("written as an object above");
    };
    let header = Map::from_iter([("typ".to_owned(), Value::from("JWT"))]);
    key.sign(header, &claims)
}

/// The body of a registration request (RFC 7591; `application_type` by 2026-07-28).
pub(super) fn request(
    server: &ServerMetadata,
    name: &str,
    redirect: &str,
    is_dpop: bool,
) -> Result<Value, AuthError> {
    let method = Method::to_register(server).ok_or_else(|| {
        let methods = server.token_endpoint_auth_methods_supported.as_deref();
        let received = format!(
            "token_endpoint_auth_methods_supported {}",
            quote_all(methods.unwrap_or_default())
        );
        let expected =
            "none, client_secret_basic or client_secret_post; or a client registered by hand";
        AuthError::new(Step::Registration, Reason::Settings, received, expected)
    })?;
    let is_web = Url::parse(redirect).is_ok_and(|url| url.is_https() && !url.is_loopback());
    let mut document = json!({
        "client_name": name,
        "redirect_uris": [redirect],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": method.name(),
        "application_type": if is_web { "web" } else { "native" },
    });
    if is_dpop {
        document["dpop_bound_access_tokens"] = true.into();
    }
    Ok(document)
}

#[derive(Deserialize)]
struct RegistrationResponse {
    client_id: String,
    client_secret: Option<Secret>,
    token_endpoint_auth_method: Option<String>,
    client_secret_expires_at: Option<u64>,
}

/// Parses the response to [`request`].
pub(super) fn parse_response(
    body: &[u8],
    server: &ServerMetadata,
    redirect: &str,
) -> Result<Registered, AuthError> {
    let broken = |received: String, expected: &str| {
        AuthError::new(Step::Registration, Reason::Broken, received, expected)
    };
    let response: RegistrationResponse = serde_json::from_slice(body).map_err(|error| {
        // serde's message may quote a value; the position is enough.
        let received = format!("a response that is not valid, at column {}", error.column());
        broken(received, "a JSON object with client_id")
    })?;
    if response.client_id.is_empty() {
        return Err(broken("an empty client_id".to_owned(), "a client_id"));
    }
    let method = match response.token_endpoint_auth_method.as_deref() {
        Some(name) => {
            Method::named(name).filter(|method| *method != Method::PrivateKey).ok_or_else(|| {
                let received = format!("token_endpoint_auth_method {}", quote(name));
                broken(received, "none, client_secret_basic or client_secret_post")
            })?
        }
        None if response.client_secret.is_none() => Method::None,
        None => Method::to_register(server).filter(|m| *m != Method::None).unwrap_or(Method::Basic),
    };
    if method != Method::None && response.client_secret.is_none() {
        let received = format!("token_endpoint_auth_method {} and no secret", method.name());
        return Err(broken(received, "a client_secret"));
    }
    Ok(Registered {
        id: response.client_id,
        secret: response.client_secret,
        method,
        expires_at: response.client_secret_expires_at.filter(|end| *end != 0),
        redirects: vec![redirect.to_owned()],
    })
}

#[cfg(test)]
mod tests;
