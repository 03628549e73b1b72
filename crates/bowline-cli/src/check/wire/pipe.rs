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
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::process::{Child, Command};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout, timeout_at};

use super::stream::FRAMES;
use super::{Frame, Lost};
use crate::doctor::names;
use crate::record::Way;
use crate::session::note;

/// Where the server's output comes from.
pub(in crate::check) type Reader = Box<dyn AsyncRead + Send + Unpin>;
/// Where its input goes.
pub(in crate::check) type Writer = Box<dyn AsyncWrite + Send + Unpin>;

/// How much of standard error is kept.
const TAIL: usize = 12;
/// How long the end of a program whose output has ended may take, and its last words.
const SOON: Duration = Duration::from_millis(400);
/// How long what a program started may take to end after it.
const CHILDREN: Duration = Duration::from_millis(500);

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
    Exited {
        status: String,
        /// What it started and left behind, by name where the system tells.
        left: Vec<String>,
    },
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
pub(super) struct Pipe {
    number: u64,
    child: Option<Running>,
    input: Option<Writer>,
    tail: Arc<Mutex<Tail>>,
    reader: JoinHandle<()>,
    errors: Option<JoinHandle<()>>,
}

/// A process whose group is killed when this is dropped.
struct Running {
    child: Child,
    group: ProcessGroup,
}

impl Pipe {
    /// Starts it; gives the lines of its output, too. The number is for those who read a recording.
    pub(super) fn start(
        program: &Program,
        number: u64,
    ) -> Result<(Self, mpsc::Receiver<Frame>), Lost> {
        match program {
            #[cfg(test)]
            Program::Streams(open) => {
                let (output, input) = open();
                Ok(Self::new(number, None, (output, input), None))
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
                let streams: (Reader, Writer) = (Box::new(output), Box::new(input));
                Ok(Self::new(number, child, streams, Some(Box::new(errors))))
            }
        }
    }

    fn new(
        number: u64,
        child: Option<Running>,
        (output, input): (Reader, Writer),
        errors: Option<Reader>,
    ) -> (Self, mpsc::Receiver<Frame>) {
        let (sender, lines) = mpsc::channel(FRAMES);
        let tail = Arc::new(Mutex::new(Tail::default()));
        let reader = tokio::spawn(read_lines(output, sender));
        let errors = errors.map(|errors| tokio::spawn(drain(errors, Arc::clone(&tail))));
        (Self { number, child, input: Some(input), tail, reader, errors }, lines)
    }

    /// Writes a frame and the line feed that ends it.
    pub(super) async fn send(&mut self, frame: &str, patience: Duration) -> Result<(), Lost> {
        let Self { number, input: Some(input), child, .. } = self else {
            return Err(Lost::Closed("its input is closed".to_owned()));
        };
        note(Way::Sent, frame.as_bytes(), Some(*number));
        let write = async {
            input.write_all(frame.as_bytes()).await?;
            input.write_all(b"\n").await?;
            input.flush().await
        };
        let written = tokio::select! {
            biased;
            written = timeout(patience, write) => written,
            () = ended(child) => Ok(Err(std::io::ErrorKind::BrokenPipe.into())),
        };
        match written {
            Err(_) => Err(Lost::Closed(format!("it has read nothing for {patience:?}"))),
            Ok(Err(_)) => Err(self.gone().await),
            Ok(Ok(())) => Ok(()),
        }
    }

    /// Waits until the program itself has ended; what it started may live on.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(super) async fn exited(&mut self) {
        ended(&mut self.child).await;
    }

    /// Tells the program that nothing more will come.
    pub(super) fn close_input(&mut self) {
        self.input = None;
    }

    /// How it ended, once its output is over or the deadline has passed.
    pub(super) async fn end(&mut self, is_over: bool, deadline: Instant) -> Ending {
        let Some(Running { child, group }) = &mut self.child else {
            return match is_over {
                true => Ending::Exited { status: "0".to_owned(), left: Vec::new() },
                false => Ending::Killed,
            };
        };
        let Ok(Ok(status)) = timeout_at(deadline, child.wait()).await else {
            return Ending::Killed;
        };
        let status = status.code().map_or_else(|| status.to_string(), |code| code.to_string());
        let is_gone = timeout(CHILDREN, group.gone()).await.is_ok();
        Ending::Exited { status, left: if is_gone { Vec::new() } else { names(group) } }
    }

    /// How many lines came on standard error.
    pub(super) fn stderr_lines(&self) -> usize {
        self.tail.lock().unwrap_or_else(PoisonError::into_inner).count
    }

    /// Why its output has ended.
    pub(super) async fn gone(&mut self) -> Lost {
        let mut how = "it closed its output".to_owned();
        if let Some(Running { child, group }) = &mut self.child
            && let Ok(Ok(status)) = timeout(SOON, child.wait()).await
        {
            how = status.to_string();
            if group.is_alive() {
                how.push_str(", while something that it started runs on");
            }
            // Whatever is left would keep its standard error open.
            group.kill();
        }
        // What it said last may still be on its way.
        if let Some(errors) = self.errors.as_mut().filter(|errors| !errors.is_finished()) {
            let _ = timeout(SOON, errors).await;
        }
        let tail = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
        let last: Vec<&str> = tail.lines.iter().map(String::as_str).collect();
        if !last.is_empty() {
            how = format!("{how}; it said on standard error: {}", last.join(" | "));
        }
        Lost::Closed(how)
    }
}

/// Waits for the end of a process; for ever where there is none.
async fn ended(child: &mut Option<Running>) {
    match child {
        // One that cannot be waited for has been reaped by somebody else.
        Some(running) => drop(running.child.wait().await),
        None => std::future::pending().await,
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        self.reader.abort();
        if let Some(errors) = &self.errors {
            errors.abort();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The leader may be gone and its children not. `kill_on_drop` sees to the leader alone.
        self.group.kill();
    }
}

async fn read_lines(mut output: Reader, sender: mpsc::Sender<Frame>) {
    let mut parser = line::Parser::default();
    let mut chunk = vec![0; 64 << 10];
    while let Ok(length @ 1..) = output.read(&mut chunk).await {
        let mut rest = &chunk[..length];
        while let Some(frame) = parser.next_frame(&mut rest) {
            let line = frame.map_or_else(|error| error.prefix, <[u8]>::to_vec);
            if sender.send((None, line)).await.is_err() {
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
