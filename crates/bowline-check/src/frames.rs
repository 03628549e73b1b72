//! Frame-level connections to a server: exactly the given bytes are sent, and everything that comes
//! back is kept, readable or not.
//!
//! The SDK's client cannot stand in for this: it sends nothing wrong, and it repairs or drops what
//! a server gets wrong.
//!
//! | type | is |
//! |---|---|
//! | [`Process`] | a program in a process group of its own, one frame a line |
//! | [`Http`] | an HTTP endpoint; each [`HttpRequest`] is one exchange |
//! | [`HttpSse`] | the transport of 2024-11-05: an event stream, and the URL to post to |
//!
//! None of them knows what a frame means. [`message`] builds the few requests that every caller
//! needs.

mod events;
mod group;
mod http;
pub mod message;
mod process;
mod sse;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use ::http::StatusCode;
pub use bowline::client::Direction;
use bowline::with_causes;
use bowline_web::WebError;
use serde_json::Value;

pub use self::events::Event;
pub use self::http::{HeaderChanges, Http, HttpReply, HttpRequest};
pub use self::process::{Process, Reader, Recipe, Writer};
pub use self::sse::HttpSse;
pub(crate) use self::sse::{endpoint, resolve};
use crate::text::shorten;

/// Largest body, event or line that is read: 16 MiB.
pub const LIMIT: usize = 16 << 20;

/// Hears every frame that is sent or received. The default hears nothing.
#[derive(Clone, Default)]
pub struct Tap {
    hear: Option<Arc<Hear>>,
    connection: Option<u64>,
}

type Hear = dyn Fn(Direction, &[u8], Option<u64>) + Send + Sync;

impl Tap {
    /// Calls a function with each frame, and with the number of its connection where several are
    /// open at once.
    pub fn new(hear: impl Fn(Direction, &[u8], Option<u64>) + Send + Sync + 'static) -> Self {
        Self { hear: Some(Arc::new(hear)), connection: None }
    }

    /// The same listener, for the connection of this number.
    #[must_use]
    pub fn numbered(&self, connection: u64) -> Self {
        Self { hear: self.hear.clone(), connection: Some(connection) }
    }

    fn hear(&self, direction: Direction, bytes: &[u8]) {
        if let Some(hear) = self.hear.as_ref().filter(|_| !bytes.is_empty()) {
            hear(direction, bytes, self.connection);
        }
    }
}

impl fmt::Debug for Tap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tap").field("connection", &self.connection).finish_non_exhaustive()
    }
}

/// Why no reply came.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Lost {
    /// Nothing came in time.
    #[error("no response within {0:?}")]
    Silent(Duration),
    /// The program ended, or the server closed the connection.
    #[error("the server is gone: {0}")]
    Closed(String),
    /// There is no way to connect.
    #[error("cannot reach the server: {0}")]
    Unreachable(String),
    /// The response to GET has this status in place of a stream.
    #[error("GET returned {0}")]
    Status(StatusCode),
    /// The HTTP request failed.
    #[error("{}: {}", place(.0), with_causes(&**.0))]
    Web(Arc<WebError>),
    /// The handshake failed, so there is no session.
    #[error("the handshake failed: {0}")]
    NoSession(String),
    /// A response came, but with another id than that of the request.
    #[error("a response with another id came: {}", shorten(&.0.to_string(), 200))]
    OtherId(Box<Value>),
}

fn place(error: &WebError) -> &'static str {
    if error.is_before_sending() { "cannot reach the server" } else { "the server is gone" }
}

impl Lost {
    /// Whether there never was a connection to lose.
    #[must_use]
    pub fn is_unconnected(&self) -> bool {
        match self {
            Self::Unreachable(_) | Self::NoSession(_) => true,
            Self::Web(error) => error.is_before_sending(),
            Self::Silent(_) | Self::Closed(_) | Self::Status(_) | Self::OtherId(_) => false,
        }
    }
}

impl From<WebError> for Lost {
    fn from(error: WebError) -> Self {
        Self::Web(Arc::new(error))
    }
}
