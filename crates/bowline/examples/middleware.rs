//! Middleware for logging, metrics, an audit and a rate limit.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bowline::model::CallToolResult;
use bowline::{Answer, ErrorObject, Incoming, Middleware, Next, Outcome, ServeError, Server, Tool};
use ring::digest::{SHA256, digest};
use tokio::time::Instant;

/// How a request ended, in one word.
pub fn ending(outcome: &Outcome) -> &'static str {
    match outcome {
        Ok(Answer::InputRequired(_)) => "asked",
        Ok(answer) if answer.is_tool_error() => "tool_error",
        Ok(_) => "answered",
        Err(failure) => failure.kind.as_str(),
    }
}

/// Logs every request with its end and its duration.
pub async fn log(incoming: Incoming, next: Next) -> Outcome {
    let name = incoming.name.as_deref().unwrap_or_default();
    let what = format!("{} {name}", incoming.method);
    let transport = incoming.context.transport();
    let started = Instant::now();
    let outcome = next.run(incoming).await;
    let (end, time) = (ending(&outcome), started.elapsed());
    tracing::info!(what, ?transport, end, ?time, "a request ended");
    outcome
}

/// Counts the requests that run, and those that have ended.
#[derive(Default)]
pub struct Metrics {
    /// Returns to zero, whatever happens to the requests.
    pub running: AtomicI64,
    /// By end.
    pub ended: Mutex<BTreeMap<&'static str, u64>>,
}

/// Keeps these metrics.
pub fn count(metrics: &Arc<Metrics>) -> impl Middleware + use<> {
    let metrics = Arc::clone(metrics);
    move |incoming: Incoming, next: Next| {
        let metrics = Arc::clone(&metrics);
        async move {
            metrics.running.fetch_add(1, Ordering::Relaxed);
            let outcome = next.run(incoming).await;
            metrics.running.fetch_sub(1, Ordering::Relaxed);
            let mut ended = metrics.ended.lock().unwrap_or_else(PoisonError::into_inner);
            *ended.entry(ending(&outcome)).or_default() += 1;
            drop(ended);
            outcome
        }
    }
}

/// Writes down who did what with which arguments, and how it ended. Arguments may be confidential,
/// so it keeps a digest of them.
pub fn audit(write: impl Fn(String) + Clone + Send + Sync + 'static) -> impl Middleware {
    move |incoming: Incoming, next: Next| {
        let write = write.clone();
        async move {
            let principal = incoming.context.caller().principal.clone();
            let who = principal.as_ref().map_or("anyone", |principal| principal.as_str());
            let name = incoming.name.clone().unwrap_or_default();
            let arguments = digest(&SHA256, incoming.arguments().unwrap_or("{}").as_bytes());
            let what = format!("{who}: {} {name} {arguments:?}", incoming.method);
            let outcome = next.run(incoming).await;
            write(format!("{what}: {}", ending(&outcome)));
            outcome
        }
    }
}

/// Permits each principal this many tool calls per minute.
pub fn limit(per_minute: u32) -> impl Middleware {
    const MINUTE: Duration = Duration::from_secs(60);
    let windows = Arc::new(Mutex::new(HashMap::<String, (Instant, u32)>::new()));
    move |incoming: Incoming, next: Next| {
        let windows = Arc::clone(&windows);
        async move {
            if incoming.method != "tools/call" {
                return next.run(incoming).await;
            }
            let Some(principal) = &incoming.context.caller().principal else {
                return Err(ErrorObject::invalid_request("tools/call: log in first").into());
            };
            let wait = {
                let mut windows = windows.lock().unwrap_or_else(PoisonError::into_inner);
                windows.retain(|_, (start, _)| start.elapsed() < MINUTE);
                let window = windows.entry(principal.as_str().to_owned());
                let (start, calls) = window.or_insert_with(|| (Instant::now(), 0));
                *calls += 1;
                (*calls > per_minute).then(|| MINUTE.saturating_sub(start.elapsed()).as_secs() + 1)
            };
            match wait {
                None => next.run(incoming).await,
                // A result with `isError` reaches the model, which knows then what to do.
                Some(seconds) => Ok(Answer::Tool(CallToolResult::failure(format!(
                    "too many calls: at most {per_minute} per minute; help: wait {seconds} \
                     seconds, then call again"
                )))),
            }
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), ServeError> {
    let metrics = Arc::new(Metrics::default());
    Server::new("watched", "1.0.0")
        .middleware(log)
        .middleware(count(&metrics))
        .middleware(audit(|line| tracing::info!(line, "audit")))
        .with(Tool::new("hello", || async { "hello" }).description("Say hello."))
        .serve_stdio()
        .await
}
