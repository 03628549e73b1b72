//! HTTP responses without a message: what they say about the server, or about what is in between.

use std::time::Duration;

use http::{HeaderMap, header};

use super::report::{Code, Diagnosis};
use super::seen::{plain, quoted, seconds};

/// An HTTP response, as far as it was read.
#[derive(Debug, Clone)]
pub(crate) struct HttpReply {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    /// The beginning of the body.
    pub(crate) body: Vec<u8>,
    /// Until the head arrived.
    pub(crate) took: Duration,
    /// Whether the request carried credentials.
    pub(crate) has_credentials: bool,
}

impl HttpReply {
    pub(crate) fn header(&self, name: header::HeaderName) -> Option<String> {
        let value = self.headers.get(name)?;
        Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).to_lowercase()
    }

    fn is_html(&self) -> bool {
        let media = self.header(header::CONTENT_TYPE).unwrap_or_default();
        let text = self.text();
        let start = text.trim_start();
        media.starts_with("text/html")
            || start.starts_with("<!doctype html")
            || start.starts_with("<html")
    }

    /// Whether the path may be wrong, or the transport or era another one.
    pub(crate) fn is_inconclusive(&self) -> bool {
        matches!(self.status, 200..300 | 400 | 404 | 405 | 410 | 501)
    }

    pub(crate) fn is_redirect(&self) -> bool {
        (300..400).contains(&self.status) && self.headers.contains_key(header::LOCATION)
    }

    pub(crate) fn seen(&self) -> String {
        let media = self.header(header::CONTENT_TYPE).map(|it| format!(", {}", plain(&it)));
        let location = self.header(header::LOCATION).map(|it| format!(", to {}", plain(&it)));
        let body = if self.body.is_empty() { "no body".to_owned() } else { quoted(&self.body) };
        let (media, location) = (media.unwrap_or_default(), location.unwrap_or_default());
        format!("HTTP {}{media}{location}, {body} after {}", self.status, seconds(self.took))
    }

    /// What a response without a message means.
    pub(crate) fn diagnose(&self) -> Diagnosis {
        let (cause, fix) = match self.status {
            200..300 if self.is_html() => (
                "the response is a web page, not an MCP message",
                "Use the URL of the server itself, which often ends with /mcp. A login page in \
                 front of it must let this request pass.",
            ),
            200..300 => (
                "the response contains no message",
                "The URL leads to something else, or to a server that violates the protocol.",
            ),
            300..400 => ("the server redirects the request", "Use the URL in Location."),
            400 if self.wants_tls() => {
                return Diagnosis::unreachable(
                    "the port speaks TLS, but the URL says http",
                    "Use https://.",
                );
            }
            400 => ("the server rejects the request without a message that says why", LOG),
            401 => return self.unauthorized(),
            403 => return self.forbidden(),
            404 => (
                "there is nothing at this path",
                "Check the path: most servers use /mcp, old ones /sse.",
            ),
            405 => ("this path does not accept POST", "Check the path: most servers use /mcp."),
            406 => (
                "the server rejects an Accept header with JSON and event streams",
                "Look for both types anywhere in Accept; a proxy may rewrite the header.",
            ),
            407 => ("the proxy requires credentials", "Put user and password into HTTPS_PROXY."),
            408 | 504 => (
                "something in between timed out waiting for the server",
                "Check whether the server hangs, or raise the proxy's timeout.",
            ),
            410 => ("the server is gone from this path", "Look for its new URL."),
            413 => (
                "the request is too large for the server",
                "The first request is small: raise the server's limit.",
            ),
            415 => (
                "the server does not accept application/json",
                "Accept it in the server; a proxy may rewrite Content-Type.",
            ),
            421 => ("this server does not serve that host", "Use the name that the server knows."),
            426 => (
                "the server requires another protocol, such as WebSocket",
                "MCP uses plain HTTP requests: use the server's MCP path.",
            ),
            429 => ("the server received too many requests", "Wait, then try again."),
            502 | 503 => (
                "a proxy in front of the server cannot reach it",
                "Start the server behind the proxy, and check the address that the proxy uses.",
            ),
            500.. => ("the server failed internally", LOG),
            _ => ("the server rejects the request without a message", LOG),
        };
        let code = match self.status {
            502..=504 | 407 | 408 => Code::Unreachable,
            200..300 => Code::Broken,
            _ => Code::Refused,
        };
        Diagnosis::new(code, format!("{cause} (HTTP {})", self.status), fix)
    }

    /// Whether it is what servers say to plain HTTP on a TLS port.
    fn wants_tls(&self) -> bool {
        let body = self.text();
        let known = [
            "plain http request was sent to https port",
            "http request to an https server",
            "requires tls",
        ];
        known.iter().any(|words| body.contains(words))
    }

    /// Without a token, or with one that the server rejects.
    pub(crate) fn unauthorized(&self) -> Diagnosis {
        let (cause, fix) = if self.has_credentials {
            (
                "the server rejects the token (HTTP 401)",
                "It may have expired, be mistyped, or belong to another server: log in again \
                 (bowline login URL), or give another one.",
            )
        } else {
            (
                "the server requires a login (HTTP 401)",
                "Log in with `bowline login URL`, or give a token with --token.",
            )
        };
        Diagnosis::new(Code::Unauthorized, cause, fix)
    }

    fn forbidden(&self) -> Diagnosis {
        let body = self.text();
        let challenge = self.header(header::WWW_AUTHENTICATE).unwrap_or_default();
        let (code, cause, fix) = if challenge.contains("insufficient_scope") {
            (
                Code::Unauthorized,
                "the token lacks a scope that the server requires (HTTP 403)",
                "Log in again and grant the scope in WWW-Authenticate.",
            )
        } else if body.contains("origin") {
            (
                Code::Refused,
                "the server rejects the request's Origin (HTTP 403)",
                "Allow the origin in the server's settings, or do not send one.",
            )
        } else if body.contains("host") {
            (
                Code::Refused,
                "the server rejects the host name in the URL (HTTP 403, Host)",
                "Allow the host in the server's settings, or use a name it knows (localhost).",
            )
        } else if self.has_credentials {
            (
                Code::Unauthorized,
                "the token's owner lacks permission (HTTP 403)",
                "Ask for the permission, or use another account.",
            )
        } else {
            (
                Code::Refused,
                "the server or something in front of it forbids the request (HTTP 403)",
                "Find out what responds (a firewall, a proxy, the server), and check its log.",
            )
        };
        Diagnosis::new(code, cause, fix)
    }
}

const LOG: &str = "Check the server's log for this request.";

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn reply(status: u16, media: &str, body: &str) -> HttpReply {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_str(media).unwrap());
        HttpReply {
            status,
            headers,
            body: body.into(),
            took: Duration::ZERO,
            has_credentials: false,
        }
    }

    #[test]
    fn each_status_has_its_cause() {
        for (status, media, body, cause, code) in [
            (200, "text/html; charset=utf-8", "<!DOCTYPE html>", "a web page", Code::Broken),
            (200, "text/plain", "<html>", "a web page", Code::Broken),
            (200, "application/json", "{\"ok\":true}", "contains no message", Code::Broken),
            (302, "text/html", "", "redirects", Code::Refused),
            (400, "text/plain", "no", "rejects the request", Code::Refused),
            (
                400,
                "text/html",
                "The plain HTTP request was sent to HTTPS port",
                "speaks TLS",
                Code::Unreachable,
            ),
            (
                400,
                "text/plain",
                "Client sent an HTTP request to an HTTPS server.",
                "speaks TLS",
                Code::Unreachable,
            ),
            (401, "text/plain", "", "requires a login", Code::Unauthorized),
            (403, "text/plain", "Invalid Origin header", "Origin", Code::Refused),
            (403, "text/plain", "Host not allowed", "Host", Code::Refused),
            (403, "text/html", "<h1>403</h1>", "forbids", Code::Refused),
            (404, "text/html", "<h1>", "nothing at this path", Code::Refused),
            (405, "text/plain", "", "POST", Code::Refused),
            (406, "text/plain", "", "event streams", Code::Refused),
            (407, "text/plain", "", "proxy", Code::Unreachable),
            (415, "text/plain", "", "application/json", Code::Refused),
            (426, "text/plain", "", "WebSocket", Code::Refused),
            (429, "text/plain", "", "too many", Code::Refused),
            (500, "text/plain", "", "failed internally", Code::Refused),
            (502, "text/html", "", "cannot reach it", Code::Unreachable),
            (504, "text/html", "", "timed out", Code::Unreachable),
            (418, "text/plain", "", "without a message", Code::Refused),
        ] {
            let found = reply(status, media, body).diagnose();
            assert!(found.cause.contains(cause), "{status} {body}: {found:?}");
            assert_eq!(found.code, code, "{status} {body}");
        }
        let mut with_token = reply(401, "text/plain", "");
        with_token.has_credentials = true;
        assert!(with_token.diagnose().cause.contains("rejects the token"));
        let mut scope = reply(403, "text/plain", "");
        let challenge = HeaderValue::from_static("Bearer error=\"insufficient_scope\"");
        scope.headers.insert(header::WWW_AUTHENTICATE, challenge);
        assert!(scope.diagnose().cause.contains("lacks a scope"));
    }
}
