//! HTTP responses without a message: what they say about the server, or about what is in between.

use std::time::Duration;

use http::{HeaderMap, header};

use super::report::{Diagnosis, broken, refused, unauthorized, unreachable};
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

    /// What a response without a message means. As for every other command, what does not speak MCP
    /// is not there.
    pub(crate) fn diagnose(&self) -> Diagnosis {
        let found = match self.status {
            200..300 if self.is_html() => broken("the response is a web page, not an MCP message")
                .fix("Use the server's own URL, often ending with /mcp; exempt it from logins."),
            200..300 => broken("the response contains no message")
                .fix("The URL leads to something else, or to a server that violates the protocol."),
            300..400 => refused("the server redirects the request").fix("Use the URL in Location."),
            400 if self.wants_tls() => {
                unreachable("the port speaks TLS, but the URL says http").fix("Use https://.")
            }
            400 => unreachable("the server rejects the request and does not say why").fix(LOG),
            401 => return self.unauthorized(),
            403 => self.forbidden(),
            404 => unreachable("there is nothing at this path")
                .fix("Check the path: most servers use /mcp, old ones /sse."),
            405 => unreachable("this path does not accept POST")
                .fix("Check the path: most servers use /mcp."),
            406 => unreachable("the server rejects an Accept header with JSON and event streams")
                .fix("Look for both types anywhere in Accept; a proxy may rewrite the header."),
            407 => unreachable("the proxy requires credentials")
                .fix("Put user and password into HTTPS_PROXY."),
            408 | 504 => unreachable("something in between timed out waiting for the server")
                .fix("Check whether the server hangs, or raise the proxy's timeout."),
            410 => unreachable("the server is gone from this path").fix("Look for its new URL."),
            413 => unreachable("the request is too large for the server")
                .fix("The first request is small: raise the server's limit."),
            415 => unreachable("the server does not accept application/json")
                .fix("Accept it in the server; a proxy may rewrite Content-Type."),
            421 => unreachable("this server does not serve that host")
                .fix("Use the name that the server knows."),
            426 => unreachable("the server requires another protocol, such as WebSocket")
                .fix("MCP uses plain HTTP requests: use the server's MCP path."),
            429 => {
                unreachable("the server received too many requests").fix("Wait, then try again.")
            }
            502 | 503 => unreachable("a proxy in front of the server cannot reach it")
                .fix("Start the server, and check the address that the proxy has for it."),
            500.. => unreachable("the server failed internally").fix(LOG),
            _ => unreachable("the server rejects the request without a message").fix(LOG),
        };
        Diagnosis { cause: format!("{} (HTTP {})", found.cause, self.status), ..found }
    }

    /// Whether it is what servers say to plain HTTP on a TLS port.
    fn wants_tls(&self) -> bool {
        let body = self.text();
        body.contains("plain http request was sent to https port")
            || body.contains("http request to an https server")
            || body.contains("requires tls")
    }

    /// Without a token, or with one that the server rejects.
    pub(crate) fn unauthorized(&self) -> Diagnosis {
        if !self.has_credentials {
            return unauthorized("the server requires a login (HTTP 401)")
                .fix("Log in with `bowline login URL`, or give a token with --token.");
        }
        unauthorized("the server rejects the token (HTTP 401)").fix(
            "It may have expired, be mistyped, or belong to another server: log in again (bowline \
             login URL), or give another one.",
        )
    }

    fn forbidden(&self) -> Diagnosis {
        let body = self.text();
        let challenge = self.header(header::WWW_AUTHENTICATE).unwrap_or_default();
        if challenge.contains("insufficient_scope") {
            unauthorized("the token lacks a scope that the server requires")
                .fix("Log in again and grant the scope in WWW-Authenticate.")
        } else if body.contains("origin") {
            refused("the server rejects the request's Origin")
                .fix("Allow the origin in the server's settings, or do not send one.")
        } else if body.contains("host") {
            refused("the server rejects the URL's host name, the Host header")
                .fix("Allow the host in the server's settings, or use a name it knows (localhost).")
        } else if self.has_credentials {
            unauthorized("the token's owner lacks permission")
                .fix("Ask for the permission, or use another account.")
        } else {
            refused("the server or something in front of it forbids the request")
                .fix("Find out what responds (a firewall, a proxy, the server), and check its log.")
        }
    }
}

const LOG: &str = "Check the server's log for this request.";

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;
    use crate::failure::Code;

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
            (400, "text/plain", "no", "does not say why", Code::Unreachable),
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
            (404, "text/html", "<h1>", "nothing at this path", Code::Unreachable),
            (405, "text/plain", "", "POST", Code::Unreachable),
            (406, "text/plain", "", "event streams", Code::Unreachable),
            (407, "text/plain", "", "proxy", Code::Unreachable),
            (415, "text/plain", "", "application/json", Code::Unreachable),
            (426, "text/plain", "", "WebSocket", Code::Unreachable),
            (429, "text/plain", "", "too many", Code::Unreachable),
            (500, "text/plain", "", "failed internally", Code::Unreachable),
            (502, "text/html", "", "cannot reach it", Code::Unreachable),
            (504, "text/html", "", "timed out", Code::Unreachable),
            (418, "text/plain", "", "without a message", Code::Unreachable),
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
