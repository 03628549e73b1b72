//! Sockets: accepting, bounding and ending connections.

use std::io;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;

use super::options::{Http, HttpLimits};
use super::patience::{Line, Visitor};
use super::service::HttpService;
#[cfg(feature = "tls")]
use super::tls::Tls;
use crate::ServeError;
use crate::rarely::Rarely;
use crate::server::stop_signal;

/// How much of a body is read at a time, at most. A head that does not end within it is refused.
const BUFFER: usize = 256 << 10;

/// How often idle sessions are looked for.
const SWEEP: Duration = Duration::from_secs(30);

impl Http {
    /// Serves on a listening socket until the process is told to stop. Requests that run then get
    /// [`Limits::grace`](crate::Limits::grace) to finish; new ones are told to come back later.
    ///
    /// # Errors
    /// When something is wrong with a part of the server, or nothing can be accepted any more.
    pub async fn serve_on(self, listener: TcpListener) -> Result<(), ServeError> {
        self.serve_until(listener, stop_signal()).await
    }

    /// The same until `stop` is ready, whatever the process is told.
    ///
    /// # Errors
    /// When something is wrong with a part of the server, or nothing can be accepted any more.
    pub async fn serve_until(
        self,
        listener: TcpListener,
        stop: impl Future<Output = ()>,
    ) -> Result<(), ServeError> {
        #[cfg(feature = "tls")]
        let tls = self.tls.clone();
        let service = self.into_service()?;
        let places = Arc::new(Semaphore::new(service.inner.limits.connections));
        let door = Door {
            service,
            listener,
            places,
            #[cfg(feature = "tls")]
            tls,
        };
        door.serve(stop).await;
        Ok(())
    }
}

/// A connection and its place among those that are served at a time.
type Accepted = (TcpStream, OwnedSemaphorePermit);

/// Where connections come in.
struct Door {
    service: HttpService,
    listener: TcpListener,
    places: Arc<Semaphore>,
    #[cfg(feature = "tls")]
    tls: Option<Tls>,
}

impl Door {
    async fn serve(self, stop: impl Future<Output = ()>) {
        let mut connections = JoinSet::new();
        let mut sweep = tokio::time::interval(SWEEP);
        let mut stop = std::pin::pin!(stop);
        loop {
            tokio::select! {
                () = &mut stop => break,
                accepted = self.next() => self.admit(accepted, &mut connections).await,
                Some(_) = connections.join_next() => {}
                _ = sweep.tick() => self.service.sweep(),
            }
        }
        self.service.stop();
        let grace = self.service.inner.core.limits.grace;
        let _ = tokio::time::timeout(grace, self.finish(&mut connections)).await;
        connections.shutdown().await;
        self.tasks().shutdown().await;
    }

    /// Waits until everything that runs is done. Whoever comes meanwhile is turned away politely.
    async fn finish(&self, connections: &mut JoinSet<()>) {
        let mut latecomers = JoinSet::new();
        let ended = async {
            while connections.join_next().await.is_some() {}
            // Legacy handlers go on without their connection.
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
            Ok((stream, place)) => {
                let service = self.service.clone();
                let is_late = service.is_stopping();
                #[cfg(feature = "tls")]
                let tls = self.tls.clone();
                connections.spawn(async move {
                    let _place = place;
                    #[cfg(feature = "tls")]
                    if let Some(tls) = tls {
                        return secured(service, &tls, stream, is_late).await;
                    }
                    connection(service, stream, is_late).await;
                });
            }
            Err(error) => {
                tracing::warn!(%error, "a connection was not accepted");
                // Out of file descriptors, most likely: wait for some to be closed.
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }

    /// The next connection, when there is a place for it.
    async fn next(&self) -> io::Result<Accepted> {
        let place = Arc::clone(&self.places).acquire_owned().await.map_err(io::Error::other)?;
        let (stream, _) = self.listener.accept().await?;
        stream.set_nodelay(true)?;
        set_unread(&stream, &self.service.inner.limits)?;
        Ok((stream, place))
    }
}

/// A client that takes nothing in, or is gone without a word, loses its connection.
#[cfg(target_os = "linux")]
fn set_unread(stream: &TcpStream, limits: &HttpLimits) -> io::Result<()> {
    use rustix::net::sockopt;
    let milliseconds = u32::try_from(limits.unread.as_millis()).unwrap_or(u32::MAX);
    sockopt::set_tcp_user_timeout(stream, milliseconds)?;
    // With nothing to write, nothing would be missed: so ask now and again. The kernel counts in
    // seconds.
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
async fn secured(service: HttpService, tls: &Tls, stream: TcpStream, is_late: bool) {
    match tokio::time::timeout(service.inner.limits.head, tls.accept(stream)).await {
        Ok(Ok(stream)) => connection(service, stream, is_late).await,
        Ok(Err(error)) => tracing::debug!(%error, "a TLS handshake failed"),
        Err(_) => tracing::debug!("a TLS handshake took too long"),
    }
}

/// Speaks HTTP/1.1 and HTTP/2.
#[cfg(feature = "http2")]
fn builder(
    limits: &HttpLimits,
    is_late: bool,
) -> hyper_util::server::conn::auto::Builder<hyper_util::rt::TokioExecutor> {
    use hyper_util::rt::{TokioExecutor, TokioTimer};
    let mut builder = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
    builder.http1().max_buf_size(limits.head_length.max(BUFFER)).keep_alive(!is_late);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(u32::try_from(limits.head_length).unwrap_or(u32::MAX))
        .keep_alive_interval(limits.keep_alive)
        .keep_alive_timeout(limits.keep_alive);
    builder
}

/// Speaks HTTP/1.1.
#[cfg(not(feature = "http2"))]
fn builder(limits: &HttpLimits, is_late: bool) -> hyper::server::conn::http1::Builder {
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder.max_buf_size(limits.head_length.max(BUFFER)).keep_alive(!is_late);
    builder
}

/// Serves one connection until it ends or the service stops. One that comes after that gets a
/// single answer: that there will be no more.
async fn connection<S>(service: HttpService, stream: S, is_late: bool)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let limits = &service.inner.limits;
    let builder = builder(limits, is_late);
    let mut stopped = Rarely::new(service.stopped());
    let visitor = Arc::new(Visitor::new(service));
    let mut lost = Rarely::new(Arc::clone(&visitor).lost());
    let line = TokioIo::new(Line { stream, visitor: Arc::clone(&visitor) });
    let answer = service_fn(move |request| Arc::clone(&visitor).serve(request));
    let connection = builder.serve_connection(line, answer);
    let mut connection = std::pin::pin!(connection);
    let mut is_told = is_late;
    let ended = loop {
        tokio::select! {
            biased;
            ended = connection.as_mut() => break ended,
            () = &mut stopped, if !is_told => {
                is_told = true;
                connection.as_mut().graceful_shutdown();
            }
            () = &mut lost => return tracing::debug!("a connection waited too long for a request"),
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended badly");
    }
}
