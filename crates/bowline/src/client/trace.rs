//! Trace context: links the server's traces to the span of a call.

use std::sync::OnceLock;

use crate::random;

/// W3C trace context, as it travels in `_meta`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceContext {
    /// `00-<trace id>-<span id>-<flags>`.
    pub traceparent: String,
    /// Data of the tracing system.
    pub tracestate: Option<String>,
    /// Data of the application.
    pub baggage: Option<String>,
}

/// The context of the current `tracing` span; `None` outside any span.
///
/// `tracing` has span ids but no trace ids, so the trace is this process. Applications that export
/// their spans provide their own function with
/// [`trace_context`](super::ClientBuilder::trace_context).
pub(super) fn current() -> Option<TraceContext> {
    let span = tracing::Span::current().id()?.into_u64();
    let traceparent = format!("00-{}-{span:016x}-01", process());
    Some(TraceContext { traceparent, tracestate: None, baggage: None })
}

fn process() -> &'static str {
    static PROCESS: OnceLock<String> = OnceLock::new();
    PROCESS.get_or_init(random::token)
}
