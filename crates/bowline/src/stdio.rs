//! Standard input and output as the two ends of a connection.
//!
//! On Unix, pipes and sockets are read and written by the runtime itself, without a thread. What
//! cannot be waited on (terminals, files, `/dev/null`) gets a plain thread each way, and so does
//! everything on other systems. Not tokio's own: its thread would keep the runtime from ending
//! while a read is under way.
//!
//! # Only the protocol reaches the peer
//!
//! On Unix, [`stdio`] takes the two streams away from the rest of the process, for good:
//!
//! - Descriptor 1 becomes a second name for standard error. A stray `println!`, or a child process
//!   that writes to its standard output, ends up in the log and never between two messages. Where
//!   standard error is the very same pipe or file (`2>&1`), strays go to `/dev/null` instead; what
//!   is meant for standard error still gets through, because somebody asked for that.
//! - Descriptor 0 becomes `/dev/null`. Neither a child process nor a stray read takes bytes that
//!   belong to the protocol.
//!
//! # Non-blocking, for us alone
//!
//! Whether a read or write may block is a property that all copies of a descriptor share, in other
//! processes too. `eprintln!` panics on a descriptor that is full and may not block. So Linux pipes
//! are opened anew, which leaves the others as they were; elsewhere a stream that is also standard
//! error gets threads.

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

/// What the peer sends.
#[derive(Debug)]
pub struct Input(Source);

/// What the peer receives.
///
/// Written is not sent: what `flush` has not confirmed may be lost when the process ends.
#[derive(Debug)]
pub struct Output(Sink);

/// Takes over standard input and output. Works once.
///
/// Anything still buffered by `print!` goes where strays go; anything that `std::io::stdin` has
/// read ahead is lost. Nothing is put back when the streams are dropped.
///
/// # Errors
/// When they are taken already, or the operating system refuses.
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
