//! A proxy in front of a server at a URL, which changes what the server sends.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bowline::proto::http::Media;
use bowline::proto::sse::Parser;
use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING};
use http::request::Parts;
use http::{Request, Response};
use http_body::{Body, Frame};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use crate::frames::{Event, Http as Endpoint, LIMIT};

/// What becomes of a response.
#[derive(Clone, Copy)]
pub(super) struct Fault {
    /// Changes a response, given the request and its body. Of an event stream, it sees the head.
    pub(super) after: fn(&Parts, &[u8], &mut Response<Bytes>),
    /// Changes an event of a stream.
    pub(super) event: fn(&mut Event),
}

impl Fault {
    /// The same endpoint, behind a proxy that runs as long as the test.
    pub(super) async fn between(self, http: &Endpoint) -> Box<Endpoint> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let here = format!("http://{}{}", listener.local_addr().unwrap(), http.url.path());
        tokio::spawn(self.serve(listener, http.clone()));
        Box::new(http.at(here.parse().unwrap()))
    }

    async fn serve(self, listener: TcpListener, http: Endpoint) {
        while let Ok((socket, _)) = listener.accept().await {
            let http = http.clone();
            let serve = service_fn(move |request| self.forward(http.clone(), request));
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(socket), serve));
        }
    }

    async fn forward(
        self,
        http: Endpoint,
        request: Request<Incoming>,
    ) -> Result<Response<Chunks>, Infallible> {
        let (mut sent, body) = request.into_parts();
        let body = collect(body).await;
        let there = http.url.authority().unwrap();
        sent.uri = format!("http://{there}{}", sent.uri).parse().unwrap();
        let request = Request::from_parts(sent.clone(), Bytes::from(body.clone()));
        let (head, mut rest) = http.web.send(request).await.unwrap().into_parts();
        let is_stream = Media::of(&head.headers) == Some(Media::EventStream);
        let mut whole = Vec::new();
        while !is_stream && let Some(Ok(chunk)) = rest.chunk().await {
            whole.extend_from_slice(&chunk);
        }
        let mut response = Response::from_parts(head, Bytes::from(whole));
        (self.after)(&sent, &body, &mut response);
        for name in [CONTENT_LENGTH, TRANSFER_ENCODING, CONNECTION] {
            response.headers_mut().remove(name);
        }
        let (sender, receiver) = mpsc::channel(16);
        let (head, whole) = response.into_parts();
        tokio::spawn(async move {
            let _ = sender.send(whole).await;
            let mut parser = Parser::new(LIMIT);
            while is_stream && let Some(Ok(chunk)) = rest.chunk().await {
                let text = self.rewrite(&mut parser, &chunk);
                if sender.send(text.into()).await.is_err() {
                    return;
                }
            }
        });
        Ok(Response::from_parts(head, Chunks(receiver)))
    }

    /// The events that a chunk completes, changed.
    fn rewrite(self, parser: &mut Parser, mut chunk: &[u8]) -> Vec<u8> {
        let mut text = Vec::new();
        while let Some(event) = parser.next_event(&mut chunk) {
            let event = event.unwrap();
            let name = event.event.map(str::to_owned);
            let mut event = Event { name, data: event.data.unwrap_or_default().to_vec() };
            (self.event)(&mut event);
            if let Some(name) = event.name {
                text.extend(format!("event: {name}\n").bytes());
            }
            text.extend([b"data: ", &event.data[..], b"\n\n"].concat());
        }
        text
    }
}

/// A body that comes in pieces.
struct Chunks(mpsc::Receiver<Bytes>);

impl Body for Chunks {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(context).map(|chunk| chunk.map(|chunk| Ok(Frame::data(chunk))))
    }
}

async fn collect(mut body: Incoming) -> Vec<u8> {
    let mut all = Vec::new();
    while let Some(Ok(frame)) =
        std::future::poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await
    {
        all.extend(frame.into_data().unwrap_or_default());
    }
    all
}
