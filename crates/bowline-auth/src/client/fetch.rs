//! Requests to URLs that a peer named.
//!
//! **Invariant:** every request of a login goes through here. URLs must be `https` (`http` on this
//! machine if the MCP server is on it), private addresses are rejected unless the MCP server itself
//! is there, redirects are followed only for documents and within one origin, and [`Web::fetch`]
//! bounds size and time.

use bowline_proto::causes::with_causes;
use bowline_web::{Reach, Url, Web, WebError};
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION};
use http::uri::Authority;
use http::{Method, Request, Response, StatusCode};

use super::error::{AuthError, Reason, Step, quote};
use super::exchange::{Exchange, OnExchange};

/// `MCP-Protocol-Version`, which 2025-03-26 requires for discovery.
const MCP_PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");

#[derive(Debug)]
pub(super) struct Fetcher {
    web: Web,
    guarded: Web,
    home: Url,
    trusted: Vec<Authority>,
    redirects: u32,
    hook: Option<OnExchange>,
}

/// A response to a request for a document.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) status: StatusCode,
    pub(super) body: Bytes,
}

impl Fetcher {
    pub(super) fn new(web: Web, home: Url, trusted: Vec<Authority>, redirects: u32) -> Self {
        let guarded = web.with_reach(Reach::Public { also: Vec::new() });
        Self { web, guarded, home, trusted, redirects, hook: None }
    }

    /// Reports every exchange.
    pub(super) fn with_hook(mut self, hook: Option<OnExchange>) -> Self {
        self.hook = hook;
        self
    }

    /// Parses a URL, and checks that it may be requested.
    pub(super) fn check(&self, step: Step, text: &str) -> Result<Url, AuthError> {
        let url = Url::parse(text).map_err(|expected| {
            AuthError::new(step, Reason::Unsafe, quote(text), expected.to_string())
        })?;
        let is_local = url.is_loopback() && self.home.is_loopback();
        if url.is_https() || is_local || self.is_trusted(&url) {
            return Ok(url);
        }
        let expected = "https, or http on this machine if the MCP server is on it too, or on a host \
                        that `OAuthBuilder::trust` names";
        Err(AuthError::new(step, Reason::Unsafe, quote(&url.to_string()), expected))
    }

    fn is_trusted(&self, url: &Url) -> bool {
        self.trusted.iter().any(|authority| url.origin().is_at(authority))
    }

    fn web_for(&self, url: &Url) -> Web {
        let is_local = url.is_loopback() && self.home.is_loopback();
        let is_near = url.host() == self.home.host() || is_local || self.is_trusted(url);
        match url.uri().authority() {
            Some(authority) if is_near => {
                self.web.with_reach(Reach::Public { also: vec![authority.clone()] })
            }
            _ => self.guarded.clone(),
        }
    }

    /// Fetches a document, following redirects within its origin.
    pub(super) async fn get(&self, step: Step, text: &str) -> Result<Page, AuthError> {
        let mut url = self.check(step, text)?;
        let revision = HeaderValue::from_static("2026-07-28");
        for _ in 0..=self.redirects {
            let mut request = Request::new(Bytes::new());
            request.headers_mut().insert(MCP_PROTOCOL_VERSION, revision.clone());
            let response = self.send(step, &url, request).await?;
            let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
            let (true, Some(location)) = (response.status().is_redirection(), location) else {
                return Ok(Page { status: response.status(), body: response.into_body() });
            };
            let target = url.join(location).map_err(|expected| {
                let received = format!("a redirect from {url} to {}", quote(location));
                AuthError::new(step, Reason::Unsafe, received, expected.to_string())
            })?;
            if !target.is_same_origin(&url) {
                let received = format!("a redirect from {url} to {}", target.root());
                let expected = "a redirect within the same origin, or no redirect";
                return Err(AuthError::new(step, Reason::Unsafe, received, expected));
            }
            url = target;
        }
        let received = format!("a redirect from {url}");
        let expected = format!("a document after at most {} redirects", self.redirects);
        Err(AuthError::new(step, Reason::Broken, received, expected))
    }

    /// Posts something confidential: redirects are not followed.
    pub(super) async fn post(
        &self,
        step: Step,
        url: &Url,
        headers: HeaderMap,
        (media, body): (&'static str, String),
    ) -> Result<Response<Bytes>, AuthError> {
        let mut request = Request::new(body.into());
        *request.method_mut() = Method::POST;
        *request.headers_mut() = headers;
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media));
        let response = self.send(step, url, request).await?;
        if response.status().is_redirection() {
            let received = format!("status {} from {url}", response.status().as_u16());
            let expected = "a response without a redirect: a POST is not sent on to another URL";
            return Err(AuthError::new(step, Reason::Unsafe, received, expected));
        }
        Ok(response)
    }

    async fn send(
        &self,
        step: Step,
        url: &Url,
        mut request: Request<Bytes>,
    ) -> Result<Response<Bytes>, AuthError> {
        tracing::debug!(%url, method = %request.method(), "{step}");
        *request.uri_mut() = url.uri().clone();
        request.headers_mut().insert(ACCEPT, HeaderValue::from_static("application/json"));
        let told = self.hook.as_ref().map(|hook| (hook, Exchange::asked(step, url, &request)));
        let response = self.web_for(url).fetch(request).await;
        if let Some((hook, exchange)) = told {
            hook.tell(&exchange.answered(&response));
        }
        response.map_err(|error| unreachable(step, url, error))
    }
}

fn unreachable(step: Step, url: &Url, error: WebError) -> AuthError {
    let received = format!("no response from {url}: {}", with_causes(&error));
    let (reason, expected) = match &error {
        WebError::Forbidden { .. } => (
            Reason::Unsafe,
            "a host on the public internet, or one that `OAuthBuilder::trust` names",
        ),
        WebError::TooLarge { .. } => (Reason::Broken, "a short JSON document"),
        _ => (Reason::Unavailable, "a response"),
    };
    AuthError::new(step, reason, received, expected).with_source(error)
}
