//! Standard input and output as the two ends of a connection.
//!
//! On Unix, the runtime reads and writes pipes and sockets without a thread. Streams that cannot be
//! polled (terminals, files, `/dev/null`) get a plain thread in each direction, as does everything
//! on other systems. Tokio's own streams are not used: their thread would keep the runtime from
//! shutting down during a read.
//!
//! # Only the protocol reaches the peer
//!
//! On Unix, [`stdio`] takes the two streams away from the rest of the process, permanently:
//!
//! - Descriptor 1 becomes a duplicate of standard error. The output of a stray `println!` or of a
//!   child process ends up in the log and never between two messages. If standard error is the same
//!   pipe or file (`2>&1`), stray output goes to `/dev/null` instead; output to standard error
//!   still gets through, because the user asked for that.
//! - Descriptor 0 becomes `/dev/null`. Neither a child process nor a stray read can take bytes that
//!   belong to the protocol.
//!
//! # Non-blocking only for us
//!
//! All duplicates of a descriptor share the non-blocking flag, even across processes, and
//! `eprintln!` panics on a full descriptor that does not block. So pipes are opened again on Linux,
//! which leaves the other duplicates as they were; elsewhere, a stream that is also standard error
//! gets threads.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
#[cfg(unix)]
use tokio::net::{UnixStream, unix::pipe};

mod thread;
#[cfg(unix)]
mod unix;

/// Standard input.
#[derive(Debug)]
pub struct Input(Source);

/// Standard output.
///
/// Bytes that were written but not flushed may be lost when the process ends.
#[derive(Debug)]
pub struct Output(Sink);

/// Takes over standard input and output. Works once.
///
/// Output still buffered by `print!` is treated as stray; input that `std::io::stdin` has already
/// buffered is lost. Dropping the streams does not restore them.
///
/// # Errors
/// When they are already taken, or a system call fails.
///
/// # Panics
/// Outside of a tokio runtime, or in one without I/O.
pub fn stdio() -> io::Result<(Input, Output)> {
    static TAKEN: AtomicBool = AtomicBool::new(false);
    if TAKEN.swap(true, Ordering::Relaxed) {
        return Err(io::Error::other("standard input and output are taken already"));
    }
    let (source, sink) = take()?;
    Ok((Input(source), Output(sink)))
}

#[derive(Debug)]
enum Source {
    #[cfg(unix)]
    Pipe(pipe::Receiver),
    #[cfg(unix)]
    Socket(UnixStream),
    Thread(thread::Reader),
}

#[derive(Debug)]
enum Sink {
    #[cfg(unix)]
    Pipe(pipe::Sender),
    #[cfg(unix)]
    Socket(UnixStream),
    Thread(thread::Writer),
}

#[cfg(unix)]
use unix::take;

#[cfg(not(unix))]
fn take() -> io::Result<(Source, Sink)> {
    let source = thread::Reader::start(io::stdin())?;
    let sink = thread::Writer::start(io::stdout())?;
    Ok((Source::Thread(source), Sink::Thread(sink)))
}

impl AsyncRead for Input {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut self.get_mut().0 {
            #[cfg(unix)]
            Source::Pipe(pipe) => Pin::new(pipe).poll_read(cx, buffer),
            #[cfg(unix)]
            Source::Socket(socket) => Pin::new(socket).poll_read(cx, buffer),
            Source::Thread(reader) => reader.poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for Output {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().0 {
            #[cfg(unix)]
            Sink::Pipe(pipe) => Pin::new(pipe).poll_write(cx, bytes),
            #[cfg(unix)]
            Sink::Socket(socket) => Pin::new(socket).poll_write(cx, bytes),
            Sink::Thread(writer) => writer.poll_write(cx, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().0 {
            #[cfg(unix)]
            Sink::Pipe(pipe) => Pin::new(pipe).poll_write_vectored(cx, slices),
            #[cfg(unix)]
            Sink::Socket(socket) => Pin::new(socket).poll_write_vectored(cx, slices),
            Sink::Thread(writer) => {
                let first = slices.iter().find(|slice| !slice.is_empty());
                writer.poll_write(cx, first.map_or(&[], |slice| slice))
            }
        }
    }

    fn is_write_vectored(&self) -> bool {
        !matches!(self.0, Sink::Thread(_))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().0 {
            #[cfg(unix)]
            Sink::Pipe(pipe) => Pin::new(pipe).poll_flush(cx),
            #[cfg(unix)]
            Sink::Socket(socket) => Pin::new(socket).poll_flush(cx),
            Sink::Thread(writer) => writer.poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().0 {
            #[cfg(unix)]
            Sink::Pipe(pipe) => Pin::new(pipe).poll_shutdown(cx),
            #[cfg(unix)]
            Sink::Socket(socket) => Pin::new(socket).poll_shutdown(cx),
            Sink::Thread(writer) => writer.poll_flush(cx),
        }
    }
}
