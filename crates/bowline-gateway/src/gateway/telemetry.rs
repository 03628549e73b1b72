//! Spans and metrics by OpenTelemetry's conventions for MCP, sent over OTLP as JSON.
//!
//! A request of a client is a SERVER span, below the span of the client. What goes on to a server
//! is a CLIENT span below that, and the server gets its trace context. The exporter is our own: the
//! `opentelemetry` crates bring thirteen more crates and second versions of three, and this is a
//! small part of what they do. Requests never wait for it; when it cannot keep up, spans are
//! dropped and counted.

mod context;
mod export;
mod request;
mod span;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bowline_web::{Url, Web};
use http::{HeaderName, HeaderValue};
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::AbortHandle;

use self::export::{Exporter, Message};
pub(super) use self::request::Trace;
use self::span::Span;
pub(super) use self::span::error_type;
use super::metrics::Metrics;
use super::upstream::lock;
use crate::bridge::Report;

/// How many spans wait to be sent. Beyond it, new ones are dropped.
const WAITING: usize = 4096;

/// Where telemetry goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    /// The OTLP endpoint, without `/v1/traces`: `http://127.0.0.1:4318`.
    pub endpoint: Url,
    /// Headers of every request, such as an API key.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// The name of the service.
    pub service: String,
    /// How often spans are sent.
    pub spans_every: Duration,
    /// How often metrics are sent.
    pub metrics_every: Duration,
}

impl Destination {
    /// An endpoint, with the usual intervals.
    #[must_use]
    pub fn new(endpoint: Url) -> Self {
        Self {
            endpoint,
            headers: Vec::new(),
            service: "bowline-gateway".to_owned(),
            spans_every: Duration::from_secs(1),
            metrics_every: Duration::from_secs(15),
        }
    }
}

/// Sends spans and metrics. Belongs to a [`Plan`](super::Plan), and survives its reloads.
pub struct Telemetry {
    messages: mpsc::Sender<Message>,
    metrics: Arc<OnceLock<Arc<Metrics>>>,
    report: Arc<Mutex<Option<Report>>>,
    dropped: Arc<AtomicU64>,
    full: Arc<Notify>,
    task: Mutex<Option<AbortHandle>>,
}

impl Drop for Telemetry {
    fn drop(&mut self) {
        if let Some(task) = lock(&self.task).take() {
            task.abort();
        }
    }
}

impl Telemetry {
    /// Begins to send.
    ///
    /// # Errors
    /// When the client for it cannot be built.
    pub fn start(to: Destination) -> Result<Self, bowline_web::WebError> {
        let web = Web::builder().header_timeout(Some(Duration::from_secs(10))).build()?;
        let (messages, waiting) = mpsc::channel(WAITING);
        let (metrics, report) = (Arc::new(OnceLock::new()), Arc::default());
        let (dropped, full) = (Arc::new(AtomicU64::new(0)), Arc::new(Notify::new()));
        let place = (to, Arc::clone(&report));
        let exporter = Exporter::new(place, web, Arc::clone(&metrics), Arc::clone(&dropped));
        let task = tokio::spawn(exporter.run(waiting, Arc::clone(&full))).abort_handle();
        let task = Mutex::new(Some(task));
        Ok(Self { messages, metrics, report, dropped, full, task })
    }

    /// Sends everything that waits, and waits for that at most so long.
    pub async fn flush(&self, at_most: Duration) {
        let (done, is_done) = oneshot::channel();
        let flushed = async {
            if self.messages.send(Message::Flush(done)).await.is_ok() {
                let _ = is_done.await;
            }
        };
        let _ = tokio::time::timeout(at_most, flushed).await;
    }

    /// How many spans were dropped, because too many waited or the endpoint rejected them.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// A span has ended.
    fn ended(&self, span: Span) {
        if self.messages.try_send(Message::Span(Box::new(span))).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
        if self.messages.capacity() < WAITING / 2 {
            self.full.notify_one();
        }
    }

    /// What is measured here is sent from now on, and trouble with it reported.
    pub(super) fn measures(&self, metrics: &Arc<Metrics>, report: &Report) {
        // One gateway has one set of them, whatever it reloads.
        let _ = self.metrics.set(Arc::clone(metrics));
        *lock(&self.report) = Some(Arc::clone(report));
    }
}

/// An attribute with a text, as OTLP has it.
pub(super) fn attribute(key: &str, value: &str) -> Value {
    json!({ "key": key, "value": { "stringValue": value } })
}

/// The time of day: only spans and the beginnings of sums have one.
#[expect(clippy::disallowed_methods, reason = "the one place that reads the wall clock")]
pub(super) fn wall_clock() -> SystemTime {
    SystemTime::now()
}

/// Since 1970, as OTLP has it.
pub(super) fn nanoseconds(time: SystemTime) -> String {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos().to_string()
}
