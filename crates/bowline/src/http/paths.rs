//! Paths: which one leads where, and what a request to any other is told.

use bowline_proto::http::SEC_FETCH_SITE;
use http::StatusCode;
use http::header::ORIGIN;
use http::request::Parts;
use serde_json::json;

use super::mount::Mounted;
use super::reply::{self, Reply};
use super::service::HttpService;

/// The two paths of HTTP+SSE.
const SSE: &str = "/sse";
const MESSAGES: &str = "/messages";

const HEALTH: &str = "/health";
const READY: &str = "/ready";

/// Where a path leads.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Endpoint,
    /// The stream of HTTP+SSE.
    Sse,
    /// Where clients of HTTP+SSE send their messages.
    Messages,
    Health,
    /// Whether a load balancer should send requests.
    Ready,
    /// Where other nodes of a fleet send their letters.
    Letters,
    Nowhere,
}

impl HttpService {
    /// The paths that clients use, and the other nodes of a [fleet](crate::fleet), for a framework
    /// that routes them one by one:
    ///
    /// ```
    /// # let mcp = bowline::Server::new("paths", "1.0.0").http().into_service().unwrap();
    /// let mut app: axum::Router = axum::Router::new();
    /// for path in mcp.paths() {
    ///     app = app.route_service(&path, mcp.clone());
    /// }
    /// ```
    ///
    /// `/health` and `/ready` are not among them.
    pub fn paths(&self) -> Vec<String> {
        let mut paths = self.client_paths();
        if self.inner.core.fleet.is_some() {
            paths.push(crate::fleet::PATH.to_owned());
        }
        paths
    }

    fn client_paths(&self) -> Vec<String> {
        let mut paths = vec![self.inner.path.clone()];
        if self.inner.sse.is_some() {
            paths.extend([SSE.to_owned(), MESSAGES.to_owned()]);
        }
        #[cfg(feature = "auth")]
        if let Some(guard) = &self.inner.guard {
            paths.extend(guard.metadata_paths());
        }
        paths
    }

    /// The answer to a probe of a load balancer, before names are checked; `None` if a request is
    /// not one. Probes may name any host: that of a pod is an address that nobody has allowed, and
    /// HAProxy names none. What a browser sends is checked first.
    pub(super) fn probe_by_any_name(&self, parts: &Parts) -> Option<Reply> {
        let names_page = [ORIGIN, SEC_FETCH_SITE].iter().any(|it| parts.headers.contains_key(it));
        if names_page { None } else { self.probe(parts.uri.path()) }
    }

    /// The answer to a probe of a load balancer; `None` if a request is not one.
    pub(super) fn probe(&self, path: &str) -> Option<Reply> {
        // What else is at the socket may have probes and answers of its own.
        match self.mounted(path) {
            Some(Mounted::Json(status, body)) => return Some(reply::json(status, body)),
            Some(Mounted::Service(_)) => return None,
            None => {}
        }
        let place = self.place(path);
        if !matches!(place, Place::Health | Place::Ready) {
            return None;
        }
        Some(match place {
            _ if self.is_stopping() => reply::busy("the server is shutting down"),
            Place::Ready => self.ready(),
            _ => reply::status(StatusCode::OK),
        })
    }

    /// Where a path leads.
    pub(super) fn place(&self, path: &str) -> Place {
        // A framework has routed the request here, under whatever prefix it likes.
        let is = |own: &str| {
            path == own || self.inner.is_embedded && own.len() > 1 && path.ends_with(own)
        };
        // Frameworks that nest a service strip the prefix from the path.
        if is(&self.inner.path) || path == "/" || path.is_empty() {
            Place::Endpoint
        } else if path == HEALTH {
            Place::Health
        } else if path == READY {
            Place::Ready
        } else if self.inner.sse.is_some() && is(SSE) {
            Place::Sse
        } else if self.inner.sse.is_some() && is(MESSAGES) {
            Place::Messages
        } else if self.inner.core.fleet.is_some() && is(crate::fleet::PATH) {
            Place::Letters
        } else {
            Place::Nowhere
        }
    }

    /// Where clients of HTTP+SSE send their messages, as a reference from the path of the stream.
    pub(super) fn messages_reference(&self, session: &str) -> String {
        // Only a relative reference keeps the prefix that a framework may have stripped.
        let path = if self.inner.is_embedded { MESSAGES.trim_start_matches('/') } else { MESSAGES };
        format!("{path}?session={session}")
    }

    /// Whether a load balancer should send requests.
    fn ready(&self) -> Reply {
        if self.is_draining() {
            return reply::busy("the server is about to stop");
        }
        match self.inner.core.fleet.as_ref().is_none_or(|joined| joined.fleet.is_ready()) {
            true => reply::status(StatusCode::OK),
            false => reply::busy("the store of the fleet does not answer"),
        }
    }

    /// The answer to a request for any other path.
    pub(super) fn nowhere(&self, path: &str) -> Reply {
        let paths = self.client_paths();
        let message = format!(
            "there is nothing at {path:?}; this MCP server answers at {}; help: use one of these \
             in the URL of the client, or set another path with `Http::path`",
            paths.join(", ")
        );
        let body = json!({ "error": message, "paths": paths });
        reply::json(StatusCode::NOT_FOUND, body.to_string().into_bytes())
    }
}
