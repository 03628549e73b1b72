//! The head of a request as it arrives.

use std::net::SocketAddr;
#[cfg(feature = "auth")]
use std::sync::OnceLock;

use http::request::Parts;

use super::service::HttpService;
use crate::server::{Credentials, HttpHead};

impl HttpService {
    /// The head of a request, and who sees what of it; `address` is that of its connection.
    pub(super) fn head(&self, parts: Parts, address: Option<SocketAddr>) -> HttpHead {
        let address = match &self.inner.peer_addr {
            Some(peer_addr) => peer_addr(&parts),
            None => address,
        };
        #[cfg(feature = "auth")]
        if self.inner.guard.is_some() {
            return HttpHead::new(parts, address, Credentials::Hidden(OnceLock::new()));
        }
        HttpHead::new(parts, address, Credentials::Shown)
    }
}
