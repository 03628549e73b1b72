//! How long a connection may wait for a request.
//!
//! A client that sends nothing, or a head byte by byte, must not hold a connection for ever. Each
//! connection has one timer, and requests do not pay for resetting it: when it fires, it checks how
//! long the connection has been waiting, and sleeps for the rest.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, Version};
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use super::admit::Remembered;
use super::body::Body;
use super::service::HttpService;
use crate::clock;

/// Stands for a time while a request is being served.
const SERVING: u64 = u64::MAX;

/// A connection, and since when it has been waiting for a request.
pub(super) struct Visitor {
    service: HttpService,
    remembered: Remembered,
    address: SocketAddr,
    opened: Instant,
    /// When it began to wait for the head of a request, in milliseconds after `opened`, or
    /// [`SERVING`].
    waiting: AtomicU64,
    /// Whether writing is blocked until the client reads.
    is_full: AtomicBool,
}

impl Visitor {
    pub(super) fn new(service: HttpService, address: SocketAddr) -> Self {
        Self {
            service,
            remembered: Remembered::default(),
            address,
            opened: clock::now(),
            waiting: AtomicU64::new(0),
            is_full: AtomicBool::new(false),
        }
    }

    /// Answers one request, whose head has arrived.
    pub(super) async fn serve(
        self: Arc<Self>,
        request: Request<Incoming>,
    ) -> Result<Response<Sent>, Infallible> {
        let (parts, body) = request.into_parts();
        let serving = Serving::new(self, parts.version);
        let Self { service, remembered, address, .. } = &*serving.visitor;
        let shared = remembered.share(service.head(parts, Some(*address)));
        let reply = service.answer(&shared, body, remembered).await;
        let used = remembered.take_back(shared);
        Ok(reply.into_response(used, |body| Sent { body, _serving: serving }))
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
                // A client that reads nothing at all is left to the socket's timeout.
                _ if self.is_full.load(Ordering::Acquire) => now,
                since => self.opened + Duration::from_millis(since),
            };
            end = since + limit;
            if end <= now {
                return;
            }
        }
    }

    /// Starts to wait for a request.
    fn wait(&self) {
        let since = u64::try_from(self.opened.elapsed().as_millis()).unwrap_or(SERVING);
        self.waiting.store(since, Ordering::Release);
    }

    /// Records whether writing is blocked.
    fn note<T>(&self, written: Poll<T>) -> Poll<T> {
        let is_full = written.is_pending();
        if is_full != self.is_full.load(Ordering::Relaxed) {
            self.is_full.store(is_full, Ordering::Release);
            if self.waiting.load(Ordering::Acquire) != SERVING {
                self.wait();
            }
        }
        written
    }
}

/// A request that is being served: its connection does not wait until the whole answer is taken.
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
        // HTTP/2 serves many requests at a time and pings idle clients, so after the first request
        // such a connection never waits.
        if self.is_alone {
            self.visitor.wait();
        }
    }
}

/// The stream of a connection. It watches writes, because a long answer is still being written when
/// its body has been dropped.
pub(super) struct Line<S> {
    pub(super) stream: S,
    pub(super) visitor: Arc<Visitor>,
}

impl<S: AsyncRead + Unpin> AsyncRead for Line<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Line<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.visitor.note(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, pieces);
        self.visitor.note(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        self.visitor.note(flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// The body of a response. Dropping it ends the service of its request.
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
