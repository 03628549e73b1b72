//! How long a connection may wait for a request.
//!
//! A client that sends nothing, or a head byte by byte, must not keep its place for ever. One timer
//! for each connection sees to that, and no request pays for setting it back: when it goes off, it
//! looks how long the connection has been waiting, and sleeps for what is left.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, Version};
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;
use tokio::time::Instant;

use super::admit::KnownHost;
use super::body::Body;
use super::service::HttpService;
use crate::clock;

/// Instead of a time: a request is served.
const SERVING: u64 = u64::MAX;

/// A connection: whom it talks to, and since when it waits for a request.
pub(super) struct Visitor {
    service: HttpService,
    host: KnownHost,
    opened: Instant,
    /// Milliseconds from `opened` to when it began to wait for the head of a request, or
    /// [`SERVING`].
    waiting: AtomicU64,
}

impl Visitor {
    pub(super) fn new(service: HttpService) -> Self {
        let (host, waiting) = (KnownHost::new(), AtomicU64::new(0));
        Self { service, host, opened: clock::now(), waiting }
    }

    /// Answers one request, whose head is there.
    pub(super) async fn serve(
        self: Arc<Self>,
        request: Request<Incoming>,
    ) -> Result<Response<Sent>, Infallible> {
        let (parts, body) = request.into_parts();
        let serving = Serving::new(self, parts.version);
        let visitor = &serving.visitor;
        let reply = visitor.service.answer(&parts, body, Some(&visitor.host)).await;
        Ok(reply.into_response(parts.headers, |body| Sent { body, _serving: serving }))
    }

    /// Ready when the connection has waited too long.
    pub(super) async fn lost(self: Arc<Self>) {
        let limit = self.service.inner.limits.head;
        let mut end = self.opened + limit;
        loop {
            tokio::time::sleep_until(end).await;
            let now = clock::now();
            let since = match self.waiting.load(Ordering::Acquire) {
                SERVING => now,
                since => self.opened + Duration::from_millis(since),
            };
            end = since + limit;
            if end <= now {
                return;
            }
        }
    }
}

/// A request that is served: until the last of its answer is taken, its connection does not wait.
struct Serving {
    visitor: Arc<Visitor>,
    is_alone: bool,
}

impl Serving {
    fn new(visitor: Arc<Visitor>, version: Version) -> Self {
        visitor.waiting.store(SERVING, Ordering::Release);
        Self { visitor, is_alone: version < Version::HTTP_2 }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // HTTP/2 serves many requests at a time, and asks idle clients now and again whether they
        // are alive: after the first request, such a connection never waits.
        if self.is_alone {
            let since = self.visitor.opened.elapsed().as_millis();
            let since = u64::try_from(since).unwrap_or(SERVING);
            self.visitor.waiting.store(since, Ordering::Release);
        }
    }
}

/// The body of a response. When it is dropped, its request is served.
pub(super) struct Sent {
    body: Body,
    _serving: Serving,
}

impl http_body::Body for Sent {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
