//! Other servers and texts at other paths of one socket.

use std::sync::Arc;

use http_body::Body as HttpBody;

use super::options::Http;
use super::reply::{self, Reply};
use super::service::HttpService;
use crate::server::HttpHead;

/// What is at other paths.
pub(super) type Mounts = Arc<dyn Fn(&str) -> Option<Mounted> + Send + Sync>;

/// What is at a path besides the endpoint; see [`Http::mount`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Mounted {
    /// Another server.
    Service(HttpService),
    /// A JSON text.
    Json(http::StatusCode, Vec<u8>),
}

impl Http {
    /// Asks a function what is at a path before the server's own paths count. Other servers can
    /// share the socket in this way, and come and go while it is open. The function runs once the
    /// `Host` and `Origin` of a request are accepted; authentication is up to what it returns.
    pub fn mount(mut self, find: impl Fn(&str) -> Option<Mounted> + Send + Sync + 'static) -> Self {
        self.mounts = Some(Arc::new(find));
        self
    }
}

impl HttpService {
    pub(super) fn mounted(&self, path: &str) -> Option<Mounted> {
        self.inner.mounts.as_ref()?(path)
    }
}

impl Mounted {
    pub(super) async fn answer<B: HttpBody>(self, shared: &Arc<HttpHead>, body: B) -> Reply {
        match self {
            // What is remembered about callers belongs to one server.
            Self::Service(it) => Box::pin(it.answer(shared, body, &it.inner.remembered)).await,
            Self::Json(status, text) => reply::json(status, text),
        }
    }
}
