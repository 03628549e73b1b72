//! A conversation over HTTP, request by request: streamable HTTP, or HTTP+SSE once that is found.

mod events;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bowline::Json;
use bowline::proto::http::{Media, Outline, SessionId, write_legacy};
use bowline::proto::revision::Revision;
use bowline::proto::wire::Message;
use bowline::with_causes;
use bowline_web::{Authorize, Body, Web, WebError};
use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, Uri, header};
use serde_json::Value;
use tokio::time::{Instant, timeout};

pub(crate) use self::events::Events;
use super::address::Address;
use super::report::Diagnosis;
use super::seen::{plain, quoted};
use super::status::Answer;
use super::wire::{Answered, Trouble, encode};
use crate::record::Way;
use crate::session::note;
use crate::target::Kept;

/// How much of an answer is read.
const BODY: usize = 16 << 20;
/// How much of an answer that is no message is kept.
const KEPT: usize = 4 << 10;

/// One side of a conversation over HTTP.
pub(crate) struct Talk {
    pub(crate) web: Web,
    pub(crate) address: Address,
    headers: HeaderMap,
    login: Option<Kept>,
    /// Whether requests say who asks.
    has_credentials: AtomicBool,
    pub(crate) session: Option<SessionId>,
    pub(crate) revision: Option<Revision>,
    next_id: u64,
    /// The stream of HTTP+SSE, and where messages go.
    sse: Option<(Events, Uri)>,
    /// Answers to questions that will be asked again.
    kept: Vec<(String, Answered)>,
    /// The slowest first event: from the head of its answer.
    pub(crate) first_event: Option<Duration>,
}

impl Talk {
    pub(crate) fn new(web: Web, address: Address, headers: HeaderMap, login: Option<Kept>) -> Self {
        let has_credentials = headers.contains_key(header::AUTHORIZATION).into();
        Self {
            web,
            address,
            headers,
            login,
            has_credentials,
            session: None,
            revision: None,
            next_id: 0,
            sse: None,
            kept: Vec::new(),
            first_event: None,
        }
    }

    /// Keeps an answer for whoever asks the same again.
    pub(crate) fn keep(&mut self, method: &str, answered: Answered) {
        self.kept.push((method.to_owned(), answered));
    }

    pub(crate) fn is_sse(&self) -> bool {
        self.sse.is_some()
    }

    pub(crate) async fn ask(
        &mut self,
        method: &str,
        params: Value,
        revision: Revision,
        patience: Duration,
    ) -> Answered {
        if let Some(at) = self.kept.iter().position(|(known, _)| known == method)
            && self.sse.is_none()
        {
            return self.kept.swap_remove(at).1;
        }
        self.next_id += 1;
        let id = self.next_id;
        let frame = encode(id, method, params, revision);
        let headers = self.headers_for(method, revision);
        let exchange = async {
            match self.sse.is_some() {
                true => self.exchange_sse(id, frame, headers).await,
                false => self.exchange(id, frame, headers).await,
            }
        };
        timeout(patience, exchange).await.unwrap_or(Err(Trouble::NoAnswer(patience)))
    }

    /// The headers of a POST.
    pub(crate) fn headers_for(&self, method: &str, revision: Revision) -> HeaderMap {
        let mut headers = self.headers.clone();
        if !revision.is_modern() {
            write_legacy(&mut headers, &Method::POST, self.revision, self.session.as_ref());
            return headers;
        }
        let outline = Outline { revision: revision.as_str(), method, name: None };
        // A method of the specification can stand in a header.
        let _ = outline.write(&mut headers);
        headers
    }

    async fn exchange(&mut self, id: u64, frame: Vec<u8>, headers: HeaderMap) -> Answered {
        let began = Instant::now();
        let uri = self.address.uri.clone();
        let response = self.send(Method::POST, uri, headers, frame).await?;
        let took = began.elapsed();
        let (head, body) = response.into_parts();
        if let Ok(Some(session)) = SessionId::find(&head.headers) {
            self.session = Some(session);
        }
        let status = head.status.as_u16();
        if head.status.is_success() && Media::of(&head.headers) == Some(Media::EventStream) {
            let mut events = Events::new(body);
            let answered = answer_of(&mut events, id).await;
            let first = events.first.map(|first| first.saturating_sub(took.min(first)));
            self.first_event = self.first_event.max(first);
            return answered;
        }
        let body = read(body, BODY).await;
        note(Way::Received, &body, None);
        // Who is not let in is told so by the status, whatever the body says.
        let is_barred = matches!(status, 401 | 403);
        match read_message(&body, id, status).filter(|_| !is_barred) {
            Some(answered) => answered,
            None => Err(Trouble::Http(Box::new(self.answer(head, body, took)))),
        }
    }

    async fn exchange_sse(&mut self, id: u64, frame: Vec<u8>, headers: HeaderMap) -> Answered {
        let Some((_, uri)) = &self.sse else { return Err(Trouble::Ended) };
        let began = Instant::now();
        let response = self.send(Method::POST, uri.clone(), headers, frame).await?;
        let took = began.elapsed();
        if !response.status().is_success() {
            let (head, body) = response.into_parts();
            let body = read(body, BODY).await;
            note(Way::Received, &body, None);
            let status = head.status.as_u16();
            let answer = self.answer(head, body.clone(), took);
            let read = read_message(&body, id, status);
            return read.unwrap_or_else(|| Err(Trouble::Http(Box::new(answer))));
        }
        match &mut self.sse {
            Some((events, _)) => answer_of(events, id).await,
            None => Err(Trouble::Ended),
        }
    }

    /// Opens the stream of HTTP+SSE and waits for its endpoint.
    pub(crate) async fn open_sse(&mut self, patience: Duration) -> Result<String, Trouble> {
        let opening = async {
            let began = Instant::now();
            let response = self.get().await?;
            let took = began.elapsed();
            let (head, body) = response.into_parts();
            if !head.status.is_success() || Media::of(&head.headers) != Some(Media::EventStream) {
                let body = read_start(body).await;
                return Err(Trouble::Http(Box::new(self.answer(head, body, took))));
            }
            let mut events = Events::new(body);
            match events.next().await {
                Some((Some(kind), data)) if kind == "endpoint" => Ok((events, data)),
                Some((_, data)) => {
                    let what = format!("its first event is not `endpoint`: {}", quoted(&data));
                    Err(Trouble::Malformed(what))
                }
                None => Err(Trouble::Ended),
            }
        };
        let (events, data) =
            timeout(patience, opening).await.unwrap_or(Err(Trouble::NoAnswer(patience)))?;
        let place = String::from_utf8_lossy(&data).into_owned();
        let Some(uri) = self.address.resolve(&place) else {
            let what = format!("its endpoint is no address of this server: {}", plain(&place));
            return Err(Trouble::Malformed(what));
        };
        self.kept.clear();
        self.sse = Some((events, uri));
        Ok(format!("HTTP+SSE of 2024-11-05; messages go to {}", plain(&place)))
    }

    /// The stream on which a server speaks unasked.
    pub(crate) async fn get(&self) -> Result<Response<Body>, Trouble> {
        let mut headers = self.headers.clone();
        write_legacy(&mut headers, &Method::GET, self.revision, self.session.as_ref());
        self.send(Method::GET, self.address.uri.clone(), headers, Vec::new()).await
    }

    /// Sends a notification; the answer's status.
    pub(crate) async fn notify(
        &self,
        method: &str,
        revision: Revision,
        patience: Duration,
    ) -> Result<u16, Trouble> {
        let frame = serde_json::json!({ "jsonrpc": "2.0", "method": method });
        let uri = self.sse.as_ref().map_or(&self.address.uri, |(_, uri)| uri).clone();
        let headers = self.headers_for(method, revision);
        let sent = self.send(Method::POST, uri, headers, frame.to_string().into_bytes());
        let response = timeout(patience, sent).await.unwrap_or(Err(Trouble::NoAnswer(patience)))?;
        Ok(response.status().as_u16())
    }

    /// One request, as it is.
    pub(crate) async fn send(
        &self,
        method: Method,
        uri: Uri,
        headers: HeaderMap,
        body: Vec<u8>,
    ) -> Result<Response<Body>, Trouble> {
        note(Way::Sent, &body, None);
        let mut request = Request::new(Bytes::from(body));
        *request.method_mut() = method;
        *request.uri_mut() = uri;
        *request.headers_mut() = headers;
        if let Some(login) = &self.login {
            let (mut parts, body) = request.into_parts();
            // A login that is no longer good shows in the answer.
            if let Ok(proof) = login.headers(&parts).await {
                self.has_credentials.fetch_or(!proof.is_empty(), Ordering::Relaxed);
                parts.headers.extend(proof);
            }
            request = Request::from_parts(parts, body);
        }
        self.web.send(request).await.map_err(|error| unreachable(&error))
    }

    fn answer(&self, head: http::response::Parts, mut body: Vec<u8>, took: Duration) -> Answer {
        body.truncate(KEPT);
        let has_credentials = self.has_credentials.load(Ordering::Relaxed);
        Answer { status: head.status.as_u16(), headers: head.headers, body, took, has_credentials }
    }

    pub(crate) fn base_headers(&self) -> &HeaderMap {
        &self.headers
    }
}

/// Reads a stream until the answer comes.
async fn answer_of(events: &mut Events, id: u64) -> Answered {
    let mut odd = None;
    while let Some((_, data)) = events.next().await {
        note(Way::Received, &data, None);
        match read_message(&data, id, 200) {
            Some(Err(Trouble::Malformed(what))) => odd = Some(what),
            Some(answered) => return answered,
            None if data.is_empty() || Message::parse(&data).is_ok() => {}
            None => odd = Some(format!("an event is no message: {}", quoted(&data))),
        }
    }
    Err(odd.map_or(Trouble::Ended, Trouble::Malformed))
}

/// The answer in a body; `None` when there is none.
fn read_message(body: &[u8], id: u64, status: u16) -> Option<Answered> {
    match Message::parse(body).ok()? {
        Message::Response(response) => {
            let told = serde_json::to_value(&response.id).unwrap_or_default();
            let refused = |error| Err(Trouble::Refused { error, status: Some(status) });
            Some(match response.outcome {
                _ if told != id => {
                    let what = format!("it has the id {told}, where the number {id} was sent");
                    Err(Trouble::Malformed(what))
                }
                Ok(result) => Ok(Json::copy_of(result)),
                Err(error) => refused(error),
            })
        }
        Message::Fault(error) => Some(Err(Trouble::Refused { error, status: Some(status) })),
        Message::Request(_) | Message::Notification(_) => None,
    }
}

async fn read(mut body: Body, limit: usize) -> Vec<u8> {
    let mut all = Vec::new();
    while let Some(Ok(chunk)) = body.chunk().await {
        let room = limit - all.len();
        all.extend_from_slice(&chunk[..chunk.len().min(room)]);
        if all.len() == limit {
            break;
        }
    }
    all
}

/// The first bytes of a body that may never end.
pub(crate) async fn read_start(body: Body) -> Vec<u8> {
    let soon = Duration::from_secs(1);
    timeout(soon, read(body, KEPT)).await.unwrap_or_default()
}

/// No answer at all.
fn unreachable(error: &WebError) -> Trouble {
    let seen = with_causes(error);
    let fix = match error {
        WebError::Proxy { .. } => {
            "Check the proxy (HTTPS_PROXY, HTTP_PROXY, ALL_PROXY), or add the host to NO_PROXY."
        }
        WebError::Closed { .. } => {
            "The server or something in between closed the connection: look at its log."
        }
        WebError::Protocol { .. } => {
            "Check the port and the scheme: what answers there does not speak HTTP."
        }
        WebError::TimedOut { .. } => {
            "The server takes the connection and does not answer: see whether it hangs."
        }
        _ => "Check the URL and the network.",
    };
    let diagnosis = Box::new(Diagnosis::unreachable(plain(&seen), fix));
    Trouble::Unreachable { seen: plain(&seen), diagnosis }
}
