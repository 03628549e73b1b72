//! Running a server: on stdio, on a byte stream, on a listening socket.

use std::io;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::connection::Connection;
use super::core::Core;
use super::scopes::Rights;
use super::{BuildError, Server};

/// Why a server could not start, or stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// Something is wrong with a tool, prompt or resource.
    #[error("the server cannot be built")]
    Build(#[from] BuildError),
    /// The stream failed.
    #[error("the stream failed")]
    Io(#[from] io::Error),
}

impl Server {
    /// Serves one client on standard input and output, until it closes its side or the process is
    /// told to stop (SIGTERM, Ctrl-C). Requests that run then get
    /// [`Limits::grace`](crate::Limits::grace) to finish.
    ///
    /// Standard output belongs to the protocol from here on: what a stray `println!` writes goes to
    /// standard error. Logs belong there anyway.
    ///
    /// # Errors
    /// When something is wrong with a part of the server, or a stream fails.
    pub async fn serve_stdio(self) -> Result<(), ServeError> {
        let core = self.build()?;
        let (input, output) = crate::stdio::stdio()?;
        Ok(Connection::new(core, None, Rights::Unlimited).run(input, output, stop_signal()).await?)
    }

    /// Serves one client on a byte stream, such as a socket or one end of a
    /// [`tokio::io::duplex`].
    ///
    /// # Errors
    /// When something is wrong with a part of the server, or the stream fails.
    pub async fn serve<S>(self, stream: S) -> Result<(), ServeError>
    where
        S: AsyncRead + AsyncWrite,
    {
        Ok(serve_core(self.build()?, stream).await?)
    }

    /// Serves every client that connects to a TCP port, one message a line.
    ///
    /// The protocol on it is neither encrypted nor authenticated: listen on loopback.
    ///
    /// # Errors
    /// When something is wrong with a part of the server, or nothing can be accepted any more.
    pub async fn serve_tcp(self, listener: TcpListener) -> Result<(), ServeError> {
        let accept = || async { listener.accept().await.map(|(stream, _)| stream) };
        serve_all(self.build()?, accept).await
    }

    /// Serves every client that connects to a Unix socket, one message a line.
    ///
    /// # Errors
    /// When something is wrong with a part of the server, or nothing can be accepted any more.
    #[cfg(unix)]
    pub async fn serve_unix(self, listener: tokio::net::UnixListener) -> Result<(), ServeError> {
        let accept = || async { listener.accept().await.map(|(stream, _)| stream) };
        serve_all(self.build()?, accept).await
    }
}

/// Serves one client on a byte stream until the client ends.
pub(crate) async fn serve_core<S>(core: Arc<Core>, stream: S) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite,
{
    serve_stream(core, stream, std::future::pending()).await
}

async fn serve_stream<S>(
    core: Arc<Core>,
    stream: S,
    stop: impl Future<Output = ()>,
) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite,
{
    let (reader, writer) = tokio::io::split(stream);
    Connection::new(core, None, Rights::Unlimited).run(reader, writer, stop).await
}

/// How many clients of a listening socket are served at a time. Further ones wait to be accepted.
const CLIENTS: usize = 1_024;

/// Accepts until told to stop, then lets every client finish.
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
                    clients.spawn(serve_stream(Arc::clone(&core), stream, stop));
                }
                Err(error) if is_passing(&error) => tracing::warn!(%error, "a client was not accepted"),
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
    ended
}

/// Errors of one client, not of the listening socket.
fn is_passing(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionReset | Interrupted)
}

/// Ready when the process is told to stop: SIGTERM, Ctrl-C. Listens from now on, not only once it
/// is awaited. For those who say when to stop themselves, as in `Http::serve_until`, and must not
/// miss what comes before that.
#[cfg(unix)]
pub fn stop_signal() -> impl Future<Output = ()> {
    use tokio::signal::unix::{Signal, SignalKind, signal};
    async fn received(signal: io::Result<Signal>) {
        match signal {
            Ok(mut signal) => {
                signal.recv().await;
            }
            // Then it ends the process as it always did.
            Err(_) => std::future::pending().await,
        }
    }
    let terminate = signal(SignalKind::terminate());
    let interrupt = signal(SignalKind::interrupt());
    async move {
        tokio::select! {
            () = received(terminate) => {}
            () = received(interrupt) => {}
        }
    }
}

/// Ready when the process is told to stop: Ctrl-C.
#[cfg(not(unix))]
pub async fn stop_signal() {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending().await
    }
}
