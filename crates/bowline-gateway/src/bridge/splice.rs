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

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::Notify;
use tokio::time::Instant;

pub(super) use self::ledger::Ledger;
use self::process::{Asked, Process, Start};
use super::lines::{Filled, Lines};
use super::opening::Opening;
use super::{Bridge, REST};

/// How many starts in a row may fail, or last less than [`STABLE`].
const ATTEMPTS: u32 = 10;
/// After how long a process counts as running well.
const STABLE: Duration = Duration::from_secs(30);
/// How long a server may take to answer a question of our own. One of the other era may never do.
const PROBE: Duration = Duration::from_secs(5);

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
    /// The ledger has an answer of our own for the client.
    answered: Notify,
    /// What the server has said so far.
    first: Vec<u8>,
    /// What the process hears before it hears the client.
    unsent: Vec<u8>,
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
        let mut unsent = Vec::new();
        if is_sent {
            before.extend(answer);
        } else {
            unsent.extend(opening.frame());
        }
        let (ledger, answered) = (Mutex::new(ledger), Notify::new());
        Ok(Some(Self { bridge, start, process, ledger, answered, first: before, unsent }))
    }

    /// Passes frames until the client closes its side, or until `stop`.
    ///
    /// # Errors
    /// When the process cannot be started again, or the client's stream fails.
    pub(super) async fn run(
        mut self,
        mut client: Lines<impl AsyncRead + Unpin>,
        mut output: impl AsyncWrite + Unpin,
        stop: impl Future<Output = ()>,
    ) -> Result<(), SpliceError> {
        let patience = tokio::select! {
            biased;
            () = stop => Duration::ZERO,
            patience = self.serve(&mut client, &mut output) => patience?,
        };
        self.process.end(patience).await;
        Ok(())
    }

    /// Passes frames until the client has gone. Returns how long the process may take to end.
    async fn serve(
        &mut self,
        client: &mut Lines<impl AsyncRead + Unpin>,
        output: &mut (impl AsyncWrite + Unpin),
    ) -> Result<Duration, SpliceError> {
        let Bridge { report, longest, .. } = self.bridge;
        let first = std::mem::take(&mut self.first);
        if !tell(client, output, &first).await? {
            return Ok(Duration::ZERO);
        }
        let mut failures = 0;
        loop {
            let begun = Instant::now();
            let ended = self.pass(client, output).await?;
            if let End::Client(patience) = ended {
                return Ok(patience);
            }
            let mut status = self.process.end(Duration::ZERO).await;
            if matches!(ended, End::TooLong) {
                status = format!("a line of more than {longest} bytes (see --max-size)");
            }
            failures = if begun.elapsed() < STABLE { failures + 1 } else { 1 };
            report(&format!("the server ended with {status}; starting it again"));
            let answers = lock(&self.ledger).fail(&status);
            if !tell(client, output, &answers).await? {
                return Ok(Duration::ZERO);
            }
            tokio::select! {
                biased;
                restarted = self.restart(&mut failures, &status) => restarted?,
                () = client.gone() => return Ok(Duration::ZERO),
            }
            report("the server is back");
            let changed = lock(&self.ledger).changed();
            if !tell(client, output, &changed).await? {
                return Ok(Duration::ZERO);
            }
        }
    }

    /// Passes frames in both directions until one side ends.
    async fn pass(
        &mut self,
        client: &mut Lines<impl AsyncRead + Unpin>,
        output: &mut (impl AsyncWrite + Unpin),
    ) -> Result<End, SpliceError> {
        let Self { process, ledger, answered, unsent, .. } = self;
        let Process { input: server_input, output: server, .. } = process;
        let outward = outward(server, output, ledger, answered);
        let mut outward = std::pin::pin!(outward);
        tokio::select! {
            biased;
            ended = &mut outward => return ended.map_err(SpliceError::Client),
            ended = inward(client, server_input, ledger, (answered, unsent)) => match ended.map_err(SpliceError::Client)? {
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
                    let (first, rest) = lock(&self.ledger).again();
                    let patience = self.bridge.connect_timeout;
                    // The client has seen the answer.
                    let is_open = match first {
                        Some((id, frame)) => process.ask(&frame, &id, patience).await.is_some(),
                        None => true,
                    };
                    if is_open {
                        (self.process, self.unsent) = (process, rest);
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

/// Passes the client's frames, after those that the server must hear before.
async fn inward(
    client: &mut Lines<impl AsyncRead + Unpin>,
    server: &mut Option<ChildStdin>,
    ledger: &Mutex<Ledger>,
    (answered, unsent): (&Notify, &mut Vec<u8>),
) -> io::Result<Inward> {
    let Some(server) = server else { return Ok(Inward::Refused) };
    let mut frames = std::mem::take(unsent);
    loop {
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
        frames = match client.fill().await? {
            // Noted first: an answer must not come before its question.
            Filled::Lines => client.take(|line| lock(ledger).handle_client(line)),
            Filled::TooLong => {
                let instead = lock(ledger).refuse(&client.skip());
                answered.notify_one();
                instead
            }
            Filled::Ended => return Ok(Inward::Over),
        };
    }
}

/// Passes the server's frames, and our own answers to the client.
async fn outward(
    server: &mut Lines<ChildStdout>,
    output: &mut (impl AsyncWrite + Unpin),
    ledger: &Mutex<Ledger>,
    answered: &Notify,
) -> io::Result<End> {
    loop {
        let filled = tokio::select! {
            biased;
            () = answered.notified() => {
                let own = lock(ledger).take_answers();
                send(output, &own).await?;
                continue;
            }
            filled = server.fill() => filled,
        };
        match filled {
            Ok(Filled::Lines) => {}
            // A server whose line never ends is as good as gone.
            Ok(Filled::TooLong) => return Ok(End::TooLong),
            Ok(Filled::Ended) | Err(_) => return Ok(End::Process),
        }
        let frames = server.take(|line| lock(ledger).handle_server(line));
        send(output, &frames).await?;
    }
}

/// Tells the client something. Returns whether it can hear more: not if it has gone and does not
/// take this.
async fn tell(
    client: &mut Lines<impl AsyncRead + Unpin>,
    output: &mut (impl AsyncWrite + Unpin),
    frames: &[u8],
) -> Result<bool, SpliceError> {
    tokio::select! {
        biased;
        sent = send(output, frames) => sent.map(|()| true).map_err(SpliceError::Client),
        () = client.left(REST) => Ok(false),
    }
}

pub(super) async fn send(output: &mut (impl AsyncWrite + Unpin), frames: &[u8]) -> io::Result<()> {
    if !frames.is_empty() {
        output.write_all(frames).await?;
        output.flush().await?;
    }
    Ok(())
}

fn lock(ledger: &Mutex<Ledger>) -> MutexGuard<'_, Ledger> {
    ledger.lock().unwrap_or_else(PoisonError::into_inner)
}
