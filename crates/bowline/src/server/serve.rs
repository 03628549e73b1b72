//! Running a server: on stdio, on a byte stream, on a listening socket.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bowline_proto::debug_as_sentence;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::connection::Connection;
use super::core::Core;
use super::handler::BoxFuture;
use super::peer::{Transport, Via};
use super::{BuildError, Server};

/// Why a server did not start, or stopped.
///
/// A `main` that returns it prints the sentence with its causes.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// A tool, prompt or resource is invalid.
    #[error("the server cannot be built")]
    Build(#[from] BuildError),
    /// The address cannot be used: another program may be listening there.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address.
        address: String,
        /// The cause.
        source: io::Error,
    },
    /// The stream failed.
    #[error("the stream failed")]
    Io(#[from] io::Error),
}

debug_as_sentence!(ServeError);

impl Server {
    /// Serves one client on standard input and output, until it closes its side or the process
    /// receives a stop signal (SIGTERM, Ctrl-C). Running requests get
    /// [`Limits::grace`](crate::Limits::grace) to finish.
    ///
    /// Standard output then belongs to the protocol: the output of a stray `println!` goes to
    /// standard error, where logs belong anyway.
    ///
    /// # Errors
    /// When a part of the server is invalid, or a stream fails.
    pub async fn serve_stdio(self) -> Result<(), ServeError> {
        self.serving_stdio().await
    }

    /// Boxed, because a crate that polls a future compiles everything in it: the server is compiled
    /// here, once, and not by every program again.
    fn serving_stdio(self) -> BoxFuture<Result<(), ServeError>> {
        Box::pin(async {
            let core = self.build()?;
            let (input, output) = crate::stdio::stdio()?;
            let connection = Connection::alone(Arc::clone(&core), Via::stream(Transport::Stdio));
            let served = connection.run(input, output, stop_signal()).await;
            core.stop_extensions(Duration::ZERO).await;
            core.leave_fleet().await;
            Ok(served?)
        })
    }

    /// Serves one client on a byte stream, such as a socket or one end of a
    /// [`tokio::io::duplex`].
    ///
    /// # Errors
    /// When a part of the server is invalid, or the stream fails.
    pub async fn serve<S>(self, stream: S) -> Result<(), ServeError>
    where
        S: AsyncRead + AsyncWrite,
    {
        self.serve_until(stream, std::future::pending()).await
    }

    /// The same, or until `stop` is ready. Running requests then get
    /// [`Limits::grace`](crate::Limits::grace) to finish.
    ///
    /// # Errors
    /// When a part of the server is invalid, or the stream fails.
    pub async fn serve_until<S>(
        self,
        stream: S,
        stop: impl Future<Output = ()>,
    ) -> Result<(), ServeError>
    where
        S: AsyncRead + AsyncWrite,
    {
        Ok(serve_alone(self.build()?, stream, Transport::Stream, stop).await?)
    }

    /// Serves every client that connects to a TCP port, with one message per line.
    ///
    /// This is neither encrypted nor authenticated, so listen only on loopback.
    ///
    /// # Errors
    /// When a part of the server is invalid, or the socket stops accepting connections.
    pub async fn serve_tcp(self, listener: TcpListener) -> Result<(), ServeError> {
        let accept = || async { listener.accept().await.map(|(stream, _)| stream) };
        serve_all(self.build()?, accept).await
    }

    /// Serves every client that connects to a Unix socket, with one message per line.
    ///
    /// # Errors
    /// When a part of the server is invalid, or the socket stops accepting connections.
    #[cfg(unix)]
    pub async fn serve_unix(self, listener: tokio::net::UnixListener) -> Result<(), ServeError> {
        let accept = || async { listener.accept().await.map(|(stream, _)| stream) };
        serve_all(self.build()?, accept).await
    }
}

/// Serves one client in this process until the client closes the stream.
#[cfg(feature = "client")]
pub(crate) async fn serve_core<S>(core: Arc<Core>, stream: S) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite,
{
    serve_alone(core, stream, Transport::Memory, std::future::pending()).await
}

/// Serves the only client of a server.
async fn serve_alone<S>(
    core: Arc<Core>,
    stream: S,
    transport: Transport,
    stop: impl Future<Output = ()>,
) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite,
{
    let served = serve_stream(Arc::clone(&core), stream, transport, stop).await;
    core.stop_extensions(Duration::ZERO).await;
    core.leave_fleet().await;
    served
}

async fn serve_stream<S>(
    core: Arc<Core>,
    stream: S,
    transport: Transport,
    stop: impl Future<Output = ()>,
) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite,
{
    let (reader, writer) = tokio::io::split(stream);
    Connection::alone(core, Via::stream(transport)).run(reader, writer, stop).await
}

/// The maximum number of clients of a listening socket. Further ones wait to be accepted.
const CLIENTS: usize = 1_024;

/// Accepts clients until it is told to stop, then lets every client finish.
async fn serve_all<S, A>(core: Arc<Core>, accept: impl Fn() -> A) -> Result<(), ServeError>
where
    S: AsyncRead + AsyncWrite + Send + 'static,
    A: Future<Output = io::Result<S>>,
{
    let (stopping, stopped) = tokio::sync::watch::channel(false);
    let mut clients = JoinSet::new();
    let mut stop = std::pin::pin!(stop_signal());
    let ended = loop {
        tokio::select! {
            accepted = accept(), if clients.len() < CLIENTS => match accepted {
                Ok(stream) => {
                    let mut stopped = stopped.clone();
                    let stop = async move {
                        // The sender outlives every client.
                        let _ = stopped.wait_for(|stopping| *stopping).await;
                    };
                    clients.spawn(serve_stream(Arc::clone(&core), stream, Transport::Stream, stop));
                }
                Err(error) if is_passing(&error) => tracing::warn!(%error, "failed to accept a client"),
                Err(error) => break Err(error.into()),
            },
            Some(joined) = clients.join_next() => {
                if let Ok(Err(error)) = joined {
                    tracing::debug!(%error, "a client's stream failed");
                }
            }
            () = &mut stop => break Ok(()),
        }
    };
    let _ = stopping.send(true);
    while clients.join_next().await.is_some() {}
    core.stop_extensions(core.limits.grace).await;
    core.leave_fleet().await;
    ended
}

/// Errors of one client, not of the listening socket.
pub(crate) fn is_passing(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionReset | Interrupted)
}

/// Whether [`stop_signal`] has been called, so that stop signals do not end the process at once.
static WATCHES_SIGNALS: AtomicBool = AtomicBool::new(false);

/// Whether this process listens for stop signals through [`stop_signal`].
#[cfg(feature = "http")]
pub(crate) fn is_watching_signals() -> bool {
    WATCHES_SIGNALS.load(Ordering::Relaxed)
}

/// Ready when the process receives a stop signal (SIGTERM, Ctrl-C). It listens for signals from the
/// call on, not only once it is awaited, so that none is missed: for use with `Http::serve_until`.
#[cfg(unix)]
pub fn stop_signal() -> impl Future<Output = ()> {
    use tokio::signal::unix::{Signal, SignalKind, signal};
    async fn received(signal: io::Result<Signal>) {
        match signal {
            Ok(mut signal) => {
                signal.recv().await;
            }
            // The signal then ends the process, as it does by default.
            Err(_) => std::future::pending().await,
        }
    }
    WATCHES_SIGNALS.store(true, Ordering::Relaxed);
    let terminate = signal(SignalKind::terminate());
    let interrupt = signal(SignalKind::interrupt());
    async move {
        tokio::select! {
            () = received(terminate) => {}
            () = received(interrupt) => {}
        }
    }
}

/// Ready when the process receives a stop signal: Ctrl-C, or Ctrl-Break, which alone reaches a
/// process in a group of its own. It listens for signals from the call on, not only once it is
/// awaited, so that none is missed: for use with `Http::serve_until`.
#[cfg(not(unix))]
pub fn stop_signal() -> impl Future<Output = ()> {
    WATCHES_SIGNALS.store(true, Ordering::Relaxed);
    let interrupt = tokio::signal::windows::ctrl_c();
    let stop = tokio::signal::windows::ctrl_break();
    async move {
        // A signal that cannot be listened for ends the process, as it does by default.
        let (Ok(mut interrupt), Ok(mut stop)) = (interrupt, stop) else {
            return std::future::pending().await;
        };
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = stop.recv() => {}
        }
    }
}
