//! Every message as it crosses the wire, for debugging and recording.

use std::sync::Arc;

use super::shared::guarded;

/// Which way a message went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From this client to the server.
    Sent,
    /// From the server to this client.
    Received,
}

/// A message as it was sent or received.
///
/// Over HTTP a request is reported with its head and body. The head of a response is reported
/// first, without a body; its messages follow as they arrive, without a head.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct WireMessage<'a> {
    /// Which way it went.
    pub direction: Direction,
    /// The bytes, exactly as written or read, without the line break. Empty if there is only a
    /// head. Bytes from a server are not always a message, or even text.
    pub bytes: &'a [u8],
    /// The head of the HTTP message that carried it.
    pub http: Option<&'a WireHttp>,
}

/// The head of an HTTP message.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WireHttp {
    /// The number of the exchange; a request and its response have the same.
    pub exchange: u64,
    /// The method of the request.
    pub method: String,
    /// The URL of the request.
    pub url: String,
    /// The status of a response.
    pub status: Option<u16>,
    /// The headers, in order.
    pub headers: Vec<WireHeader>,
}

/// A header of an HTTP message.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WireHeader {
    /// Its name, in lower case.
    pub name: String,
    /// Its value.
    pub value: String,
    /// Whether its value must not be shown or stored.
    pub is_secret: bool,
}

impl std::fmt::Debug for WireHeader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let value = if self.is_secret { "…" } else { &self.value };
        write!(f, "{}: {value}", self.name)
    }
}

/// A function that receives every message on the wire.
pub(super) type OnWire = Arc<dyn Fn(&WireMessage<'_>) + Send + Sync>;

/// Reports a message.
pub(super) fn tell(hook: Option<&OnWire>, direction: Direction, bytes: &[u8]) {
    if let Some(hook) = hook {
        guarded(|| hook(&WireMessage { direction, bytes, http: None }));
    }
}

/// Reports whole lines that are sent.
pub(super) fn tell_lines(hook: Option<&OnWire>, lines: &[u8]) {
    let lines = hook.map(|_| lines.split(|byte| *byte == b'\n'));
    for line in lines.into_iter().flatten().filter(|line| !line.is_empty()) {
        tell(hook, Direction::Sent, line);
    }
}

#[cfg(feature = "client-http")]
pub(super) use self::http::HttpWire;

#[cfg(feature = "client-http")]
mod http {
    use std::sync::atomic::{AtomicU64, Ordering};

    use ::http::request::Parts;
    use ::http::{HeaderMap, Response};

    use super::{Direction, OnWire, WireHeader, WireHttp, WireMessage, guarded};

    /// Headers whose values are always secret.
    const SECRET: [&str; 7] = [
        "authorization",
        "proxy-authorization",
        "cookie",
        "set-cookie",
        "dpop",
        "mcp-session-id",
        "x-api-key",
    ];

    /// The wire under one link.
    pub(in crate::client) struct HttpWire {
        hook: Option<OnWire>,
        exchanges: AtomicU64,
    }

    /// The hook, kept with a response for the reader of its body.
    #[derive(Clone)]
    struct Tapped(OnWire);

    impl HttpWire {
        pub(in crate::client) fn new(hook: Option<OnWire>) -> Self {
            Self { hook, exchanges: AtomicU64::new(0) }
        }

        /// Reports a request. Returns its head, which the response needs.
        pub(in crate::client) fn request(&self, parts: &Parts, body: &[u8]) -> Option<WireHttp> {
            let hook = self.hook.as_ref()?;
            let head = WireHttp {
                exchange: self.exchanges.fetch_add(1, Ordering::Relaxed) + 1,
                method: parts.method.to_string(),
                url: parts.uri.to_string(),
                status: None,
                headers: shown(&parts.headers),
            };
            let http = Some(&head);
            guarded(|| hook(&WireMessage { direction: Direction::Sent, bytes: body, http }));
            Some(head)
        }

        /// Reports the head of a response.
        pub(in crate::client) fn response<B>(
            &self,
            asked: Option<WireHttp>,
            response: &mut Response<B>,
        ) {
            let (Some(hook), Some(asked)) = (&self.hook, asked) else { return };
            let head = WireHttp {
                status: Some(response.status().as_u16()),
                headers: shown(response.headers()),
                ..asked
            };
            let http = Some(&head);
            guarded(|| hook(&WireMessage { direction: Direction::Received, bytes: b"", http }));
            response.extensions_mut().insert(Tapped(OnWire::clone(hook)));
        }

        /// Returns a function that reports a body that is not handled as messages.
        pub(in crate::client) fn body_of<B>(response: &Response<B>) -> impl Fn(&[u8]) + use<B> {
            let tapped = response.extensions().get::<Tapped>().cloned();
            move |bytes| {
                let hook = tapped.as_ref().map(|Tapped(hook)| hook);
                super::tell(hook.filter(|_| !bytes.is_empty()), Direction::Received, bytes);
            }
        }
    }

    fn shown(headers: &HeaderMap) -> Vec<WireHeader> {
        let shown = headers.iter().map(|(name, value)| WireHeader {
            name: name.as_str().to_owned(),
            value: String::from_utf8_lossy(value.as_bytes()).into_owned(),
            is_secret: value.is_sensitive() || SECRET.contains(&name.as_str()),
        });
        shown.collect()
    }
}
