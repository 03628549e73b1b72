//! A server that speaks on one stream: the output of a program, or the events of HTTP+SSE. What is
//! sent goes up another way, and answers come in any order among everything else.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout, timeout_at};

use super::pipe::{Ending, Pipe, Program};
use super::post::Post;
use super::sse::Sse;
use super::{Changes, Frame, Heard, Lost, Until};
use crate::check::seen::Seen;

/// Frames that wait to be looked at; the server waits when there are more.
pub(super) const FRAMES: usize = 256;
/// After the last answer, how long stray messages may still come.
const LINGER: Duration = Duration::from_millis(40);
/// How long what a dead program wrote may take to arrive.
const LAST_WORDS: Duration = Duration::from_millis(250);
/// How long a server may take to end when its input is closed.
const GRACE: Duration = Duration::from_secs(5);

/// A stream of frames, and the way up.
pub(in crate::check) struct Stream {
    up: Up,
    down: mpsc::Receiver<Frame>,
}

/// How frames get to the server.
enum Up {
    Pipe(Box<Pipe>),
    Sse(Box<Sse>),
}

/// A frame, and what is the same for all.
pub(super) struct Sending<'a> {
    pub(super) frame: &'a str,
    pub(super) changes: Changes<'a>,
    pub(super) until: Until<'a>,
    /// A request whose answer shows that what was sent before it has been read.
    pub(super) barrier: Option<(Value, String)>,
    pub(super) patience: Duration,
}

impl Stream {
    /// Starts a program.
    pub(super) fn start(program: &Program, number: u64) -> Result<Self, Lost> {
        let (pipe, down) = Pipe::start(program, number)?;
        Ok(Self { up: Up::Pipe(Box::new(pipe)), down })
    }

    /// Opens the stream of HTTP+SSE.
    pub(super) async fn open(post: &Post, patience: Duration) -> Result<Self, Lost> {
        let (sse, down) = Sse::open(post, patience).await?;
        Ok(Self { up: Up::Sse(Box::new(sse)), down })
    }

    /// Sends a frame; hears until its answer has come, or the barrier's. Of HTTP+SSE, the answer to
    /// a POST that was refused is all there is.
    pub(super) async fn exchange(
        &mut self,
        sending: &Sending<'_>,
        seen: &mut Seen,
    ) -> Result<Heard, Lost> {
        let Sending { frame, changes, until, ref barrier, patience } = *sending;
        let deadline = Instant::now() + patience;
        if let Some(refused) = self.send(frame, changes, patience).await? {
            return Ok(refused);
        }
        if let Some((_, frame)) = barrier {
            self.send(frame, &[], patience).await?;
        }
        let is_last = |message: &Value| match (until, barrier) {
            (Until::Answer(id), _) | (Until::Quiet, Some((id, _))) => is_answer(message, id),
            (Until::First | Until::Quiet, _) => true,
        };
        let mut heard = Heard::default();
        while !heard.messages.iter().any(is_last) {
            let Ok(frame) = timeout_at(deadline, self.next()).await else {
                return Err(Lost::Silent(patience));
            };
            let Some(frame) = frame else { return Err(self.gone().await) };
            self.take(&frame, &mut heard, patience, seen).await?;
        }
        if barrier.is_some() {
            // In all: some servers never stop.
            let over = Instant::now() + LINGER;
            while let Ok(Some(frame)) = timeout_at(over, self.next()).await {
                self.take(&frame, &mut heard, patience, seen).await?;
            }
            heard.messages.retain(|message| !is_last(message));
        }
        Ok(heard)
    }

    /// Sends a frame that nobody answers.
    pub(super) async fn tell(&mut self, frame: &str, patience: Duration) -> Result<(), Lost> {
        self.send(frame, &[], patience).await.map(drop)
    }

    /// Gives what came instead of being taken.
    async fn send(
        &mut self,
        frame: &str,
        changes: Changes<'_>,
        patience: Duration,
    ) -> Result<Option<Heard>, Lost> {
        match &mut self.up {
            Up::Pipe(pipe) => pipe.send(frame, patience).await.map(|()| None),
            Up::Sse(sse) => sse.send(frame, changes, patience).await,
        }
    }

    /// The next frame; `None` when there will be none.
    async fn next(&mut self) -> Option<Frame> {
        match &mut self.up {
            Up::Sse(_) => self.down.recv().await,
            Up::Pipe(pipe) => tokio::select! {
                biased;
                frame = self.down.recv() => frame,
                // What it started may keep the pipe open for ever.
                () = pipe.exited() => timeout(LAST_WORDS, self.down.recv()).await.ok().flatten(),
            },
        }
    }

    /// Sorts one frame; answers what the server asks.
    async fn take(
        &mut self,
        frame: &Frame,
        heard: &mut Heard,
        patience: Duration,
        seen: &mut Seen,
    ) -> Result<(), Lost> {
        for message in seen.frame(frame) {
            if let Some(answer) = answer_to(&message) {
                self.tell(&answer.to_string(), patience).await?;
            }
            heard.messages.push(message);
        }
        Ok(())
    }

    /// The HTTP side, if there is one.
    pub(super) fn post(&self) -> Option<&Post> {
        match &self.up {
            Up::Pipe(_) => None,
            Up::Sse(sse) => Some(&sse.endpoint),
        }
    }

    /// The same, to be told what the handshake ended with.
    pub(super) fn post_mut(&mut self) -> Option<&mut Post> {
        match &mut self.up {
            Up::Pipe(_) => None,
            Up::Sse(sse) => Some(&mut sse.endpoint),
        }
    }

    /// Closes the input of a program and waits for its end; a stream of events is left alone.
    pub(super) async fn close(mut self, patience: Duration, seen: &mut Seen) -> Option<Ending> {
        let Up::Pipe(pipe) = &mut self.up else { return None };
        pipe.close_input();
        let deadline = Instant::now() + GRACE.min(patience.max(Duration::from_secs(1)));
        let is_over = loop {
            match timeout_at(deadline, self.next()).await {
                Ok(Some(frame)) => drop(seen.frame(&frame)),
                Ok(None) => break true,
                Err(_) => break false,
            }
        };
        let Up::Pipe(pipe) = &mut self.up else { return None };
        let ending = pipe.end(is_over, deadline).await;
        seen.stderr_lines += pipe.stderr_lines();
        Some(ending)
    }

    /// Why it has ended.
    async fn gone(&mut self) -> Lost {
        match &mut self.up {
            Up::Pipe(pipe) => pipe.gone().await,
            Up::Sse(_) => Lost::Closed("it ended the stream of events".to_owned()),
        }
    }
}

/// Whether a message answers the request of this id.
pub(super) fn is_answer(message: &Value, id: &Value) -> bool {
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
