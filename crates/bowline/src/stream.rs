//! The two directions of a byte stream: chunks in, frames out.

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};

use bowline_proto::line::{LineTooLong, Parser};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::outbox::Outbox;

/// The most bytes that are read at a time: the capacity of our pipes, so that most messages arrive
/// in one piece. Pages that are never touched take no memory.
const CHUNK: usize = 256 << 10;

/// The capacity that is kept for the next answers: enough for one of a megabyte.
const KEPT: usize = 2 << 20;

/// The incoming direction: reads chunks and splits them into frames.
pub(crate) struct Input<R> {
    stream: R,
    parser: Parser,
    chunk: Vec<u8>,
    /// How much of the chunk has been consumed.
    start: usize,
    /// A line that was found to be too long during a read.
    refused: Option<LineTooLong>,
    is_open: bool,
    /// The capacity that the chunk may keep.
    kept: usize,
}

impl<R: AsyncRead + Unpin> Input<R> {
    pub(crate) fn new(stream: R, line_length: usize) -> Self {
        let (parser, chunk) = (Parser::new(line_length), Vec::with_capacity(CHUNK));
        Self { stream, parser, chunk, start: 0, refused: None, is_open: true, kept: KEPT }
    }

    /// Keeps at most this capacity between frames, where there are many streams.
    pub(crate) fn keeping(mut self, kept: usize) -> Self {
        self.parser = self.parser.keeping(kept);
        self.chunk = Vec::with_capacity(kept);
        Self { kept, ..self }
    }

    /// Whether everything that was read has been returned, except for an incomplete line.
    pub(crate) fn is_empty(&self) -> bool {
        self.start == self.chunk.len() && !self.parser.has_frame() && self.refused.is_none()
    }

    /// Whether there may be more to read.
    pub(crate) fn is_open(&self) -> bool {
        self.is_open
    }

    /// Reads the next chunk. Cancel safe: nothing is lost.
    pub(crate) async fn read(&mut self) -> io::Result<()> {
        poll_fn(|cx| self.poll_read(cx)).await
    }

    /// Reads the next chunk.
    pub(crate) fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        debug_assert!(self.is_empty());
        self.start = 0;
        self.chunk.clear();
        // Input that followed the long line was read with it.
        self.chunk.shrink_to(self.kept);
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

/// The outgoing direction: the only writer to the stream.
pub(crate) struct Output<W> {
    stream: W,
    bytes: Vec<u8>,
    written: usize,
    /// Whether something was written but not flushed.
    is_held: bool,
    /// The capacity that is kept for the next answers.
    kept: usize,
}

impl<W: AsyncWrite + Unpin> Output<W> {
    pub(crate) fn new(stream: W) -> Self {
        Self { stream, bytes: Vec::new(), written: 0, is_held: false, kept: KEPT }
    }

    /// Keeps at most this capacity for the next answers, where there are many streams.
    pub(crate) fn keeping(self, kept: usize) -> Self {
        Self { kept, ..self }
    }

    /// The bytes that are held until all of them are written.
    pub(crate) fn length(&self) -> usize {
        if self.written < self.bytes.len() { self.bytes.len() } else { 0 }
    }

    pub(crate) fn has_work(&self) -> bool {
        self.is_held || self.written < self.bytes.len()
    }

    /// Takes what is queued, if everything before it is written. Returns whether there is work now.
    pub(crate) fn refill(&mut self, outbox: &Outbox) -> bool {
        self.refill_shown(outbox, |_| {})
    }

    /// The same, and passes what was taken to a function.
    pub(crate) fn refill_shown(&mut self, outbox: &Outbox, show: impl FnOnce(&[u8])) -> bool {
        if self.written == self.bytes.len() {
            self.written = 0;
            self.bytes.clear();
            // A huge answer must not keep its memory for ever.
            if self.bytes.capacity() > self.kept {
                self.bytes = Vec::new();
            }
            if outbox.take(&mut self.bytes) {
                show(&self.bytes);
            }
        }
        self.has_work()
    }

    /// Writes some of it, or flushes. Cancel safe: nothing is lost, kept back or written twice.
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

    /// Writes everything that is queued and shuts the stream down.
    pub(crate) async fn close(&mut self, outbox: &Outbox) -> io::Result<()> {
        while self.refill(outbox) {
            self.write().await?;
        }
        self.shutdown().await
    }

    /// Shuts the stream down.
    pub(crate) async fn shutdown(&mut self) -> io::Result<()> {
        self.stream.shutdown().await
    }
}
