//! Trace context: which span of ours a call belongs to, for the server's traces.

use std::sync::OnceLock;

use crate::random;

/// W3C trace context, as it travels in `_meta`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceContext {
    /// `00-<trace id>-<span id>-<flags>`.
    pub traceparent: String,
    /// What tracing systems add.
    pub tracestate: Option<String>,
    /// What applications add.
    pub baggage: Option<String>,
}

/// The context of the current `tracing` span; `None` outside of any.
///
/// `tracing` has span ids but no trace ids, so the trace is this process. An application that
/// exports its spans gives a function of its own with
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
