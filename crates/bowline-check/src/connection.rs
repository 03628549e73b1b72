//! One connection to the server under test: sends exactly the frames of a check, and keeps
//! everything that comes back.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bowline::Revision;
use http::Method;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};

use crate::check::Target;
use crate::evidence::Evidence;
use crate::frames::message::{Speaker, answer_to, is_answer, notification, plain_method};
use crate::frames::{Event, HeaderChanges, Http, HttpRequest, HttpSse, Lost, Process, Tap};
use crate::observed::Observed;
use crate::reply::Received;

/// The client that all messages name.
pub(crate) const CLIENT: Speaker = Speaker("bowline-check");

/// How long stray messages may still come after the last answer.
const LINGER: Duration = Duration::from_millis(40);
/// How long a program may take to exit when its input is closed, and its descendants after it.
const GRACE: Duration = Duration::from_secs(5);
const DESCENDANTS: Duration = Duration::from_millis(500);
/// How long a program whose output has ended may take to exit.
const SOON: Duration = Duration::from_millis(400);
/// How many lines of standard error are quoted.
const STDERR: usize = 12;

/// How frames travel: on a stream with everything else, or each as an exchange of its own.
enum Carrier {
    Process(Box<Process>),
    Sse(Box<HttpSse>),
    Http(Box<Http>),
}

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
pub(crate) enum Ending {
    Exited {
        status: String,
        /// Descendants that are still running, by name where the system tells.
        left: Vec<String>,
    },
    /// It did not exit in time and had to be killed.
    Killed,
}

/// A connection: open, and after [`Connection::shake_hands`] ready for legacy requests.
pub(crate) struct Connection {
    carrier: Carrier,
    revision: Revision,
    timeout: Duration,
    asked: u64,
    /// Exchanges since this was last taken.
    pub(crate) evidence: Vec<Evidence>,
    /// What the server did unasked, for the checks that watch.
    pub(crate) observed: Observed,
}

impl Connection {
    /// Starts the program, opens the stream, or prepares to post.
    pub(crate) async fn open(
        target: &Target,
        revision: Revision,
        timeout: Duration,
        tap: &Tap,
    ) -> Result<Self, Lost> {
        static STARTED: AtomicU64 = AtomicU64::new(1);
        let tap = || tap.numbered(STARTED.fetch_add(1, Ordering::Relaxed));
        let carrier = match target {
            Target::Program(recipe) => {
                let program = recipe.program.to_string_lossy();
                let failed = |error| Lost::Unreachable(format!("{program}: {error}"));
                Carrier::Process(Box::new(Process::start(recipe, tap()).map_err(failed)?))
            }
            Target::Streams(open) => {
                let (output, input) = open();
                Carrier::Process(Box::new(Process::over(output, input, tap())))
            }
            Target::HttpSse(http) => Carrier::Sse(Box::new(HttpSse::open(http, timeout).await?)),
            Target::Http(http) => Carrier::Http(http.clone()),
        };
        let observed = Observed::new(revision);
        Ok(Self { carrier, revision, timeout, asked: 0, evidence: Vec::new(), observed })
    }

    /// The legacy handshake; returns the whole answer to `initialize`.
    pub(crate) async fn shake_hands(&mut self, version: &str) -> Result<Value, Lost> {
        let received = self.initialize(version).await?;
        let Some(answer) = received.responses().next().cloned() else {
            let status = received.status.map_or_else(String::new, |status| format!("{status} "));
            let other = &received.other;
            return Err(Lost::Closed(format!("initialize got {status}{other:?} and no message")));
        };
        if answer.get("result").is_some() {
            self.agree().await?;
        }
        Ok(answer)
    }

    /// The first half of the handshake. Keeps the session, whatever else comes.
    pub(crate) async fn initialize(&mut self, version: &str) -> Result<Received, Lost> {
        let id = self.next_id();
        let frame = CLIENT.initialize(&id, version).to_string();
        let mut received = self.exchange(&frame, Until::Answer(&id), &[]).await?;
        let answer = received.answer(&id).cloned();
        // Only one of the responses answers this.
        received.messages.retain(|message| message.get("method").is_some());
        if let Some(http) = self.http_mut() {
            http.session = received.headers.get("mcp-session-id").cloned();
            let agreed = answer.as_ref().and_then(|it| it.pointer("/result/protocolVersion"));
            http.negotiated = agreed.and_then(Value::as_str).and_then(|it| it.parse().ok());
        }
        received.messages.extend(answer);
        Ok(received)
    }

    /// The second half.
    pub(crate) async fn agree(&mut self) -> Result<(), Lost> {
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
    pub(crate) async fn ask(
        &mut self,
        revision: Revision,
        method: &str,
        params: Value,
    ) -> Result<(Received, Option<Value>), Lost> {
        let id = self.next_id();
        let frame = CLIENT.request(revision, &id, method, params).to_string();
        let received = self.exchange(&frame, Until::Answer(&id), &[]).await?;
        let answer = received.answer(&id).cloned();
        Ok((received, answer))
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

    /// Sends a frame that needs no answer.
    pub(crate) async fn tell(&mut self, frame: &str) -> Result<(), Lost> {
        if let Carrier::Http(_) = self.carrier {
            return self.exchange(frame, Until::Quiet, &[]).await.map(drop);
        }
        self.evidence.push(Evidence::sent(frame, &[]));
        self.send(frame, &[]).await.map(drop)
    }

    /// The HTTP side, for checks of headers, methods and sessions.
    pub(crate) fn http(&self) -> Option<&Http> {
        match &self.carrier {
            Carrier::Http(http) => Some(http),
            Carrier::Sse(sse) => Some(&sse.endpoint),
            Carrier::Process(_) => None,
        }
    }

    fn http_mut(&mut self) -> Option<&mut Http> {
        match &mut self.carrier {
            Carrier::Http(http) => Some(http),
            Carrier::Sse(sse) => Some(&mut sse.endpoint),
            Carrier::Process(_) => None,
        }
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
            (Until::Answer(id), _) | (Until::Quiet, Some((id, _))) => is_answer(message, id),
            (Until::First | Until::Quiet, _) => true,
        };
        let mut received = Received::default();
        while !received.messages.iter().any(is_last) {
            let Ok(event) = timeout_at(deadline, self.next()).await else {
                return Err(Lost::Silent(self.timeout));
            };
            let Some(event) = event else { return Err(self.gone().await) };
            self.take(&event, &mut received).await?;
        }
        if barrier.is_some() {
            // A fixed time in all: some servers never stop.
            let over = Instant::now() + LINGER;
            while let Ok(Some(event)) = timeout_at(over, self.next()).await {
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
        let frame = CLIENT.request(self.revision, &id, method, json!({})).to_string();
        (id, frame)
    }

    /// Sends on a stream; returns what came in place of acceptance.
    async fn send(
        &mut self,
        frame: &str,
        changes: HeaderChanges<'_>,
    ) -> Result<Option<Received>, Lost> {
        match &mut self.carrier {
            Carrier::Process(process) => match process.send(frame.as_bytes(), self.timeout).await {
                Ok(()) => Ok(None),
                Err(error) if error.kind() == std::io::ErrorKind::TimedOut => {
                    Err(Lost::Closed(format!("it has read nothing for {:?}", self.timeout)))
                }
                Err(_) => Err(self.gone().await),
            },
            Carrier::Sse(sse) => {
                let request = HttpRequest::post(frame, changes);
                let reply = sse.endpoint.exchange(&request, self.timeout, |_| false).await?;
                // What an accepting response says besides does not matter.
                let is_rejected = !reply.status.is_success();
                Ok(is_rejected.then(|| Observed::new(self.revision).reply(reply, false)))
            }
            Carrier::Http(_) => Ok(None),
        }
    }

    /// The next line or event, or `None` if there will be none.
    async fn next(&mut self) -> Option<Event> {
        match &mut self.carrier {
            Carrier::Process(process) => {
                process.next_line().await.map(|data| Event { name: None, data })
            }
            Carrier::Sse(sse) => sse.next().await,
            Carrier::Http(_) => None,
        }
    }

    /// Sorts one frame, and answers what the server asks.
    async fn take(&mut self, event: &Event, received: &mut Received) -> Result<(), Lost> {
        for message in self.observed.event(event) {
            if let Some(answer) = answer_to(&message) {
                self.send(&answer.to_string(), &[]).await?;
            }
            received.messages.push(message);
        }
        Ok(())
    }

    /// Why the stream has ended.
    async fn gone(&mut self) -> Lost {
        let Carrier::Process(process) = &mut self.carrier else {
            return Lost::Closed("it ended the event stream".to_owned());
        };
        let exit = process.exit(SOON).await;
        let mut how = match exit.status {
            Some(status) => status.to_string(),
            None => "it closed its output".to_owned(),
        };
        if exit.had_survivors {
            how.push_str(", while a process that it started kept running");
        }
        let stderr = process.stderr();
        if !stderr.is_empty() {
            let last = &stderr[stderr.len().saturating_sub(STDERR)..];
            how = format!("{how}; standard error: {}", last.join(" | "));
        }
        Lost::Closed(how)
    }

    /// Closes a program's input and waits for its exit; over HTTP, ends the session.
    pub(crate) async fn close(mut self) -> (Option<Ending>, Observed) {
        let mut ending = None;
        match &mut self.carrier {
            Carrier::Process(process) => {
                process.close_input();
                ending = Some(self.exited().await);
            }
            Carrier::Http(http) if http.session.is_some() && !self.revision.is_modern() => {
                let http = http.clone();
                let request = HttpRequest::without_body(Method::DELETE, &[]);
                // What the server makes of it is a check of its own.
                let _ = self.post(&http, &request, Until::Quiet).await;
            }
            Carrier::Http(_) | Carrier::Sse(_) => {}
        }
        (ending, self.observed)
    }

    async fn exited(&mut self) -> Ending {
        let deadline = Instant::now() + GRACE.min(self.timeout.max(Duration::from_secs(1)));
        let ending = loop {
            match timeout_at(deadline, self.next()).await {
                Ok(Some(event)) => drop(self.observed.event(&event)),
                Ok(None) => break None,
                Err(_) => break Some(Ending::Killed),
            }
        };
        let Carrier::Process(process) = &mut self.carrier else { return Ending::Killed };
        self.observed.stderr_lines += process.stderr_count();
        if let Some(killed) = ending {
            return killed;
        }
        let Some(status) = process.wait(deadline - Instant::now()).await else {
            return Ending::Killed;
        };
        let status = status.code().map_or_else(|| status.to_string(), |code| code.to_string());
        let left = process.survivors(DESCENDANTS).await.unwrap_or_default();
        Ending::Exited { status, left }
    }
}
