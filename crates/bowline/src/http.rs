//! Streamable HTTP: one endpoint for clients of every revision at the same time.
//!
//! | request | served as |
//! |---|---|
//! | POST with a modern claim in its body | stateless request: `modern` |
//! | POST `initialize`, then POST, GET, DELETE with its session id | `legacy` sessions |
//! | GET `/sse`, POST `/messages` | HTTP+SSE of 2024-11-05: `sse` |
//!
//! [`HttpService`] has the table of all paths.
//!
//! The service is a plain function from request to response: it can be driven in memory, nested
//! into another framework, or served on a socket with [`Server::serve_http`].

mod admit;
mod arrival;
mod batch;
mod body;
mod cors;
mod descriptors;
mod fleet;
mod kept;
mod legacy;
mod letters;
mod listener;
mod live;
mod modern;
mod mount;
mod options;
mod paths;
mod patience;
mod remembered;
mod reply;
mod request_body;
mod resume;
mod service;
mod sessions;
mod sse;
mod stop;
mod stream;
mod taken;
#[cfg(feature = "tls")]
mod tls;
mod tower;

#[cfg(feature = "auth")]
pub use bowline_auth::verify as auth;

pub use self::body::Body;
pub use self::descriptors::raise_file_limit;
pub use self::mount::Mounted;
pub use self::options::{Http, HttpLimits};
pub use self::service::HttpService;
#[cfg(feature = "tls")]
pub use self::tls::{Tls, TlsError};
use crate::{ServeError, Server};
#[cfg(feature = "tls")]
pub use tokio_rustls::rustls;

impl Server {
    /// Settings for serving over HTTP.
    pub fn http(self) -> Http {
        Http::new(self)
    }

    /// Serves over HTTP at `/mcp` until the process receives a stop signal.
    ///
    /// Only requests to loopback addresses and names are admitted, unless [`Http::allow_host`] adds
    /// others.
    ///
    /// # Errors
    /// When a part of the server is invalid, or the address cannot be bound.
    pub async fn serve_http(self, address: &str) -> Result<(), ServeError> {
        self.http().serve(address).await
    }
}
