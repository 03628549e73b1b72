//! Fetches JSON and bytes from services, over [`bowline_web`]: with a deadline, a size limit, and
//! errors that name the URL.

use std::sync::OnceLock;
use std::time::Duration;

use bowline_web::{FetchLimits, Web, WebError};
use bytes::Bytes;
use http::{Method, Request, header};
use serde_json::Value;

use bowline::with_causes;

/// How much of a service's error body is passed on, in characters.
const MAX_ERROR_BODY: usize = 300;

/// A client for services. It keeps connections open for reuse.
#[derive(Debug, Default)]
pub struct Fetch {
    limits: FetchLimits,
    /// Created on first use: it loads the system's certificates.
    web: OnceLock<Web>,
}

/// Why a request failed. Every message names the URL.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// The URL is invalid.
    #[error("cannot fetch {url:?}: {reason}")]
    Url {
        /// The URL.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The response did not arrive, was incomplete, or was too long.
    #[error("cannot fetch {url}: {reason}")]
    Unanswered {
        /// The URL.
        url: String,
        /// The error, with all its causes.
        reason: String,
    },
    /// The service returned an error status.
    #[error("{url} returned status {status}: {body}")]
    Status {
        /// The URL.
        url: String,
        /// The status code.
        status: u16,
        /// The beginning of the body.
        body: String,
    },
    /// The response is not the expected JSON.
    #[error("{url} returned an unexpected response: {reason}")]
    Unexpected {
        /// The URL.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
}

impl Fetch {
    /// With limits other than the default 10 seconds in total and 1 MiB of body.
    pub fn new(deadline: Duration, max_body: usize) -> Self {
        Self { limits: FetchLimits { bytes: max_body, total: deadline }, web: OnceLock::new() }
    }

    /// Fetches JSON.
    ///
    /// # Errors
    /// If the request fails, or the response is not JSON.
    pub async fn json(&self, url: &str) -> Result<Value, FetchError> {
        let body = self.send(Method::GET, url, Bytes::new()).await?;
        serde_json::from_slice(&body).map_err(|error| FetchError::Unexpected {
            url: url.to_owned(),
            reason: error.to_string(),
        })
    }

    /// Posts JSON and returns the body of the response.
    ///
    /// # Errors
    /// If the request fails.
    pub async fn post(&self, url: &str, body: &Value) -> Result<Bytes, FetchError> {
        self.send(Method::POST, url, body.to_string().into()).await
    }

    async fn send(&self, method: Method, url: &str, body: Bytes) -> Result<Bytes, FetchError> {
        let unanswered = |error: WebError| FetchError::Unanswered {
            url: url.to_owned(),
            reason: with_causes(&error),
        };
        let mut request = Request::builder()
            .method(method)
            .uri(url)
            .header(header::USER_AGENT, concat!("bowline/", env!("CARGO_PKG_VERSION")))
            .header(header::ACCEPT, "*/*");
        if !body.is_empty() {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        let request = request
            .body(body)
            .map_err(|error| FetchError::Url { url: url.to_owned(), reason: error.to_string() })?;
        let response = self.web().map_err(unanswered)?.fetch(request).await.map_err(unanswered)?;
        let status = response.status();
        if status.is_success() {
            return Ok(response.into_body());
        }
        let body = String::from_utf8_lossy(response.body());
        let body = body.chars().take(MAX_ERROR_BODY).collect();
        Err(FetchError::Status { url: url.to_owned(), status: status.as_u16(), body })
    }

    fn web(&self) -> Result<&Web, WebError> {
        if let Some(web) = self.web.get() {
            return Ok(web);
        }
        let web = Web::builder().fetch_limits(self.limits).build()?;
        Ok(self.web.get_or_init(|| web))
    }
}
