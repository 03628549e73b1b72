//! A client program to measure: it gets its commands on standard input and is observed from
//! outside.

use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::time::{Instant, timeout};

use crate::measure::Sample;
use crate::program::{Line, PATIENCE, Program};

/// A connected client program.
pub(crate) struct Caller {
    program: Program,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl Caller {
    pub(crate) async fn start(line: &Line) -> Result<Self, String> {
        let (program, input, output) = Program::pipes(line)?;
        let mut caller = Self { program, input, output: BufReader::new(output).lines() };
        caller.expect("ready").await?;
        Ok(caller)
    }

    /// Makes this many calls.
    pub(crate) async fn call(&mut self, calls: u64, window: usize) -> Result<(), String> {
        self.tell(&format!("call {calls} {window} 64")).await?;
        self.expect("done").await
    }

    /// Makes calls for about this long.
    pub(crate) async fn measure(
        &mut self,
        window: usize,
        span: Duration,
    ) -> Result<Sample, String> {
        // The first calls show how many it takes.
        let mut calls = 64;
        let mut took = Duration::ZERO;
        while took < span / 8 {
            calls *= 2;
            let start = Instant::now();
            self.call(calls, window).await?;
            took = start.elapsed();
        }
        let calls = (calls as f64 * span.as_secs_f64() / took.as_secs_f64()).ceil();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "some calls")]
        let calls = calls as u64;
        let (from, start) = (self.program.cpu()?, Instant::now());
        self.call(calls, window).await?;
        let took = start.elapsed();
        let cpu = (from, self.program.cpu()?);
        Ok(Sample::new(calls, took, cpu, self.program.resident()?))
    }

    /// The memory that this many pending calls take, in bytes.
    pub(crate) async fn hold(&mut self, calls: u64) -> Result<u64, String> {
        // What a client allocates for its first calls is not the cost of a call.
        self.call(1_000, 64).await?;
        let before = self.program.resident()?;
        self.tell(&format!("hold {calls}")).await?;
        self.expect("held").await?;
        Ok(self.program.resident()?.saturating_sub(before))
    }

    /// Ends it, and returns its standard error.
    pub(crate) async fn end(self) -> Result<String, String> {
        let Self { program, input, .. } = self;
        drop(input);
        program.wait().await
    }

    async fn tell(&mut self, line: &str) -> Result<(), String> {
        let line = format!("{line}\n");
        self.input.write_all(line.as_bytes()).await.map_err(|error| format!("a client: {error}"))
    }

    async fn expect(&mut self, word: &str) -> Result<(), String> {
        let line = timeout(5 * PATIENCE, self.output.next_line()).await;
        match line {
            Ok(Ok(Some(line))) if line == word => Ok(()),
            Ok(Ok(line)) => Err(format!("a client printed {line:?}, expected {word:?}")),
            Ok(Err(error)) => Err(format!("a client: {error}")),
            Err(_) => Err(format!("timed out waiting for a client to print {word:?}")),
        }
    }
}
