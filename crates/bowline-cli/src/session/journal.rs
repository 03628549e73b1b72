//! What happens beside the results: messages on the wire, the server's standard error, its logs,
//! its faults. Shown, recorded, and remembered where `info` tells of it.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bowline::Json;
use bowline::client::{ClientBuilder, Direction, Fault, Notification, WireMessage};
use bowline::model::{LoggingLevel, LoggingMessageParams};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{Settings, cancelled, interrupted};
use crate::failure::Failure;
use crate::record::{FORMAT, HttpHead, Kind, Line, Opening, Recorder, Way};
use crate::redact::{self, Redactor};
use crate::render::wire;
use crate::screen::{Screen, Style};
use crate::target::{Place, Resolved};

/// Hears everything, and passes it on to the screen and the recording.
pub(crate) struct Journal {
    screen: Arc<Screen>,
    is_verbose: AtomicBool,
    tap: Option<Tap>,
    recorder: Option<Recorder>,
    redactor: Redactor,
    begun: Instant,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Requests without an answer, by id: since when, and which step they are.
    waiting: HashMap<String, (Instant, Option<usize>)>,
    steps: Vec<Step>,
}

/// A request of this client, and what became of it. The first few are remembered.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    pub(crate) method: String,
    pub(crate) took: Option<Duration>,
    /// The code of the error, if it was refused.
    pub(crate) refused: Option<i64>,
    /// Whether the next request did not wait for the answer.
    pub(crate) is_late: bool,
}

/// Something that a session heard, for those who listen in.
#[derive(Debug)]
pub(crate) enum Heard<'a> {
    /// A message of this client.
    Sent(&'a str),
    /// A message of the server, or what it sent instead of one.
    Received(&'a str),
    /// A line on the server's standard error.
    Stderr(&'a str),
    /// A notification of the server.
    Notification(&'a Notification),
}

/// A function that is told of everything. Must be quick.
#[derive(Clone)]
pub(crate) struct Tap(pub(crate) Arc<dyn Fn(Heard<'_>) + Send + Sync>);

impl fmt::Debug for Tap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tap")
    }
}

tokio::task_local! {
    /// The journal of a command that leads its connections itself.
    static KEPT: Arc<Journal>;
}

/// Writes down what such a command sent or received, if a journal is kept of it; with the number of
/// the connection where several are open at once.
pub(crate) fn note(way: Way, bytes: &[u8], connection: Option<u64>) {
    let line = Line { direction: Some(way), connection, ..Line::default() };
    // Without a journal there is nothing to do.
    let _ = KEPT.try_with(|journal| journal.tell_message(line, bytes));
}

/// How many requests are remembered.
const STEPS: usize = 8;
/// How many requests without an answer are remembered.
const WAITING: usize = 1024;

/// As much of a message as tells what it is.
#[derive(Deserialize)]
struct Head<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<std::borrow::Cow<'a, str>>,
    #[serde(default)]
    error: Option<ErrorHead>,
}

#[derive(Deserialize)]
struct ErrorHead {
    #[serde(default)]
    code: i64,
}

impl Journal {
    pub(super) fn new(
        resolved: &Resolved,
        settings: &Settings,
        recorder: Option<Recorder>,
    ) -> Self {
        let journal = Self {
            screen: Arc::clone(&settings.screen),
            is_verbose: AtomicBool::new(settings.is_verbose),
            tap: settings.tap.clone(),
            recorder,
            redactor: Redactor::new(resolved.secrets()),
            begun: Instant::now(),
            state: Mutex::default(),
        };
        journal.record(|| Line {
            kind: Kind::Session,
            session: Some(Opening {
                format: FORMAT,
                program: format!("bowline {}", env!("CARGO_PKG_VERSION")),
                started: jiff::Timestamp::now().to_string(),
                target: shown(&resolved.place, &journal.redactor),
            }),
            ..Line::default()
        });
        journal
    }

    /// Keeps a journal while a command leads its connections itself.
    ///
    /// # Errors
    /// When the recording cannot be made, the work fails, or it is interrupted.
    pub(crate) async fn keep<T>(
        resolved: &Resolved,
        settings: &Settings,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let journal = Arc::new(Self::new(resolved, settings, settings.recorder()?));
        let outcome = tokio::select! {
            outcome = KEPT.scope(Arc::clone(&journal), work) => outcome,
            // Whatever the work has started ends with it.
            () = interrupted() => Err(cancelled()),
        };
        journal.end(outcome.as_ref().err());
        outcome
    }

    /// Listens to a client.
    pub(super) fn listen(self: &Arc<Self>, builder: ClientBuilder) -> ClientBuilder {
        let (wire, stderr, notes, faults) =
            (Arc::clone(self), Arc::clone(self), Arc::clone(self), Arc::clone(self));
        builder
            .on_wire(move |message| wire.handle_wire(message))
            .on_stderr(move |line| stderr.handle_stderr(line))
            .on_notification(move |notification| notes.handle_notification(notification))
            .on_fault(move |fault| faults.handle_fault(fault))
    }

    /// The first requests of this session.
    pub(crate) fn steps(&self) -> Vec<Step> {
        self.lock().steps.clone()
    }

    /// Text without the secrets of this session.
    pub(crate) fn redact(&self, text: &str) -> String {
        self.redactor.text(text)
    }

    /// Shows every message from now on, or no longer.
    pub(crate) fn set_verbose(&self, is_verbose: bool) {
        self.is_verbose.store(is_verbose, Ordering::Relaxed);
    }

    /// Tells whoever listens in.
    fn tap(&self, heard: Heard<'_>) {
        if let Some(Tap(hear)) = &self.tap {
            hear(heard);
        }
    }

    /// The session is over.
    pub(super) fn end(&self, failure: Option<&Failure>) {
        self.record(|| Line {
            kind: Kind::End,
            at: self.now(),
            text: failure.map(|failure| self.redact(&failure.what)),
            ..Line::default()
        });
    }

    fn handle_wire(&self, message: &WireMessage<'_>) {
        let took = self.note(message);
        if self.tap.is_some() && !message.bytes.is_empty() {
            let text = String::from_utf8_lossy(message.bytes);
            self.tap(match message.direction {
                Direction::Sent => Heard::Sent(&text),
                Direction::Received => Heard::Received(&text),
            });
        }
        if !self.is_verbose.load(Ordering::Relaxed) && self.recorder.is_none() {
            return;
        }
        let way = match message.direction {
            Direction::Sent => Way::Sent,
            Direction::Received => Way::Received,
        };
        let line = |kind| Line { kind, at: self.now(), direction: Some(way), ..Line::default() };
        if let Some(http) = message.http {
            let headers = http.headers.iter().map(|header| {
                let value = if header.is_secret { redact::HIDDEN } else { &header.value };
                (header.name.clone(), self.redactor.text(value))
            });
            let head = HttpHead {
                exchange: http.exchange,
                method: http.method.clone(),
                url: self.redactor.text(&redact::url(&http.url)),
                status: http.status,
                headers: headers.collect(),
            };
            self.tell(&Line { http: Some(head), ..line(Kind::Http) });
        }
        let took = took.map(|it| it.as_secs_f64());
        self.tell_message(Line { took, ..line(Kind::Message) }, message.bytes);
    }

    /// Tells of a message, of which everything but the message is known.
    fn tell_message(&self, line: Line, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let text = String::from_utf8_lossy(bytes);
        let text = text.trim_end_matches('\r');
        let mut told = Line { kind: Kind::Message, at: self.now(), ..line };
        match Json::from_text(self.redactor.json(text)) {
            Ok(message) => told.message = Some(message),
            Err(_) => told.text = Some(self.redactor.json(text)),
        }
        self.tell(&told);
    }

    /// Remembers requests and their answers. Gives how long an answer took.
    fn note(&self, message: &WireMessage<'_>) -> Option<Duration> {
        let head: Head<'_> = serde_json::from_slice(message.bytes).ok()?;
        let id = head.id?.get().to_owned();
        let mut state = self.lock();
        match (message.direction, head.method) {
            (Direction::Sent, Some(method)) => {
                let method = method.into_owned();
                let step = (state.steps.len() < STEPS).then_some(state.steps.len());
                if step.is_some() {
                    for step in state.steps.iter_mut().filter(|step| step.took.is_none()) {
                        step.is_late = true;
                    }
                    state.steps.push(Step { method, took: None, refused: None, is_late: false });
                }
                if state.waiting.len() < WAITING {
                    state.waiting.insert(id, (Instant::now(), step));
                }
                None
            }
            (Direction::Received, None) => {
                let (since, step) = state.waiting.remove(&id)?;
                let took = since.elapsed();
                if let Some(step) = step.and_then(|step| state.steps.get_mut(step)) {
                    step.took = Some(took);
                    step.refused = head.error.map(|error| error.code);
                }
                Some(took)
            }
            _ => None,
        }
    }

    fn handle_stderr(&self, text: &str) {
        self.tap(Heard::Stderr(text));
        self.screen.server_line(text);
        self.record(|| Line {
            kind: Kind::Stderr,
            at: self.now(),
            text: Some(self.redactor.text(text)),
            ..Line::default()
        });
    }

    fn handle_notification(&self, notification: &Notification) {
        self.tap(Heard::Notification(notification));
        if &*notification.method != "notifications/message" {
            return;
        }
        let Some(log) = notification.read::<LoggingMessageParams>() else { return };
        let (style, text) = log_line(&log);
        self.screen.server_log(style, &text);
    }

    fn handle_fault(&self, fault: &Fault) {
        let text = match fault {
            Fault::Reported(error) => format!("the server reports an error: {error}"),
            Fault::NotAMessage { problem, start } => {
                format!("the server sent what is no message ({problem}): {start}")
            }
            Fault::TooLong { limit } => {
                format!("the server sent a message of more than {limit} bytes, which was skipped")
            }
            Fault::Unanswered { method } => {
                format!("the server asks ({method}) faster than it takes answers")
            }
            Fault::UnknownAnswer { id } => {
                format!("the server answered a question that was not asked (id {id})")
            }
            _ => format!("{fault:?}"),
        };
        self.screen.warn(&text);
        self.record(|| Line {
            kind: Kind::Fault,
            at: self.now(),
            text: Some(self.redactor.text(&text)),
            ..Line::default()
        });
    }

    fn tell(&self, line: &Line) {
        if self.is_verbose.load(Ordering::Relaxed) {
            self.screen.say(&wire::render(line, self.screen.err));
        }
        self.record(|| line.clone());
    }

    fn record(&self, line: impl FnOnce() -> Line) {
        let Some(recorder) = &self.recorder else { return };
        if let Err(error) = recorder.write(&line()) {
            self.screen.warn(&format!("the recording ends here: {error}"));
        }
    }

    fn now(&self) -> f64 {
        self.begun.elapsed().as_secs_f64()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A log message for people.
pub(crate) fn log_line(log: &LoggingMessageParams) -> (Style, String) {
    let style = match log.level {
        LoggingLevel::Debug => Style::Dim,
        LoggingLevel::Info | LoggingLevel::Notice => Style::Blue,
        LoggingLevel::Warning => Style::Yellow,
        _ => Style::Red,
    };
    let logger = log.logger.as_deref().map(|name| format!(" {name}")).unwrap_or_default();
    let data = match log.data.to_value() {
        Value::String(text) => text,
        other => other.to_string(),
    };
    (style, format!("{}{logger}: {data}", log.level))
}

/// Where a server is, without secrets.
fn shown(place: &Place, redactor: &Redactor) -> Value {
    match place {
        Place::Command { program, args, env, cwd } => json!({
            "command": redactor.text(&program.to_string_lossy()),
            "args": args.iter().map(|it| redactor.text(&it.to_string_lossy())).collect::<Vec<_>>(),
            "env": env.iter().map(|(name, _)| name.to_string_lossy()).collect::<Vec<_>>(),
            "cwd": cwd.as_ref().map(|dir| dir.to_string_lossy()),
        }),
        Place::Url { url, headers } => json!({
            "url": redact::url(url),
            "headers": headers.iter().map(|(name, _)| name).collect::<Vec<_>>(),
        }),
    }
}
