//! A conversation with a process: every line of its output is inspected.

use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use bowline::proto::revision::Revision;
use bowline::proto::wire::Message;
use bowline_check::frames::message::{answer_to, notification};
use bowline_check::frames::{Process, Recipe};
use serde_json::Value;
use tokio::time::{Instant, timeout};

use super::super::ending::Evidence;
use super::super::output::Output;
use super::super::seen::plain;
use super::{AskError, Asked, frame, outcome};
use crate::target::tap;

/// A server that runs as a process, or did.
pub(crate) struct StdioTalk {
    recipe: Recipe,
    pub(crate) process: Process,
    started: Instant,
    evidence: Evidence,
    next_id: u64,
    is_initialized: bool,
    /// The first request other than `ping` that the server sent before the handshake was over.
    pub(crate) early_request: Option<String>,
    /// Messages that answer no request.
    pub(crate) unexpected: Vec<String>,
}

/// How many unexpected messages are kept.
const UNEXPECTED: usize = 64;
/// How long an exiting program may take, and a silent one to write what it buffers when its input
/// is closed.
const GRACE: Duration = Duration::from_secs(3);

impl StdioTalk {
    pub(crate) fn start(recipe: Recipe) -> io::Result<Self> {
        Ok(Self {
            process: Process::start(&recipe, tap())?,
            evidence: Evidence::new(&recipe.program.to_string_lossy()),
            recipe,
            started: Instant::now(),
            next_id: 0,
            is_initialized: false,
            early_request: None,
            unexpected: Vec::new(),
        })
    }

    /// Kills the process and starts it again.
    pub(crate) async fn restart(&mut self) -> io::Result<()> {
        self.process.kill();
        self.process.wait(GRACE).await;
        *self = Self::start(self.recipe.clone())?;
        Ok(())
    }

    pub(crate) async fn ask(
        &mut self,
        method: &str,
        params: Value,
        revision: Revision,
        patience: Duration,
    ) -> Asked {
        self.next_id += 1;
        let frame = frame(self.next_id, method, params, revision);
        let unexpected = self.unexpected.len();
        let exchange = self.exchange(self.next_id, &frame, patience);
        timeout(patience, exchange).await.unwrap_or_else(|_| {
            Err(match self.unexpected.get(unexpected) {
                Some(what) => AskError::Malformed(what.clone()),
                None => AskError::TimedOut(patience),
            })
        })
    }

    async fn exchange(&mut self, id: u64, frame: &str, patience: Duration) -> Asked {
        let is_sent = self.process.send(frame.as_bytes(), patience).await.is_ok();
        // A program that has closed its input may have written something first.
        while let Some(line) = self.next_line().await {
            if let Some(asked) = self.hear(&line, id)
                && is_sent
            {
                self.evidence.answered += u64::from(!matches!(asked, Err(AskError::Malformed(_))));
                return asked;
            }
            let message = serde_json::from_slice(&line).ok();
            if let Some(answer) = message.as_ref().and_then(answer_to) {
                // Whether the server reads it shows in its next messages.
                let _ = self.process.send(answer.to_string().as_bytes(), patience).await;
            }
        }
        Err(AskError::Ended)
    }

    /// Sends `notifications/initialized`; returns whether the program took it.
    pub(crate) async fn initialized(&mut self, patience: Duration) -> bool {
        let frame = notification("notifications/initialized").to_string();
        self.is_initialized = true;
        self.process.send(frame.as_bytes(), patience).await.is_ok()
    }

    /// Inspects a line; returns the outcome of the request if it is the response.
    fn hear(&mut self, line: &[u8], id: u64) -> Option<Asked> {
        let Ok(message) = Message::parse(line) else {
            self.evidence.output.take_stray(line);
            return None;
        };
        self.evidence.output.messages += 1;
        let unexpected = match message {
            Message::Response(response) => match outcome(response, id, None) {
                Ok(asked) => return Some(asked),
                Err(actual) if actual.as_str() == Some(&id.to_string()) => {
                    let what = format!("its id is the string {actual}, not the number {id}");
                    return Some(Err(AskError::Malformed(what)));
                }
                // A late response to a request that timed out.
                Err(actual) if actual.as_u64().is_some_and(|it| it != 0 && it < id) => return None,
                Err(actual) => format!("a response with the id {actual}, which no request had"),
            },
            Message::Fault(error) => {
                format!("an error without an id: {} {}", error.code.0, plain(&error.message))
            }
            Message::Request(request) if !self.is_initialized && request.method != "ping" => {
                self.early_request.get_or_insert_with(|| plain(&request.method));
                return None;
            }
            Message::Request(_) | Message::Notification(_) => return None,
        };
        if self.unexpected.len() < UNEXPECTED {
            self.unexpected.push(unexpected);
        }
        None
    }

    /// The next line; `None` once the output has ended.
    async fn next_line(&mut self) -> Option<Vec<u8>> {
        match self.process.next_line().await {
            Some(line) => Some(line),
            None => self.process.take_unfinished(),
        }
    }

    /// What the program wrote to standard output so far.
    pub(crate) fn output(&self) -> Output {
        Output { head: self.process.head().to_vec(), ..self.evidence.output.clone() }
    }

    /// Finds out what became of a program that did not answer: how it exited, or whether it only
    /// buffers its output.
    pub(crate) async fn give_up(&mut self, method: &str, error: &AskError) -> Evidence {
        self.evidence.waited = self.started.elapsed();
        if let AskError::TimedOut(after) = error {
            self.evidence.waited = *after;
            self.evidence.was_buffered =
                self.process.head().is_empty() && self.is_freed_by_end().await;
        } else {
            self.evidence.status = self.process.exit(GRACE).await.status;
        }
        if let Some(line) = self.process.take_unfinished() {
            self.evidence.output.take_stray(&line);
        }
        self.evidence.output = self.output();
        self.evidence.stderr = self.process.stderr();
        self.evidence.method = method.to_owned();
        self.evidence.clone()
    }

    /// Whether messages arrive once the input is closed.
    async fn is_freed_by_end(&mut self) -> bool {
        self.process.close_input();
        let message = async {
            while let Some(line) = self.next_line().await {
                if Message::parse(&line).is_ok() {
                    return true;
                }
            }
            false
        };
        timeout(GRACE, message).await.unwrap_or(false)
    }

    /// Closes the input and waits for the program to exit, inspecting what it still writes.
    pub(crate) async fn close_input(&mut self, patience: Duration) -> Option<ExitStatus> {
        self.process.close_input();
        let last = self.next_id;
        let exit = async {
            while let Some(line) = self.next_line().await {
                self.hear(&line, last);
            }
            self.process.wait(patience).await
        };
        timeout(patience, exit).await.ok().flatten()
    }
}
