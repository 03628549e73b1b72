//! An HTTP server for tests: answers by a function, and keeps what it was asked.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use hyper::service::service_fn;
use tokio::net::TcpListener;

/// A request, as the server got it.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) target: String,
    pub(crate) method: String,
    pub(crate) headers: http::HeaderMap,
    pub(crate) body: Bytes,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }
}

/// A server that runs as long as the test.
pub(crate) struct Site {
    /// `http://127.0.0.1:port`
    pub(crate) url: String,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Site {
    pub(crate) async fn start(
        answer: impl Fn(&Seen) -> Response<String> + Send + Sync + 'static,
    ) -> Self {
        Self::of_bytes(move |seen| answer(seen).map(Bytes::from)).await
    }

    pub(crate) async fn of_bytes(
        answer: impl Fn(&Seen) -> Response<Bytes> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (seen, answer) = (Arc::new(Mutex::new(Vec::new())), Arc::new(answer));
        let kept = Arc::clone(&seen);
        let service = service_fn(move |request: Request<Incoming>| {
            let (kept, answer) = (Arc::clone(&kept), Arc::clone(&answer));
            async move {
                let seen = read(request).await;
                let response = answer(&seen);
                kept.lock().unwrap().push(seen);
                Ok::<_, Infallible>(response.map(Whole))
            }
        });
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let io = hyper_util::rt::TokioIo::new(stream);
                let http = hyper::server::conn::http1::Builder::new();
                tokio::spawn(http.serve_connection(io, service.clone()));
            }
        });
        Self { url, seen }
    }

    /// What was asked since the last time.
    pub(crate) fn taken(&self) -> Vec<Seen> {
        std::mem::take(&mut self.seen.lock().unwrap())
    }
}

async fn read(request: Request<Incoming>) -> Seen {
    let (head, mut body) = request.into_parts();
    let mut bytes = Vec::new();
    let next = |cx: &mut std::task::Context<'_>| std::pin::Pin::new(&mut body).poll_frame(cx);
    let mut next = next;
    while let Some(Ok(frame)) = std::future::poll_fn(&mut next).await {
        bytes.extend(frame.into_data().unwrap_or_default());
    }
    Seen {
        target: head.uri.to_string(),
        method: head.method.to_string(),
        headers: head.headers,
        body: bytes.into(),
    }
}

/// A body in one piece.
struct Whole(Bytes);

impl Body for Whole {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<http_body::Frame<Bytes>, Infallible>>> {
        let bytes = std::mem::take(&mut self.0);
        let frame = (!bytes.is_empty()).then(|| Ok(http_body::Frame::data(bytes)));
        std::task::Poll::Ready(frame)
    }

    fn size_hint(&self) -> http_body::SizeHint {
        http_body::SizeHint::with_exact(self.0.len() as u64)
    }
}

/// A response with JSON.
pub(crate) fn json(value: &serde_json::Value) -> Response<String> {
    let response = Response::builder().header("content-type", "application/json; charset=utf-8");
    response.body(value.to_string()).unwrap()
}

pub(crate) fn status(status: u16, body: &str) -> Response<String> {
    Response::builder().status(status).body(body.to_owned()).unwrap()
}
