//! Everything beside the result: messages on the wire, the server's standard error, its log
//! messages, its faults. Shown, recorded, and remembered as far as `info` reports it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bowline::Json;
use bowline::client::{ClientBuilder, Direction, Fault, Notification, WireMessage};
use bowline::model::{LoggingLevel, LoggingMessageParams};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::repeats::Repeats;
use super::requests::{Requests, SentRequest};
use super::{Settings, interrupted};
use crate::failure::Failure;
use crate::record::{HttpHead, Line, LineKind, Opening, Recorder, Way};
use crate::redact::{self, Redactor};
use crate::render::wire;
use crate::schema::unquoted;
use crate::screen::{Screen, Style};
use crate::target::{Location, Resolved};

/// Observes a session for the screen, the recording and the tap.
pub(crate) struct Journal {
    screen: Arc<Screen>,
    is_verbose: AtomicBool,
    tap: Option<Tap>,
    recorder: Option<Recorder>,
    lines: Option<LineSink>,
    redactor: Redactor,
    begun: Instant,
    requests: Mutex<Requests>,
    repeats: Mutex<Repeats>,
}

/// What a tap receives, secrets included.
#[derive(Debug)]
pub(crate) enum Tapped<'a> {
    /// A message, what came in place of one, or a line on standard error.
    Said(Channel, &'a str),
    Notification(&'a Notification),
}

/// Where something was said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Channel {
    Sent,
    Received,
    Stderr,
}

/// A function that receives everything that happens in a session. Must be quick.
#[derive(Clone)]
pub(crate) struct Tap(pub(crate) Arc<dyn Fn(Tapped<'_>) + Send + Sync>);

/// A function that receives the lines of a recording as they are written. Must be quick.
#[derive(Clone)]
pub(crate) struct LineSink(pub(crate) Arc<dyn Fn(&Line) + Send + Sync>);

tokio::task_local! {
    /// The journal of a command that manages its own connections.
    static KEPT: Arc<Journal>;
}

/// Records what such a command sent or received, if it keeps a journal; with the number of the
/// connection where several are open at once.
pub(crate) fn note(way: Way, bytes: &[u8], connection: Option<u64>) {
    // Without a journal there is nothing to do.
    let _ = KEPT.try_with(|journal| {
        let line = journal.line(LineKind::Message);
        journal.show_message(Line { direction: Some(way), connection, ..line }, bytes);
    });
}

impl Journal {
    pub(crate) fn new(resolved: &Resolved, settings: &Settings) -> Result<Self, Failure> {
        let record = settings.record.as_deref();
        let recorder = record.map(|file| {
            let recorder = Recorder::create(file, settings.is_again);
            recorder.map_err(|error| Failure::file("--record", file, error))
        });
        let recorder = recorder.transpose()?;
        let journal = Self {
            screen: Arc::clone(&settings.screen),
            is_verbose: AtomicBool::new(settings.is_verbose),
            tap: settings.tap.clone(),
            recorder,
            lines: settings.lines.clone(),
            redactor: Redactor::new(resolved.secrets()),
            begun: settings.begun.unwrap_or_else(Instant::now),
            requests: Mutex::default(),
            repeats: Mutex::default(),
        };
        if let Some(note) = &resolved.note {
            journal.screen.note(note);
        }
        if resolved.is_insecure {
            let text = "--insecure: certificates are not checked; anyone between you and the \
                        server can read and change everything, tokens included";
            journal.screen.warn(text);
        }
        if settings.begun.is_none() {
            let opening = Opening::now(shown(&resolved.location, &journal.redactor));
            journal.record(&Line { session: Some(opening), ..journal.line(LineKind::Session) });
        }
        Ok(journal)
    }

    /// Keeps a journal for a command that manages its own connections.
    pub(crate) async fn keep<T>(
        resolved: &Resolved,
        settings: &Settings,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let journal = Arc::new(Self::new(resolved, settings)?);
        let outcome = tokio::select! {
            outcome = KEPT.scope(Arc::clone(&journal), work) => outcome,
            // Everything that the work has started ends with it.
            stopped = interrupted() => Err(stopped),
        };
        journal.end(outcome.as_ref().err());
        outcome
    }

    /// Observes a client.
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
    pub(crate) fn steps(&self) -> Vec<SentRequest> {
        self.lock().steps.clone()
    }

    /// What the last response said that had an error status and no message.
    pub(super) fn refusal(&self) -> Option<String> {
        self.lock().refusal.clone()
    }

    /// Text without the secrets of this session.
    pub(crate) fn redact(&self, text: &str) -> String {
        self.redactor.text(text)
    }

    /// Shows every message from now on, or no longer.
    pub(crate) fn set_verbose(&self, is_verbose: bool) {
        self.is_verbose.store(is_verbose, Ordering::Relaxed);
    }

    /// Seconds since the session began.
    pub(crate) fn elapsed(&self) -> f64 {
        self.begun.elapsed().as_secs_f64()
    }

    pub(crate) fn end(&self, failure: Option<&Failure>) {
        self.record_text(LineKind::End, failure.map(|failure| failure.what.as_str()));
    }

    /// Shows and records a message.
    pub(crate) fn handle_wire(&self, message: &WireMessage<'_>) {
        let took = self.lock().remember(message);
        let (way, channel) = match message.direction {
            Direction::Sent => (Way::Sent, Channel::Sent),
            Direction::Received => (Way::Received, Channel::Received),
        };
        if self.tap.is_some() && !message.bytes.is_empty() {
            self.tap(Tapped::Said(channel, &String::from_utf8_lossy(message.bytes)));
        }
        if !self.is_verbose.load(Ordering::Relaxed) && !self.keeps_lines() {
            return;
        }
        if let Some(http) = message.http {
            let headers = http.headers.iter().map(|header| {
                let value = if header.is_secret { redact::HIDDEN } else { &header.value };
                (header.name.clone(), self.redact(value))
            });
            let head = HttpHead {
                exchange: http.exchange,
                method: http.method.clone(),
                url: self.redact(&redact::url(&http.url)),
                status: http.status,
                headers: headers.collect(),
            };
            self.show(&Line {
                http: Some(head),
                direction: Some(way),
                ..self.line(LineKind::Http)
            });
        }
        let took = took.map(|it| it.as_secs_f64());
        let line = Line { direction: Some(way), took, ..self.line(LineKind::Message) };
        self.show_message(line, message.bytes);
    }

    /// Shows and records a message; `line` says everything else about it.
    fn show_message(&self, mut line: Line, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let text = String::from_utf8_lossy(bytes);
        let text = self.redactor.json(text.trim_end_matches('\r'));
        match Json::from_text(text.clone()) {
            Ok(message) => line.message = Some(message),
            Err(_) => line.text = Some(text),
        }
        self.show(&line);
    }

    fn handle_stderr(&self, text: &str) {
        self.tap(Tapped::Said(Channel::Stderr, text));
        let is_first = self.steps().len() <= 1;
        let mut repeats = self.repeats.lock().unwrap_or_else(PoisonError::into_inner);
        if !repeats.is_repeat(text, is_first) {
            self.screen.aside("stderr", Style::Dim, text);
        }
        drop(repeats);
        self.record_text(LineKind::Stderr, Some(text));
    }

    fn handle_notification(&self, notification: &Notification) {
        self.tap(Tapped::Notification(notification));
        if &*notification.method == "notifications/message"
            && let Some(log) = notification.read::<LoggingMessageParams>()
        {
            let (style, text) = log_line(&log);
            self.screen.aside("log", style, &text);
        }
    }

    fn handle_fault(&self, fault: &Fault) {
        let text = match fault {
            Fault::Reported(error) => format!("the server reports an error: {error}"),
            Fault::NotAMessage { problem, start } => {
                format!("the server sent something that is not a message ({problem}): {start}")
            }
            Fault::TooLong { limit } => {
                format!("skipped a message of the server that exceeds {limit} bytes")
            }
            Fault::Unanswered { method } => {
                format!("the server sends requests ({method}) faster than it reads the answers")
            }
            Fault::UnknownAnswer { id } => {
                format!("the server answered a request that was never sent (id {id})")
            }
            _ => format!("{fault:?}"),
        };
        self.screen.warn(&text);
        self.record_text(LineKind::Fault, Some(&text));
    }

    fn tap(&self, heard: Tapped<'_>) {
        if let Some(Tap(hear)) = &self.tap {
            hear(heard);
        }
    }

    /// A line of the recording that begins now.
    fn line(&self, kind: LineKind) -> Line {
        Line { kind, at: self.begun.elapsed().as_secs_f64(), ..Line::default() }
    }

    fn show(&self, line: &Line) {
        if self.is_verbose.load(Ordering::Relaxed) {
            self.screen.say(&wire::render(line, self.screen.err));
        }
        self.record(line);
    }

    fn record_text(&self, kind: LineKind, text: Option<&str>) {
        if self.keeps_lines() {
            self.record(&Line { text: text.map(|text| self.redact(text)), ..self.line(kind) });
        }
    }

    /// Whether anybody wants the lines of the recording.
    fn keeps_lines(&self) -> bool {
        self.recorder.is_some() || self.lines.is_some()
    }

    fn record(&self, line: &Line) {
        if let Some(LineSink(write)) = &self.lines {
            write(line);
        }
        if let Some(recorder) = &self.recorder
            && let Err(error) = recorder.write(line)
        {
            self.screen.warn(&format!("the recording stops here: {error}"));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Requests> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A log message for people.
fn log_line(log: &LoggingMessageParams) -> (Style, String) {
    let style = match log.level {
        LoggingLevel::Debug => Style::Dim,
        LoggingLevel::Info | LoggingLevel::Notice => Style::Blue,
        LoggingLevel::Warning => Style::Yellow,
        _ => Style::Red,
    };
    let logger = log.logger.as_deref().map(|name| format!(" {name}")).unwrap_or_default();
    (style, format!("{}{logger}: {}", log.level, unquoted(&log.data.to_value())))
}

/// What a session connects to, without secrets.
pub(crate) fn shown(location: &Location, redactor: &Redactor) -> Value {
    match location {
        Location::Command { program, args, env, cwd } => json!({
            "command": redactor.text(&program.to_string_lossy()),
            "args": redact::words(
                &args.iter().map(|it| redactor.text(&it.to_string_lossy())).collect::<Vec<_>>(),
            ).0,
            "env": env.iter().map(|(name, _)| name.to_string_lossy()).collect::<Vec<_>>(),
            "cwd": cwd.as_ref().map(|dir| dir.to_string_lossy()),
        }),
        Location::Url { url, headers } => json!({
            "url": redact::url(url),
            "headers": headers.iter().map(|(name, _)| name).collect::<Vec<_>>(),
        }),
    }
}
