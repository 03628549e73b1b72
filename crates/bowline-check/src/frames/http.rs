//! A server at a URL: each message is one exchange, with the headers that the specification wants
//! unless a caller changes them.

use std::sync::Arc;
use std::time::Duration;

use bowline::Revision;
use bowline::model::meta_key::PROTOCOL_VERSION;
use bowline::proto::http::{MCP_PROTOCOL_VERSION, MCP_SESSION_ID, Media, Outline};
use bowline::proto::http::{encode_value, name_source, write_legacy};
use bowline::proto::sse::Parser;
use bowline_web::{Authorize, Body, Web};
use bytes::Bytes;
use http::header::{AUTHORIZATION, HeaderName, HeaderValue};
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri};
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use super::events::{Event, parse};
use super::message::answer_to;
use super::{Direction, LIMIT, Lost, Tap};

/// Headers that differ from the usual ones: a new value, or `None` to leave the header out.
pub type HeaderChanges<'a> = &'a [(&'static str, Option<&'a str>)];

/// An HTTP endpoint, and what is known about the session there.
#[derive(Clone)]
pub struct Http {
    /// The HTTP client.
    pub web: Web,
    /// Where requests go.
    pub url: Uri,
    /// Sent with each request, such as a token.
    headers: HeaderMap,
    login: Option<Arc<dyn Authorize>>,
    tap: Tap,
    /// `Mcp-Session-Id`, as the server gave it.
    pub session: Option<HeaderValue>,
    /// The revision that the handshake settled on.
    pub negotiated: Option<Revision>,
}

/// One HTTP request.
#[derive(Debug, Clone)]
pub struct HttpRequest<'a> {
    /// The HTTP method.
    pub method: Method,
    /// The frame to post.
    pub frame: Option<&'a str>,
    /// Headers that differ from the usual ones.
    pub changes: HeaderChanges<'a>,
}

impl<'a> HttpRequest<'a> {
    /// Posts a frame.
    pub fn post(frame: &'a str, changes: HeaderChanges<'a>) -> Self {
        Self { method: Method::POST, frame: Some(frame), changes }
    }

    /// Another method, without a body.
    pub fn without_body(method: Method, changes: HeaderChanges<'a>) -> Self {
        Self { method, frame: None, changes }
    }

    /// The version that the frame names, if it is a modern message.
    fn modern_version(message: Option<&Value>) -> Option<&str> {
        message?.pointer("/params/_meta")?.get(PROTOCOL_VERSION)?.as_str()
    }

    /// Whether the frame is a message of the latest revision.
    pub fn is_modern(&self) -> bool {
        Self::modern_version(self.message().as_ref()) == Some(Revision::LATEST.as_str())
    }

    fn message(&self) -> Option<Value> {
        serde_json::from_str(self.frame?).ok()
    }
}

/// A response that was read to its end, or as far as the caller wanted.
#[derive(Debug, Clone)]
pub struct HttpReply {
    /// Its status.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body as it came, an event stream included.
    pub body: Vec<u8>,
    /// Whether it is an event stream that was still open when time ran out.
    pub left_open: bool,
    /// Time from the head to the first byte of the body.
    pub first_byte: Option<Duration>,
}

impl HttpReply {
    /// Whether the body is an event stream.
    #[must_use]
    pub fn is_stream(&self) -> bool {
        Media::of(&self.headers) == Some(Media::EventStream)
    }

    /// The events of the body that carry data.
    #[must_use]
    pub fn events(&self) -> Vec<Event> {
        let mut events = parse(&mut Parser::new(LIMIT), &self.body);
        events.retain(|event| !event.data.is_empty());
        events
    }
}

impl Http {
    /// An endpoint, with headers to send with each request.
    pub fn new(web: Web, url: Uri, headers: HeaderMap) -> Self {
        Self {
            web,
            url,
            headers,
            login: None,
            tap: Tap::default(),
            session: None,
            negotiated: None,
        }
    }

    /// With a login that signs each request.
    #[must_use]
    pub fn with_login(self, login: Option<Arc<dyn Authorize>>) -> Self {
        Self { login, ..self }
    }

    /// With a listener for every frame.
    #[must_use]
    pub fn with_tap(self, tap: Tap) -> Self {
        Self { tap, ..self }
    }

    /// The same session at another URL.
    #[must_use]
    pub fn at(&self, url: Uri) -> Self {
        Self { url, ..self.clone() }
    }

    /// The listener for every frame.
    pub fn tap(&self) -> Tap {
        self.tap.clone()
    }

    /// Whether requests carry credentials.
    pub async fn has_credentials(&self) -> bool {
        let request = self.request(&HttpRequest::without_body(Method::GET, &[])).await;
        request.is_ok_and(|request| request.headers().contains_key(AUTHORIZATION))
    }

    /// Sends a request. The body of the response has yet to be read.
    pub(super) async fn send(&self, request: &HttpRequest<'_>) -> Result<Response<Body>, Lost> {
        let request = self.request(request).await?;
        self.tap.hear(Direction::Sent, request.body());
        Ok(self.web.send(request).await?)
    }

    /// Sends a request and reads the reply: all of a plain body; of an event stream until
    /// `is_last` says so, and for a GET nothing but the head.
    ///
    /// Requests of the server on the stream are answered, since it may wait for that.
    ///
    /// # Errors
    /// When no reply comes in time. An event stream that has said something may stay open.
    pub async fn exchange(
        &self,
        request: &HttpRequest<'_>,
        patience: Duration,
        is_last: impl FnMut(&Event) -> bool,
    ) -> Result<HttpReply, Lost> {
        let deadline = Instant::now() + patience;
        let sending = timeout_at(deadline, self.send(request)).await;
        let (head, body) = sending.map_err(|_| Lost::Silent(patience))??.into_parts();
        let (status, headers) = (head.status, head.headers);
        let mut reply =
            HttpReply { status, headers, body: Vec::new(), left_open: false, first_byte: None };
        if !(request.method == Method::GET && reply.is_stream()) {
            let has_ended = reply.read(body, deadline, is_last).await?;
            reply.left_open = !has_ended;
            if !has_ended && (!reply.is_stream() || reply.events().is_empty()) {
                return Err(Lost::Silent(patience));
            }
        }
        self.hear(&reply, deadline).await;
        Ok(reply)
    }

    /// Tells the tap, and answers what the server asks.
    async fn hear(&self, reply: &HttpReply, deadline: Instant) {
        if !reply.is_stream() {
            return self.tap.hear(Direction::Received, &reply.body);
        }
        for event in reply.events() {
            self.tap.hear(Direction::Received, &event.data);
            let message = serde_json::from_slice(&event.data).ok();
            if let Some(answer) = message.as_ref().and_then(answer_to) {
                // What the server makes of the answer shows in its next messages.
                let frame = answer.to_string();
                let _ = timeout_at(deadline, self.send(&HttpRequest::post(&frame, &[]))).await;
            }
        }
    }

    async fn request(&self, request: &HttpRequest<'_>) -> Result<Request<Bytes>, Lost> {
        let mut sent = Request::new(());
        *sent.method_mut() = request.method.clone();
        *sent.uri_mut() = self.url.clone();
        *sent.headers_mut() = self.headers_of(request);
        let mut head = sent.into_parts().0;
        if let Some(login) = &self.login {
            // A login that has expired shows in the response.
            head.headers.extend(login.headers(&head).await.unwrap_or_default());
        }
        for (name, value) in request.changes {
            let name = HeaderName::from_static(name);
            match value.map(HeaderValue::from_str) {
                None => drop(head.headers.remove(name)),
                Some(Ok(value)) => drop(head.headers.insert(name, value)),
                Some(Err(_)) => {
                    return Err(Lost::Unreachable(format!("{name}: not a header value")));
                }
            }
        }
        let body = Bytes::from(request.frame.unwrap_or_default().to_owned());
        Ok(Request::from_parts(head, body))
    }

    /// The headers that the specification wants for a request.
    fn headers_of(&self, request: &HttpRequest<'_>) -> HeaderMap {
        let mut headers = self.headers.clone();
        let message = request.message();
        let Some(revision) = HttpRequest::modern_version(message.as_ref()) else {
            write_legacy(&mut headers, &request.method, self.negotiated, None);
            // Sent back as it came, be it a proper id or not.
            let session = self.session.clone().map(|session| (MCP_SESSION_ID, session));
            headers.extend(session);
            return headers;
        };
        let text = |pointer: &str| message.as_ref().and_then(|it| it.pointer(pointer)?.as_str());
        let method = text("/method").unwrap_or_default();
        let name = name_source(method).and_then(|it| text(&format!("/params/{}", it.member)));
        let outline = Outline { revision, method, name };
        if method.is_empty() || outline.write(&mut headers).is_err() {
            write_legacy(&mut headers, &request.method, None, None);
            headers.insert(MCP_PROTOCOL_VERSION, encode_value(revision));
        }
        headers
    }
}

impl HttpReply {
    /// Reads the body; `false` if time ran out.
    async fn read(
        &mut self,
        mut body: Body,
        deadline: Instant,
        mut is_last: impl FnMut(&Event) -> bool,
    ) -> Result<bool, Lost> {
        let opened = Instant::now();
        let mut parser = self.is_stream().then(|| Parser::new(LIMIT));
        while self.body.len() <= LIMIT {
            let chunk = match timeout_at(deadline, body.chunk()).await {
                Err(_) => return Ok(false),
                Ok(None) => break,
                Ok(Some(chunk)) => chunk?,
            };
            self.first_byte.get_or_insert_with(|| opened.elapsed());
            self.body.extend_from_slice(&chunk);
            let events = parser.as_mut().map(|parser| parse(parser, &chunk)).unwrap_or_default();
            if events.iter().any(|event| !event.data.is_empty() && is_last(event)) {
                break;
            }
        }
        Ok(true)
    }
}
