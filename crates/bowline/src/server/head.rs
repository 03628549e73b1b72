//! The HTTP request that a message came in, as handlers and rules see it.
//!
//! It is shared, not copied: the transport moves the head of a request in here, and takes the
//! memory back for the response unless a handler still runs.

use std::net::SocketAddr;
use std::sync::{LazyLock, OnceLock};

use http::header::AUTHORIZATION;
use http::request::Parts;
use http::{Extensions, HeaderMap};

use super::account::Reservation;

/// The head of a request, and where it came from.
pub(crate) struct HttpHead {
    pub(crate) parts: Parts,
    pub(crate) peer_addr: Option<SocketAddr>,
    credentials: Credentials,
    /// What the body of the request holds, for as long as a handler refers to the request.
    body: OnceLock<Reservation>,
    /// The same for the head itself.
    head: OnceLock<Reservation>,
}

/// Whether handlers see the credentials of a request.
pub(crate) enum Credentials {
    /// The server's author checks them, and so may see them.
    Shown,
    /// A guard has checked them. A token is for this server only, so handlers cannot pass it on:
    /// they see the other headers, copied once one of them asks.
    #[cfg_attr(not(feature = "auth"), expect(dead_code, reason = "there is no guard"))]
    Hidden(OnceLock<Box<HeaderMap>>),
}

impl HttpHead {
    pub(crate) fn new(
        parts: Parts,
        peer_addr: Option<SocketAddr>,
        credentials: Credentials,
    ) -> Self {
        Self { parts, peer_addr, credentials, body: OnceLock::new(), head: OnceLock::new() }
    }

    /// Holds on to the memory of the body, if it counts. There is only one.
    pub(crate) fn hold(&self, body: Reservation) {
        if !body.is_empty() {
            let _ = self.body.set(body);
        }
    }

    /// Holds on to the memory of the head. It is held once.
    pub(crate) fn hold_head(&self, head: Reservation) {
        let _ = self.head.set(head);
    }

    /// Forgets the request, and returns its headers.
    pub(crate) fn clear(&mut self) -> HeaderMap {
        let (nothing, ()) = http::Request::new(()).into_parts();
        let forgotten = std::mem::replace(self, Self::new(nothing, None, Credentials::Shown));
        forgotten.parts.headers
    }

    /// The headers that handlers see.
    pub(crate) fn headers(&self) -> &HeaderMap {
        match &self.credentials {
            Credentials::Shown => &self.parts.headers,
            Credentials::Hidden(others) => others.get_or_init(|| {
                let mut headers = self.parts.headers.clone();
                headers.remove(AUTHORIZATION);
                headers.remove("dpop");
                Box::new(headers)
            }),
        }
    }
}

pub(crate) fn no_headers() -> &'static HeaderMap {
    static NONE: LazyLock<HeaderMap> = LazyLock::new(HeaderMap::new);
    &NONE
}

pub(crate) fn no_extensions() -> &'static Extensions {
    static NONE: LazyLock<Extensions> = LazyLock::new(Extensions::new);
    &NONE
}
