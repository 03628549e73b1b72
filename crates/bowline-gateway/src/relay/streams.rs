//! What differs between systems: our own standard streams, signals, and the life of a child.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::process::Command;
#[cfg(unix)]
use std::task::{Context, Poll};
use std::time::Duration;

use bowline::client::find_program;
use tokio::process::Child;

/// A stream that a client has made non-blocking is asked again after this.
pub(super) fn pause() {
    std::thread::sleep(Duration::from_millis(1));
}

/// Our standard input, unbuffered.
pub(super) fn input() -> io::Result<File> {
    own(&io::stdin())
}

/// Our standard output, unbuffered.
pub(super) fn output() -> io::Result<File> {
    own(&io::stdout())
}

/// Our standard error.
pub(super) fn errors() -> io::Result<File> {
    own(&io::stderr())
}

#[cfg(unix)]
fn own(stream: &impl std::os::fd::AsFd) -> io::Result<File> {
    Ok(File::from(stream.as_fd().try_clone_to_owned()?))
}

#[cfg(not(unix))]
fn own(stream: &impl std::os::windows::io::AsHandle) -> io::Result<File> {
    Ok(File::from(stream.as_handle().try_clone_to_owned()?))
}

/// Closes our end of the client's pipe.
#[cfg(unix)]
pub(super) fn close_input() {
    if let Ok(nothing) = File::open("/dev/null") {
        // If this fails, the pipe is closed when the tap ends.
        let _ = rustix::stdio::dup2_stdin(nothing);
    }
}

#[cfg(not(unix))]
pub(super) fn close_input() {}

/// Closes our end of the pipe to the client.
#[cfg(unix)]
pub(super) fn close_output() {
    if let Ok(nothing) = File::options().write(true).open("/dev/null") {
        // If this fails, the pipe is closed when the tap ends.
        let _ = rustix::stdio::dup2_stdout(nothing);
    }
}

#[cfg(not(unix))]
pub(super) fn close_output() {}

/// The option of our own program that runs a server with its life bound to ours; see
/// [`become_server`].
pub const BOUND: &str = "--bound";

/// Our own program, also when its file has been replaced by a newer one.
#[cfg(target_os = "linux")]
const OWN: &str = "/proc/self/exe";

/// How to start a server so that it does not outlive a tap that is killed.
///
/// Linux can end a process with its parent, but the process must ask for it itself. So the tap
/// starts its own program, which asks, and then becomes the server. `None` without a program.
pub fn bound_to_us(command: &[OsString]) -> Option<Command> {
    let (program, args) = command.split_first()?;
    #[cfg(target_os = "linux")]
    if std::path::Path::new(OWN).exists() {
        let mut bound = Command::new(OWN);
        bound.args(["tap", BOUND, "--"]).arg(program).args(args);
        return Some(bound);
    }
    let mut direct = Command::new(find_program(program, None));
    direct.args(args);
    Some(direct)
}

/// Becomes the server, whose life ends with its parent's. Returns only if it cannot.
#[cfg(unix)]
pub fn become_server(command: &[OsString]) -> io::Error {
    use std::os::unix::process::CommandExt;
    let Some((program, args)) = command.split_first() else {
        return io::Error::new(io::ErrorKind::InvalidInput, "no command");
    };
    #[cfg(target_os = "linux")]
    {
        let parent = rustix::process::getppid();
        let asked =
            rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
        if asked.is_ok() && rustix::process::getppid() != parent {
            return io::Error::other("the tap is gone");
        }
    }
    Command::new(program).args(args).exec()
}

/// Becomes the server. Only Unix can.
#[cfg(not(unix))]
pub fn become_server(_: &[OsString]) -> io::Error {
    io::ErrorKind::Unsupported.into()
}

/// The number of a signal.
pub(super) type Signal = i32;

/// The signals that are meant for the server.
pub(super) struct Signals {
    #[cfg(unix)]
    all: Vec<(Signal, tokio::signal::unix::Signal)>,
}

#[cfg(unix)]
impl Signals {
    /// Keeps them from ending the tap.
    pub(super) fn listen() -> Self {
        use tokio::signal::unix::{SignalKind, signal};
        let kinds = [
            SignalKind::hangup(),
            SignalKind::interrupt(),
            SignalKind::quit(),
            SignalKind::terminate(),
            SignalKind::user_defined1(),
            SignalKind::user_defined2(),
        ];
        let heard = kinds.into_iter().filter_map(|kind| {
            let signal = signal(kind).ok()?;
            Some((kind.as_raw_value(), signal))
        });
        Self { all: heard.collect() }
    }

    /// Waits for the next one.
    pub(super) async fn next(&mut self) -> Signal {
        let next = |context: &mut Context<'_>| {
            for (number, signal) in &mut self.all {
                if signal.poll_recv(context).is_ready() {
                    return Poll::Ready(*number);
                }
            }
            Poll::Pending
        };
        std::future::poll_fn(next).await
    }
}

#[cfg(not(unix))]
impl Signals {
    pub(super) fn listen() -> Self {
        Self {}
    }

    /// Waits for Ctrl-C.
    pub(super) async fn next(&mut self) -> Signal {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        0
    }
}

/// Passes a signal to the server.
#[cfg(unix)]
pub(super) fn send(child: &Child, signal: Signal) {
    use rustix::process::{Pid, Signal, kill_process};
    let pid = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
    if let (Some(pid), Some(signal)) = (pid, Signal::from_named_raw(signal)) {
        // It may have ended just now.
        let _ = kill_process(pid, signal);
    }
}

/// The console sends Ctrl-C to the server as well.
#[cfg(not(unix))]
pub(super) fn send(_: &Child, _: Signal) {}
