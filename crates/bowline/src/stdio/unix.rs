//! Takes the standard streams from the process, and finds out how to poll them.

use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net;

use rustix::stdio::{dup2_stdin, dup2_stdout};
use tokio::net::{UnixStream, unix::pipe};

use super::{Sink, Source, thread};

pub(super) fn take() -> io::Result<(Source, Sink)> {
    let input = Stream::new(io::stdin())?;
    let output = Stream::new(io::stdout())?;
    let errors = Stream::new(io::stderr())?;
    let strays = OpenOptions::new().read(true).write(true).open("/dev/null")?;
    let output_is_errors = output.is(&errors);

    let source = source(input, &errors)?;
    let sink = sink(output, &errors)?;
    dup2_stdin(&strays)?;
    // On a terminal a person reads both, and there is no protocol to corrupt.
    if output_is_errors && !errors.file.is_terminal() {
        dup2_stdout(&strays)?;
    } else {
        dup2_stdout(&errors.file)?;
    }
    // Output that `print!` has buffered is stray, too. It does not matter if it cannot be written.
    let _ = io::stdout().flush();
    Ok((source, sink))
}

/// A private duplicate of a standard stream, and what is known about it.
struct Stream {
    file: File,
    kind: Kind,
    /// Device and inode, which identify a pipe, socket or file.
    identity: (u64, u64),
}

#[derive(Clone, Copy)]
enum Kind {
    Pipe,
    Socket,
    Other,
}

impl Stream {
    fn new(stream: impl AsFd) -> io::Result<Self> {
        let file = File::from(stream.as_fd().try_clone_to_owned()?);
        let metadata = file.metadata()?;
        let kind = match metadata.file_type() {
            kind if kind.is_fifo() => Kind::Pipe,
            kind if kind.is_socket() => Kind::Socket,
            _ => Kind::Other,
        };
        Ok(Self { file, kind, identity: (metadata.dev(), metadata.ino()) })
    }

    fn is(&self, other: &Self) -> bool {
        self.identity == other.identity
    }
}

fn source(input: Stream, errors: &Stream) -> io::Result<Source> {
    let is_shared = input.is(errors);
    let Stream { file, kind, .. } = input;
    match kind {
        Kind::Pipe => match anew::receiver(&file) {
            Some(receiver) => return Ok(Source::Pipe(receiver)),
            None if !is_shared => {
                return pipe::Receiver::from_owned_fd(file.into()).map(Source::Pipe);
            }
            None => {}
        },
        Kind::Socket if !is_shared => return socket(file).map(Source::Socket),
        Kind::Socket | Kind::Other => {}
    }
    thread::Reader::start(file).map(Source::Thread)
}

fn sink(output: Stream, errors: &Stream) -> io::Result<Sink> {
    let is_shared = output.is(errors);
    let Stream { file, kind, .. } = output;
    match kind {
        Kind::Pipe => match anew::sender(&file) {
            Some(sender) => return Ok(Sink::Pipe(sender)),
            None if !is_shared => return pipe::Sender::from_owned_fd(file.into()).map(Sink::Pipe),
            None => {}
        },
        Kind::Socket if !is_shared => return socket(file).map(Sink::Socket),
        Kind::Socket | Kind::Other => {}
    }
    thread::Writer::start(file).map(Sink::Thread)
}

/// Any socket will do: Node gives Unix sockets to its children, inetd those of TCP.
fn socket(file: File) -> io::Result<UnixStream> {
    let socket = net::UnixStream::from(OwnedFd::from(file));
    socket.set_nonblocking(true)?;
    UnixStream::from_std(socket)
}

/// Opens pipes again, so that their flags are not shared with other processes.
#[cfg(target_os = "linux")]
mod anew {
    use std::fs::File;
    use std::os::fd::AsRawFd;

    use rustix::fs::{FsWord, fstatfs};
    use rustix::pipe::{fcntl_getpipe_size, fcntl_setpipe_size};
    use tokio::net::unix::pipe;

    /// The least capacity of a pipe: four times the default, so that most answers take one write.
    /// Not the allowed megabyte: all pipes of a user share 64 MiB, and beyond that get one page.
    const CAPACITY: usize = 256 * 1024;

    /// The file system of anonymous pipes, from `linux/magic.h`.
    const PIPEFS_MAGIC: FsWord = 0x5049_5045;

    pub(super) fn receiver(file: &File) -> Option<pipe::Receiver> {
        pipe::OpenOptions::new().open_receiver(path(file)?).ok()
    }

    pub(super) fn sender(file: &File) -> Option<pipe::Sender> {
        pipe::OpenOptions::new().open_sender(path(file)?).ok()
    }

    /// The path by which an anonymous pipe is opened again. Not for named pipes: one that is opened
    /// after the last writer has closed it never reports its end.
    fn path(file: &File) -> Option<String> {
        let is_anonymous = fstatfs(file).ok()?.f_type == PIPEFS_MAGIC;
        is_anonymous.then(|| {
            enlarge(file);
            format!("/proc/self/fd/{}", file.as_raw_fd())
        })
    }

    fn enlarge(file: &File) {
        if fcntl_getpipe_size(file).is_ok_and(|capacity| capacity < CAPACITY) {
            // An optimization, so an error does not matter.
            let _ = fcntl_setpipe_size(file, CAPACITY);
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod anew {
    use std::fs::File;

    use tokio::net::unix::pipe;

    pub(super) fn receiver(_: &File) -> Option<pipe::Receiver> {
        None
    }

    pub(super) fn sender(_: &File) -> Option<pipe::Sender> {
        None
    }
}
