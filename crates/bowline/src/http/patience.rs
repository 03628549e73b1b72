//! How long a connection may wait for a request.
//!
//! A client that sends nothing, or a head byte by byte, must not hold a connection for ever. Each
//! connection has one timer, and requests do not pay for resetting it: when it fires, it checks how
//! long the connection has been waiting, and sleeps for the rest.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, Version};
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use super::body::Body;
use super::remembered::Remembered;
use super::reply;
use super::service::HttpService;
use crate::clock;
use crate::server::account::{Party, Reservation};

/// A connection, and since when it has been waiting for a request.
pub(super) struct Visitor {
    service: HttpService,
    remembered: Remembered,
    address: SocketAddr,
    /// Whether it is one of the reserve: only `/health` is answered.
    is_extra: bool,
    opened: Instant,
    /// The number of requests that are being served.
    serving: AtomicUsize,
    /// When it last began to wait for the head of a request, in milliseconds after `opened`.
    waiting: AtomicU64,
    /// Whether it is one of HTTP/2, which serves many requests at a time.
    is_shared: AtomicBool,
    /// Whether writing is blocked until the client reads.
    is_full: AtomicBool,
    /// The bytes of a head that has not arrived as a whole.
    arrived: AtomicUsize,
    /// Holds them, once they are many.
    reserved: Mutex<Option<Reservation>>,
}

/// The longest part of a head that does not count: a connection has a buffer of that size anyway.
pub(super) const UNCOUNTED: usize = 8 << 10;

impl Visitor {
    pub(super) fn new(service: HttpService, address: SocketAddr, is_extra: bool) -> Self {
        Self {
            service,
            remembered: Remembered::default(),
            address,
            is_extra,
            opened: clock::now(),
            serving: AtomicUsize::new(0),
            waiting: AtomicU64::new(0),
            is_shared: AtomicBool::new(false),
            is_full: AtomicBool::new(false),
            arrived: AtomicUsize::new(0),
            reserved: Mutex::default(),
        }
    }

    /// Counts bytes that have been read.
    ///
    /// # Errors
    /// When they belong to a head that there is no memory left for.
    fn count(&self, read: usize) -> io::Result<()> {
        if self.serving.load(Ordering::Acquire) > 0 || self.is_shared.load(Ordering::Relaxed) {
            return Ok(());
        }
        let arrived = self.arrived.fetch_add(read, Ordering::Relaxed) + read;
        if arrived <= UNCOUNTED {
            return Ok(());
        }
        let mut reserved = self.reserved.lock().unwrap_or_else(PoisonError::into_inner);
        let reserved = reserved.get_or_insert_with(|| {
            let accounts = &self.service.inner.core.accounts;
            Reservation::new(accounts.find(Party::of(None, Some(self.address.ip()))))
        });
        // Twice, because buffers double as they grow.
        let held = reserved.resize(2 * arrived);
        held.map_err(|spent| io::Error::other(format!("the head of a request: {spent}")))
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
        let reply = match service.probe_by_any_name(&shared.parts) {
            Some(reply) => reply,
            None if serving.visitor.is_extra => {
                reply::busy("the server has as many connections open as it may")
            }
            None => service.answer(&shared, body, remembered).await,
        };
        let used = remembered.take_back(shared);
        Ok(reply.into_response(used, |body| Sent { body, _serving: serving }))
    }

    /// Ready when the connection has waited too long, but not before `first` has passed.
    pub(super) async fn lost(self: Arc<Self>, first: Duration) {
        let mut end = clock::now() + first;
        loop {
            tokio::time::sleep_until(end).await;
            let now = clock::now();
            let is_busy = self.serving.load(Ordering::Acquire) > 0;
            // A client that reads nothing at all is left to the socket's timeout.
            let since = if is_busy || self.is_full.load(Ordering::Acquire) {
                now
            } else {
                self.opened + Duration::from_millis(self.waiting.load(Ordering::Acquire))
            };
            let limits = &self.service.inner.limits;
            end = since
                + match self.is_shared() && !self.is_extra {
                    true => limits.idle,
                    false => limits.first(self.is_extra),
                };
            if end <= now {
                return;
            }
        }
    }

    /// Whether it is a connection of HTTP/2, as its first request has shown.
    pub(super) fn is_shared(&self) -> bool {
        self.is_shared.load(Ordering::Relaxed)
    }

    /// Starts to wait for a request.
    fn wait(&self) {
        let since = u64::try_from(self.opened.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.waiting.store(since, Ordering::Release);
    }

    /// Records whether writing is blocked.
    fn note<T>(&self, written: Poll<T>) -> Poll<T> {
        let is_full = written.is_pending();
        if is_full != self.is_full.load(Ordering::Relaxed) {
            self.is_full.store(is_full, Ordering::Release);
            if self.serving.load(Ordering::Acquire) == 0 {
                self.wait();
            }
        }
        written
    }
}

/// A request that is being served: its connection does not wait until the whole answer is taken.
struct Serving {
    visitor: Arc<Visitor>,
}

impl Serving {
    fn new(visitor: Arc<Visitor>, version: Version) -> Self {
        visitor.serving.fetch_add(1, Ordering::AcqRel);
        if visitor.arrived.swap(0, Ordering::Relaxed) > UNCOUNTED {
            *visitor.reserved.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
        if version >= Version::HTTP_2 {
            visitor.is_shared.store(true, Ordering::Relaxed);
        }
        Self { visitor }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // Before it counts as waiting, so that it never seems to have waited since long ago.
        self.visitor.wait();
        self.visitor.serving.fetch_sub(1, Ordering::AcqRel);
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
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(cx, buffer);
        self.visitor.count(buffer.filled().len() - before)?;
        polled
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
