//! A server on standard input and output, in a process group of its own. Every line of its output
//! is kept; it is killed with all its descendants when the [`Process`] is dropped.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bowline::client::{ProcessGroup, find_program};
use bowline::proto::line::Parser;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::process::{Child, Command};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use super::group::names;
use super::{Direction, LIMIT, Tap};

/// Where a server's output comes from.
pub type Reader = Box<dyn AsyncRead + Send + Unpin>;
/// Where a server's input goes.
pub type Writer = Box<dyn AsyncWrite + Send + Unpin>;

/// Chunks of output that may wait to be read; beyond that the program has to wait.
const CHUNKS: usize = 64;
/// How much of the output is kept as raw bytes.
const HEAD: usize = 64 << 10;
/// How many lines of standard error are kept, and how many bytes of each.
const STDERR_LINES: usize = 40;
const STDERR_LINE: usize = 4 << 10;
/// How long the last output of a program may take to arrive after it exits.
const LAST_OUTPUT: Duration = Duration::from_millis(250);

/// How to start a program, without a shell.
#[derive(Debug, Clone, Default)]
pub struct Recipe {
    /// The program, looked up in `PATH`.
    pub program: OsString,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Variables added to the environment.
    pub env: Vec<(OsString, OsString)>,
    /// Its working directory, if not this one.
    pub directory: Option<PathBuf>,
}

/// A running server.
pub struct Process {
    child: Option<(Child, ProcessGroup)>,
    input: Option<Writer>,
    output: mpsc::Receiver<Vec<u8>>,
    parser: Parser,
    lines: VecDeque<Vec<u8>>,
    head: Vec<u8>,
    started: Instant,
    first_byte: Option<Duration>,
    stderr: Arc<Mutex<Tail>>,
    reading: JoinHandle<()>,
    draining: Option<JoinHandle<()>>,
    tap: Tap,
}

/// The end of what came on standard error.
#[derive(Default)]
struct Tail {
    lines: VecDeque<String>,
    count: usize,
}

impl Process {
    /// Starts a program.
    ///
    /// # Errors
    /// When the system cannot start it.
    pub fn start(recipe: &Recipe, tap: Tap) -> io::Result<Self> {
        let path = recipe.env.iter().rev().find(|(name, _)| name == "PATH");
        let path = path.map(|(_, value)| value.as_os_str());
        let mut command = Command::new(find_program(&recipe.program, path));
        command.args(&recipe.args).envs(recipe.env.iter().cloned());
        if let Some(directory) = &recipe.directory {
            command.current_dir(directory);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.kill_on_drop(true);
        ProcessGroup::lead(&mut command);
        let mut child = command.spawn()?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(input), Some(output), Some(errors)) = pipes else {
            return Err(io::Error::other("no standard streams"));
        };
        let mut process = Self::over(Box::new(output), Box::new(input), tap);
        process.draining = Some(tokio::spawn(drain(errors, Arc::clone(&process.stderr))));
        let group = ProcessGroup::of(&child);
        process.child = Some((child, group));
        Ok(process)
    }

    /// A server without a process: its output and its input.
    pub fn over(output: Reader, input: Writer, tap: Tap) -> Self {
        let (sender, chunks) = mpsc::channel(CHUNKS);
        Self {
            child: None,
            input: Some(input),
            output: chunks,
            parser: Parser::new(LIMIT),
            lines: VecDeque::new(),
            head: Vec::new(),
            started: Instant::now(),
            first_byte: None,
            stderr: Arc::default(),
            reading: tokio::spawn(read(output, sender)),
            draining: None,
            tap,
        }
    }

    /// The process id, while it runs.
    pub fn id(&self) -> Option<u32> {
        self.child.as_ref()?.0.id()
    }

    /// Writes a frame and the line feed that ends it.
    ///
    /// # Errors
    /// When the input is closed, the program exits, or it does not read for this long.
    pub async fn send(&mut self, frame: &[u8], patience: Duration) -> io::Result<()> {
        let Some(input) = &mut self.input else { return Err(io::ErrorKind::BrokenPipe.into()) };
        self.tap.hear(Direction::Sent, frame);
        let write = async {
            input.write_all(frame).await?;
            input.write_all(b"\n").await?;
            input.flush().await
        };
        tokio::select! {
            biased;
            written = timeout(patience, write) => {
                written.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
            }
            () = exited(&mut self.child) => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    /// The next line that is not blank, or `None` once the output has ended. A line that is too
    /// long is cut.
    ///
    /// # Cancel safety
    /// No line is lost.
    pub async fn next_line(&mut self) -> Option<Vec<u8>> {
        loop {
            if let Some(line) = self.lines.pop_front() {
                self.tap.hear(Direction::Received, &line);
                return Some(line);
            }
            let chunk = tokio::select! {
                biased;
                chunk = self.output.recv() => chunk,
                // Descendants may keep the pipe open for ever.
                () = exited(&mut self.child) => {
                    timeout(LAST_OUTPUT, self.output.recv()).await.ok().flatten()
                }
            }?;
            self.take(&chunk);
        }
    }

    fn take(&mut self, chunk: &[u8]) {
        self.first_byte.get_or_insert_with(|| self.started.elapsed());
        let room = HEAD - self.head.len();
        self.head.extend_from_slice(&chunk[..chunk.len().min(room)]);
        let mut rest = chunk;
        while let Some(line) = self.parser.next_frame(&mut rest) {
            self.lines.push_back(line.map_or_else(|error| error.prefix, <[u8]>::to_vec));
        }
    }

    /// Takes the start of a line whose end has not come.
    pub fn take_unfinished(&mut self) -> Option<Vec<u8>> {
        let line = self.parser.finish().map(<[u8]>::to_vec);
        self.tap.hear(Direction::Received, line.as_deref().unwrap_or_default());
        line
    }

    /// The first bytes of the output, as they came.
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// Time from the start to the first byte of output.
    pub fn first_byte(&self) -> Option<Duration> {
        self.first_byte
    }

    /// The last lines on standard error.
    pub fn stderr(&self) -> Vec<String> {
        lock(&self.stderr).lines.iter().cloned().collect()
    }

    /// The number of lines on standard error so far.
    pub fn stderr_count(&self) -> usize {
        lock(&self.stderr).count
    }

    /// Closes the program's input.
    pub fn close_input(&mut self) {
        self.input = None;
    }

    /// Waits for the program to exit. A server without a process counts as exited with status 0.
    pub async fn wait(&mut self, patience: Duration) -> Option<ExitStatus> {
        match &mut self.child {
            Some((child, _)) => timeout(patience, child.wait()).await.ok()?.ok(),
            None => Some(ExitStatus::default()),
        }
    }

    /// Waits for the program to exit and for the rest of its standard error. Kills what it left
    /// behind, which would keep standard error open. Returns its status, unless it still runs, and
    /// whether anything was left behind.
    pub async fn exit(&mut self, patience: Duration) -> (Option<ExitStatus>, bool) {
        let status = self.wait(patience).await.filter(|_| self.child.is_some());
        let had_survivors = status.is_some() && self.group().is_some_and(ProcessGroup::is_alive);
        if status.is_some() {
            self.kill();
        }
        if let Some(draining) = self.draining.as_mut().filter(|it| !it.is_finished()) {
            // What has not come by then is left out.
            let _ = timeout(patience, draining).await;
        }
        (status, had_survivors)
    }

    /// The processes of its group that are still running after this long, by name where the system
    /// tells.
    pub async fn survivors(&self, patience: Duration) -> Vec<String> {
        match self.group() {
            Some(group) if timeout(patience, group.gone()).await.is_err() => names(group),
            _ => Vec::new(),
        }
    }

    /// Asks the program and its descendants to exit.
    pub fn terminate(&self) {
        self.group().into_iter().for_each(ProcessGroup::terminate);
    }

    /// Kills the program and its descendants.
    pub fn kill(&self) {
        self.group().into_iter().for_each(ProcessGroup::kill);
    }

    fn group(&self) -> Option<&ProcessGroup> {
        self.child.as_ref().map(|(_, group)| group)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.reading.abort();
        if let Some(draining) = &self.draining {
            draining.abort();
        }
        // The leader may be gone and its children not; `kill_on_drop` covers the leader alone.
        self.kill();
    }
}

/// Waits for a process to exit; for ever if there is none.
async fn exited(child: &mut Option<(Child, ProcessGroup)>) {
    match child {
        // If it cannot be waited for, it has been reaped elsewhere.
        Some((child, _)) => drop(child.wait().await),
        None => std::future::pending().await,
    }
}

async fn read(mut output: Reader, sender: mpsc::Sender<Vec<u8>>) {
    let mut chunk = vec![0; 64 << 10];
    while let Ok(length @ 1..) = output.read(&mut chunk).await {
        if sender.send(chunk[..length].to_vec()).await.is_err() {
            return;
        }
    }
}

async fn drain(mut errors: impl AsyncRead + Unpin, tail: Arc<Mutex<Tail>>) {
    let mut chunk = vec![0; 8 << 10];
    let mut line = Vec::new();
    while let Ok(length @ 1..) = errors.read(&mut chunk).await {
        for piece in chunk[..length].split_inclusive(|byte| *byte == b'\n') {
            let room = STDERR_LINE.saturating_sub(line.len());
            line.extend_from_slice(&piece[..piece.len().min(room)]);
            if piece.ends_with(b"\n") {
                lock(&tail).push(&std::mem::take(&mut line));
            }
        }
    }
    if !line.is_empty() {
        lock(&tail).push(&line);
    }
}

impl Tail {
    fn push(&mut self, line: &[u8]) {
        self.count += 1;
        if self.lines.len() == STDERR_LINES {
            self.lines.pop_front();
        }
        self.lines.push_back(String::from_utf8_lossy(line.trim_ascii_end()).into_owned());
    }
}

fn lock(tail: &Mutex<Tail>) -> MutexGuard<'_, Tail> {
    tail.lock().unwrap_or_else(PoisonError::into_inner)
}
