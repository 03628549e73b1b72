//! A token that the application manages itself.

use std::future::ready;

use bowline_web::{Authorize, AuthorizeFuture, Next, Origin, Url};
use http::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use http::request::Parts;
use http::{StatusCode, Uri};

use super::error::{AuthError, Reason, Step};
use super::secret::Secret;
use super::settings::{home, parse};

/// Sends the same bearer token with every request to one server, and to no other.
#[derive(Debug, Clone)]
pub struct StaticToken {
    home: Url,
    value: HeaderValue,
}

impl StaticToken {
    /// A token for the server at this URL.
    ///
    /// # Errors
    /// When the URL is not valid or would send the token unencrypted, or when the token cannot be
    /// sent in a header.
    pub fn new(server: &str, token: impl Into<Secret>) -> Result<Self, AuthError> {
        Self::for_home(home(server, &[])?, &token.into())
    }

    /// A token for a server that is used without TLS, because the network is private.
    ///
    /// # Errors
    /// When the URL is not valid, or when the token cannot be sent in a header.
    pub fn without_tls(server: &str, token: impl Into<Secret>) -> Result<Self, AuthError> {
        Self::for_home(parse(server)?, &token.into())
    }

    fn for_home(home: Url, token: &Secret) -> Result<Self, AuthError> {
        let value = HeaderValue::try_from(format!("Bearer {}", token.expose()));
        let mut value = value.ok().filter(|_| !token.expose().is_empty()).ok_or_else(|| {
            let received = "a token that cannot be sent in a header";
            AuthError::new(Step::Setup, Reason::Settings, received, "a token of visible ASCII")
        })?;
        value.set_sensitive(true);
        Ok(Self { home, value })
    }

    fn is_home(&self, uri: &Uri) -> bool {
        Origin::of(uri).as_ref() == Ok(self.home.origin())
    }
}

impl Authorize for StaticToken {
    fn headers<'a>(&'a self, request: &'a Parts) -> AuthorizeFuture<'a, HeaderMap> {
        let mut headers = HeaderMap::new();
        if self.is_home(&request.uri) {
            headers.insert(AUTHORIZATION, self.value.clone());
        }
        Box::pin(ready(Ok(headers)))
    }

    fn handle_answer<'a>(
        &'a self,
        _: &'a Parts,
        _: StatusCode,
        _: &'a HeaderMap,
    ) -> AuthorizeFuture<'a, Next> {
        Box::pin(ready(Ok(Next::Use)))
    }
}
