//! Sends spans and metrics, in batches, again if that can help.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use bowline::with_causes;
use bowline_web::Web;
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{Request, StatusCode};
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc, oneshot};

use super::Destination;
use super::attribute;
use super::span::Span;
use crate::bridge::Report;
use crate::gateway::metrics::Metrics;
use crate::gateway::upstream::lock;
use crate::redact;

/// How many spans one request has.
const BATCH: usize = 512;

/// The gaps before a batch is sent again.
const AGAIN: [Duration; 3] =
    [Duration::from_millis(200), Duration::from_secs(1), Duration::from_secs(4)];

/// What the exporter is given.
pub(super) enum Message {
    Span(Box<Span>),
    /// Everything before it is to be sent now.
    Flush(oneshot::Sender<()>),
}

pub(super) struct Exporter {
    to: Destination,
    web: Web,
    metrics: Arc<OnceLock<Arc<Metrics>>>,
    dropped: Arc<AtomicU64>,
    spans: Vec<Span>,
    /// Where trouble is reported.
    report: Arc<Mutex<Option<Report>>>,
    /// Whether the last attempt failed, so that each change is told once.
    is_failing: bool,
}

impl Exporter {
    pub(super) fn new(
        (to, report): (Destination, Arc<Mutex<Option<Report>>>),
        web: Web,
        metrics: Arc<OnceLock<Arc<Metrics>>>,
        dropped: Arc<AtomicU64>,
    ) -> Self {
        Self { to, web, metrics, dropped, spans: Vec::new(), report, is_failing: false }
    }

    /// Sends until nobody has anything to send any more.
    pub(super) async fn run(mut self, mut waiting: mpsc::Receiver<Message>, full: Arc<Notify>) {
        let mut spans = tokio::time::interval(self.to.spans_every);
        let mut metrics = tokio::time::interval(self.to.metrics_every);
        loop {
            let sends_metrics = tokio::select! {
                _ = spans.tick() => false,
                () = full.notified() => false,
                _ = metrics.tick() => true,
                message = waiting.recv() => {
                    match message {
                        Some(Message::Span(span)) => self.spans.push(*span),
                        Some(Message::Flush(done)) => {
                            self.send_spans().await;
                            self.send_metrics().await;
                            let _ = done.send(());
                        }
                        None => return,
                    }
                    if self.spans.len() >= BATCH {
                        self.send_spans().await;
                    }
                    continue;
                }
            };
            self.send_spans().await;
            if sends_metrics {
                self.send_metrics().await;
            }
        }
    }

    async fn send_spans(&mut self) {
        if self.spans.is_empty() {
            return;
        }
        let spans = std::mem::take(&mut self.spans);
        let written: Vec<Value> = spans.iter().map(Span::to_json).collect();
        let scoped = json!([{ "scope": scope(), "spans": written }]);
        let body = json!({ "resourceSpans": [{
            "resource": self.resource(), "scopeSpans": scoped,
        }] });
        if !self.send("v1/traces", &body).await {
            self.dropped.fetch_add(spans.len() as u64, Ordering::Relaxed);
        }
    }

    async fn send_metrics(&mut self) {
        let metrics = self.metrics.get().map(|it| it.to_otlp()).unwrap_or_default();
        if metrics.is_empty() {
            return;
        }
        let scoped = json!([{ "scope": scope(), "metrics": metrics }]);
        let body = json!({ "resourceMetrics": [{
            "resource": self.resource(), "scopeMetrics": scoped,
        }] });
        // Sums since the start: the next ones have what these would have said.
        self.send("v1/metrics", &body).await;
    }

    fn resource(&self) -> Value {
        json!({ "attributes": [
            attribute("service.name", &self.to.service),
            attribute("service.version", env!("CARGO_PKG_VERSION")),
            attribute("telemetry.sdk.language", "rust"),
            attribute("telemetry.sdk.name", "bowline"),
        ] })
    }

    /// Returns whether it arrived.
    async fn send(&mut self, path: &str, body: &Value) -> bool {
        let body = Bytes::from(body.to_string());
        let mut gaps = AGAIN.into_iter();
        loop {
            let why = match self.post(path, body.clone()).await {
                Ok(()) => {
                    if std::mem::take(&mut self.is_failing) {
                        self.tell("telemetry arrives again");
                    }
                    return true;
                }
                Err((why, can_help)) => match gaps.next().filter(|_| can_help) {
                    Some(gap) => {
                        tokio::time::sleep(gap).await;
                        continue;
                    }
                    None => why,
                },
            };
            if !std::mem::replace(&mut self.is_failing, true) {
                let endpoint = redact::url(self.to.endpoint.as_str());
                self.tell(&format!("telemetry does not arrive at {endpoint}: {why}"));
            }
            return false;
        }
    }

    fn tell(&self, what: &str) {
        let report = lock(&self.report).clone();
        if let Some(report) = report {
            report(what);
        }
    }

    /// Sends once; the error says whether doing so again can help.
    async fn post(&self, path: &str, body: Bytes) -> Result<(), (String, bool)> {
        let url = format!("{}/{path}", self.to.endpoint.as_str().trim_end_matches('/'));
        let mut request = Request::post(url).header(CONTENT_TYPE, "application/json");
        for (name, value) in &self.to.headers {
            request = request.header(name, value);
        }
        let request = request.body(body).map_err(|error| (error.to_string(), false))?;
        let response =
            self.web.fetch(request).await.map_err(|error| (with_causes(&error), true))?;
        match response.status() {
            status if status.is_success() => Ok(()),
            // OTLP 1.3, "Retryable Response Codes".
            status @ (StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT) => Err((status.to_string(), true)),
            status => Err((status.to_string(), false)),
        }
    }
}

/// Who has measured.
fn scope() -> Value {
    json!({ "name": "bowline-gateway", "version": env!("CARGO_PKG_VERSION") })
}
