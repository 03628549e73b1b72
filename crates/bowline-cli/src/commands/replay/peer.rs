//! The server that a session is replayed to, frame by frame.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use bowline::Revision;
use bowline::proto::method::{Cancelled, Notice};
use bowline_check::frames::{Event, Http, HttpReply, HttpRequest, Process};
use bowline_gateway::recording::Recording;
use bowline_gateway::session_file::Way;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

use crate::failure::{Code, Failure};
use crate::target::{Location, Resolved, tap};

/// A server, and what the recorded client answered to its questions.
pub(super) struct Peer {
    link: Link,
    patience: Duration,
    answers: Answers,
    /// Requests over HTTP whose answers nobody knows, by id. They end with the replay, or when they
    /// are cancelled.
    begun: HashMap<String, JoinSet<()>>,
}

enum Link {
    Process(Box<Process>),
    Http(Box<Http>),
}

/// Recorded answers, by the method of the question.
struct Answers(HashMap<String, VecDeque<Value>>);

impl Answers {
    fn of(recording: &Recording) -> Self {
        let mut answers: HashMap<String, VecDeque<Value>> = HashMap::new();
        for exchange in recording.exchanges() {
            if let (Way::Received, Some((answer, _))) = (exchange.way, &exchange.answer) {
                let queue = answers.entry(exchange.method().to_owned()).or_default();
                queue.push_back(answer.clone());
            }
        }
        Self(answers)
    }

    /// The answer to a message, if that is a question.
    fn to(&mut self, message: &Value) -> Option<Value> {
        let (method, id) = (message["method"].as_str()?, message.get("id")?);
        let recorded = self.0.get_mut(method).and_then(VecDeque::pop_front);
        let mut answer = recorded.unwrap_or_else(|| {
            let what = "the recorded client was not asked this";
            json!({ "jsonrpc": "2.0", "error": { "code": -32601, "message": what } })
        });
        answer["id"] = id.clone();
        Some(answer)
    }
}

impl Peer {
    /// Starts or finds the server.
    pub(super) fn open(
        resolved: &Resolved,
        recording: &Recording,
        patience: Duration,
    ) -> Result<Self, Failure> {
        let link = match (&resolved.location, resolved.recipe()) {
            (_, Some(recipe)) => {
                let started = Process::start(&recipe, tap());
                let program = recipe.program.to_string_lossy();
                let failed = |error| {
                    Failure::new(Code::Unreachable, format!("cannot start {program}: {error}"))
                };
                Link::Process(Box::new(started.map_err(failed)?))
            }
            (Location::Url { url, .. }, _) => {
                let wrong = |problem: String| Failure::usage(format!("{url}: {problem}"));
                let uri =
                    url.parse().map_err(|error: http::uri::InvalidUri| wrong(error.to_string()))?;
                let web = resolved.web()?.build().map_err(|error| wrong(error.to_string()))?;
                let http = Http::new(web, uri, resolved.header_map()?);
                Link::Http(Box::new(http.with_login(resolved.authorize()).with_tap(tap())))
            }
            (Location::Command { .. }, None) => return Err(Failure::usage("no command")),
        };
        Ok(Self { link, patience, answers: Answers::of(recording), begun: HashMap::new() })
    }

    /// A server that is reached already.
    pub(super) fn over(process: Process, recording: &Recording, patience: Duration) -> Self {
        let link = Link::Process(Box::new(process));
        Self { link, patience, answers: Answers::of(recording), begun: HashMap::new() }
    }

    /// Sends a notification.
    pub(super) async fn tell(&mut self, message: &Value) -> Result<(), Failure> {
        if message["method"] == Cancelled::NAME {
            // In a modern session, this is how the server learns it.
            self.begun.remove(&message["params"]["requestId"].to_string());
        }
        self.send(message).await
    }

    /// Sends a request whose answer is not waited for.
    pub(super) async fn begin(&mut self, request: &Value) -> Result<(), Failure> {
        let Link::Http(http) = &self.link else { return self.send(request).await };
        let (http, text, patience) = (http.clone(), request.to_string(), self.patience);
        let mut work = JoinSet::new();
        work.spawn(async move { drop(post(&http, &text, patience).await) });
        self.begun.insert(request["id"].to_string(), work);
        Ok(())
    }

    /// Sends a message that nobody answers.
    async fn send(&mut self, message: &Value) -> Result<(), Failure> {
        let text = message.to_string();
        match &mut self.link {
            Link::Process(process) => {
                process.send(text.as_bytes(), self.patience).await.map_err(|error| gone(&error))
            }
            Link::Http(http) => post(http, &text, self.patience).await,
        }
    }

    /// Sends a request; its answer. Questions of the server are answered meanwhile.
    pub(super) async fn ask(&mut self, request: &Value) -> Result<Value, Failure> {
        match &mut self.link {
            Link::Http(http) => over_http(http, request, &mut self.answers, self.patience).await,
            Link::Process(_) => self.on_a_pipe(request).await,
        }
    }

    async fn on_a_pipe(&mut self, request: &Value) -> Result<Value, Failure> {
        self.send(request).await?;
        let deadline = Instant::now() + self.patience;
        loop {
            let Link::Process(process) = &mut self.link else { return Ok(Value::Null) };
            let next = timeout_at(deadline, process.next_line()).await;
            let silent =
                || Failure::new(Code::TimedOut, format!("{}: no answer", request["method"]));
            let line = next.map_err(|_| silent())?;
            let line = line.ok_or_else(|| Failure::new(Code::Unreachable, "the server ended"))?;
            let Ok(message) = serde_json::from_slice::<Value>(&line) else { continue };
            if is_answer(&message, request) {
                return Ok(message);
            }
            if let Some(answer) = self.answers.to(&message) {
                self.send(&answer).await?;
            }
        }
    }
}

/// One exchange. A legacy server asks in the stream of the response, and goes on when the answer
/// has been posted.
async fn over_http(
    http: &mut Http,
    request: &Value,
    answers: &mut Answers,
    patience: Duration,
) -> Result<Value, Failure> {
    let text = request.to_string();
    let (ask, mut asked) = mpsc::unbounded_channel();
    let is_last = move |event: &Event| {
        let Some(message) = read(&event.data) else { return false };
        let is_last = is_answer(&message, request);
        // The receiver lives as long as the exchange.
        let _ = ask.send(message);
        is_last
    };
    let reply = {
        let posted = HttpRequest::post(&text, &[]);
        let mut exchange = std::pin::pin!(http.exchange(&posted, patience, is_last));
        loop {
            tokio::select! {
                reply = &mut exchange => break reply.map_err(|error| gone(&error))?,
                Some(message) = asked.recv() => {
                    if let Some(answer) = answers.to(&message) {
                        post(http, &answer.to_string(), patience).await?;
                    }
                }
            }
        }
    };
    let answer = if reply.is_stream() {
        let mut messages = reply.events().into_iter().filter_map(|event| read(&event.data));
        messages.find(|message| is_answer(message, request))
    } else {
        read(&reply.body)
    };
    let answer = answer.unwrap_or_else(|| json!({ "status": reply.status.as_u16() }));
    if request["method"] == "initialize" {
        remember(http, &reply, &answer);
    }
    Ok(answer)
}

async fn post(http: &Http, text: &str, patience: Duration) -> Result<(), Failure> {
    let sent = http.exchange(&HttpRequest::post(text, &[]), patience, |_| true).await;
    sent.map(drop).map_err(|error| gone(&error))
}

/// Remembers the session that a handshake opened.
fn remember(http: &mut Http, reply: &HttpReply, answer: &Value) {
    http.session = reply.headers.get("mcp-session-id").cloned();
    let revision = answer.pointer("/result/protocolVersion").and_then(Value::as_str);
    http.negotiated = revision.and_then(|it| it.parse::<Revision>().ok());
}

fn is_answer(message: &Value, request: &Value) -> bool {
    message.get("id") == request.get("id") && message.get("method").is_none()
}

fn read(bytes: &[u8]) -> Option<Value> {
    serde_json::from_slice(bytes).ok()
}

fn gone(error: &dyn std::fmt::Display) -> Failure {
    Failure::new(Code::Unreachable, format!("the server is gone: {error}"))
}
