//! One HTTP request: its headers, its authorization, its redirects.

use bowline_proto::error::{ErrorCode, ErrorObject};
use bowline_proto::http::{Outline, write_legacy};
use bowline_proto::raw::Raw;
use bowline_proto::session::Rejection;
use bowline_proto::wire::Message;
use bowline_web::{Body, Next, Origin, Url, WebError};
use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri, header};

use super::HttpLink;
use crate::client::exchange::ExchangeError;
use crate::client::exchange::Sending;
use crate::client::shared::{Shared, lock};
use crate::client::wire::HttpWire;
use crate::with_causes;

/// How often one request is redirected, or sent again for authorization.
const MOST_TRIES: u32 = 8;

/// How much of an error's body is read.
const ERROR_BODY: usize = 1 << 20;

impl HttpLink {
    /// Where messages go.
    fn post_url(&self) -> Uri {
        lock(&self.session).post_url.clone().unwrap_or_else(|| self.url.clone())
    }

    /// The headers of a request in the legacy era.
    pub(super) fn legacy_headers(&self, method: &Method) -> HeaderMap {
        let mut headers = self.headers.clone();
        let session = lock(&self.session);
        write_legacy(&mut headers, method, session.revision, session.id.as_ref());
        headers
    }

    /// The headers of a call.
    pub(super) fn call_headers(
        &self,
        shared: &Shared,
        sending: &Sending<'_>,
    ) -> Result<HeaderMap, ExchangeError> {
        if !sending.claim.is_modern() {
            return Ok(self.legacy_headers(&Method::POST));
        }
        let outgoing = sending.outgoing;
        let name = outgoing.repeated.name.as_deref();
        let mut headers = self.headers.clone();
        let revision = sending.claim.revision();
        let outline = Outline { revision: revision.as_str(), method: &outgoing.method, name };
        let written = outline.write(&mut headers);
        written.map_err(|error| ExchangeError::Unsendable(error.to_string()))?;
        if outgoing.method == "tools/call"
            && let Some(name) = name
            && let Some(tool) = shared.tools.find(name)
            && !tool.headers.is_empty()
        {
            let arguments = outgoing.repeated.arguments.map(Raw::parse).transpose();
            let arguments = arguments.map_err(|error| {
                ExchangeError::Unsendable(format!(
                    "tool {name:?}: the arguments are not JSON: {error}"
                ))
            })?;
            let repeated = tool.headers.encode(arguments).map_err(|error| {
                let header = &error.header;
                ExchangeError::Unsendable(format!(
                    "tool {name:?}: {error}, so header {header} cannot repeat it; nothing was sent"
                ))
            })?;
            headers.extend(repeated);
        }
        Ok(headers)
    }

    /// The headers of a notification.
    pub(super) fn notification_headers(
        &self,
        revision: bowline_proto::revision::Revision,
        method: &str,
    ) -> HeaderMap {
        if !revision.is_modern() {
            return self.legacy_headers(&Method::POST);
        }
        let mut headers = self.headers.clone();
        let outline = Outline { revision: revision.as_str(), method, name: None };
        if let Err(error) = outline.write(&mut headers) {
            tracing::warn!(%error, "a notification is sent without its headers");
        }
        headers
    }

    /// Sends a message to where messages go.
    pub(super) async fn post(
        &self,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Response<Body>, ExchangeError> {
        self.send(Method::POST, self.post_url(), headers, body).await
    }

    /// Sends a request: logs in where the server asks for it, and follows redirects to the same
    /// origin.
    pub(super) async fn send(
        &self,
        method: Method,
        mut url: Uri,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Response<Body>, ExchangeError> {
        for _ in 0..MOST_TRIES {
            let mut request = Request::new(body.clone());
            *request.method_mut() = method.clone();
            *request.uri_mut() = url.clone();
            *request.headers_mut() = headers.clone();
            let (response, is_again) = self.send_once(request).await?;
            if is_again {
                continue;
            }
            match self.redirect(&method, &url, &response)? {
                Some(next) => url = next,
                None => return check_encoding(response),
            }
        }
        Err(ExchangeError::Unreachable(format!(
            "redirected or sent again more than {MOST_TRIES} times"
        )))
    }

    /// Sends a request with its authorization. Returns whether to send it again.
    async fn send_once(
        &self,
        request: Request<Bytes>,
    ) -> Result<(Response<Body>, bool), ExchangeError> {
        let Some(authorize) = &self.authorize else {
            return Ok((self.send_told(request).await?, false));
        };
        let refused = |error: bowline_web::AuthorizeError, status: u16| {
            ExchangeError::Unauthorized { status, problem: with_causes(&*error) }
        };
        let (mut parts, body) = request.into_parts();
        let proof = authorize.headers(&parts).await.map_err(|error| refused(error, 401))?;
        parts.headers.extend(proof);
        let sent = parts.clone();
        let response = self.send_told(Request::from_parts(parts, body)).await?;
        let status = response.status();
        let next = authorize.handle_answer(&sent, status, response.headers()).await;
        let next = next.map_err(|error| refused(error, status.as_u16()))?;
        Ok((response, next == Next::SendAgain))
    }

    /// Sends a request as it is, and reports it to the wire hook.
    async fn send_told(&self, request: Request<Bytes>) -> Result<Response<Body>, ExchangeError> {
        let (parts, body) = request.into_parts();
        let asked = self.wire.request(&parts, &body);
        let response = self.web.send(Request::from_parts(parts, body)).await;
        let mut response = response.map_err(|error| unreachable(&error))?;
        self.wire.response(asked, &mut response);
        Ok(response)
    }

    /// Where a response redirects to. Only the same origin is followed.
    fn redirect(
        &self,
        method: &Method,
        from: &Uri,
        response: &Response<Body>,
    ) -> Result<Option<Uri>, ExchangeError> {
        let keeps_method = match response.status() {
            StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT => true,
            StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND | StatusCode::SEE_OTHER => {
                *method == Method::GET
            }
            _ => return Ok(None),
        };
        let status = response.status().as_u16();
        let refuse = |problem: &str| {
            Err(ExchangeError::Unreachable(format!("a redirect (HTTP {status}) {problem}")))
        };
        let location = response.headers().get(header::LOCATION).and_then(|it| it.to_str().ok());
        let Some(next) = location.and_then(|location| resolve(from, location)) else {
            return refuse("without a usable location");
        };
        if !self.is_origin_of(&next) {
            let host = next.host().to_string();
            return refuse(&format!("to another origin, {host:?}, is not followed"));
        }
        if !keeps_method {
            return refuse("would turn a POST into a GET; use the new URL");
        }
        Ok(Some(next.uri().clone()))
    }

    /// Whether a URL leads to this server.
    pub(super) fn is_origin_of(&self, url: &Url) -> bool {
        Origin::of(&self.url).as_ref() == Ok(url.origin())
    }
}

/// Resolves a reference against the URL that it was found at.
pub(super) fn resolve(base: &Uri, reference: &str) -> Option<Url> {
    Url::try_from(base.clone()).ok()?.join(reference).ok()
}

/// Rejects compressed bodies, which were not asked for: a small one may unpack to a huge one.
fn check_encoding(response: Response<Body>) -> Result<Response<Body>, ExchangeError> {
    let encoding = response.headers().get(header::CONTENT_ENCODING);
    match encoding.map(http::HeaderValue::as_bytes) {
        None | Some(b"identity") => Ok(response),
        Some(encoding) => {
            let encoding = String::from_utf8_lossy(encoding).into_owned();
            let problem = format!("the answer is compressed ({encoding}), which was not asked for");
            Err(ExchangeError::Unreachable(problem))
        }
    }
}

/// Reads a response that is an error.
pub(super) async fn refusal(response: Response<Body>) -> ExchangeError {
    let status = response.status();
    let challenge = response
        .headers()
        .get(header::WWW_AUTHENTICATE)
        .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    let tell = HttpWire::body_of(&response);
    let body = response.into_body().collect(ERROR_BODY).await.unwrap_or_default();
    tell(&body);
    let error = read_error(&body);
    if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) && !is_ours(&error) {
        let told = error.map(|error| error.message).or(challenge);
        let problem = told.unwrap_or_else(|| "the server does not say why".to_owned());
        return ExchangeError::Unauthorized { status: status.as_u16(), problem };
    }
    ExchangeError::Rejected(Rejection { status: Some(status.as_u16()), error })
}

/// Whether an error is one of the protocol, unlike a 403 for the wrong `Origin`.
fn is_ours(error: &Option<ErrorObject>) -> bool {
    let known = [ErrorCode::HEADER_MISMATCH, ErrorCode::MISSING_CLIENT_CAPABILITY];
    error.as_ref().is_some_and(|error| known.contains(&error.code))
}

fn read_error(body: &[u8]) -> Option<ErrorObject> {
    match Message::parse(body).ok()? {
        Message::Response(response) => response.outcome.err(),
        Message::Fault(error) => Some(error),
        Message::Request(_) | Message::Notification(_) => None,
    }
}

pub(super) fn unreachable(error: &WebError) -> ExchangeError {
    ExchangeError::Unreachable(with_causes(error))
}
