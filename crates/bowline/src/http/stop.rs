//! Stopping: first load balancers are told and everything is still served, then new requests are
//! rejected, and streams that would never end by themselves end.
//!
//! A framework that shuts down gracefully waits for every response, and cannot tell its services
//! that it waits. So a service inside another framework finds out by itself: a process that catches
//! SIGTERM or SIGINT means to end when one arrives, and then its listening streams end. Clients see
//! a clean end and reconnect, so that costs little if the process goes on after all.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use super::reply::{self, Reply};
use super::service::HttpService;
use crate::server::audit::Why;
use crate::{Principal, clock};

/// Ready when a stream must end.
pub(super) type Stopped = Pin<Box<dyn Future<Output = ()> + Send>>;

/// How long no stream is opened after a signal: until the framework has closed the connections of
/// the clients that reconnect at once.
const LULL: Duration = Duration::from_secs(5);

/// Whether a service stops, and for whom that matters.
#[derive(Default)]
pub(super) struct Stop {
    /// Read by every request, and so separate from the channel that others wait on.
    is_stopping: AtomicBool,
    /// Whether load balancers are to send requests elsewhere.
    is_draining: AtomicBool,
    channel: watch::Sender<bool>,
    /// When a signal last ended streams.
    signalled: Arc<Mutex<Option<Instant>>>,
}

impl Stop {
    pub(super) fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Acquire)
    }
}

impl HttpService {
    /// Answers `/ready` with 503 from now on, and goes on to serve everything: load balancers send
    /// their requests elsewhere before the service [stops](Self::stop).
    pub fn drain(&self) {
        self.inner.stop.is_draining.store(true, Ordering::Release);
    }

    /// Rejects new requests, ends listening streams, and ends what extensions do in the
    /// background, such as tasks, within [`Limits::grace`](crate::Limits::grace). A node leaves its
    /// [fleet](crate::fleet) after that time, because requests may still be running.
    pub fn stop(&self) {
        self.stop_listening();
        // Without a runtime, nothing runs that could end. It ends by itself, within its time.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let service = self.clone();
            runtime.spawn(async move {
                let core = &service.inner.core;
                let end = clock::now() + core.limits.grace;
                core.stop_extensions(core.limits.grace).await;
                if core.fleet.is_some() {
                    // What still runs may have changes to announce and questions to ask.
                    tokio::time::sleep_until(end).await;
                    core.leave_fleet().await;
                }
            });
        }
    }

    /// Rejects new requests and ends listening streams.
    pub(super) fn stop_listening(&self) {
        self.inner.stop.is_stopping.store(true, Ordering::Release);
        self.inner.stop.channel.send_replace(true);
    }

    /// Waits for `signal`, then [stops](Self::stop) the service: for a framework whose shutdown
    /// does not come from a signal to the process.
    ///
    /// ```no_run
    /// # async fn run(
    /// #     listener: tokio::net::TcpListener,
    /// #     mcp: bowline::http::HttpService,
    /// #     ended: tokio::sync::oneshot::Receiver<()>,
    /// # ) -> std::io::Result<()> {
    /// let app = axum::Router::new().nest_service("/mcp", mcp.clone());
    /// axum::serve(listener, app).with_graceful_shutdown(mcp.stop_on(ended)).await
    /// # }
    /// ```
    pub fn stop_on<S>(&self, signal: S) -> impl Future<Output = ()> + Send + use<S>
    where
        S: Future + Send + 'static,
    {
        let service = self.clone();
        async move {
            drop(signal.await);
            service.stop();
        }
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.inner.stop.is_stopping()
    }

    pub(super) fn is_draining(&self) -> bool {
        self.inner.stop.is_draining.load(Ordering::Acquire)
    }

    /// Ready when the service is told to stop.
    pub(super) fn stopped(&self) -> Stopped {
        let mut stopping = self.inner.stop.channel.subscribe();
        Box::pin(async move {
            // An error means that the service was dropped.
            let _ = stopping.wait_for(|stopping| *stopping).await;
        })
    }

    /// Ready when a listening stream must end: the service stops, the process is told to end, or
    /// the client's token expires. The client reconnects, with a new token.
    ///
    /// # Errors
    /// When no stream may be opened now; this is the answer.
    pub(super) fn listening(&self, principal: Option<&Principal>) -> Result<Stopped, Reply> {
        let mut stopped = self.stopped();
        if self.inner.is_embedded {
            let signalled = &self.inner.stop.signalled;
            if lock(signalled).is_some_and(|at| at.elapsed() < LULL) {
                let reply = reply::busy("the server is shutting down");
                return Err(reply.because(Why::Stopping));
            }
            stopped = or_signalled(stopped, Arc::clone(signalled));
        }
        let Some(expires) = principal.and_then(Principal::expires) else { return Ok(stopped) };
        let left = Duration::from_secs(expires.saturating_sub(clock::unix_seconds()));
        Ok(Box::pin(async move {
            // Either way, the stream ends.
            let _ = tokio::time::timeout(left, stopped).await;
        }))
    }
}

/// Ready with `stopped`, or when a signal arrives that the process catches.
#[cfg(unix)]
fn or_signalled(stopped: Stopped, signalled: Arc<Mutex<Option<Instant>>>) -> Stopped {
    use std::task::Poll;
    use tokio::signal::unix::{Signal, SignalKind, signal};

    // Only signals that are caught already: listening to another one would disable its default,
    // which is to end the process.
    let kinds = [SignalKind::terminate(), SignalKind::interrupt()];
    let caught = kinds.into_iter().filter(|kind| is_caught(*kind));
    let mut signals: Vec<Signal> = caught.filter_map(|kind| signal(kind).ok()).collect();
    if signals.is_empty() {
        return stopped;
    }
    Box::pin(async move {
        let received = std::future::poll_fn(|cx| {
            let is_any = signals.iter_mut().any(|signal| signal.poll_recv(cx).is_ready());
            if is_any { Poll::Ready(()) } else { Poll::Pending }
        });
        tokio::select! {
            () = stopped => {}
            () = received => *lock(&signalled) = Some(clock::now()),
        }
    })
}

#[cfg(not(unix))]
fn or_signalled(stopped: Stopped, signalled: Arc<Mutex<Option<Instant>>>) -> Stopped {
    if !crate::server::is_watching_signals() {
        return stopped;
    }
    Box::pin(async move {
        tokio::select! {
            () = stopped => {}
            () = crate::stop_signal() => *lock(&signalled) = Some(clock::now()),
        }
    })
}

/// Whether this process has a handler for a signal: one of ours, or on Linux any.
#[cfg(unix)]
fn is_caught(signal: tokio::signal::unix::SignalKind) -> bool {
    if crate::server::is_watching_signals() {
        return true;
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let mask = mask.and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok());
    mask.is_some_and(|mask| (mask >> (signal.as_raw_value() - 1)) & 1 == 1)
}

fn lock(signalled: &Mutex<Option<Instant>>) -> std::sync::MutexGuard<'_, Option<Instant>> {
    signalled.lock().unwrap_or_else(PoisonError::into_inner)
}
