//! A client and a server process of the same era, spliced: every frame passes as it is.
//!
//! Frames are read beside the copy, for what must be known when the process dies: which requests
//! are unanswered, and how the session was opened (`ledger`). The client then gets an
//! error for each of them, because they may have been executed; the process is started again, and
//! hears what opened the session. The client sees one session throughout.
//!
//! **Invariant:** both directions go on independently. A server that writes without reading cannot
//! stop what it writes from being read, and nothing that a server does hides that the client has
//! gone: what the client says is read ahead, up to a limit, whatever else is waited for.

mod ledger;
mod process;

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::time::Instant;

use self::ledger::Ledger;
use self::process::{Asked, Process, Start};
use super::Bridge;
use super::opening::Opening;

/// How many starts in a row may fail, or last less than [`STABLE`].
const ATTEMPTS: u32 = 10;
/// After how long a process counts as running well.
const STABLE: Duration = Duration::from_secs(30);
/// How long a server may take to answer a question of our own. One of the other era may never do.
const PROBE: Duration = Duration::from_secs(5);
/// How long a server may take to end once its input has.
const REST: Duration = Duration::from_secs(5);
/// What is read at a time: what a pipe holds.
const BUFFER: usize = 64 << 10;
/// How much of a client is read ahead while the server does not take it.
const AHEAD: usize = 1 << 20;

/// Why a splice ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpliceError {
    /// The process does not start.
    #[error("the server cannot be started")]
    Start(#[source] io::Error),
    /// The process does not stay.
    #[error("the server ended {ATTEMPTS} times in a row; the last time with {0}")]
    Ends(String),
    /// The client's stream failed.
    #[error("the client's stream failed")]
    Client(#[source] io::Error),
}

/// A server process that speaks the client's era.
pub struct Splice<'a> {
    bridge: &'a Bridge,
    start: &'a Start,
    process: Process,
    ledger: Mutex<Ledger>,
    /// What the server has said so far.
    first: Vec<u8>,
}

/// How a process and its session ended.
enum End {
    /// The client closed its side. The process gets this long to end by itself.
    Client(Duration),
    Process,
    /// The process writes a line that is longer than allowed.
    TooLong,
}

impl<'a> Splice<'a> {
    /// Starts the process and opens the session. `None` if the server is of the other era.
    pub(super) async fn open(
        bridge: &'a Bridge,
        start: &'a Start,
        opening: &Opening,
    ) -> Result<Option<Self>, SpliceError> {
        let mut process = Process::start(start, bridge).map_err(SpliceError::Start)?;
        let mut ledger = Ledger::default();
        let (probe, id, is_sent) = ledger.open(opening);
        let longest = bridge.connect_timeout;
        let patience = if is_sent { longest } else { PROBE.min(longest) };
        let asked = process.ask(&probe, &id, patience).await;
        let asked = asked.filter(|it| ledger.is_ours(&it.answer));
        let Some(Asked { mut before, answer }) = asked else {
            process.end(Duration::ZERO).await;
            return Ok(None);
        };
        if is_sent {
            before.extend(answer);
        } else if process.send(opening.frame()).await.is_err() {
            return Ok(None);
        }
        let ledger = Mutex::new(ledger);
        Ok(Some(Self { bridge, start, process, ledger, first: before }))
    }

    /// Passes frames until the client closes its side, or until `stop`.
    ///
    /// # Errors
    /// When the process cannot be started again, or the client's stream fails.
    pub(super) async fn run(
        mut self,
        input: impl AsyncRead + Unpin,
        mut output: impl AsyncWrite + Unpin,
        stop: impl Future<Output = ()>,
    ) -> Result<(), SpliceError> {
        let Bridge { report, longest, .. } = self.bridge;
        let first = std::mem::take(&mut self.first);
        send(&mut output, &first).await.map_err(SpliceError::Client)?;
        let mut client = Lines::new(input, *longest);
        let mut failures = 0;
        let mut stop = std::pin::pin!(stop);
        loop {
            let begun = Instant::now();
            let ended = tokio::select! {
                biased;
                () = &mut stop => {
                    self.process.end(Duration::ZERO).await;
                    return Ok(());
                }
                ended = self.pass(&mut client, &mut output) => ended?,
            };
            if let End::Client(patience) = ended {
                self.process.end(patience).await;
                return Ok(());
            }
            let mut status = self.process.end(Duration::ZERO).await;
            if matches!(ended, End::TooLong) {
                status = format!("a line of more than {longest} bytes (see --max-size)");
            }
            failures = if begun.elapsed() < STABLE { failures + 1 } else { 1 };
            report(&format!("the server ended with {status}; starting it again"));
            let answers = lock(&self.ledger).fail(&status);
            send(&mut output, &answers).await.map_err(SpliceError::Client)?;
            tokio::select! {
                biased;
                () = &mut stop => return Ok(()),
                restarted = self.restart(&mut failures, &status) => restarted?,
                () = client.gone() => return Ok(()),
            }
            report("the server is back");
            let changed = lock(&self.ledger).changed();
            send(&mut output, &changed).await.map_err(SpliceError::Client)?;
        }
    }

    /// Passes frames in both directions until one side ends.
    async fn pass(
        &mut self,
        client: &mut Lines<impl AsyncRead + Unpin>,
        output: &mut (impl AsyncWrite + Unpin),
    ) -> Result<End, SpliceError> {
        let Self { process, ledger, .. } = self;
        let Process { input: server_input, output: server, .. } = process;
        let outward = outward(server, output, ledger);
        let mut outward = std::pin::pin!(outward);
        tokio::select! {
            biased;
            ended = &mut outward => return ended.map_err(SpliceError::Client),
            ended = inward(client, server_input, ledger) => match ended.map_err(SpliceError::Client)? {
                Inward::Over => {}
                Inward::Stuck => return Ok(End::Client(Duration::ZERO)),
                Inward::Refused => return Ok(End::Process),
            },
        }
        // The client has closed its side. It may still want the answers to what it has asked.
        drop(server_input.take());
        let is_late = tokio::time::timeout(REST, outward).await.is_err();
        Ok(End::Client(if is_late { Duration::ZERO } else { REST }))
    }

    /// Starts the process again, and opens the session as the client did.
    async fn restart(&mut self, failures: &mut u32, status: &str) -> Result<(), SpliceError> {
        while *failures < ATTEMPTS {
            // At once the first time: whatever made it end is usually gone with it.
            let pause = Duration::from_millis(100).saturating_mul(*failures - 1);
            tokio::time::sleep(pause).await;
            match Process::start(self.start, self.bridge) {
                Err(error) if *failures + 1 == ATTEMPTS => return Err(SpliceError::Start(error)),
                Err(_) => *failures += 1,
                Ok(mut process) => {
                    let (first, frames) = lock(&self.ledger).again();
                    let patience = self.bridge.connect_timeout;
                    if process.replay(first.as_ref(), &frames, patience).await {
                        self.process = process;
                        return Ok(());
                    }
                    *failures += 1;
                }
            }
        }
        Err(SpliceError::Ends(status.to_owned()))
    }
}

/// How the way from the client to the server ended.
enum Inward {
    /// The client has closed its side, and the server has got everything.
    Over,
    /// The client has closed its side, and the server does not read the rest.
    Stuck,
    /// The server has closed its input.
    Refused,
}

/// Passes the client's frames.
async fn inward(
    client: &mut Lines<impl AsyncRead + Unpin>,
    server: &mut Option<ChildStdin>,
    ledger: &Mutex<Ledger>,
) -> io::Result<Inward> {
    let Some(server) = server else { return Ok(Inward::Refused) };
    loop {
        if !client.fill().await? {
            return Ok(Inward::Over);
        }
        // Noted first: an answer must not come before its question.
        let frames = client.take(|line| lock(ledger).handle_client(line));
        let mut writing = std::pin::pin!(server.write_all(&frames));
        let written = tokio::select! {
            biased;
            written = &mut writing => written,
            () = client.gone() => match tokio::time::timeout(REST, writing).await {
                Ok(written) => written,
                Err(_) => return Ok(Inward::Stuck),
            },
        };
        if written.is_err() {
            // It may still write, for a while.
            let is_gone = tokio::time::timeout(REST, client.gone()).await.is_ok();
            return Ok(if is_gone { Inward::Stuck } else { Inward::Refused });
        }
    }
}

/// Passes the server's frames.
async fn outward(
    server: &mut Lines<ChildStdout>,
    output: &mut (impl AsyncWrite + Unpin),
    ledger: &Mutex<Ledger>,
) -> io::Result<End> {
    loop {
        match server.fill().await {
            Ok(true) => {}
            // A server whose line never ends is as good as gone.
            Err(error) if error.kind() == io::ErrorKind::InvalidData => return Ok(End::TooLong),
            Ok(false) | Err(_) => return Ok(End::Process),
        }
        let frames = server.take(|line| lock(ledger).handle_server(line));
        send(output, &frames).await?;
    }
}

async fn send(output: &mut (impl AsyncWrite + Unpin), frames: &[u8]) -> io::Result<()> {
    if !frames.is_empty() {
        output.write_all(frames).await?;
        output.flush().await?;
    }
    Ok(())
}

/// Cuts a stream into lines. Nothing is lost if reading is given up.
pub(crate) struct Lines<R> {
    stream: R,
    buffer: Vec<u8>,
    /// How much of the buffer is whole lines.
    whole: usize,
    longest: usize,
    is_ended: bool,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(crate) fn new(stream: R, longest: usize) -> Self {
        Self { stream, buffer: Vec::new(), whole: 0, longest, is_ended: false }
    }

    /// Waits for whole lines. Returns whether there are any; if not, the stream has ended.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(crate) async fn fill(&mut self) -> io::Result<bool> {
        while self.whole == 0 {
            if self.is_ended {
                return Ok(false);
            }
            if self.buffer.len() > self.longest {
                let what = format!("a line exceeds {} bytes", self.longest);
                return Err(io::Error::new(io::ErrorKind::InvalidData, what));
            }
            self.read().await?;
        }
        Ok(true)
    }

    /// Waits until the stream has ended. Reads ahead to find out, up to a limit; beyond it, the
    /// stream counts as there.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    async fn gone(&mut self) {
        while !self.is_ended {
            if self.buffer.len() >= AHEAD {
                return std::future::pending().await;
            }
            if self.read().await.is_err() {
                self.is_ended = true;
            }
        }
    }

    /// Reads once.
    async fn read(&mut self) -> io::Result<()> {
        let before = self.buffer.len();
        self.buffer.reserve(BUFFER);
        if self.stream.read_buf(&mut self.buffer).await? == 0 {
            self.is_ended = true;
            // The last line may lack its end.
            if before > self.whole {
                self.buffer.push(b'\n');
            }
        }
        let end = self.buffer[before..].iter().rposition(|byte| *byte == b'\n');
        self.whole = end.map_or(self.whole, |end| before + end + 1);
        Ok(())
    }

    /// Takes the whole lines that pass.
    pub(crate) fn take(&mut self, mut passes: impl FnMut(&[u8]) -> bool) -> Vec<u8> {
        let rest = self.buffer.split_off(self.whole);
        let mut lines = std::mem::replace(&mut self.buffer, rest);
        self.whole = 0;
        let mut at = 0;
        while let Some(length) = lines[at..].iter().position(|byte| *byte == b'\n') {
            let end = at + length + 1;
            if passes(&lines[at..end]) {
                at = end;
            } else {
                lines.drain(at..end);
            }
        }
        lines
    }
}

fn lock(ledger: &Mutex<Ledger>) -> MutexGuard<'_, Ledger> {
    ledger.lock().unwrap_or_else(PoisonError::into_inner)
}
