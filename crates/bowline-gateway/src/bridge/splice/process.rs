//! The server's process.

use std::io;
use std::process::Stdio;
use std::time::Duration;

use bowline::client::ProcessGroup;
use bowline_proto::wire::{Id, Message};
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use super::{Bridge, Lines};

/// Makes the command that starts the server.
pub(super) type Start = Box<dyn Fn() -> std::process::Command + Send + Sync>;

/// The server's process, and all its descendants. They are killed when this is dropped.
pub(super) struct Process {
    child: Child,
    group: ProcessGroup,
    pub(super) input: Option<ChildStdin>,
    pub(super) output: Lines<ChildStdout>,
    term_grace: Duration,
}

/// The answer to a request, and what came before it, with their line ends.
pub(super) struct Asked {
    pub(super) before: Vec<u8>,
    pub(super) answer: Vec<u8>,
}

impl Process {
    pub(super) fn start(start: &Start, bridge: &Bridge) -> io::Result<Self> {
        let mut command = Command::from(start());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        // Ctrl-C in a terminal must reach the bridge alone, and descendants must be found.
        ProcessGroup::lead(&mut command);
        let mut child = command.spawn()?;
        let group = ProcessGroup::of(&child);
        let gone = || io::Error::other("the server has no pipes");
        let output = child.stdout.take().ok_or_else(gone)?;
        let (input, output) = (child.stdin.take(), Lines::new(output, bridge.longest));
        Ok(Self { child, group, input, output, term_grace: bridge.term_grace })
    }

    pub(super) async fn send(&mut self, frames: &[u8]) -> io::Result<()> {
        match &mut self.input {
            Some(input) => input.write_all(frames).await,
            None => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    /// Sends a request and waits for its answer. `None` if it does not come.
    pub(super) async fn ask(
        &mut self,
        request: &[u8],
        id: &Id,
        patience: Duration,
    ) -> Option<Asked> {
        self.send(request).await.ok()?;
        let (mut answer, mut before) = (None, Vec::new());
        let answering = async {
            while answer.is_none() && self.output.fill().await.unwrap_or(false) {
                before.extend(self.output.take(|line| {
                    let is_answer = answers(line, id) && answer.is_none();
                    answer = is_answer.then(|| line.to_vec()).or_else(|| answer.take());
                    !is_answer
                }));
            }
        };
        timeout(patience, answering).await.ok()?;
        Some(Asked { before, answer: answer? })
    }

    /// Opens a session again: a request whose answer the client has seen, then the rest.
    pub(super) async fn replay(
        &mut self,
        first: Option<&Id>,
        frames: &[Vec<u8>],
        patience: Duration,
    ) -> bool {
        let mut rest = frames.iter();
        if let (Some(id), Some(request)) = (first, frames.first()) {
            if self.ask(request, id, patience).await.is_none() {
                return false;
            }
            rest.next();
        }
        for frame in rest {
            if self.send(frame).await.is_err() {
                return false;
            }
        }
        true
    }

    /// Waits this long for the process to end, then ends it with its descendants: TERM, and KILL
    /// for what does not obey. Returns its status, for people.
    pub(super) async fn end(&mut self, patience: Duration) -> String {
        drop(self.input.take());
        let mut ended = timeout(patience.max(GRACE), self.child.wait()).await.ok();
        if ended.is_none() || self.group.is_alive() {
            self.group.terminate();
            let obeying = async {
                let status = self.child.wait().await;
                self.group.gone().await;
                status
            };
            ended = timeout(self.term_grace, obeying).await.ok().or(ended);
        }
        self.group.kill();
        let status = match ended {
            Some(status) => status,
            None => {
                // Where there are no groups, or it has ended just now.
                let _ = self.child.start_kill();
                self.child.wait().await
            }
        };
        status.map_or_else(|error| error.to_string(), |status| status.to_string())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.group.kill();
    }
}

/// Whether a frame answers a request; a server that could not read the request may not say which.
fn answers(frame: &[u8], id: &Id) -> bool {
    match Message::parse(frame) {
        Ok(Message::Response(response)) => response.id == *id,
        Ok(Message::Fault(_)) => true,
        _ => false,
    }
}

/// How long a process may take to end by itself after its output has.
const GRACE: Duration = Duration::from_millis(500);
