//! What a client can connect to.

use tokio::io::{AsyncRead, AsyncWrite};

use super::child::Command;
use super::supervise::Once;
use crate::Server;

/// What a client can connect to: a command, a URL, a byte stream, a server in this process.
pub struct Target(pub(super) Destination);

pub(super) enum Destination {
    Command(Command),
    #[cfg(feature = "client-http")]
    Url(Box<super::http::Endpoint>),
    Stream(Once),
    Server(Box<Server>),
    /// A server in this process, reached over HTTP.
    #[cfg(all(feature = "client-http", feature = "http", feature = "testing"))]
    OverHttp(Box<crate::testing::OverHttp>),
    /// An invalid target, with the reason.
    #[cfg(not(feature = "client-http"))]
    Nowhere(String),
}

impl Target {
    /// Any byte stream, such as a socket, with one message per line.
    pub fn stream(stream: impl AsyncRead + AsyncWrite + Send + 'static) -> Self {
        let (reader, writer) = tokio::io::split(stream);
        Self::streams(reader, writer)
    }

    /// A byte stream as two halves.
    pub fn streams(
        reader: impl AsyncRead + Send + 'static,
        writer: impl AsyncWrite + Send + 'static,
    ) -> Self {
        let (reader, writer) = (Box::new(Box::pin(reader)), Box::new(Box::pin(writer)));
        Self(Destination::Stream(Once { reader, writer, server: None }))
    }
}

impl From<Command> for Target {
    fn from(command: Command) -> Self {
        Self(Destination::Command(command))
    }
}

/// A server in this process, reached in memory.
impl From<Server> for Target {
    fn from(server: Server) -> Self {
        Self(Destination::Server(Box::new(server)))
    }
}

/// A server in this process, reached over HTTP.
#[cfg(all(feature = "client-http", feature = "http", feature = "testing"))]
impl From<crate::testing::OverHttp> for Target {
    fn from(server: crate::testing::OverHttp) -> Self {
        Self(Destination::OverHttp(Box::new(server)))
    }
}

/// An `http` or `https` URL.
impl From<&str> for Target {
    fn from(url: &str) -> Self {
        #[cfg(feature = "client-http")]
        return Self::from(super::http::Endpoint::new(url));
        #[cfg(not(feature = "client-http"))]
        Self(Destination::Nowhere(format!(
            "cannot connect to {url:?}: URLs need the feature `client-http`"
        )))
    }
}

/// An `http` or `https` URL.
impl From<String> for Target {
    fn from(url: String) -> Self {
        Self::from(url.as_str())
    }
}

#[cfg(feature = "client-http")]
impl From<super::http::Endpoint> for Target {
    fn from(url: super::http::Endpoint) -> Self {
        Self(Destination::Url(Box::new(url)))
    }
}
