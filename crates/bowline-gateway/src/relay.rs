//! The stdio half of a tap: starts the server, and passes bytes between it and the client.
//!
//! **Invariant:** not one byte changes, whatever it is: frames are found by the observer, beside
//! the copy. Only injected faults look at lines here. The server lives as it would without a tap:
//! it shares the client's process group, sees the end of its input when the client closes it,
//! receives the signals that the tap receives, and its exit status becomes the tap's. A tap that is
//! killed takes the server with it on Linux; elsewhere the server sees the end of its input.

mod late;
mod streams;

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, ErrorKind, PipeReader, PipeWriter, Read, Write};
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::process::{Child, Command};
use tokio::sync::oneshot;
use tokio::time::Instant;

use self::late::Late;
pub use self::streams::{BOUND, become_server, bound_to_us};
use crate::fault::{Fate, Faults, IS_CUT, IS_DROPPED};
use crate::observe::{Channel, Framing, Observer};
use crate::session_file::Way;

/// The most bytes that are read at a time: what a pipe holds.
const BUFFER: usize = 64 << 10;
/// How long the tap goes on after the server has ended, if something else holds its output open and
/// nothing comes.
const REST: Duration = Duration::from_secs(2);
/// How long a client that has sent a signal may leave what the server has written unread.
const PATIENCE: Duration = Duration::from_secs(30);

/// A server, and what watches it.
pub struct Relay {
    /// The program, and its arguments.
    pub command: Vec<OsString>,
    /// Sees what passes.
    pub observer: Observer,
    /// Breaks things.
    pub faults: Option<Arc<Faults>>,
}

/// The parts of the program's own streams that a relay takes over.
struct Pipes {
    input: PipeWriter,
    output: PipeReader,
    errors: PipeReader,
}

impl Relay {
    /// Starts the server and passes bytes until it ends. Returns its exit status.
    ///
    /// # Errors
    /// When the server cannot be started.
    pub async fn run(self) -> io::Result<ExitStatus> {
        // Before the server starts, so that no signal is lost.
        let mut signals = streams::Signals::listen();
        let (mut child, pipes) = self.spawn()?;
        let (cut, is_cut) = oneshot::channel();
        let (drained, is_drained) = oneshot::channel::<()>();
        let Self { observer, faults, .. } = self;
        let client = streams::input()?;
        let (flow, inward) = (Arc::<Flow>::default(), Arc::<Flow>::default());
        let copy = |way, flow: &Arc<Flow>| {
            let (observer, flow) = (observer.clone(), Arc::clone(flow));
            Copy { observer, channel: channel(way), flow }
        };
        let sent = copy(Some(Way::Sent), &inward);
        let (received, told_copy) = (copy(Some(Way::Received), &flow), copy(None, &flow));
        start("input", move || {
            sent.run(client, pipes.input);
            // If the server has closed its input, the client learns it as it would without a tap.
            streams::close_input();
        })?;
        let errors = streams::errors()?;
        let (told, is_told) = oneshot::channel::<()>();
        start("errors", move || {
            told_copy.run(pipes.errors, errors);
            drop(told);
        })?;
        let client = streams::output()?;
        start("output", move || {
            match faults {
                None => received.run(pipes.output, client),
                Some(faults) => received.run_with(&faults, pipes.output, client, cut),
            }
            // A server may close its output and live on. Standard error is the tap's own, too.
            streams::close_output();
            drop(drained);
        })?;
        let status = wait(&mut child, &mut signals, is_cut).await?;
        tokio::select! {
            _ = async { tokio::join!(is_drained, is_told) } => {}
            () = given_up(&mut signals, &flow) => {}
            () = flow.dry() => {}
        }
        Ok(status)
    }

    fn spawn(&self) -> io::Result<(Child, Pipes)> {
        let (input_end, input) = io::pipe()?;
        let (output, output_end) = io::pipe()?;
        let (errors, errors_end) = io::pipe()?;
        let mut command = bound_to_us(&self.command)
            .ok_or_else(|| io::Error::new(ErrorKind::InvalidInput, "no command"))?;
        command.stdin(Stdio::from(input_end));
        command.stdout(Stdio::from(output_end)).stderr(Stdio::from(errors_end));
        // The command holds our copies of the server's ends, so it must go at once.
        let child = Command::from(command).spawn()?;
        Ok((child, Pipes { input, output, errors }))
    }
}

fn channel(way: Option<Way>) -> Channel {
    Channel { way, exchange: 0, framing: Framing::Lines }
}

fn start(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    std::thread::Builder::new().name(name.to_owned()).spawn(work).map(drop)
}

/// Waits for the server to end, and passes signals to it.
async fn wait(
    child: &mut Child,
    signals: &mut streams::Signals,
    is_cut: oneshot::Receiver<()>,
) -> io::Result<ExitStatus> {
    let mut is_cut = std::pin::pin!(async move {
        if is_cut.await.is_err() {
            std::future::pending::<()>().await;
        }
    });
    loop {
        let signal = tokio::select! {
            status = child.wait() => return status,
            signal = signals.next() => signal,
            () = &mut is_cut => {
                child.start_kill()?;
                return child.wait().await;
            }
        };
        streams::send(child, signal);
    }
}

/// Waits until nobody wants to wait for the last words of a server that is gone. A signal alone
/// does not say so, because it is for the server; but whoever has sent one may wait for the end of
/// the tap before it reads on.
async fn given_up(signals: &mut streams::Signals, flow: &Flow) {
    signals.next().await;
    tokio::select! {
        _ = signals.next() => {}
        () = flow.stuck() => {}
    }
}

/// What is on its way from the server, in both of its outputs.
#[derive(Default)]
struct Flow {
    /// Pieces that were read and are not written yet.
    held: AtomicUsize,
    /// How many were ever read.
    read: AtomicU64,
}

impl Flow {
    fn take(&self) {
        self.held.fetch_add(1, Ordering::SeqCst);
        self.read.fetch_add(1, Ordering::SeqCst);
    }

    fn give(&self) {
        self.held.fetch_sub(1, Ordering::SeqCst);
    }

    fn is_empty(&self) -> bool {
        self.held.load(Ordering::SeqCst) == 0
    }

    /// Waits until nothing has moved for long.
    async fn stuck(&self) {
        let now = || (self.held.load(Ordering::SeqCst), self.read.load(Ordering::SeqCst));
        let mut before = now();
        loop {
            tokio::time::sleep(PATIENCE).await;
            let after = now();
            if std::mem::replace(&mut before, after) == after {
                return;
            }
        }
    }

    /// Waits until nothing has come for a while, and everything has arrived.
    async fn dry(&self) {
        loop {
            let before = self.read.load(Ordering::SeqCst);
            tokio::time::sleep(REST).await;
            if self.is_empty() && self.read.load(Ordering::SeqCst) == before {
                return;
            }
        }
    }
}

/// Passes the bytes of one direction.
struct Copy {
    observer: Observer,
    channel: Channel,
    flow: Arc<Flow>,
}

impl Copy {
    /// Passes bytes until one side ends. Both are closed then.
    fn run(self, mut from: impl Read, mut to: impl Write) {
        let watch = self.observer.watch(self.channel);
        let mut buffer = vec![0; BUFFER];
        while let Some(count) = read(&mut from, &mut buffer) {
            // First, so that an answer is never seen before its question.
            watch.bytes(&buffer[..count]);
            self.flow.take();
            let written = write(&mut to, &buffer[..count]);
            self.flow.give();
            if written.is_err() {
                break;
            }
        }
    }

    /// Passes lines, some of which suffer faults.
    fn run_with(self, faults: &Faults, from: PipeReader, to: File, cut: oneshot::Sender<()>) {
        let late = Late::default();
        let is_cut = std::thread::scope(|scope| {
            scope.spawn(|| late.deliver(to, &self.flow));
            let is_cut = self.pass(faults, from, &late);
            late.end();
            is_cut
        });
        if is_cut {
            // The receiver is gone if the server has ended anyway.
            let _ = cut.send(());
        }
    }

    /// Passes lines until one side ends, or a fault breaks the connection.
    fn pass(&self, faults: &Faults, from: PipeReader, late: &Late) -> bool {
        let watch = self.observer.watch(self.channel);
        let mut lines = io::BufReader::with_capacity(BUFFER, from);
        let mut line = Vec::new();
        while let Ok(1..) = io::BufRead::read_until(&mut lines, b'\n', &mut line) {
            watch.bytes(&line);
            match faults.next() {
                Fate::Passes(delay) => {
                    let at = Instant::now() + delay.unwrap_or_default();
                    self.flow.take();
                    if !late.send(at, std::mem::take(&mut line)) {
                        self.flow.give();
                        return false;
                    }
                }
                Fate::IsDropped => self.observer.fault(IS_DROPPED),
                Fate::IsCut => {
                    self.observer.fault(IS_CUT);
                    return true;
                }
            }
            line.clear();
        }
        false
    }
}

/// Reads some bytes; `None` at the end.
fn read(from: &mut impl Read, buffer: &mut [u8]) -> Option<usize> {
    loop {
        match from.read(buffer) {
            Ok(0) => return None,
            Ok(count) => return Some(count),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => streams::pause(),
            Err(_) => return None,
        }
    }
}

fn write(to: &mut impl Write, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match to.write(bytes) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => streams::pause(),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
