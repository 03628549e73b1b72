//! The two directions of a byte stream: chunks in, frames out.

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};

use bowline_proto::line::{LineTooLong, Parser};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::outbox::Outbox;

/// How much is read at a time: what a pipe of ours holds, so that most messages come whole. What is
/// never filled takes no memory.
const CHUNK: usize = 256 << 10;

/// What may be kept for the next answers: enough for those of a megabyte.
const KEPT: usize = 2 << 20;

/// What comes in: one chunk at a time, cut into frames.
pub(crate) struct Input<R> {
    stream: R,
    parser: Parser,
    chunk: Vec<u8>,
    /// What was cut off the chunk already.
    start: usize,
    /// A line that turned out too long while it was read on.
    refused: Option<LineTooLong>,
    is_open: bool,
}

impl<R: AsyncRead + Unpin> Input<R> {
    pub(crate) fn new(stream: R, line_length: usize) -> Self {
        let (parser, chunk) = (Parser::new(line_length), Vec::with_capacity(CHUNK));
        Self { stream, parser, chunk, start: 0, refused: None, is_open: true }
    }

    /// Whether all that was read has been given out, but for the start of a line.
    pub(crate) fn is_empty(&self) -> bool {
        self.start == self.chunk.len() && !self.parser.has_frame() && self.refused.is_none()
    }

    /// Whether there may be more to read.
    pub(crate) fn is_open(&self) -> bool {
        self.is_open
    }

    /// Reads the next chunk. Safe to be dropped: nothing is lost.
    pub(crate) async fn read(&mut self) -> io::Result<()> {
        poll_fn(|cx| self.poll_read(cx)).await
    }

    /// Reads the next chunk.
    pub(crate) fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        debug_assert!(self.is_empty());
        self.start = 0;
        self.chunk.clear();
        // What followed a giant came with it.
        self.chunk.shrink_to(KEPT);
        let long = self.parser.long_line();
        let before = long.as_ref().map(|line| line.len());
        let buffer = long.unwrap_or(&mut self.chunk);
        let read = ready!(pin!(self.stream.read_buf(buffer)).poll(cx));
        self.is_open = matches!(read, Ok(1..));
        if let (Some(before), true) = (before, self.is_open) {
            self.refused = self.parser.take_appended(before, &mut self.chunk).err();
        }
        Poll::Ready(read.map(drop))
    }

    /// The next frame of the chunk.
    pub(crate) fn next_frame(&mut self) -> Option<Result<&[u8], LineTooLong>> {
        if let Some(refused) = self.refused.take() {
            return Some(Err(refused));
        }
        let mut rest = &self.chunk[self.start..];
        let frame = self.parser.next_frame(&mut rest);
        self.start = self.chunk.len() - rest.len();
        frame
    }

    /// The last frame of a stream that ended without a line break.
    pub(crate) fn last_frame(&mut self) -> Option<Vec<u8>> {
        self.parser.finish().map(<[u8]>::to_vec)
    }
}

/// What goes out. The only one who touches the stream's outward side.
pub(crate) struct Output<W> {
    stream: W,
    bytes: Vec<u8>,
    written: usize,
    /// Whether something was written that the stream may still hold back.
    is_held: bool,
}

impl<W: AsyncWrite + Unpin> Output<W> {
    pub(crate) fn new(stream: W) -> Self {
        Self { stream, bytes: Vec::new(), written: 0, is_held: false }
    }

    pub(crate) fn has_work(&self) -> bool {
        self.is_held || self.written < self.bytes.len()
    }

    /// Takes over what waits, if all before it is written. Says whether there is work now.
    pub(crate) fn refill(&mut self, outbox: &Outbox) -> bool {
        self.refill_shown(outbox, |_| {})
    }

    /// The same, and shows what was taken over.
    pub(crate) fn refill_shown(&mut self, outbox: &Outbox, show: impl FnOnce(&[u8])) -> bool {
        if self.written == self.bytes.len() {
            self.written = 0;
            self.bytes.clear();
            // A giant answer must not keep its memory for ever.
            if self.bytes.capacity() > KEPT {
                self.bytes = Vec::new();
            }
            if outbox.take(&mut self.bytes) {
                show(&self.bytes);
            }
        }
        self.has_work()
    }

    /// Writes some of it, or flushes. Safe to be dropped: nothing is lost, held back for ever or
    /// written twice.
    pub(crate) async fn write(&mut self) -> io::Result<()> {
        poll_fn(|cx| self.poll_write(cx)).await
    }

    /// Writes some of it, or flushes.
    pub(crate) fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.written < self.bytes.len() {
            let rest = &self.bytes[self.written..];
            let count = ready!(Pin::new(&mut self.stream).poll_write(cx, rest))?;
            if count == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.written += count;
            self.is_held = true;
        }
        if self.written == self.bytes.len() {
            ready!(Pin::new(&mut self.stream).poll_flush(cx))?;
            self.is_held = false;
        }
        Poll::Ready(Ok(()))
    }

    /// Writes all that waits and tells the peer that this was the end.
    pub(crate) async fn close(&mut self, outbox: &Outbox) -> io::Result<()> {
        while self.refill(outbox) {
            self.write().await?;
        }
        self.shutdown().await
    }

    /// Tells the peer that nothing more will come.
    pub(crate) async fn shutdown(&mut self) -> io::Result<()> {
        self.stream.shutdown().await
    }
}
