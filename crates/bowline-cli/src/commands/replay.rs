//! `bowline replay`: says to a server what a recorded client said, and compares its answers.

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::time::Duration;

use bowline::Revision;
use bowline_check::frames::{Http, HttpReply, HttpRequest, Process};
use bowline_gateway::diff::{Difference, key, outcome, values};
use bowline_gateway::recording::{Exchange, Recording};
use bowline_gateway::session_file::Way;
use clap::Args;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout, timeout_at};

use super::diff::tell;
use super::export::read;
use crate::failure::{Code, Failure};
use crate::screen::{OutputArgs, Screen};
use crate::target::{Location, Resolved, TargetOptions, tap};

/// Send what a recorded client sent to a server, and compare the answers
///
/// Requests are sent one after the other, each when the one before is answered. The server's
/// questions get the recorded answers. Ids of tasks and states of questions are replaced by those
/// that the server gives now. Exits with 11 if an answer differs.
#[derive(Args)]
pub(crate) struct Replay {
    /// The session file, and the server; omit the server if a command follows `--`
    #[arg(value_name = "FILE TARGET", required = true)]
    words: Vec<String>,

    /// Wait as long between two messages as the recorded client did
    #[arg(long)]
    timing: bool,

    /// Ignore differences at paths that contain this; may be repeated
    #[arg(long, value_name = "PATH")]
    ignore: Vec<String>,

    #[command(flatten)]
    options: TargetOptions,
}

/// How long to wait for an answer, unless `--timeout` says otherwise.
const PATIENCE: Duration = Duration::from_secs(60);

impl Replay {
    pub(crate) async fn run(self, root: &OutputArgs) -> Result<(), Failure> {
        let screen = Screen::new(&self.options.output.clone().or(root));
        let [file, words @ ..] = self.words.as_slice() else {
            return Err(Failure::usage("which session file?"));
        };
        let recording = read(&PathBuf::from(file), &screen)?;
        let (resolved, rest) = self.options.resolve_words(words)?;
        if let [word, ..] = rest {
            return Err(Failure::usage(format!("unexpected: {word}")));
        }
        let patience = self.options.timeout.unwrap_or(PATIENCE);
        let mut player = Player::new(&resolved, &recording, patience)?;
        let found = player.play(&recording, self.timing, &self.ignore).await?;
        tell(&screen, &found)
    }
}

/// A server, frame by frame.
enum Peer {
    Process(Box<Process>),
    Http(Box<Http>),
}

struct Player {
    peer: Peer,
    patience: Duration,
    /// What the client answered to the server's questions, by method.
    answers: HashMap<String, VecDeque<Value>>,
    /// Recorded task ids and states, and those that replace them.
    renamed: Vec<(String, String)>,
}

impl Player {
    fn new(
        resolved: &Resolved,
        recording: &Recording,
        patience: Duration,
    ) -> Result<Self, Failure> {
        let peer = match (&resolved.location, resolved.recipe()) {
            (_, Some(recipe)) => {
                let started = Process::start(&recipe, tap());
                let program = recipe.program.to_string_lossy();
                let failed = |error| {
                    Failure::new(Code::Unreachable, format!("cannot start {program}: {error}"))
                };
                Peer::Process(Box::new(started.map_err(failed)?))
            }
            (Location::Url { url, .. }, _) => {
                let wrong = |problem: String| Failure::usage(format!("{url}: {problem}"));
                let uri =
                    url.parse().map_err(|error: http::uri::InvalidUri| wrong(error.to_string()))?;
                let web = resolved.web()?.build().map_err(|error| wrong(error.to_string()))?;
                let http = Http::new(web, uri, resolved.header_map()?);
                Peer::Http(Box::new(http.with_login(resolved.authorize()).with_tap(tap())))
            }
            (Location::Command { .. }, None) => return Err(Failure::usage("no command")),
        };
        let mut answers: HashMap<String, VecDeque<Value>> = HashMap::new();
        for exchange in recording.exchanges() {
            if let (Way::Received, Some((answer, _))) = (exchange.way, &exchange.answer) {
                let queue = answers.entry(exchange.method().to_owned()).or_default();
                queue.push_back(answer.clone());
            }
        }
        Ok(Self { peer, patience, answers, renamed: Vec::new() })
    }

    /// Sends everything; returns where answers differ.
    async fn play(
        &mut self,
        recording: &Recording,
        is_timed: bool,
        ignored: &[String],
    ) -> Result<Vec<(String, Vec<Difference>)>, Failure> {
        let begun = Instant::now();
        let mut found = Vec::new();
        let mut exchanges = recording.exchanges().into_iter().filter(|it| it.way == Way::Sent);
        for line in recording.messages(Way::Sent) {
            let Some(message) = line.message.as_ref().map(bowline::Json::to_value) else {
                continue;
            };
            if is_timed && let Ok(at) = Duration::try_from_secs_f64(line.at) {
                tokio::time::sleep_until(begun + at).await;
            }
            match (message.get("method"), message.get("id")) {
                (Some(_), Some(_)) => {
                    let Some(exchange) = exchanges.next() else { continue };
                    let differences = self.repeat(&exchange, ignored).await?;
                    found.push((key(&exchange.request), differences));
                }
                (Some(_), None) => self.send(&message).await?,
                // Answers are sent when the server asks.
                _ => {}
            }
        }
        Ok(found)
    }

    async fn repeat(
        &mut self,
        exchange: &Exchange,
        ignored: &[String],
    ) -> Result<Vec<Difference>, Failure> {
        let mut text = exchange.request.to_string();
        for (old, new) in &self.renamed {
            text = text.replace(old.as_str(), new.as_str());
        }
        let request: Value =
            serde_json::from_str(&text).unwrap_or_else(|_| exchange.request.clone());
        let Some((recorded, _)) = &exchange.answer else {
            // Nobody knows what to expect, nor whether anything comes.
            self.send(&request).await?;
            return Ok(Vec::new());
        };
        let answer = self.ask(&request).await?;
        for place in ["/result/requestState", "/result/taskId", "/result/task/taskId"] {
            if let (Some(Value::String(old)), Some(Value::String(new))) =
                (recorded.pointer(place), answer.pointer(place))
                && old != new
            {
                self.renamed.push((old.clone(), new.clone()));
            }
        }
        Ok(values(&outcome(recorded), &outcome(&answer), ignored))
    }

    /// Sends a message that nobody answers.
    async fn send(&mut self, message: &Value) -> Result<(), Failure> {
        let text = message.to_string();
        match &mut self.peer {
            Peer::Process(process) => {
                process.send(text.as_bytes(), self.patience).await.map_err(|error| gone(&error))
            }
            Peer::Http(http) => {
                let request = HttpRequest::post(&text, &[]);
                let sent = http.exchange(&request, self.patience, |_| true).await;
                sent.map(drop).map_err(|error| gone(&error))
            }
        }
    }

    /// Sends a request; its answer.
    async fn ask(&mut self, request: &Value) -> Result<Value, Failure> {
        let id = &request["id"];
        let is_answer =
            |message: &Value| message.get("id") == Some(id) && message.get("method").is_none();
        if let Peer::Http(http) = &mut self.peer {
            let text = request.to_string();
            let read = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).ok();
            let is_last = |event: &bowline_check::frames::Event| {
                read(&event.data).is_some_and(|it| is_answer(&it))
            };
            let reply = http.exchange(&HttpRequest::post(&text, &[]), self.patience, is_last).await;
            let reply = reply.map_err(|error| gone(&error))?;
            let answer = if reply.is_stream() {
                reply.events().iter().filter_map(|event| read(&event.data)).find(|it| is_answer(it))
            } else {
                read(&reply.body)
            };
            let answer = answer.unwrap_or_else(|| json!({ "status": reply.status.as_u16() }));
            if request["method"] == "initialize" {
                remember(http, &reply, &answer);
            }
            return Ok(answer);
        }
        self.send(request).await?;
        let deadline = Instant::now() + self.patience;
        loop {
            let Peer::Process(process) = &mut self.peer else { return Ok(Value::Null) };
            let next = timeout_at(deadline, process.next_line()).await;
            let silent =
                || Failure::new(Code::TimedOut, format!("{}: no answer", request["method"]));
            let line = next.map_err(|_| silent())?;
            let line = line.ok_or_else(|| Failure::new(Code::Unreachable, "the server ended"))?;
            let Ok(message) = serde_json::from_slice::<Value>(&line) else { continue };
            if is_answer(&message) {
                return Ok(message);
            }
            self.reply(&message).await?;
        }
    }

    /// Answers a question of the server as the recorded client did.
    async fn reply(&mut self, message: &Value) -> Result<(), Failure> {
        let (Some(method), Some(id)) = (message["method"].as_str(), message.get("id")) else {
            return Ok(());
        };
        let recorded = self.answers.get_mut(method).and_then(VecDeque::pop_front);
        let mut answer = recorded.unwrap_or_else(|| {
            let what = "the recorded client was not asked this";
            json!({ "jsonrpc": "2.0", "error": { "code": -32601, "message": what } })
        });
        answer["id"] = id.clone();
        timeout(self.patience, self.send(&answer)).await.unwrap_or(Ok(()))
    }
}

/// Remembers the session that a handshake opened.
fn remember(http: &mut Http, reply: &HttpReply, answer: &Value) {
    http.session = reply.headers.get("mcp-session-id").cloned();
    let revision = answer.pointer("/result/protocolVersion").and_then(Value::as_str);
    http.negotiated = revision.and_then(|it| it.parse::<Revision>().ok());
}

fn gone(error: &dyn std::fmt::Display) -> Failure {
    Failure::new(Code::Unreachable, format!("the server is gone: {error}"))
}
