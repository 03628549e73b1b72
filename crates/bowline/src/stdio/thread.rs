//! Streams that cannot be polled, each behind a thread that may block.
//!
//! The threads are not joined, because one that waits for a key press would keep the process alive.
//! They end with their stream or with the process.

use std::io::{self, ErrorKind, Read, Write};
use std::task::{Context, Poll, ready};
use std::thread;
use std::time::Duration;

use tokio::io::ReadBuf;
use tokio::sync::mpsc;

/// The size of a chunk.
const CHUNK: usize = 64 * 1024;

/// How many chunks are read ahead.
const AHEAD: usize = 2;

/// How long to wait when a stream does not block, because another process made it non-blocking.
const PAUSE: Duration = Duration::from_millis(10);

/// The async end of a thread that reads.
#[derive(Debug)]
pub(super) struct Reader {
    chunks: mpsc::Receiver<io::Result<Vec<u8>>>,
    chunk: Vec<u8>,
    /// How much of the chunk has been returned.
    taken: usize,
}

impl Reader {
    pub(super) fn start(stream: impl Read + Send + 'static) -> io::Result<Self> {
        let (sender, chunks) = mpsc::channel(AHEAD);
        thread::Builder::new().name("stdin".to_owned()).spawn(move || feed(stream, &sender))?;
        Ok(Self { chunks, chunk: Vec::new(), taken: 0 })
    }

    pub(super) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.taken == self.chunk.len() {
            let Some(chunk) = ready!(self.chunks.poll_recv(cx)) else {
                return Poll::Ready(Ok(()));
            };
            self.chunk = chunk?;
            self.taken = 0;
        }
        let rest = &self.chunk[self.taken..];
        let length = rest.len().min(buffer.remaining());
        buffer.put_slice(&rest[..length]);
        self.taken += length;
        Poll::Ready(Ok(()))
    }
}

fn feed(mut stream: impl Read, chunks: &mpsc::Sender<io::Result<Vec<u8>>>) {
    let mut buffer = vec![0; CHUNK];
    loop {
        let chunk = match stream.read(&mut buffer) {
            Ok(0) => return,
            Ok(length) => Ok(buffer[..length].to_vec()),
            Err(error) if is_passing(&error) => continue,
            Err(error) => Err(error),
        };
        let is_last = chunk.is_err();
        if chunks.blocking_send(chunk).is_err() || is_last {
            return;
        }
    }
}

/// The async end of a thread that writes.
///
/// One buffer goes back and forth, so neither queue ever holds more than that.
#[derive(Debug)]
pub(super) struct Writer {
    full: mpsc::Sender<Vec<u8>>,
    empty: mpsc::Receiver<(Vec<u8>, io::Result<()>)>,
    /// The buffer, unless the thread has it.
    buffer: Option<Vec<u8>>,
}

impl Writer {
    pub(super) fn start(stream: impl Write + Send + 'static) -> io::Result<Self> {
        let (full, from_full) = mpsc::channel(1);
        let (to_empty, empty) = mpsc::channel(1);
        thread::Builder::new()
            .name("stdout".to_owned())
            .spawn(move || drain(stream, from_full, &to_empty))?;
        Ok(Self { full, empty, buffer: Some(Vec::new()) })
    }

    pub(super) fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_flush(cx))?;
        let bytes = &bytes[..bytes.len().min(CHUNK)];
        let mut buffer = self.buffer.take().unwrap_or_default();
        buffer.extend_from_slice(bytes);
        self.full.try_send(buffer).map_err(|_| ErrorKind::BrokenPipe)?;
        Poll::Ready(Ok(bytes.len()))
    }

    /// Waits until the thread has written its buffer, and returns the result once.
    pub(super) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.buffer.is_some() {
            return Poll::Ready(Ok(()));
        }
        let Some((buffer, result)) = ready!(self.empty.poll_recv(cx)) else {
            return Poll::Ready(Err(ErrorKind::BrokenPipe.into()));
        };
        self.buffer = Some(buffer);
        Poll::Ready(result)
    }
}

fn drain(
    mut stream: impl Write,
    mut full: mpsc::Receiver<Vec<u8>>,
    empty: &mpsc::Sender<(Vec<u8>, io::Result<()>)>,
) {
    while let Some(mut buffer) = full.blocking_recv() {
        let result = write_all(&mut stream, &buffer);
        buffer.clear();
        if empty.blocking_send((buffer, result)).is_err() {
            return;
        }
    }
}

fn write_all(stream: &mut impl Write, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match stream.write(bytes) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(length) => bytes = &bytes[length..],
            Err(error) if is_passing(&error) => {}
            Err(error) => return Err(error),
        }
    }
    stream.flush()
}

/// Whether to try again, after a pause if one is needed.
fn is_passing(error: &io::Error) -> bool {
    if error.kind() == ErrorKind::WouldBlock {
        thread::sleep(PAUSE);
    }
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
