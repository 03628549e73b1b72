//! What can go wrong between a request and its response.

use std::error::Error;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use http::Uri;

use crate::UrlError;

/// The cause of a [`WebError`].
pub type Cause = Arc<dyn Error + Send + Sync>;

/// Why a request has no response.
///
/// Names the host, and never the path, the query or the user of a URL: those may contain secrets.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum WebError {
    /// The URL cannot be requested.
    #[error("{host}: the URL cannot be used: expected {why}")]
    Url {
        /// The host, as far as it could be parsed.
        host: String,
        /// What was expected.
        why: UrlError,
    },
    /// A setting of the client is not valid.
    #[error("{what}")]
    Settings {
        /// Which setting, and what is wrong with it.
        what: &'static str,
        /// The cause.
        #[source]
        source: Option<Cause>,
    },
    /// The host name has no address.
    #[error("{host}: cannot resolve the host name")]
    Dns {
        /// The host.
        host: String,
        /// The resolver's error.
        #[source]
        source: Cause,
    },
    /// Nothing listens there, or the network blocks the connection.
    #[error("{host}: cannot connect")]
    Connect {
        /// The host.
        host: String,
        /// The system's error.
        #[source]
        source: Cause,
    },
    /// The TLS handshake failed.
    #[error("{host}: the TLS handshake failed")]
    Tls {
        /// The host.
        host: String,
        /// What is wrong with the certificate or the handshake.
        #[source]
        source: Cause,
    },
    /// The proxy cannot be reached, or rejects the request.
    #[error("{host}: cannot connect through the proxy {proxy}")]
    Proxy {
        /// The host behind the proxy.
        host: String,
        /// The proxy, without its user.
        proxy: String,
        /// What went wrong.
        #[source]
        source: Cause,
    },
    /// A deadline passed.
    #[error("{host}: {what} took longer than {after:?}")]
    TimedOut {
        /// The host.
        host: String,
        /// What took too long.
        what: &'static str,
        /// The deadline.
        after: Duration,
    },
    /// The host is not allowed. See [`Reach`](crate::Reach).
    #[error("{host}: not allowed: {}{why}", Address(address.as_ref()))]
    Forbidden {
        /// The host.
        host: String,
        /// The address that the name resolves to; `None` if the name itself is not public.
        address: Option<IpAddr>,
        /// Why it is not allowed.
        why: &'static str,
    },
    /// The response is larger than the limit.
    #[error("{host}: the response is larger than {limit} bytes")]
    TooLarge {
        /// The host.
        host: String,
        /// The limit.
        limit: usize,
    },
    /// The connection was closed before the response was complete.
    #[error("{host}: closed the connection before the response was complete")]
    Closed {
        /// The host.
        host: String,
        /// How that was noticed.
        #[source]
        source: Cause,
    },
    /// The host violates HTTP.
    #[error("{host}: the response is not valid HTTP")]
    Protocol {
        /// The host.
        host: String,
        /// The cause.
        #[source]
        source: Cause,
    },
}

impl WebError {
    /// Whether the request most likely never reached the host.
    #[must_use]
    pub fn is_before_sending(&self) -> bool {
        match self {
            Self::Url { .. }
            | Self::Settings { .. }
            | Self::Dns { .. }
            | Self::Connect { .. }
            | Self::Tls { .. }
            | Self::Proxy { .. }
            | Self::Forbidden { .. } => true,
            Self::TimedOut { what, .. } => *what == CONNECTING,
            Self::TooLarge { .. } | Self::Closed { .. } | Self::Protocol { .. } => false,
        }
    }

    /// Reports a URL that cannot be requested. Only its host is named.
    pub(crate) fn unusable(uri: &Uri) -> impl FnOnce(UrlError) -> Self {
        let host = uri.host().unwrap_or("the URL").to_owned();
        |why| Self::Url { host, why }
    }

    /// Converts an error of the HTTP library.
    pub(crate) fn from_http(host: &str, error: impl Error + Send + Sync + 'static) -> Self {
        let mut level: Option<&(dyn Error + 'static)> = Some(&error);
        let mut closed = false;
        while let Some(cause) = level {
            if let Some(ours) = cause.downcast_ref::<Self>() {
                return ours.clone();
            }
            closed |= cause.is::<std::io::Error>();
            closed |= cause.downcast_ref::<hyper::Error>().is_some_and(|cause| {
                cause.is_incomplete_message() || cause.is_canceled() || cause.is_closed()
            });
            level = cause.source();
        }
        let host = host.to_owned();
        let source: Cause = Arc::new(error);
        if closed { Self::Closed { host, source } } else { Self::Protocol { host, source } }
    }
}

pub(crate) const CONNECTING: &str = "connecting";

/// An address in front of the reason, if there is one.
struct Address<'a>(Option<&'a IpAddr>);

impl std::fmt::Display for Address<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.map_or(Ok(()), |address| write!(f, "{address} "))
    }
}
