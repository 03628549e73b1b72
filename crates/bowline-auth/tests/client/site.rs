//! A web site: a function from requests to replies, and a log of what was asked.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body::{Body, Frame};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// A request as a site saw it.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Asked {
    /// A value of the query.
    pub(crate) fn query(&self, name: &str) -> Option<String> {
        value(&self.query, name)
    }

    /// A value of the form in the body.
    pub(crate) fn form(&self, name: &str) -> Option<String> {
        value(&self.body, name)
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }

    /// Everything, for whoever looks for a secret.
    pub(crate) fn all(&self) -> String {
        format!("{} {}?{} {:?} {}", self.method, self.path, self.query, self.headers, self.body)
    }
}

/// The first value of a name, decoded.
pub(crate) fn value(query: &str, name: &str) -> Option<String> {
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs.into_iter().find(|(known, _)| *known == name).map(|(_, value)| decode(value))
}

pub(crate) fn decode(text: &str) -> String {
    let mut out = Vec::new();
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        let mut digit = || char::from(bytes.next().unwrap()).to_digit(16).unwrap();
        out.push(match byte {
            b'%' => u8::try_from(digit() * 16 + digit()).unwrap(),
            b'+' => b' ',
            byte => byte,
        });
    }
    String::from_utf8(out).unwrap()
}

/// What a site says.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Reply {
    pub(crate) fn status(status: u16) -> Self {
        let status = StatusCode::from_u16(status).unwrap();
        Self { status, headers: HeaderMap::new(), body: String::new() }
    }

    pub(crate) fn json(body: &Value) -> Self {
        Self { body: body.to_string(), ..Self::status(200) }
    }

    pub(crate) fn error(status: u16, code: &str) -> Self {
        Self { body: format!(r#"{{"error": "{code}"}}"#), ..Self::status(status) }
    }

    pub(crate) fn redirect(status: u16, to: &str) -> Self {
        Self::status(status).with("location", to)
    }

    pub(crate) fn with(mut self, name: &'static str, value: &str) -> Self {
        self.headers.append(name, value.parse().unwrap());
        self
    }
}

/// A site on loopback. Dropping it closes it.
pub(crate) struct Site {
    pub(crate) url: String,
    log: Arc<Mutex<Vec<Asked>>>,
    connections: Arc<Mutex<usize>>,
    task: JoinHandle<()>,
}

impl Site {
    /// A port to listen on, and the address it has.
    pub(crate) async fn bind() -> (TcpListener, String) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://127.0.0.1:{}", listener.local_addr().unwrap().port());
        (listener, url)
    }

    /// Answers with this function.
    pub(crate) fn serve(
        (listener, url): (TcpListener, String),
        answer: impl Fn(&Asked) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let log = Arc::new(Mutex::new(Vec::new()));
        let connections = Arc::new(Mutex::new(0));
        let (seen, opened) = (Arc::clone(&log), Arc::clone(&connections));
        let answer = Arc::new(answer);
        let task = tokio::spawn(async move {
            let mut tasks = tokio::task::JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                *opened.lock().unwrap() += 1;
                let (seen, answer) = (Arc::clone(&seen), Arc::clone(&answer));
                let service = service_fn(move |request: Request<Incoming>| {
                    exchange(request, Arc::clone(&seen), Arc::clone(&answer))
                });
                let serving = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service);
                tasks.spawn(async move { drop(serving.await) });
            }
        });
        Self { url, log, connections, task }
    }

    /// A site that nobody should ever talk to.
    pub(crate) async fn canary() -> Self {
        Self::serve(Self::bind().await, |_| Reply::status(200))
    }

    pub(crate) fn log(&self) -> Vec<Asked> {
        self.log.lock().unwrap().clone()
    }

    /// Requests for a path.
    pub(crate) fn asked(&self, path: &str) -> Vec<Asked> {
        self.log().into_iter().filter(|asked| asked.path == path).collect()
    }

    /// Requests for this path, of any tenant.
    pub(crate) fn below(&self, path: &str) -> Vec<Asked> {
        self.log().into_iter().filter(|asked| asked.path.ends_with(path)).collect()
    }

    pub(crate) fn connections(&self) -> usize {
        *self.connections.lock().unwrap()
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn exchange(
    request: Request<Incoming>,
    seen: Arc<Mutex<Vec<Asked>>>,
    answer: Arc<impl Fn(&Asked) -> Reply>,
) -> Result<Response<Whole>, Infallible> {
    let asked = read(request).await;
    seen.lock().unwrap().push(asked.clone());
    let reply = answer(&asked);
    let mut response = Response::new(Whole(Some(reply.body.into())));
    *response.status_mut() = reply.status;
    *response.headers_mut() = reply.headers;
    Ok(response)
}

async fn read(request: Request<Incoming>) -> Asked {
    let (head, body) = request.into_parts();
    let mut body = pin!(body);
    let mut bytes = Vec::new();
    while let Some(frame) = poll_fn(|context| body.as_mut().poll_frame(context)).await {
        bytes.extend_from_slice(&frame.unwrap().into_data().unwrap_or_default());
    }
    Asked {
        method: head.method,
        path: head.uri.path().to_owned(),
        query: head.uri.query().unwrap_or_default().to_owned(),
        headers: head.headers,
        body: String::from_utf8(bytes).unwrap(),
    }
}

struct Whole(Option<Bytes>);

impl Body for Whole {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.take().map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_none()
    }
}
