//! The server's process.

use std::io;
use std::process::Stdio;
use std::time::Duration;

use bowline::client::ProcessGroup;
use bowline_proto::wire::{Id, Message};
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use super::Bridge;
use crate::bridge::lines::{Filled, Lines};

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

    /// Sends a request and waits for its answer. `None` if it does not come.
    pub(super) async fn ask(
        &mut self,
        request: &[u8],
        id: &Id,
        patience: Duration,
    ) -> Option<Asked> {
        let Self { input, output, .. } = self;
        let input = input.as_mut()?;
        let (mut answer, mut before) = (None, Vec::new());
        let answering = async {
            while answer.is_none() {
                let Ok(Filled::Lines) = output.fill().await else { return Err(()) };
                before.extend(output.take(|line| {
                    let is_answer = answers(line, id) && answer.is_none();
                    answer = is_answer.then(|| line.to_vec()).or_else(|| answer.take());
                    !is_answer
                }));
            }
            Ok(())
        };
        // Both at once: the server may say much before it reads.
        let sending = async { input.write_all(request).await.map_err(drop) };
        let asking = async { tokio::try_join!(sending, answering) };
        timeout(patience, asking).await.ok()?.ok()?;
        Some(Asked { before, answer: answer? })
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
