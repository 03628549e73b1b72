//! A server as a process, read to the byte: every line that comes is looked at, and none is lost.

mod group;

use std::collections::VecDeque;
use std::ffi::OsString;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bowline::Json;
use bowline::client::ProcessGroup;
use bowline::proto::error::ErrorObject;
use bowline::proto::revision::Revision;
use bowline::proto::wire::{Id, Message, encode_error, encode_response};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

pub(crate) use self::group::{is_soon_gone, names};
use super::ending::{End, Evidence, runner};
use super::output::Output;
use super::seen::plain;
use super::wire::{Answered, Trouble, encode};
use crate::record::Way;
use crate::session::note;

/// How to start it.
#[derive(Debug, Clone)]
pub(crate) struct Recipe {
    pub(crate) program: OsString,
    pub(crate) args: Vec<OsString>,
    pub(crate) env: Vec<(OsString, OsString)>,
    pub(crate) directory: Option<std::path::PathBuf>,
}

/// A process that runs, or did.
pub(crate) struct Process {
    recipe: Recipe,
    child: Child,
    pub(crate) group: ProcessGroup,
    stdin: Option<ChildStdin>,
    stdout: ChildStdout,
    lines: VecDeque<Vec<u8>>,
    /// The beginning of a line whose end has not come.
    partial: Vec<u8>,
    stderr: Arc<Mutex<VecDeque<String>>>,
    draining: JoinHandle<()>,
    started: Instant,
    pub(crate) output: Output,
    /// From the start to the first byte.
    pub(crate) first_byte: Option<Duration>,
    next_id: u64,
    answered: u64,
    /// Questions that the server asked, and whether the handshake was over by then.
    pub(crate) asked: Vec<(String, bool)>,
    pub(crate) is_initialized: bool,
    /// Messages that fit nowhere.
    pub(crate) odd: Vec<String>,
}

/// Most bytes in a line; what is longer is cut there and is no message any more.
const LINE: usize = 16 << 20;
/// How many last lines of standard error are kept, and how much of each.
const STDERR_LINES: usize = 40;
const STDERR_LINE: usize = 2000;
/// How many odd messages and questions of the server are kept.
const KEPT: usize = 64;
/// How long what a dead program wrote may take to arrive.
const LAST_WORDS: Duration = Duration::from_millis(250);
/// How long a silent program may take to write what it holds back when its input ends.
const BUFFER_GRACE: Duration = Duration::from_secs(3);

impl Process {
    pub(crate) fn start(recipe: Recipe) -> std::io::Result<Self> {
        let mut command = Command::new(&recipe.program);
        command.args(&recipe.args).envs(recipe.env.iter().map(|(name, value)| (name, value)));
        if let Some(directory) = &recipe.directory {
            command.current_dir(directory);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.kill_on_drop(true);
        #[cfg(unix)]
        command.process_group(0);
        let started = Instant::now();
        let mut child = command.spawn()?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(errors)) = pipes else {
            return Err(std::io::Error::other("it has no standard streams"));
        };
        let stderr = Arc::new(Mutex::new(VecDeque::new()));
        let draining = tokio::spawn(drain(errors, Arc::clone(&stderr)));
        Ok(Self {
            recipe,
            group: ProcessGroup::of(&child),
            child,
            stdin: Some(stdin),
            stdout,
            lines: VecDeque::new(),
            partial: Vec::new(),
            stderr,
            draining,
            started,
            output: Output::default(),
            first_byte: None,
            next_id: 0,
            answered: 0,
            asked: Vec::new(),
            is_initialized: false,
            odd: Vec::new(),
        })
    }

    /// Ends what is left of it and starts it anew.
    pub(crate) async fn start_again(&mut self) -> std::io::Result<()> {
        self.group.kill();
        // Killed, it ends soon; what the system says of it is of no use.
        let _ = timeout(BUFFER_GRACE, self.child.wait()).await;
        *self = Self::start(self.recipe.clone())?;
        Ok(())
    }

    pub(crate) fn id(&self) -> Option<u32> {
        self.child.id()
    }

    pub(crate) async fn ask(
        &mut self,
        method: &str,
        params: Value,
        revision: Revision,
        patience: Duration,
    ) -> Answered {
        self.next_id += 1;
        let id = self.next_id;
        let frame = encode(id, method, params, revision);
        let odd = self.odd.len();
        match timeout(patience, self.exchange(id, frame)).await {
            Ok(answered) => answered,
            Err(_) => match self.odd.get(odd) {
                Some(what) => Err(Trouble::Malformed(what.clone())),
                None => Err(Trouble::NoAnswer(patience)),
            },
        }
    }

    async fn exchange(&mut self, id: u64, frame: Vec<u8>) -> Answered {
        if self.send(frame).await.is_err() {
            // It may have said something before it ended.
            while let Some(line) = self.next_line().await {
                self.hear(&line, id);
            }
            return Err(Trouble::Ended);
        }
        while let Some(line) = self.next_line().await {
            if let Some(answered) = self.hear(&line, id) {
                self.answered += u64::from(!matches!(answered, Err(Trouble::Malformed(_))));
                return answered;
            }
            self.answer_requests(&line).await;
        }
        Err(Trouble::Ended)
    }

    /// Tells something that is not answered.
    pub(crate) async fn notify(&mut self, method: &str, patience: Duration) -> bool {
        let frame = serde_json::json!({ "jsonrpc": "2.0", "method": method });
        let sent = timeout(patience, self.send(frame.to_string().into_bytes())).await;
        self.is_initialized = true;
        matches!(sent, Ok(Ok(())))
    }

    async fn send(&mut self, mut frame: Vec<u8>) -> std::io::Result<()> {
        note(Way::Sent, &frame, None);
        frame.push(b'\n');
        match &mut self.stdin {
            Some(stdin) => stdin.write_all(&frame).await,
            None => Err(std::io::ErrorKind::BrokenPipe.into()),
        }
    }

    /// Takes a line in; gives the answer to a question when it is one.
    fn hear(&mut self, line: &[u8], id: u64) -> Option<Answered> {
        let Ok(message) = Message::parse(line) else {
            self.output.take_stray(line);
            return None;
        };
        self.output.messages += 1;
        match message {
            Message::Response(response) => self.match_response(response, id),
            Message::Request(request) => {
                if self.asked.len() < KEPT {
                    self.asked.push((plain(&request.method), self.is_initialized));
                }
                None
            }
            Message::Fault(error) => {
                let message = plain(&error.message);
                self.note_odd(format!("an error without an id: {} {message}", error.code.0));
                None
            }
            Message::Notification(_) => None,
        }
    }

    fn match_response(
        &mut self,
        response: bowline::proto::wire::Response<'_>,
        id: u64,
    ) -> Option<Answered> {
        let told = serde_json::to_value(&response.id).unwrap_or_default();
        if told == id {
            return Some(match response.outcome {
                Ok(result) => Ok(Json::copy_of(result)),
                Err(error) => Err(Trouble::Refused { error, status: None }),
            });
        }
        if told.as_str() == Some(id.to_string().as_str()) {
            let what = format!("it has the id {told}, a string, where the number {id} was sent");
            return Some(Err(Trouble::Malformed(what)));
        }
        // A question that was given up may be answered late.
        if told.as_u64().is_none_or(|told| told == 0 || told > id) {
            self.note_odd(format!("an answer with the id {told}, which nobody asked under"));
        }
        None
    }

    fn note_odd(&mut self, what: String) {
        if self.odd.len() < KEPT {
            self.odd.push(what);
        }
    }

    async fn answer_requests(&mut self, line: &[u8]) {
        let Ok(Message::Request(request)) = Message::parse(line) else { return };
        let mut frame = Vec::new();
        let id: &Id = &request.id;
        match request.method.as_ref() {
            "ping" => drop(encode_response(&mut frame, id, &serde_json::json!({}))),
            method => encode_error(&mut frame, id, &ErrorObject::method_not_found(method)),
        }
        // Whether it is heard shows in what comes next.
        let _ = self.send(frame).await;
    }

    /// The next line that is not blank; `None` when the output has ended.
    async fn next_line(&mut self) -> Option<Vec<u8>> {
        loop {
            if let Some(line) = self.lines.pop_front() {
                note(Way::Received, &line, None);
                return Some(line);
            }
            let mut chunk = [0; 8 << 10];
            let count = tokio::select! {
                biased;
                count = self.stdout.read(&mut chunk) => count.unwrap_or(0),
                // What it started may keep the pipe open for ever.
                _ = self.child.wait() => {
                    let last = timeout(LAST_WORDS, self.stdout.read(&mut chunk)).await;
                    last.ok().and_then(Result::ok).unwrap_or(0)
                }
            };
            if count == 0 {
                let rest = std::mem::take(&mut self.partial);
                note(Way::Received, rest.trim_ascii(), None);
                return (!rest.trim_ascii().is_empty()).then_some(rest);
            }
            self.first_byte.get_or_insert_with(|| self.started.elapsed());
            self.take(&chunk[..count]);
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        self.output.take_bytes(bytes);
        for (index, piece) in bytes.split(|byte| *byte == b'\n').enumerate() {
            if index > 0 {
                let line = std::mem::take(&mut self.partial);
                if !line.trim_ascii().is_empty() {
                    self.lines.push_back(line);
                }
            }
            let room = LINE.saturating_sub(self.partial.len());
            self.partial.extend_from_slice(&piece[..piece.len().min(room)]);
        }
    }

    /// Looks at what is left of a process that did not answer: how it ended, or whether it was only
    /// its output that did not come.
    pub(crate) async fn give_up(&mut self, trouble: &Trouble) -> Evidence {
        let mut end = None;
        let mut was_buffered = false;
        let waited = match trouble {
            Trouble::NoAnswer(after) => {
                was_buffered = self.output.head.is_empty() && self.is_freed_by_end().await;
                *after
            }
            _ => {
                end = timeout(BUFFER_GRACE, self.child.wait()).await.ok().and_then(Result::ok);
                if end.is_some() {
                    // Whatever is left would keep its standard error open.
                    self.group.kill();
                }
                // What it said last may still be in the pipe.
                let _ = timeout(BUFFER_GRACE, &mut self.draining).await;
                self.started.elapsed()
            }
        };
        if !self.partial.is_empty() {
            let partial = std::mem::take(&mut self.partial);
            self.output.take_stray(&partial);
        }
        Evidence {
            output: self.output.clone(),
            stderr: self.stderr_lines(),
            end: end.map(End::from),
            was_buffered,
            waited,
            runner: runner(&self.recipe.program.to_string_lossy()),
            answered: self.answered,
            method: String::new(),
        }
    }

    /// Whether messages come as soon as the input ends.
    async fn is_freed_by_end(&mut self) -> bool {
        drop(self.stdin.take());
        let message = async {
            while let Some(line) = self.next_line().await {
                if Message::parse(&line).is_ok() {
                    return true;
                }
            }
            false
        };
        timeout(BUFFER_GRACE, message).await.unwrap_or(false)
    }

    pub(crate) fn stderr_lines(&self) -> Vec<String> {
        let lines = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().cloned().collect()
    }

    /// Closes the input and waits; what comes meanwhile is looked at.
    pub(crate) async fn close_input(&mut self, patience: Duration) -> Option<End> {
        drop(self.stdin.take());
        let last = self.next_id;
        let ended = async {
            while let Some(line) = self.next_line().await {
                self.hear(&line, last);
            }
            self.child.wait().await.ok()
        };
        timeout(patience, ended).await.ok().flatten().map(End::from)
    }

    /// Waits for the end, after a signal.
    pub(crate) async fn ended(&mut self, patience: Duration) -> Option<End> {
        timeout(patience, self.child.wait()).await.ok().and_then(Result::ok).map(End::from)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.group.kill();
        self.draining.abort();
    }
}

async fn drain(errors: ChildStderr, kept: Arc<Mutex<VecDeque<String>>>) {
    let mut errors = BufReader::new(errors);
    let mut line = Vec::new();
    loop {
        line.clear();
        // A line without an end is taken in pieces.
        let mut limited = (&mut errors).take(64 << 10);
        match limited.read_until(b'\n', &mut line).await {
            Ok(1..) => {}
            _ => return,
        }
        let text = String::from_utf8_lossy(line.trim_ascii_end());
        if text.is_empty() {
            continue;
        }
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() == STDERR_LINES {
            kept.pop_front();
        }
        kept.push_back(text.chars().take(STDERR_LINE).collect());
    }
}
