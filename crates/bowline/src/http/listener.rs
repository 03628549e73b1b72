//! Sockets: accepts, limits and closes connections.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::task::JoinSet;

use super::descriptors;
use super::options::{Http, HttpLimits};
use super::patience::{Line, Visitor};
use super::service::HttpService;
#[cfg(feature = "tls")]
use super::tls::Tls;
use crate::ServeError;
use crate::rarely::Rarely;
use crate::server::account::Party;
use crate::server::account::places::{Full, Kind, Most, Place};
use crate::server::audit;
use crate::server::{BoxFuture, is_passing, stop_signal};

/// The most bytes that are read at a time. A longer head is rejected.
const BUFFER: usize = 256 << 10;

/// What an HTTP/2 client may send before we have read the rest, on one connection.
#[cfg(feature = "http2")]
const WINDOW: u32 = 256 << 10;

/// Requests at a time on one HTTP/2 connection.
#[cfg(feature = "http2")]
const STREAMS: u32 = 100;

/// Connections that are accepted although all places are taken, for one request each.
const RESERVE: usize = 64;

/// How often idle sessions are removed.
const SWEEP: Duration = Duration::from_secs(30);

/// How long a node of a fleet drains by default: longer than three probes, one a second.
const DRAIN: Duration = Duration::from_secs(5);

impl Http {
    /// Serves on a listening socket until the process receives a stop signal. First it
    /// [drains](Http::drain); then running requests get [`Limits::grace`](crate::Limits::grace) to
    /// finish, and new ones are rejected with 503.
    ///
    /// # Errors
    /// When a part of the server is invalid, or the socket stops accepting connections.
    pub async fn serve_on(self, listener: TcpListener) -> Result<(), ServeError> {
        self.serve_until(listener, stop_signal()).await
    }

    /// The same, but until `stop` is ready. Signals are ignored.
    ///
    /// # Errors
    /// When a part of the server is invalid, or the socket stops accepting connections.
    pub async fn serve_until(
        self,
        listener: TcpListener,
        stop: impl Future<Output = ()>,
    ) -> Result<(), ServeError> {
        let (stopping, stopped) = oneshot::channel();
        let mut serving = self.serving(listener, stopped);
        tokio::select! {
            served = &mut serving => return served,
            () = stop => drop(stopping),
        }
        serving.await
    }

    /// Serves until the other end of `stopped` is gone. Boxed, because a crate that polls a future
    /// compiles everything in it: the server is compiled here, once, and not in every program.
    fn serving(
        mut self,
        listener: TcpListener,
        stopped: oneshot::Receiver<Infallible>,
    ) -> BoxFuture<Result<(), ServeError>> {
        Box::pin(async move {
            #[cfg(feature = "tls")]
            let tls = self.tls.clone();
            let drain = self.drain;
            descriptors::bound(&mut self.limits);
            let service = HttpService::new(self, false)?;
            #[cfg(feature = "tls")]
            let scheme = if tls.is_some() { "https" } else { "http" };
            #[cfg(not(feature = "tls"))]
            let scheme = "http";
            if let Ok(address) = listener.local_addr() {
                tracing::info!("listening on {scheme}://{address}{}", service.inner.path);
                if let Some(joined) = &service.inner.core.fleet {
                    let origin = format!("{scheme}://{address}");
                    joined
                        .fleet
                        .listens_at(Some(origin).filter(|_| !address.ip().is_unspecified()));
                }
            }
            let is_node = service.inner.core.fleet.is_some();
            let drain = drain.unwrap_or(if is_node { DRAIN } else { Duration::ZERO });
            let places = Arc::new(Semaphore::new(service.inner.limits.connections));
            let door = Door {
                service,
                listener,
                places,
                reserve: Arc::new(Semaphore::new(RESERVE)),
                #[cfg(feature = "tls")]
                tls,
            };
            door.serve(drain, async move { drop(stopped.await) }).await;
            Ok(())
        })
    }
}

/// Where a connection comes from, and when.
struct Origin {
    address: SocketAddr,
    /// Whether the service stops already.
    is_late: bool,
    /// Whether all places are taken.
    is_extra: bool,
}

/// A connection that was accepted.
struct Accepted {
    stream: TcpStream,
    address: SocketAddr,
    permit: OwnedSemaphorePermit,
    is_extra: bool,
}

/// Accepts connections.
struct Door {
    service: HttpService,
    listener: TcpListener,
    places: Arc<Semaphore>,
    reserve: Arc<Semaphore>,
    #[cfg(feature = "tls")]
    tls: Option<Tls>,
}

impl Door {
    async fn serve(self, drain: Duration, stop: impl Future<Output = ()>) {
        let mut connections = JoinSet::new();
        self.accept_until(stop, &mut connections).await;
        if !drain.is_zero() {
            self.service.drain();
            self.accept_until(tokio::time::sleep(drain), &mut connections).await;
        }
        self.service.stop_listening();
        let core = &self.service.inner.core;
        let finished = tokio::time::timeout(core.limits.grace, self.finish(&mut connections));
        let _ = tokio::join!(finished, core.stop_extensions(core.limits.grace));
        connections.shutdown().await;
        self.tasks().shutdown().await;
        // None takes longer than the grace period.
        core.leftovers.finish().await;
        // Last: until here, calls may have had changes to announce and answers to wait for.
        core.leave_fleet().await;
    }

    async fn accept_until(&self, end: impl Future<Output = ()>, connections: &mut JoinSet<()>) {
        let mut sweep = tokio::time::interval(SWEEP);
        let mut end = std::pin::pin!(end);
        loop {
            tokio::select! {
                () = &mut end => return,
                accepted = self.next() => self.admit(accepted, connections).await,
                Some(_) = connections.join_next() => {}
                _ = sweep.tick() => self.service.sweep(),
            }
        }
    }

    /// Waits until everything that runs is done. New connections are answered with 503.
    async fn finish(&self, connections: &mut JoinSet<()>) {
        let mut latecomers = JoinSet::new();
        let ended = async {
            while connections.join_next().await.is_some() {}
            // Legacy handlers continue without their connection.
            let mut tasks = self.tasks();
            while tasks.join_next().await.is_some() {}
        };
        let mut ended = std::pin::pin!(ended);
        loop {
            tokio::select! {
                () = &mut ended => return,
                accepted = self.next() => self.admit(accepted, &mut latecomers).await,
                Some(_) = latecomers.join_next() => {}
            }
        }
    }

    fn tasks(&self) -> JoinSet<()> {
        let tasks = &self.service.inner.tasks;
        std::mem::take(&mut *tasks.lock().unwrap_or_else(PoisonError::into_inner))
    }

    async fn admit(&self, accepted: io::Result<Accepted>, connections: &mut JoinSet<()>) {
        match accepted {
            Ok(Accepted { stream, address, permit, is_extra }) => {
                let service = self.service.clone();
                let party = Party::of(None, Some(address.ip()));
                let account = service.inner.core.accounts.find(party);
                // The semaphore counts all of them.
                let most = Most { all: usize::MAX, ..service.inner.limits.most(Kind::Connections) };
                let place = match Place::take(&account, most) {
                    Ok(place) => place,
                    Err(full) => return self.turn_away(&stream, address, full),
                };
                let origin = Origin { address, is_late: service.is_stopping(), is_extra };
                #[cfg(feature = "tls")]
                let tls = self.tls.clone();
                connections.spawn(async move {
                    let _places = (permit, place);
                    if account.must_wait_outside() {
                        Box::pin(account.wait()).await;
                    }
                    #[cfg(feature = "tls")]
                    if let Some(tls) = tls {
                        return secured(service, &tls, stream, origin).await;
                    }
                    connection(service, stream, origin).await;
                });
                // Whatever is ready goes first, however many connections are waiting.
                tokio::task::yield_now().await;
            }
            Err(error) if is_passing(&error) => {
                tracing::debug!(%error, "a connection ended before it was accepted");
            }
            Err(error) => {
                tracing::warn!(%error, "failed to accept a connection");
                // Most likely out of file descriptors: wait for some to be closed.
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }

    /// Tells a party that it has too many connections, as far as that is possible without waiting
    /// for it.
    fn turn_away(&self, stream: &TcpStream, address: SocketAddr, full: Full) {
        audit::refused_connection(address, "limit");
        #[cfg(feature = "tls")]
        let is_plain = self.tls.is_none();
        #[cfg(not(feature = "tls"))]
        let is_plain = true;
        if is_plain {
            let body = serde_json::json!({ "error": full.to_string() }).to_string();
            let answer = format!(
                "HTTP/1.1 503 Service Unavailable\r\nretry-after: 5\r\nconnection: close\r\n\
                 content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
                body.len()
            );
            // A new connection has room for it.
            let _ = stream.try_write(answer.as_bytes());
        }
    }

    /// The next connection. If all places are taken, it is one of the reserve.
    async fn next(&self) -> io::Result<Accepted> {
        let extra = Arc::clone(&self.reserve).acquire_owned().await.map_err(io::Error::other)?;
        let (stream, address) = self.listener.accept().await?;
        // They fail if the client has gone already, which its own task finds out.
        let _ = stream.set_nodelay(true);
        let _ = set_unread(&stream, &self.service.inner.limits);
        let place = Arc::clone(&self.places).try_acquire_owned();
        let is_extra = place.is_err();
        Ok(Accepted { stream, address, permit: place.unwrap_or(extra), is_extra })
    }
}

/// Closes the connection of a client that stops reading or vanishes.
#[cfg(target_os = "linux")]
fn set_unread(stream: &TcpStream, limits: &HttpLimits) -> io::Result<()> {
    use rustix::net::sockopt;
    let milliseconds = u32::try_from(limits.unread.as_millis()).unwrap_or(u32::MAX);
    sockopt::set_tcp_user_timeout(stream, milliseconds)?;
    // The timeout only applies to data in flight, so idle connections are probed. The kernel counts
    // in seconds.
    let probe = (limits.unread / 3).max(Duration::from_secs(1));
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, probe)?;
    Ok(sockopt::set_tcp_keepintvl(stream, probe)?)
}

#[cfg(not(target_os = "linux"))]
fn set_unread(_: &TcpStream, _: &HttpLimits) -> io::Result<()> {
    Ok(())
}

#[cfg(feature = "tls")]
async fn secured(service: HttpService, tls: &Tls, stream: TcpStream, origin: Origin) {
    let patience = service.inner.limits.first(origin.is_extra);
    match tokio::time::timeout(patience, tls.accept(stream)).await {
        Ok(Ok(stream)) => connection(service, stream, origin).await,
        Ok(Err(error)) => {
            audit::refused_connection(origin.address, "tls");
            tracing::debug!(%error, "a TLS handshake failed");
        }
        Err(_) => {
            audit::refused_connection(origin.address, "tls");
            tracing::debug!("a TLS handshake timed out");
        }
    }
}

/// Speaks HTTP/1.1 and HTTP/2.
#[cfg(feature = "http2")]
fn builder(
    limits: &HttpLimits,
    is_brief: bool,
) -> hyper_util::server::conn::auto::Builder<hyper_util::rt::TokioExecutor> {
    use hyper_util::rt::{TokioExecutor, TokioTimer};
    let mut builder = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
    builder.http1().max_buf_size(limits.head_length.max(BUFFER)).keep_alive(!is_brief);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(u32::try_from(limits.head_length).unwrap_or(u32::MAX))
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(WINDOW)
        .max_concurrent_streams(STREAMS)
        .max_send_buf_size(BUFFER / 4)
        .keep_alive_interval(limits.keep_alive)
        .keep_alive_timeout(limits.keep_alive);
    builder
}

/// Speaks HTTP/1.1.
#[cfg(not(feature = "http2"))]
fn builder(limits: &HttpLimits, is_brief: bool) -> hyper::server::conn::http1::Builder {
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder.max_buf_size(limits.head_length.max(BUFFER)).keep_alive(!is_brief);
    builder
}

/// Serves one connection until it closes or the service stops. A connection that comes after that
/// gets a single answer, 503.
async fn connection<S>(service: HttpService, stream: S, origin: Origin)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let Origin { address, is_late, is_extra } = origin;
    let builder = builder(&service.inner.limits, is_late || is_extra);
    let first = service.inner.limits.first(is_extra);
    let mut stopped = Rarely::new(service.stopped());
    let visitor = Arc::new(Visitor::new(service, address, is_extra));
    let mut lost = Rarely::new(Arc::clone(&visitor).lost(first));
    let waiting = Arc::clone(&visitor);
    let line = TokioIo::new(Line { stream, visitor: Arc::clone(&visitor) });
    let answer = service_fn(move |request| Arc::clone(&visitor).serve(request));
    let connection = builder.serve_connection(line, answer);
    let mut connection = std::pin::pin!(connection);
    let (mut is_told, mut is_closing) = (is_late, false);
    let ended = loop {
        tokio::select! {
            biased;
            ended = connection.as_mut() => break ended,
            () = &mut stopped, if !is_told => {
                is_told = true;
                connection.as_mut().graceful_shutdown();
            }
            // An idle HTTP/2 connection is told that it ends. A request that is on its way is
            // still served; a client that does not answer is not waited for.
            () = &mut lost => {
                if is_closing || !waiting.is_shared() {
                    return tracing::debug!("a connection timed out waiting for a request");
                }
                is_closing = true;
                connection.as_mut().graceful_shutdown();
                lost = Rarely::new(Arc::clone(&waiting).lost(first));
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection failed");
    }
}
