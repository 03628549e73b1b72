//! One connection to the server under test: sends exactly the frames of a check, and keeps
//! everything that comes back.

mod carrier;

use std::process::ExitStatus;
use std::time::Duration;

use bowline::Revision;
use http::Method;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};

use self::carrier::Carrier;
use crate::check::Target;
use crate::evidence::Evidence;
use crate::frames::message::{self, answer_to, is_answer, notification, plain_method};
use crate::frames::{Event, HeaderChanges, Http, HttpRequest, Lost, Process, Tap};
use crate::observed::{Observed, Strays};
use crate::reply::{Received, Reply};

/// How long stray messages may still come after the last answer.
const LINGER: Duration = Duration::from_millis(40);
/// How long a program may take to exit when its input is closed, and its descendants after it.
const GRACE: Duration = Duration::from_secs(5);
const DESCENDANTS: Duration = Duration::from_millis(500);

/// When an exchange is over.
#[derive(Clone, Copy)]
pub(crate) enum Until<'a> {
    /// When the answer with this id has come.
    Answer(&'a Value),
    /// When any message has come.
    First,
    /// When nothing more can come: on a stream, once a request sent after the frame is answered.
    Quiet,
}

/// How a program ended once its input was closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// It exited.
    Exited {
        /// Its status; 0 for a server without a process.
        status: ExitStatus,
        /// Descendants that are still running, by name where the system tells.
        left: Vec<String>,
    },
    /// It did not exit in time, and is killed when the connection is dropped.
    Running,
}

/// A connection to a server, open and without a handshake.
pub struct Connection {
    carrier: Carrier,
    revision: Revision,
    /// How long each exchange may take.
    pub timeout: Duration,
    asked: u64,
    /// The first response that no request of [`Self::ask`] asked for.
    pub unexpected: Option<Value>,
    /// Exchanges since this was last taken.
    pub(crate) evidence: Vec<Evidence>,
    /// What the server did unasked, for the checks that watch.
    pub(crate) observed: Observed,
}

impl Connection {
    /// Starts the program, opens the stream, or prepares to post.
    ///
    /// # Errors
    /// When that is not possible.
    pub async fn open(
        target: &Target,
        revision: Revision,
        timeout: Duration,
        tap: &Tap,
    ) -> Result<Self, Lost> {
        Ok(Self::new(Carrier::open(target, timeout, tap).await?, revision, timeout))
    }

    /// A connection to a program that is running already.
    pub fn with_process(process: Process, revision: Revision, timeout: Duration) -> Self {
        Self::new(Carrier::Process(Box::new(process)), revision, timeout)
    }

    fn new(carrier: Carrier, revision: Revision, timeout: Duration) -> Self {
        let (observed, evidence) = (Observed::new(revision), Vec::new());
        Self { carrier, revision, timeout, asked: 0, unexpected: None, evidence, observed }
    }

    /// The legacy handshake; returns the whole answer to `initialize`.
    pub(crate) async fn shake_hands(&mut self, version: &str) -> Result<Value, Lost> {
        let Reply { received, message, .. } = self.initialize(version).await?;
        let Some(answer) = message else {
            let got = received.describe_silence();
            return Err(Lost::Closed(format!("initialize got {got}")));
        };
        if answer.get("result").is_some() {
            self.agree().await?;
        }
        Ok(answer)
    }

    /// The first half of the handshake. Keeps the session, whatever else comes.
    ///
    /// # Errors
    /// When no answer comes.
    pub async fn initialize(&mut self, version: &str) -> Result<Reply, Lost> {
        let id = self.next_id();
        let reply = self.ask_raw(&message::initialize(&id, version), &[]).await?;
        if let Some(http) = self.carrier.http_mut() {
            http.session = reply.received.headers.get("mcp-session-id").cloned();
            let agreed = reply.result().and_then(|it| it["protocolVersion"].as_str());
            http.negotiated = agreed.and_then(|it| it.parse().ok());
        }
        Ok(reply)
    }

    /// The second half. Returns what came, if that is known.
    ///
    /// # Errors
    /// When it cannot be sent.
    pub async fn agree(&mut self) -> Result<Received, Lost> {
        let ready = notification("notifications/initialized").to_string();
        self.tell(&ready).await
    }

    /// Takes what was observed since the last time.
    pub(crate) fn take_observed(&mut self) -> Observed {
        std::mem::replace(&mut self.observed, Observed::new(self.revision))
    }

    /// An id that this connection has not used.
    pub(crate) fn next_id(&mut self) -> Value {
        self.asked += 1;
        Value::from(self.asked)
    }

    /// Sends a request as the revision wants it, and waits for the answer.
    ///
    /// # Errors
    /// When no answer comes.
    pub async fn ask(
        &mut self,
        revision: Revision,
        method: &str,
        params: Value,
    ) -> Result<Reply, Lost> {
        let id = self.next_id();
        self.ask_raw(&message::request(revision, &id, method, params), &[]).await
    }

    /// Sends a request as it is, and waits for the answer.
    pub(crate) async fn ask_raw(
        &mut self,
        message: &Value,
        changes: HeaderChanges<'_>,
    ) -> Result<Reply, Lost> {
        let id = &message["id"];
        let method = message["method"].as_str().unwrap_or_default().to_owned();
        let received = self.exchange(&message.to_string(), Until::Answer(id), changes).await?;
        let message = received.answer(id).cloned();
        let is_accepted = received.status.is_none_or(|status| status.is_success());
        if let Some(other) = received.responses().next()
            && message.is_none()
            && is_accepted
        {
            return Err(Lost::OtherId(Box::new(other.clone())));
        }
        Ok(Reply { received, message, method })
    }

    /// Sends a frame and collects what comes.
    pub(crate) async fn exchange(
        &mut self,
        frame: &str,
        until: Until<'_>,
        changes: HeaderChanges<'_>,
    ) -> Result<Received, Lost> {
        let received = match &self.carrier {
            Carrier::Http(http) => {
                let http = http.clone();
                self.post(&http, &HttpRequest::post(frame, changes), until).await
            }
            Carrier::Process(_) | Carrier::Sse(_) => self.stream(frame, until, changes).await,
        };
        // With other headers it may be rejected for other reasons.
        if let (Ok(received), []) = (&received, changes) {
            self.observed.rejection(received);
        }
        self.evidence.push(Evidence::sent(frame, changes).with(&received));
        received
    }

    /// Sends a frame that needs no answer. Returns what came, if that is known.
    pub(crate) async fn tell(&mut self, frame: &str) -> Result<Received, Lost> {
        if let Carrier::Http(_) = self.carrier {
            return self.exchange(frame, Until::Quiet, &[]).await;
        }
        self.evidence.push(Evidence::sent(frame, &[]));
        Ok(self.send(frame, &[]).await?.unwrap_or_default())
    }

    /// The program, if it is one.
    pub fn process(&mut self) -> Option<&mut Process> {
        self.carrier.process()
    }

    /// What else came on the stream.
    pub fn strays(&self) -> &Strays {
        &self.observed.strays
    }

    /// The HTTP side: where messages go, and the session.
    pub fn http(&self) -> Option<&Http> {
        self.carrier.http()
    }

    /// An HTTP exchange, here or at another URL. With HTTP+SSE, the stream is not waited for.
    pub(crate) async fn http_exchange(
        &mut self,
        at: Option<&Http>,
        request: &HttpRequest<'_>,
    ) -> Result<Received, Lost> {
        let Some(http) = at.or_else(|| self.http()).cloned() else {
            return Err(Lost::Closed("this is not an HTTP connection".to_owned()));
        };
        let received = self.post(&http, request, Until::Quiet).await;
        self.evidence.push(Evidence::request(request).with(&received));
        received
    }

    async fn post(
        &mut self,
        http: &Http,
        request: &HttpRequest<'_>,
        until: Until<'_>,
    ) -> Result<Received, Lost> {
        let is_last = |event: &Event| match until {
            Until::First => true,
            Until::Quiet => false,
            Until::Answer(id) => {
                serde_json::from_slice(&event.data).is_ok_and(|message| is_answer(&message, id))
            }
        };
        let reply = http.exchange(request, self.timeout, is_last).await?;
        Ok(self.observed.reply(reply, request.is_modern()))
    }

    async fn stream(
        &mut self,
        frame: &str,
        until: Until<'_>,
        changes: HeaderChanges<'_>,
    ) -> Result<Received, Lost> {
        let deadline = Instant::now() + self.timeout;
        let barrier = matches!(until, Until::Quiet).then(|| self.barrier());
        // What a rejected POST was answered with is all there is.
        if let Some(rejected) = self.send(frame, changes).await? {
            return Ok(rejected);
        }
        if let Some((_, frame)) = &barrier {
            self.send(frame, &[]).await?;
        }
        let is_last = |message: &Value| match (until, &barrier) {
            // If the id came back as a string, nothing better will follow.
            (Until::Answer(id), _) => {
                is_answer(message, id) || is_answer(message, &Value::from(id.to_string()))
            }
            (Until::Quiet, Some((id, _))) => is_answer(message, id),
            (Until::First | Until::Quiet, _) => true,
        };
        let mut received = Received::default();
        while !received.messages.iter().any(is_last) {
            let Ok(event) = timeout_at(deadline, self.carrier.next()).await else {
                let other = received.responses().find(|it| !self.has_asked(it));
                return Err(other
                    .map_or(Lost::Silent(self.timeout), |it| Lost::OtherId(Box::new(it.clone()))));
            };
            let Some(event) = event else { return Err(self.carrier.gone().await) };
            self.take(&event, &mut received).await?;
        }
        if barrier.is_some() {
            // A fixed time in all: some servers never stop.
            let over = Instant::now() + LINGER;
            while let Ok(Some(event)) = timeout_at(over, self.carrier.next()).await {
                self.take(&event, &mut received).await?;
            }
            received.messages.retain(|message| !is_last(message));
        }
        Ok(received)
    }

    /// A request whose answer shows that everything sent before it has been read.
    fn barrier(&mut self) -> (Value, String) {
        self.asked += 1;
        let id = Value::from(format!("still-there-{}", self.asked));
        let method = plain_method(self.revision);
        let frame = message::request(self.revision, &id, method, json!({})).to_string();
        (id, frame)
    }

    /// Sends on a stream; returns what came in place of acceptance.
    async fn send(
        &mut self,
        frame: &str,
        changes: HeaderChanges<'_>,
    ) -> Result<Option<Received>, Lost> {
        let rejected = self.carrier.send(frame, changes, self.timeout).await?;
        Ok(rejected.map(|reply| Observed::new(self.revision).reply(reply, false)))
    }

    /// Sorts one frame, and answers what the server asks.
    async fn take(&mut self, event: &Event, received: &mut Received) -> Result<(), Lost> {
        for message in self.observed.event(event) {
            if let Some(answer) = answer_to(&message) {
                self.send(&answer.to_string(), &[]).await?;
            }
            if message.get("method").is_none() && !self.has_asked(&message) {
                self.unexpected.get_or_insert_with(|| message.clone());
            }
            received.messages.push(message);
        }
        Ok(())
    }

    /// Whether a response has the id of a request, if only of an earlier one.
    fn has_asked(&self, response: &Value) -> bool {
        response["id"].as_u64().is_some_and(|id| (1..=self.asked).contains(&id))
    }

    /// Closes a program's input and waits for its exit; over HTTP, ends the session.
    pub async fn close(&mut self) -> Option<Ending> {
        if let Carrier::Http(http) = &self.carrier
            && http.session.is_some()
            && !self.revision.is_modern()
        {
            let http = http.clone();
            let request = HttpRequest::without_body(Method::DELETE, &[]);
            // What the server makes of it is a check of its own.
            let _ = self.post(&http, &request, Until::Quiet).await;
        }
        self.process()?.close_input();
        let deadline = Instant::now() + GRACE.min(self.timeout.max(Duration::from_secs(1)));
        let has_ended = self.read_rest(deadline).await;
        let lines = self.process()?.stderr_count();
        self.observed.stderr_lines += lines;
        let process = self.process()?;
        let left = deadline.saturating_duration_since(Instant::now());
        let status = if has_ended { process.wait(left).await } else { None };
        let Some(status) = status else { return Some(Ending::Running) };
        Some(Ending::Exited { status, left: process.survivors(DESCENDANTS).await })
    }

    /// Reads what still comes; returns whether the output ended in time.
    pub async fn read_rest(&mut self, deadline: Instant) -> bool {
        loop {
            match timeout_at(deadline, self.carrier.next()).await {
                Ok(Some(event)) => drop(self.observed.event(&event)),
                Ok(None) => break,
                Err(_) => return false,
            }
        }
        // The start of a line whose end never came.
        if let Some(data) = self.process().and_then(Process::take_unfinished) {
            self.observed.event(&Event { name: None, data });
        }
        true
    }
}
