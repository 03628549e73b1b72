//! What can go wrong between a request and its answer.

use std::error::Error;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use http::Uri;

use crate::UrlError;

/// What lies under a [`WebError`].
pub type Cause = Arc<dyn Error + Send + Sync>;

/// Why a request has no answer.
///
/// Names the host, and never the path, the query or a user of a URL: those may hold secrets.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum WebError {
    /// The URL is not one that can be sent to.
    #[error("{host}: the URL cannot be used: expected {why}")]
    Url {
        /// The host, as far as it could be read.
        host: String,
        /// What is wrong with it.
        why: UrlError,
    },
    /// The settings of the client are of no use.
    #[error("{what}")]
    Settings {
        /// Which setting, and what is wrong with it.
        what: &'static str,
        /// What was wrong with it.
        #[source]
        source: Option<Cause>,
    },
    /// The name of the host has no address.
    #[error("{host}: the name cannot be resolved")]
    Dns {
        /// The host.
        host: String,
        /// What the resolver said.
        #[source]
        source: Cause,
    },
    /// Nobody listens there, or the way there is blocked.
    #[error("{host}: cannot connect")]
    Connect {
        /// The host.
        host: String,
        /// What the system said.
        #[source]
        source: Cause,
    },
    /// The host cannot be shown to be the one it should be.
    #[error("{host}: no TLS connection")]
    Tls {
        /// The host.
        host: String,
        /// What was wrong with the certificate or the handshake.
        #[source]
        source: Cause,
    },
    /// The proxy cannot be reached, or does not let the request through.
    #[error("{host}: the proxy {proxy} gives no connection")]
    Proxy {
        /// The host behind the proxy.
        host: String,
        /// The proxy, without its user.
        proxy: String,
        /// What went wrong.
        #[source]
        source: Cause,
    },
    /// It took too long.
    #[error("{host}: {what} took longer than {after:?}")]
    TimedOut {
        /// The host.
        host: String,
        /// What took too long.
        what: &'static str,
        /// How long was waited.
        after: Duration,
    },
    /// The host may not be reached. See [`Reach`](crate::Reach).
    #[error("{host}: may not be reached: {}{why}", Address(address.as_ref()))]
    Forbidden {
        /// The host.
        host: String,
        /// The address that the name stands for; `None` when the name itself is not for the public.
        address: Option<IpAddr>,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The answer is larger than was asked for.
    #[error("{host}: the answer has more than {limit} bytes")]
    TooLarge {
        /// The host.
        host: String,
        /// The limit.
        limit: usize,
    },
    /// The connection was closed before the whole answer had come.
    #[error("{host}: closed the connection before the answer was complete")]
    Closed {
        /// The host.
        host: String,
        /// How the end was noticed.
        #[source]
        source: Cause,
    },
    /// What the host sent is not HTTP.
    #[error("{host}: does not speak HTTP as it should")]
    Protocol {
        /// The host.
        host: String,
        /// What was wrong.
        #[source]
        source: Cause,
    },
}

impl WebError {
    /// Whether it is likely that the request never reached the host.
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

    /// Reports a URL that cannot be sent to, of which nothing but the host is named.
    pub(crate) fn unusable(uri: &Uri) -> impl FnOnce(UrlError) -> Self {
        let host = uri.host().unwrap_or("the URL").to_owned();
        |why| Self::Url { host, why }
    }

    /// What the HTTP library says, in our words.
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
        match closed {
            true => Self::Closed { host, source },
            false => Self::Protocol { host, source },
        }
    }
}

pub(crate) const CONNECTING: &str = "connecting";

/// An address in front of the reason, when there is one.
struct Address<'a>(Option<&'a IpAddr>);

impl std::fmt::Display for Address<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.map_or(Ok(()), |address| write!(f, "{address}: "))
    }
}
