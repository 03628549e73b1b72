//! The first bytes of a connection, within bounded time.
//!
//! Whether a connection is HTTP/1.1 or HTTP/2 shows in its first 24 bytes. Nobody else watches the
//! clock until they are there: without this, a client that sends nothing keeps its place for ever.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

/// As long as what opens an HTTP/2 connection.
const OPENING: usize = 24;

/// A stream that fails unless its first bytes come in time.
pub(super) struct Patience<S> {
    stream: S,
    /// How many bytes are missing, and when they must be there.
    missing: Option<(usize, Pin<Box<Sleep>>)>,
}

impl<S> Patience<S> {
    pub(super) fn new(stream: S, patience: Duration) -> Self {
        Self { stream, missing: Some((OPENING, Box::pin(tokio::time::sleep(patience)))) }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patience<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        let polled = Pin::new(&mut this.stream).poll_read(cx, buffer);
        let Some((missing, late)) = &mut this.missing else { return polled };
        let read = buffer.filled().len() - before;
        if read >= *missing {
            this.missing = None;
            return polled;
        }
        *missing -= read;
        match polled {
            Poll::Pending => late.as_mut().poll(cx).map(|()| Err(io::ErrorKind::TimedOut.into())),
            Poll::Ready(_) => polled,
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patience<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write_vectored(cx, slices)
    }
}
