//! Load over standard streams: a window of pending calls.

use std::collections::HashSet;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::time::{Instant, timeout};

use crate::frames::{Calls, INITIALIZE, INITIALIZED, Revision};
use crate::program::PATIENCE;

/// When to stop.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Until {
    Time(Instant),
    Calls(u64),
}

impl Until {
    pub(crate) fn is_over(self, calls: u64) -> bool {
        match self {
            Self::Time(end) => Instant::now() >= end,
            Self::Calls(most) => calls >= most,
        }
    }
}

/// A client of a server on pipes that neither blocks nor loses an answer.
pub(crate) struct Pipe {
    input: ChildStdin,
    output: ChildStdout,
    out: Vec<u8>,
    written: usize,
    /// What has been read of an incomplete line.
    read: Vec<u8>,
    waiting: HashSet<u64>,
    next: u64,
}

impl Pipe {
    /// Performs the handshake, in the legacy era.
    pub(crate) async fn open(
        input: ChildStdin,
        output: ChildStdout,
        revision: Revision,
    ) -> Result<Self, String> {
        let (out, read, waiting) = (Vec::new(), Vec::new(), HashSet::new());
        let mut pipe = Self { input, output, out, written: 0, read, waiting, next: 1 };
        if revision == Revision::Legacy {
            pipe.out.extend_from_slice(INITIALIZE.as_bytes());
            pipe.out.push(b'\n');
            let mut answer = None;
            while answer.is_none() {
                pipe.step().await?;
                pipe.lines(|line| {
                    answer = Some(line.len());
                    Ok(())
                })?;
            }
            pipe.out.extend_from_slice(INITIALIZED.as_bytes());
            pipe.out.push(b'\n');
        }
        Ok(pipe)
    }

    /// Makes calls, waits for all answers, and returns how many there were.
    pub(crate) async fn run(
        &mut self,
        calls: &Calls,
        window: usize,
        until: Until,
    ) -> Result<u64, String> {
        let (mut sent, mut answered) = (0, 0);
        loop {
            while self.waiting.len() < window && !until.is_over(sent) {
                calls.write(&mut self.out, self.next);
                self.out.push(b'\n');
                self.waiting.insert(self.next);
                self.next += 1;
                sent += 1;
            }
            if self.waiting.is_empty() {
                return Ok(answered);
            }
            self.step().await?;
            let mut waiting = std::mem::take(&mut self.waiting);
            self.lines(|line| {
                let id = calls.answered(line)?;
                answered += 1;
                let was_waiting = waiting.remove(&id);
                was_waiting.then_some(()).ok_or_else(|| format!("{id} was answered twice"))
            })?;
            self.waiting = waiting;
        }
    }

    /// Waits until something was read or written.
    async fn step(&mut self) -> Result<(), String> {
        match timeout(PATIENCE, poll_fn(|cx| self.poll_step(cx))).await {
            Ok(outcome) => outcome,
            Err(_) => Err(format!("{} calls got no answer", self.waiting.len())),
        }
    }

    fn poll_step(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), String>> {
        let mut has_moved = false;
        if self.written < self.out.len() {
            let rest = &self.out[self.written..];
            match Pin::new(&mut self.input).poll_write(cx, rest) {
                Poll::Ready(Ok(count)) => {
                    self.written += count;
                    has_moved = true;
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Err(format!("writing: {error}"))),
                Poll::Pending => {}
            }
            if self.written == self.out.len() {
                self.out.clear();
                self.written = 0;
            }
        }
        let start = self.read.len();
        self.read.resize(start + CHUNK, 0);
        let mut buffer = ReadBuf::new(&mut self.read[start..]);
        let polled = Pin::new(&mut self.output).poll_read(cx, &mut buffer);
        let count = buffer.filled().len();
        self.read.truncate(start + count);
        match polled {
            Poll::Ready(Ok(())) if count == 0 => Poll::Ready(Err("the server exited".to_owned())),
            Poll::Ready(Ok(())) => Poll::Ready(Ok(())),
            Poll::Ready(Err(error)) => Poll::Ready(Err(format!("reading: {error}"))),
            Poll::Pending if has_moved => Poll::Ready(Ok(())),
            Poll::Pending => Poll::Pending,
        }
    }

    /// Yields the complete lines that were read.
    fn lines(&mut self, mut each: impl FnMut(&[u8]) -> Result<(), String>) -> Result<(), String> {
        let Some(end) = memchr::memrchr(b'\n', &self.read) else { return Ok(()) };
        let lines = self.read[..end].split(|byte| *byte == b'\n');
        lines.filter(|line| !line.is_empty()).try_for_each(&mut each)?;
        self.read.drain(..=end);
        Ok(())
    }
}

/// The size of a read.
const CHUNK: usize = 256 << 10;
