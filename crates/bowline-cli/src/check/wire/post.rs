//! A server at a URL: each message an exchange of its own, with exactly the headers that a check
//! wants.

use std::sync::Arc;
use std::time::Duration;

use bowline::proto::{http as rules, sse};
use bowline::with_causes;
use bowline_web::{Authorize, Body, Web};
use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue};
use http::{HeaderMap, Method, Request, Response, Uri};
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

#[cfg(test)]
use super::Frame;
use super::stream::{answer_to, is_answer};
use super::{Changes, Heard, Lost, Until};
use crate::check::evidence::Evidence;
use crate::check::seen::Seen;
use crate::record::Way;
use crate::session::note;
use crate::target::Kept;

/// Most bytes of an answer that are read: 16 MiB.
const MOST: usize = 16 << 20;

/// An address, and what is known of the session there.
#[derive(Clone)]
pub(in crate::check) struct Post {
    pub(in crate::check) web: Web,
    pub(in crate::check) url: Uri,
    /// What the user wants on every request, such as a token. Never shown.
    given: HeaderMap,
    /// A login that was kept.
    login: Option<Arc<Kept>>,
    pub(in crate::check) session: Option<HeaderValue>,
    /// The revision that the handshake ended with.
    pub(in crate::check) negotiated: Option<String>,
    /// Changes what the server says, for tests.
    #[cfg(test)]
    pub(in crate::check) fault: Option<Fault>,
}

/// What a test makes of an answer, given the request and its body.
#[cfg(test)]
#[derive(Clone)]
pub(in crate::check) struct Fault {
    pub(in crate::check) after: fn(&http::request::Parts, &[u8], &mut Response<Bytes>),
    /// What it makes of an event of HTTP+SSE.
    pub(in crate::check) event: fn(&mut Frame),
}

/// A request in the sense of HTTP.
pub(in crate::check) struct Ask<'a> {
    method: Method,
    body: Option<&'a str>,
    changes: Changes<'a>,
}

impl<'a> Ask<'a> {
    /// A message.
    pub(in crate::check) fn post(frame: &'a str, changes: Changes<'a>) -> Self {
        Self { method: Method::POST, body: Some(frame), changes }
    }

    /// Another verb, without a body.
    pub(in crate::check) fn verb(method: Method, changes: Changes<'a>) -> Self {
        Self { method, body: None, changes }
    }

    /// What was asked, to be shown.
    pub(in crate::check) fn evidence(&self) -> Evidence {
        match self.body {
            Some(frame) => Evidence::sent(frame, self.changes),
            None => Evidence::sent(self.method.as_str(), self.changes),
        }
    }
}

impl Post {
    pub(in crate::check) fn new(web: Web, url: Uri, given: HeaderMap) -> Self {
        Self {
            web,
            url,
            given,
            login: None,
            session: None,
            negotiated: None,
            #[cfg(test)]
            fault: None,
        }
    }

    /// With a login, which proves itself anew with each request.
    pub(in crate::check) fn with_login(mut self, login: Option<Kept>) -> Self {
        self.login = login.map(Arc::new);
        self
    }

    /// Whether requests say who asks.
    pub(in crate::check) async fn has_credentials(&self) -> bool {
        let request = self.request(&Ask::verb(Method::GET, &[])).await;
        request.is_ok_and(|request| request.headers().contains_key(AUTHORIZATION))
    }

    /// Sends, and reads nothing yet.
    pub(super) async fn send(&self, ask: &Ask<'_>) -> Result<Response<Body>, Lost> {
        let request = self.request(ask).await?;
        note(Way::Sent, request.body(), None);
        self.web.send(request).await.map_err(|error| lost(&error))
    }

    /// One request beside all connections.
    pub(in crate::check) async fn ask(
        &self,
        ask: &Ask<'_>,
        patience: Duration,
    ) -> Result<Heard, Lost> {
        let mut unseen = Seen::new(bowline::Revision::LATEST);
        self.exchange(ask, Until::Quiet, patience, &mut unseen).await
    }

    /// Sends and reads: all of a plain body, of a stream up to the answer.
    pub(super) async fn exchange(
        &self,
        ask: &Ask<'_>,
        until: Until<'_>,
        patience: Duration,
        seen: &mut Seen,
    ) -> Result<Heard, Lost> {
        let deadline = Instant::now() + patience;
        let sending = timeout_at(deadline, self.send(ask)).await;
        let response = sending.map_err(|_| Lost::Silent(patience))??;
        let (head, mut body) = response.into_parts();
        let mut reading = Reading::new(&head.headers, ask.method == Method::GET);
        while reading.goes_on(until) {
            let Ok(chunk) = timeout_at(deadline, body.chunk()).await else {
                // A stream that was answered but not closed has said what it has to say.
                if reading.stands_open || reading.has_events() {
                    reading.left_open = true;
                    break;
                }
                return Err(Lost::Silent(patience));
            };
            match chunk {
                None => break,
                Some(chunk) => reading.take(&chunk.map_err(|error| lost(&error))?),
            }
        }
        drop(body);
        let left_open = reading.left_open;
        let response = Response::from_parts(head, Bytes::from(reading.bytes));
        #[cfg(test)]
        let response = self.after(ask, response).await;
        let (head, body) = response.into_parts();
        let mut heard = Heard {
            status: Some(head.status),
            headers: head.headers,
            left_open,
            ..Heard::default()
        };
        let message = ask.body.and_then(|body| serde_json::from_str(body).ok());
        let is_modern =
            modern_version(message.as_ref()) == Some(bowline::Revision::LATEST.as_str());
        seen.body(&body, is_modern, &mut heard);
        self.answer_questions(&heard, deadline).await;
        Ok(heard)
    }

    /// A server that asks on the stream of a request would wait for ever.
    async fn answer_questions(&self, heard: &Heard, deadline: Instant) {
        for answer in heard.messages.iter().filter_map(answer_to) {
            let frame = answer.to_string();
            // Whether it minds the answer is not what is checked.
            let _ = timeout_at(deadline, self.send(&Ask::post(&frame, &[]))).await;
        }
    }

    async fn request(&self, ask: &Ask<'_>) -> Result<Request<Bytes>, Lost> {
        let mut headers = self.given.clone();
        let accept = match ask.method {
            Method::GET => "text/event-stream",
            _ => "application/json, text/event-stream",
        };
        headers.insert(ACCEPT, HeaderValue::from_static(accept));
        if ask.body.is_some() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        let message = ask.body.and_then(|body| serde_json::from_str::<Value>(body).ok());
        match modern_version(message.as_ref()) {
            Some(version) => mirror(&mut headers, version, message.as_ref()),
            None => self.dress_legacy(&mut headers),
        }
        let mut request = Request::new(());
        *request.method_mut() = ask.method.clone();
        *request.uri_mut() = self.url.clone();
        *request.headers_mut() = headers;
        let mut head = request.into_parts().0;
        if let Some(login) = &self.login {
            // One that is no longer good shows in the answer.
            head.headers.extend(login.headers(&head).await.unwrap_or_default());
        }
        for (name, value) in ask.changes {
            let name = HeaderName::from_static(name);
            match value.map(HeaderValue::from_str) {
                None => drop(head.headers.remove(name)),
                Some(Ok(value)) => drop(head.headers.insert(name, value)),
                Some(Err(_)) => return Err(Lost::Unreachable("a header of no use".to_owned())),
            }
        }
        let body = Bytes::from(ask.body.unwrap_or_default().to_owned());
        Ok(Request::from_parts(head, body))
    }

    fn dress_legacy(&self, headers: &mut HeaderMap) {
        if let Some(session) = &self.session {
            headers.insert(rules::MCP_SESSION_ID, session.clone());
        }
        let version = self.negotiated.as_deref().filter(|version| *version >= "2025-06-18");
        if let Some(Ok(version)) = version.map(HeaderValue::from_str) {
            headers.insert(rules::MCP_PROTOCOL_VERSION, version);
        }
    }

    #[cfg(test)]
    async fn after(&self, ask: &Ask<'_>, mut response: Response<Bytes>) -> Response<Bytes> {
        if let (Some(fault), Ok(sent)) = (&self.fault, self.request(ask).await) {
            let (head, body) = sent.into_parts();
            (fault.after)(&head, &body, &mut response);
        }
        response
    }

    /// What a test makes of an event of HTTP+SSE.
    #[cfg(test)]
    pub(super) fn changed(&self, mut event: Frame) -> Frame {
        if let Some(fault) = &self.fault {
            (fault.event)(&mut event);
        }
        event
    }
}

/// The version that a modern message names.
fn modern_version(message: Option<&Value>) -> Option<&str> {
    let meta = message?.pointer("/params/_meta")?;
    meta.get(bowline::model::meta_key::PROTOCOL_VERSION)?.as_str()
}

/// The headers that repeat a modern message.
fn mirror(headers: &mut HeaderMap, version: &str, message: Option<&Value>) {
    let mut put = |name: HeaderName, text: Option<&str>| {
        if let Some(text) = text {
            headers.insert(name, rules::encode_value(text));
        }
    };
    put(rules::MCP_PROTOCOL_VERSION, Some(version));
    let method = message.and_then(|message| message.get("method")?.as_str());
    put(rules::MCP_METHOD, method);
    let key = match method {
        Some("tools/call" | "prompts/get") => "/params/name",
        Some("resources/read") => "/params/uri",
        _ => return,
    };
    put(rules::MCP_NAME, message.and_then(|message| message.pointer(key)?.as_str()));
}

/// A body on its way in.
struct Reading {
    bytes: Vec<u8>,
    is_stream: bool,
    /// A stream that nothing ends: what has come by the deadline is all.
    stands_open: bool,
    /// It was answered, and still not closed at the deadline.
    left_open: bool,
}

impl Reading {
    fn new(headers: &HeaderMap, stands_open: bool) -> Self {
        let media = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let is_stream = media.is_some_and(|media| media.starts_with(rules::EVENT_STREAM));
        Self {
            bytes: Vec::new(),
            is_stream,
            stands_open: stands_open && is_stream,
            left_open: false,
        }
    }

    /// Whether more should be read. Of a stream that stands open, the head is enough.
    fn goes_on(&self, until: Until<'_>) -> bool {
        if self.stands_open || self.bytes.len() > MOST {
            return false;
        }
        match until {
            Until::Answer(id) if self.is_stream => {
                !events(&self.bytes).iter().flatten().any(|message| is_answer(message, id))
            }
            Until::First if self.is_stream => events(&self.bytes).is_empty(),
            _ => true,
        }
    }

    fn has_events(&self) -> bool {
        self.is_stream && !events(&self.bytes).is_empty()
    }

    fn take(&mut self, chunk: &[u8]) {
        self.bytes.extend_from_slice(chunk);
    }
}

/// The messages of a stream of events; `None` for data that is no JSON.
pub(in crate::check) fn events(bytes: &[u8]) -> Vec<Option<Value>> {
    let mut parser = sse::Parser::new(MOST);
    let mut rest = bytes;
    let mut found = Vec::new();
    while let Some(event) = parser.next_event(&mut rest) {
        let Ok(event) = event else { continue };
        let data = event.data.filter(|data| !data.is_empty());
        found.extend(data.map(|data| serde_json::from_slice(data).ok()));
    }
    found
}

fn lost(error: &bowline_web::WebError) -> Lost {
    let text = with_causes(error);
    match error.is_before_sending() {
        true => Lost::Unreachable(text),
        false => Lost::Closed(text),
    }
}
