//! A server on standard input and output: started in a group of its own, every line of its output
//! kept, ended with all its descendants.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bowline::client::ProcessGroup;
use bowline::proto::line;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::process::{Child, Command};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout, timeout_at};

use super::{Heard, Lost, Until};
use crate::check::seen::Seen;
use crate::session::note_sent;

/// Where the server's output comes from.
pub(in crate::check) type Reader = Box<dyn AsyncRead + Send + Unpin>;
/// Where its input goes.
pub(in crate::check) type Writer = Box<dyn AsyncWrite + Send + Unpin>;

/// Lines that wait to be looked at; the server waits when there are more.
const LINES: usize = 256;
/// How much of standard error is kept.
const TAIL: usize = 12;
/// After the last answer, how long stray messages may still come.
const LINGER: Duration = Duration::from_millis(40);
/// How long a server may take to end when its input is closed.
const GRACE: Duration = Duration::from_secs(5);

/// A program that is a server, or in tests one made of streams.
#[derive(Clone)]
pub(in crate::check) enum Program {
    /// As a shell would start it, but without a shell.
    Command {
        program: OsString,
        args: Vec<OsString>,
        env: Vec<(OsString, OsString)>,
        cwd: Option<PathBuf>,
    },
    /// A server in this process.
    #[cfg(test)]
    Streams(Arc<dyn Fn() -> (Reader, Writer) + Send + Sync>),
}

/// How a server ended once its input was closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::check) enum Ending {
    /// By itself, with this status.
    Exited(String),
    /// Not by itself: it had to be killed.
    Killed,
}

/// What a server says on standard error.
#[derive(Default)]
struct Tail {
    lines: VecDeque<String>,
    count: usize,
}

/// A running server.
pub(in crate::check) struct Pipe {
    child: Option<Running>,
    input: Option<Writer>,
    lines: mpsc::Receiver<Vec<u8>>,
    tail: Arc<Mutex<Tail>>,
    readers: Vec<JoinHandle<()>>,
}

/// A process whose group is killed when this is dropped.
struct Running {
    child: Child,
    group: ProcessGroup,
}

impl Pipe {
    pub(super) fn start(program: &Program) -> Result<Self, Lost> {
        match program {
            #[cfg(test)]
            Program::Streams(open) => {
                let (output, input) = open();
                Ok(Self::new(None, output, input, None))
            }
            Program::Command { program, args, env, cwd } => {
                let mut command = Command::new(program);
                command
                    .args(args)
                    .envs(env.iter().cloned())
                    .stdin(Stdio::piped())
                    .stdout(Stdio::piped());
                command.stderr(Stdio::piped()).kill_on_drop(true);
                if let Some(cwd) = cwd {
                    command.current_dir(cwd);
                }
                #[cfg(unix)]
                command.process_group(0);
                let program = program.to_string_lossy();
                let failed = |error| Lost::Unreachable(format!("{program}: {error}"));
                let mut child = command.spawn().map_err(failed)?;
                let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
                let (Some(input), Some(output), Some(errors)) = pipes else {
                    return Err(Lost::Unreachable(format!("{program}: no standard streams")));
                };
                let group = ProcessGroup::of(&child);
                let child = Some(Running { child, group });
                Ok(Self::new(child, Box::new(output), Box::new(input), Some(Box::new(errors))))
            }
        }
    }

    fn new(child: Option<Running>, output: Reader, input: Writer, errors: Option<Reader>) -> Self {
        let (sender, lines) = mpsc::channel(LINES);
        let tail = Arc::new(Mutex::new(Tail::default()));
        let mut readers = vec![tokio::spawn(read_lines(output, sender))];
        if let Some(errors) = errors {
            readers.push(tokio::spawn(drain(errors, Arc::clone(&tail))));
        }
        Self { child, input: Some(input), lines, tail, readers }
    }

    /// Writes a frame and the line feed that ends it.
    pub(super) async fn send(&mut self, frame: &str, patience: Duration) -> Result<(), Lost> {
        let Some(input) = &mut self.input else {
            return Err(Lost::Closed("its input is closed".to_owned()));
        };
        note_sent(frame.as_bytes());
        let write = async {
            input.write_all(frame.as_bytes()).await?;
            input.write_all(b"\n").await?;
            input.flush().await
        };
        match timeout(patience, write).await {
            Err(_) => Err(Lost::Closed(format!("it has read nothing for {patience:?}"))),
            Ok(Err(_)) => Err(self.gone().await),
            Ok(Ok(())) => Ok(()),
        }
    }

    /// Sends a frame; hears until its answer has come, or the barrier's.
    pub(super) async fn exchange(
        &mut self,
        frame: &str,
        (until, barrier): (Until<'_>, Option<&(Value, String)>),
        patience: Duration,
        seen: &mut Seen,
    ) -> Result<Heard, Lost> {
        let deadline = Instant::now() + patience;
        self.send(frame, patience).await?;
        if let Some((_, frame)) = barrier {
            self.send(frame, patience).await?;
        }
        let is_last = |message: &Value| match (until, barrier) {
            (Until::Answer(id), _) | (Until::Quiet, Some((id, _))) => is_answer(message, id),
            (Until::First | Until::Quiet, _) => true,
        };
        let mut heard = Heard::default();
        while !heard.messages.iter().any(is_last) {
            let Ok(line) = timeout_at(deadline, self.lines.recv()).await else {
                return Err(Lost::Silent(patience));
            };
            let Some(line) = line else { return Err(self.gone().await) };
            self.take(&line, &mut heard, patience, seen).await?;
        }
        if barrier.is_some() {
            while let Ok(Some(line)) = timeout(LINGER, self.lines.recv()).await {
                self.take(&line, &mut heard, patience, seen).await?;
            }
            heard.messages.retain(|message| !is_last(message));
        }
        Ok(heard)
    }

    /// Sorts one line of output; answers what the server asks.
    async fn take(
        &mut self,
        line: &[u8],
        heard: &mut Heard,
        patience: Duration,
        seen: &mut Seen,
    ) -> Result<(), Lost> {
        for message in seen.line(line) {
            if let Some(answer) = answer_to(&message) {
                self.send(&answer.to_string(), patience).await?;
            }
            heard.messages.push(message);
        }
        Ok(())
    }

    /// Closes the input and waits for the end.
    pub(super) async fn close(mut self, patience: Duration, seen: &mut Seen) -> Ending {
        self.input = None;
        let grace = GRACE.min(patience.max(Duration::from_secs(1)));
        let deadline = Instant::now() + grace;
        while let Ok(Some(line)) = timeout_at(deadline, self.lines.recv()).await {
            let _ = seen.line(&line);
        }
        let ending = match &mut self.child {
            None => match timeout_at(deadline, self.lines.recv()).await {
                Ok(_) => Ending::Exited("0".to_owned()),
                Err(_) => Ending::Killed,
            },
            Some(running) => match timeout_at(deadline, running.child.wait()).await {
                Ok(Ok(status)) => Ending::Exited(
                    status.code().map_or_else(|| status.to_string(), |code| code.to_string()),
                ),
                _ => Ending::Killed,
            },
        };
        seen.stderr_lines += self.tail.lock().unwrap_or_else(PoisonError::into_inner).count;
        ending
    }

    /// Why its output has ended.
    async fn gone(&mut self) -> Lost {
        let mut how = "it closed its output".to_owned();
        if let Some(running) = &mut self.child
            && let Ok(Ok(status)) = timeout(LINGER * 10, running.child.wait()).await
        {
            how = status.to_string();
        }
        // What it said last may still be on its way.
        if let Some(errors) = self.readers.get_mut(1).filter(|errors| !errors.is_finished()) {
            let _ = timeout(LINGER * 10, errors).await;
        }
        let tail = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
        let last: Vec<&str> = tail.lines.iter().map(String::as_str).collect();
        if !last.is_empty() {
            how = format!("{how}; it said on standard error: {}", last.join(" | "));
        }
        Lost::Closed(how)
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        for reader in &self.readers {
            reader.abort();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The leader may be gone and its children not. `kill_on_drop` sees to the leader alone.
        self.group.kill();
    }
}

fn is_answer(message: &Value, id: &Value) -> bool {
    message.get("method").is_none() && message.get("id") == Some(id)
}

/// What a client that can do nothing says to a request.
pub(super) fn answer_to(message: &Value) -> Option<Value> {
    let method = message.get("method")?.as_str()?;
    let id = message.get("id")?;
    Some(match method {
        "ping" => json!({"jsonrpc": "2.0", "id": id, "result": {}}),
        _ => json!({"jsonrpc": "2.0", "id": id, "error": {
            "code": -32601, "message": "this client declared no such capability"}}),
    })
}

async fn read_lines(mut output: Reader, sender: mpsc::Sender<Vec<u8>>) {
    let mut parser = line::Parser::default();
    let mut chunk = vec![0; 64 << 10];
    while let Ok(length @ 1..) = output.read(&mut chunk).await {
        let mut rest = &chunk[..length];
        while let Some(frame) = parser.next_frame(&mut rest) {
            let line = frame.map_or_else(|error| error.prefix, <[u8]>::to_vec);
            if sender.send(line).await.is_err() {
                return;
            }
        }
    }
}

async fn drain(mut errors: Reader, tail: Arc<Mutex<Tail>>) {
    let mut parser = line::Parser::new(4 << 10);
    let mut chunk = vec![0; 8 << 10];
    while let Ok(length @ 1..) = errors.read(&mut chunk).await {
        let mut rest = &chunk[..length];
        while let Some(frame) = parser.next_frame(&mut rest) {
            let line = frame.map_or_else(|error| error.prefix, <[u8]>::to_vec);
            let mut tail = tail.lock().unwrap_or_else(PoisonError::into_inner);
            tail.count += 1;
            if tail.lines.len() == TAIL {
                tail.lines.pop_front();
            }
            tail.lines.push_back(String::from_utf8_lossy(&line).into_owned());
        }
    }
}
