//! A server that says what a recorded one said.

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use bowline_proto::http::{Access, Fields};

use crate::diff::key;
use crate::recording::Recording;
use crate::session_file::Way;

/// The most bytes in the body of a request.
const LONGEST: usize = 16 << 20;

/// Recorded answers. Equal requests get them in the recorded order; the last one is repeated.
#[derive(Debug)]
pub struct Mock {
    answers: Mutex<BTreeMap<String, VecDeque<Recorded>>>,
    /// Whether answers take as long as they did.
    is_timed: bool,
}

#[derive(Debug, Clone)]
struct Recorded {
    answer: Value,
    took: f64,
}

impl Mock {
    /// A server that answers as in a recording; `is_timed` if answers take as long as they did.
    #[must_use]
    pub fn new(recording: &Recording, is_timed: bool) -> Self {
        let mut answers: BTreeMap<String, VecDeque<Recorded>> = BTreeMap::new();
        for exchange in recording.exchanges() {
            if let (Way::Sent, Some((answer, took))) = (exchange.way, exchange.answer) {
                let recorded = Recorded { answer, took };
                answers.entry(key(&exchange.request)).or_default().push_back(recorded);
            }
        }
        Self { answers: Mutex::new(answers), is_timed }
    }

    /// The answer to a message, and how long it takes; `None` if it needs none.
    pub fn answer(&self, message: &Value) -> Option<(Value, Duration)> {
        let id = message.get("id").filter(|_| message.get("method").is_some())?.clone();
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let queue = answers.get_mut(&key(message));
        let recorded = queue.and_then(|queue| {
            if queue.len() > 1 { queue.pop_front() } else { queue.front().cloned() }
        });
        let Some(Recorded { mut answer, took }) = recorded else {
            let what = format!("the recording has no answer to {}", key(message));
            let error = json!({ "code": -32601, "message": what });
            return Some((json!({ "jsonrpc": "2.0", "id": id, "error": error }), Duration::ZERO));
        };
        answer["id"] = id;
        let took = if self.is_timed { took } else { 0.0 };
        Some((answer, Duration::try_from_secs_f64(took).unwrap_or_default()))
    }

    /// Answers over HTTP until `stop` is ready.
    ///
    /// # Errors
    /// When the socket stops accepting connections.
    pub async fn serve_until(
        self,
        listener: TcpListener,
        stop: impl Future<Output = ()>,
    ) -> io::Result<()> {
        let mock = Arc::new(self);
        let mut connections = tokio::task::JoinSet::new();
        let mut stop = std::pin::pin!(stop);
        loop {
            tokio::select! {
                () = &mut stop => return Ok(()),
                accepted = listener.accept() => {
                    let stream = TokioIo::new(accepted?.0);
                    let mock = Arc::clone(&mock);
                    let service = service_fn(move |request| {
                        let mock = Arc::clone(&mock);
                        async move { Ok::<_, Infallible>(mock.respond(request).await) }
                    });
                    let builder = hyper::server::conn::http1::Builder::new();
                    connections.spawn(builder.serve_connection(stream, service));
                }
                Some(_) = connections.join_next() => {}
            }
        }
    }

    async fn respond(&self, request: Request<Incoming>) -> Response<Whole> {
        let authority = request.uri().authority().map(http::uri::Authority::as_str);
        let checked = Access::new().check(authority, &Fields::read(request.headers()));
        if let Err(denied) = checked {
            return response(StatusCode::FORBIDDEN, denied.to_string());
        }
        if request.method() != Method::POST {
            let mut refused = response(StatusCode::METHOD_NOT_ALLOWED, String::new());
            refused.headers_mut().insert(ALLOW, HeaderValue::from_static("POST"));
            return refused;
        }
        let body = collect(request.into_body()).await;
        let message = body.and_then(|body| serde_json::from_slice(&body).ok());
        let Some(message) = message else {
            return response(StatusCode::BAD_REQUEST, "expected one message".to_owned());
        };
        match self.answer(&message) {
            None => response(StatusCode::ACCEPTED, String::new()),
            Some((answer, takes)) => {
                tokio::time::sleep(takes).await;
                response(StatusCode::OK, answer.to_string())
            }
        }
    }
}

/// The body of a request, unless it is too long or breaks off.
async fn collect(mut body: Incoming) -> Option<Vec<u8>> {
    let mut whole = Vec::new();
    loop {
        let next = std::future::poll_fn(|context| {
            http_body::Body::poll_frame(std::pin::Pin::new(&mut body), context)
        });
        let Some(frame) = next.await else { return Some(whole) };
        let frame = frame.ok()?;
        whole.extend_from_slice(frame.data_ref().map(|bytes| &bytes[..]).unwrap_or_default());
        if whole.len() > LONGEST {
            return None;
        }
    }
}

fn response(status: StatusCode, body: String) -> Response<Whole> {
    let kind = if status == StatusCode::OK { "application/json" } else { "text/plain" };
    let mut response = Response::new(Whole(Some(Bytes::from(body)).filter(|it| !it.is_empty())));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// A body in one piece.
#[derive(Debug)]
struct Whole(Option<Bytes>);

impl http_body::Body for Whole {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<http_body::Frame<Bytes>, Infallible>>> {
        std::task::Poll::Ready(self.0.take().map(|bytes| Ok(http_body::Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_none()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        http_body::SizeHint::with_exact(self.0.as_ref().map_or(0, |bytes| bytes.len() as u64))
    }
}
