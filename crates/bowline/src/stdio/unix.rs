//! Taking the standard streams from the process, and finding out how to wait on them.

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
    // On a terminal somebody looks at both, and nothing is there to be corrupted.
    if output_is_errors && !errors.file.is_terminal() {
        dup2_stdout(&strays)?;
    } else {
        dup2_stdout(&errors.file)?;
    }
    // What `print!` has buffered is a stray, too. Whether it can be written is nobody's concern.
    let _ = io::stdout().flush();
    Ok((source, sink))
}

/// A private descriptor of a standard stream, and what is known about it.
struct Stream {
    file: File,
    kind: Kind,
    /// Device and number, which tell one pipe, socket or file from another.
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

/// Node gives its children sockets, inetd those of TCP: read and written, all are alike.
fn socket(file: File) -> io::Result<UnixStream> {
    let socket = net::UnixStream::from(OwnedFd::from(file));
    socket.set_nonblocking(true)?;
    UnixStream::from_std(socket)
}

/// Pipes opened a second time, so that what is set on them is set for nobody else.
#[cfg(target_os = "linux")]
mod anew {
    use std::fs::File;
    use std::os::fd::AsRawFd;

    use rustix::fs::{FsWord, fstatfs};
    use rustix::pipe::{fcntl_getpipe_size, fcntl_setpipe_size};
    use tokio::net::unix::pipe;

    /// What a pipe holds at least. Four times the default, so that most answers take one write. Not
    /// the megabyte that is allowed: all pipes of a user share 64, and the next ones get a page.
    const CAPACITY: usize = 256 * 1024;

    /// The file system of anonymous pipes, as `linux/magic.h` has it.
    const PIPEFS_MAGIC: FsWord = 0x5049_5045;

    pub(super) fn receiver(file: &File) -> Option<pipe::Receiver> {
        pipe::OpenOptions::new().open_receiver(path(file)?).ok()
    }

    pub(super) fn sender(file: &File) -> Option<pipe::Sender> {
        pipe::OpenOptions::new().open_sender(path(file)?).ok()
    }

    /// Where an anonymous pipe is opened again. A named one has rules of its own: who opens it
    /// after the last writer has gone never hears of its end.
    fn path(file: &File) -> Option<String> {
        let is_anonymous = fstatfs(file).ok()?.f_type == PIPEFS_MAGIC;
        is_anonymous.then(|| {
            enlarge(file);
            format!("/proc/self/fd/{}", file.as_raw_fd())
        })
    }

    fn enlarge(file: &File) {
        if fcntl_getpipe_size(file).is_ok_and(|capacity| capacity < CAPACITY) {
            // A favour: without it, things work.
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
