//! Fetching JSON and bytes from services, over [`bowline_web`]: a deadline, a bound on what comes
//! back, and errors that name the URL.

use std::sync::OnceLock;
use std::time::Duration;

use bowline_web::{FetchLimits, Web, WebError};
use bytes::Bytes;
use http::{Method, Request, header};
use serde_json::Value;

use bowline::with_causes;

/// How much of a service's complaint is passed on, in characters.
const MAX_COMPLAINT: usize = 300;

/// Fetches. Connections are kept for the next time.
#[derive(Debug, Default)]
pub struct Fetch {
    limits: FetchLimits,
    /// Made when it is first needed: it reads the system's certificates.
    web: OnceLock<Web>,
}

/// Why nothing was fetched. Every message names the URL.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// The URL is none that can be fetched. Correct it.
    #[error("{url:?} cannot be fetched: {reason}")]
    Url {
        /// The URL.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// No answer came, or not all of it, or too much.
    #[error("{url} cannot be fetched: {reason}")]
    Unanswered {
        /// The URL.
        url: String,
        /// Why, with all causes.
        reason: String,
    },
    /// The service answered with an error.
    #[error("{url} answered with status {status}: {body}")]
    Status {
        /// The URL.
        url: String,
        /// The status code.
        status: u16,
        /// The beginning of what it said.
        body: String,
    },
    /// The answer is not the JSON that it should be.
    #[error("{url} did not answer as expected: {reason}")]
    Unexpected {
        /// The URL.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
}

impl Fetch {
    /// With other bounds than 10 seconds for all of it and 1 MiB of body.
    pub fn new(deadline: Duration, max_body: usize) -> Self {
        Self { limits: FetchLimits { bytes: max_body, total: deadline }, web: OnceLock::new() }
    }

    /// Gets JSON.
    ///
    /// # Errors
    /// When it cannot be had; says why.
    pub async fn json(&self, url: &str) -> Result<Value, FetchError> {
        let body = self.send(Method::GET, url, Bytes::new()).await?;
        serde_json::from_slice(&body).map_err(|error| FetchError::Unexpected {
            url: url.to_owned(),
            reason: error.to_string(),
        })
    }

    /// Posts JSON and gives the body of the answer, whatever it is.
    ///
    /// # Errors
    /// When the service does not answer well; says why.
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
        let answer = self.web().map_err(unanswered)?.fetch(request).await.map_err(unanswered)?;
        let status = answer.status();
        if status.is_success() {
            return Ok(answer.into_body());
        }
        let body = String::from_utf8_lossy(answer.body());
        let body = body.chars().take(MAX_COMPLAINT).collect();
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
