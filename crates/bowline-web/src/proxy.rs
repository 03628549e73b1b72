//! Whether a request goes directly or through a proxy.

use std::fmt;

use http::{HeaderValue, Uri};
use hyper_util::client::proxy::matcher::{Intercept, Matcher};

use crate::{Origin, WebError};

/// The proxy.
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum Proxy {
    /// As the environment variables `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY` say, in
    /// upper or lower case. Requests to loopback hosts never use it.
    #[default]
    Environment,
    /// No proxy.
    None,
    /// This one, for every host: `http://`, `https://` or `socks5://` (`socks5h://` lets the proxy
    /// resolve names), with a user and password if it needs them.
    Url(Uri),
}

/// The user of a proxy is a secret.
impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Environment => f.write_str("Environment"),
            Self::None => f.write_str("None"),
            Self::Url(uri) => f.debug_tuple("Url").field(&uri.host().unwrap_or_default()).finish(),
        }
    }
}

/// The rules that decide between direct connections and the proxy.
#[derive(Debug)]
pub(crate) struct Route {
    matcher: Option<Matcher>,
    spares_loopback: bool,
}

impl Route {
    pub(crate) fn new(proxy: &Proxy) -> Result<Self, WebError> {
        let (matcher, spares_loopback) = match proxy {
            Proxy::None => (None, true),
            Proxy::Environment => (Some(Matcher::from_env()), true),
            Proxy::Url(uri) => {
                let matcher = Matcher::builder().all(uri.to_string()).build();
                let example = Uri::from_static("https://example.com/");
                matcher.intercept(&example).ok_or(WebError::Settings {
                    what: "the proxy's URL cannot be used: expected a URL such as http://host:port",
                    source: None,
                })?;
                (Some(matcher), false)
            }
        };
        Ok(Self { matcher, spares_loopback })
    }

    /// The proxy for a request, if it uses one.
    pub(crate) fn proxy_for(&self, uri: &Uri, origin: &Origin) -> Option<Intercept> {
        if self.spares_loopback && origin.host.is_loopback() {
            return None;
        }
        self.matcher.as_ref()?.intercept(uri)
    }

    /// The credentials that an unencrypted request must show its proxy. With TLS, they were shown
    /// when the tunnel was opened.
    pub(crate) fn credentials(&self, uri: &Uri, origin: &Origin) -> Option<HeaderValue> {
        if origin.is_https {
            return None;
        }
        let proxy = self.proxy_for(uri, origin)?;
        proxy.basic_auth().cloned()
    }
}
