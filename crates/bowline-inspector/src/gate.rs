//! Who may pass: the one check in front of every path.

use bowline_proto::http::{Access, Fields, SEC_FETCH_SITE};
use http::request::Parts;
use http::{HeaderMap, Method, StatusCode, header};

/// Why a request is rejected: a status, and a sentence for the person at the keyboard.
pub(crate) type Denied = (StatusCode, String);

/// The gate of one origin.
#[derive(Debug, Clone)]
pub(crate) struct Gate {
    access: Access,
    origin: String,
}

impl Gate {
    /// Admits requests for this port of the loopback address, from its own pages and from programs.
    pub(crate) fn new(port: u16) -> Self {
        let host = format!("127.0.0.1:{port}");
        let origin = format!("http://{host}");
        let access = Access::new().without_loopback().with_host(&host);
        Self { access: access.expect("a host and a port are an authority"), origin }
    }

    /// Its origin.
    pub(crate) fn origin(&self) -> &str {
        &self.origin
    }

    /// Checks where a request goes and where it comes from.
    pub(crate) fn check(&self, head: &Parts) -> Result<(), Denied> {
        let authority = head.uri.authority().map(http::uri::Authority::as_str);
        let denied = |why: String| (StatusCode::FORBIDDEN, why);
        if follows_link(head) {
            let host = text(&head.headers, header::HOST.as_str()).or(authority);
            let own = self.origin.strip_prefix("http://");
            if head.headers.get_all(header::HOST).iter().count() == 1 && host == own {
                return Ok(());
            }
        }
        self.access
            .check(authority, &Fields::read(&head.headers))
            .map_err(|why| denied(why.to_string()))?;
        // A page of another port of this machine is the same site, and still another origin.
        match text(&head.headers, SEC_FETCH_SITE.as_str()) {
            None | Some("same-origin" | "none") => Ok(()),
            Some(site) => Err(denied(format!("requests from another page ({site}) are rejected"))),
        }
    }
}

/// Whether a person follows a link of another page to the page itself: the one request that other
/// pages may cause. It shows them nothing, and the page does nothing on its own.
fn follows_link(head: &Parts) -> bool {
    let says = |name: &str| text(&head.headers, name);
    head.method == Method::GET
        && head.uri == "/"
        && matches!(says(SEC_FETCH_SITE.as_str()), Some("cross-site" | "same-site"))
        && says("sec-fetch-mode") == Some("navigate")
        && says("sec-fetch-dest") == Some("document")
        && !head.headers.contains_key(header::ORIGIN)
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).map(|value| value.to_str().unwrap_or("?"))
}

/// The key that a request brings.
pub(crate) fn bearer(headers: &HeaderMap) -> Option<&str> {
    headers.get(header::AUTHORIZATION)?.to_str().ok()?.strip_prefix("Bearer ")
}

/// Whether a request says that its body is JSON, which a form of another site cannot.
pub(crate) fn is_json(headers: &HeaderMap) -> bool {
    let media = text(headers, header::CONTENT_TYPE.as_str());
    media.and_then(|it| it.split(';').next()).map(str::trim) == Some("application/json")
}
