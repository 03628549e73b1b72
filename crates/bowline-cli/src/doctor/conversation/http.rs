//! A conversation over streamable HTTP, or over HTTP+SSE once that is found.

use std::sync::Arc;
use std::time::Duration;

use bowline::proto::http::{MCP_SESSION_ID, Media};
use bowline::proto::revision::Revision;
use bowline::proto::wire::Message;
use bowline::with_causes;
use bowline_check::frames::message::notification;
use bowline_check::frames::{
    Events, Http, HttpRequest, HttpSse, LIMIT, Lost, NoStream, endpoint, read_body,
};
use bowline_web::{Authorize, Body, Url, Web, WebError};
use http::{HeaderMap, Response};
use serde_json::Value;
use tokio::time::{Instant, timeout};

use super::super::report::unreachable;
use super::super::seen::{plain, quoted};
use super::super::status::HttpReply;
use super::{AskError, Asked, frame, outcome};
use crate::record::Way;
use crate::session::note;
use crate::target::tap;

/// How much is kept of a body without a message.
const KEPT: usize = 4 << 10;

/// A server at a URL.
pub(crate) struct HttpTalk {
    pub(crate) url: Url,
    pub(crate) http: Http,
    next_id: u64,
    /// The stream of HTTP+SSE, and where messages go.
    sse: Option<(Events, Http)>,
    /// Outcomes of requests that the search will make again.
    kept: Vec<(String, Asked)>,
    /// The longest time from the head of a response to its first event.
    pub(crate) first_event: Option<Duration>,
}

impl HttpTalk {
    pub(crate) fn new(
        web: Web,
        url: Url,
        headers: HeaderMap,
        login: Option<Arc<dyn Authorize>>,
    ) -> Self {
        let http = Http::new(web, url.uri().clone(), headers).with_login(login).with_tap(tap());
        Self { url, http, next_id: 0, sse: None, kept: Vec::new(), first_event: None }
    }

    /// Keeps an outcome for the next time that the same request is made.
    pub(crate) fn keep(&mut self, method: &str, asked: Asked) {
        self.kept.push((method.to_owned(), asked));
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
    ) -> Asked {
        if let Some(at) = self.kept.iter().position(|(known, _)| known == method)
            && self.sse.is_none()
        {
            return self.kept.swap_remove(at).1;
        }
        self.next_id += 1;
        let frame = frame(self.next_id, method, params, revision);
        let exchange = self.exchange(self.next_id, &frame);
        timeout(patience, exchange).await.unwrap_or(Err(AskError::TimedOut(patience)))
    }

    async fn exchange(&mut self, id: u64, frame: &str) -> Asked {
        let began = Instant::now();
        let http = self.sse.as_ref().map_or(&self.http, |(_, http)| http);
        let (head, body) = http.send(&HttpRequest::post(frame, &[])).await?.into_parts();
        let took = began.elapsed();
        let status = head.status.as_u16();
        if head.status.is_success() {
            if let Some((events, _)) = &mut self.sse {
                return response_in(events, id).await;
            }
            if let Some(session) = head.headers.get(MCP_SESSION_ID) {
                self.http.session = Some(session.clone());
            }
            if Media::of(&head.headers) == Some(Media::EventStream) {
                let mut events = Events::new(body, self.http.tap());
                let asked = response_in(&mut events, id).await;
                self.first_event = self.first_event.max(events.first);
                return asked;
            }
        }
        let body = read_body(body, LIMIT).await;
        note(Way::Received, &body, None);
        // For a rejected caller the status counts, whatever the body says.
        let is_barred = matches!(status, 401 | 403) && self.sse.is_none();
        match read_message(&body, id, status).filter(|_| !is_barred) {
            Some(asked) => asked,
            None => Err(self.reply(head, body, took).await),
        }
    }

    async fn reply(
        &self,
        head: http::response::Parts,
        mut body: Vec<u8>,
        took: Duration,
    ) -> AskError {
        body.truncate(KEPT);
        AskError::Http(Box::new(HttpReply {
            status: head.status.as_u16(),
            headers: head.headers,
            body,
            took,
            has_credentials: self.http.has_credentials().await,
        }))
    }

    /// Opens the stream of HTTP+SSE and waits for its endpoint.
    pub(crate) async fn open_sse(&mut self, patience: Duration) -> Result<String, AskError> {
        let began = Instant::now();
        let (first, events) = match HttpSse::begin(&self.http, patience).await {
            Ok(begun) => begun,
            Err(NoStream::Lost(lost)) => return Err(lost.into()),
            Err(NoStream::Response(response)) => {
                let took = began.elapsed();
                let (head, body) = response.into_parts();
                return Err(self.reply(head, read_start(body).await, took).await);
            }
            Err(NoStream::Ended) => return Err(AskError::Ended),
            Err(NoStream::Endpoint(why)) => return Err(AskError::Malformed(why)),
        };
        let url = endpoint(&self.http.url, &first).map_err(AskError::Malformed)?;
        self.kept.clear();
        self.sse = Some((events, self.http.at(url)));
        let path = plain(&String::from_utf8_lossy(&first.data));
        Ok(format!("HTTP+SSE of 2024-11-05; messages go to {path}"))
    }

    /// Sends `notifications/initialized`; returns the status of the response.
    pub(crate) async fn initialized(&self, patience: Duration) -> Result<u16, AskError> {
        let frame = notification("notifications/initialized").to_string();
        let http = self.sse.as_ref().map_or(&self.http, |(_, http)| http);
        let sent = timeout(patience, async { http.send(&HttpRequest::post(&frame, &[])).await });
        let response = sent.await.map_err(|_| AskError::TimedOut(patience))??;
        Ok(response.status().as_u16())
    }
}

/// Reads events until the response comes.
async fn response_in(events: &mut Events, id: u64) -> Asked {
    let mut malformed = None;
    while let Some(event) = events.next().await {
        let data = &event.data;
        match read_message(data, id, 200) {
            Some(Err(AskError::Malformed(what))) => malformed = Some(what),
            Some(asked) => return asked,
            None if data.is_empty() || Message::parse(data).is_ok() => {}
            None => malformed = Some(format!("an event is not a message: {}", quoted(data))),
        }
    }
    Err(malformed.map_or(AskError::Ended, AskError::Malformed))
}

/// The outcome of a request, if the text is a response or an error.
fn read_message(text: &[u8], id: u64, status: u16) -> Option<Asked> {
    match Message::parse(text).ok()? {
        Message::Response(response) => {
            Some(outcome(response, id, Some(status)).unwrap_or_else(|actual| {
                Err(AskError::Malformed(format!("its id is {actual}, not the number {id}")))
            }))
        }
        Message::Fault(error) => Some(Err(AskError::Refused { error, status: Some(status) })),
        Message::Request(_) | Message::Notification(_) => None,
    }
}

/// The first bytes of a body that may never end.
pub(crate) async fn read_start(body: Body) -> Vec<u8> {
    timeout(Duration::from_secs(1), read_body(body, KEPT)).await.unwrap_or_default()
}

pub(crate) fn is_event_stream(response: &Response<Body>) -> bool {
    response.status().is_success() && Media::of(response.headers()) == Some(Media::EventStream)
}

impl From<Lost> for AskError {
    fn from(lost: Lost) -> Self {
        let (cause, fix) = match &lost {
            Lost::Silent(after) => return Self::TimedOut(*after),
            Lost::Web(error) => (with_causes(&**error), fix(error)),
            other => (other.to_string(), "Check the URL and the network."),
        };
        Self::Unreachable(Box::new(unreachable(plain(&cause)).fix(fix)))
    }
}

fn fix(error: &WebError) -> &'static str {
    match error {
        WebError::Proxy { .. } => "Check HTTPS_PROXY, HTTP_PROXY and ALL_PROXY, or set NO_PROXY.",
        WebError::Closed { .. } => "Check the log of the server, or of a proxy in between.",
        WebError::Protocol { .. } => "Check the port and the scheme: it does not speak HTTP.",
        WebError::TimedOut { .. } => "Check whether the server hangs: it accepts connections.",
        _ => "Check the URL and the network.",
    }
}
