//! An HTTP answer that is no message: what it says about the server, or about what is in between.

use std::time::Duration;

use http::{HeaderMap, header};

use super::ending::seconds;
use super::report::{Code, Diagnosis};
use super::seen::{plain, quoted};

/// An HTTP answer, as far as it was read.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    /// The beginning of the body.
    pub(crate) body: Vec<u8>,
    /// Until the head had come.
    pub(crate) took: Duration,
    /// Whether the request carried credentials.
    pub(crate) has_credentials: bool,
}

impl Answer {
    pub(crate) fn header(&self, name: header::HeaderName) -> Option<String> {
        let value = self.headers.get(name)?;
        Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
    }

    fn is_html(&self) -> bool {
        let start = String::from_utf8_lossy(&self.body[..self.body.len().min(64)]).to_lowercase();
        let media = self.header(header::CONTENT_TYPE).unwrap_or_default();
        media.starts_with("text/html")
            || start.trim_start().starts_with("<!doctype html")
            || start.trim_start().starts_with("<html")
    }

    /// Whether the path may be wrong, or the transport another.
    pub(crate) fn is_undecided(&self) -> bool {
        matches!(self.status, 400 | 404 | 405 | 410 | 501) || (200..300).contains(&self.status)
    }

    pub(crate) fn is_redirect(&self) -> bool {
        (300..400).contains(&self.status) && self.headers.contains_key(header::LOCATION)
    }

    pub(crate) fn seen(&self) -> String {
        let media = self.header(header::CONTENT_TYPE).map(|it| format!(", {}", plain(&it)));
        let place = self.header(header::LOCATION).map(|it| format!(", to {}", plain(&it)));
        let body = match self.body.is_empty() {
            true => ", no body".to_owned(),
            false => format!(", {}", quoted(&self.body)),
        };
        let (media, place) = (media.unwrap_or_default(), place.unwrap_or_default());
        format!("HTTP {}{media}{place}{body} after {}", self.status, seconds(self.took))
    }
}

/// What an answer without a message means.
pub(crate) fn diagnose(answer: &Answer) -> Diagnosis {
    if let Some(diagnosis) = misplaced(answer) {
        return diagnosis;
    }
    let (cause, fix) = match answer.status {
        200..300 if answer.is_html() => (
            "a web page answers, not an MCP server",
            "Use the URL of the server itself, often with /mcp at its end; a login page in \
             between would have to let this request pass.",
        ),
        200..300 => (
            "the answer holds no message",
            "The URL leads to something else, or to an MCP server that breaks the protocol.",
        ),
        300..400 => ("the server sends the request elsewhere", "Use the URL that Location names."),
        400 => ("the server finds the request bad and does not say why in a message", LOG),
        401 => return unauthorized(answer),
        403 => return forbidden(answer),
        404 => (
            "nothing is at this path",
            "Check the path: most servers are at /mcp, old ones at /sse.",
        ),
        405 => ("nobody takes a POST at this path", "Check the path: most servers are at /mcp."),
        406 => (
            "the server does not accept that the client takes JSON and event streams",
            "Let the server look for both types anywhere in Accept; a proxy may rewrite the header.",
        ),
        407 => ("the proxy wants credentials", "Put user and password into HTTPS_PROXY."),
        408 | 504 => (
            "something in between gave up waiting for the server",
            "See whether the server hangs; raise the proxy's timeout.",
        ),
        410 => ("the server is gone from this path", "Look for its new URL."),
        413 => (
            "the request is too large for the server",
            "A first request is small: correct the server's limit.",
        ),
        415 => (
            "the server does not take application/json",
            "Let it; a proxy may rewrite Content-Type.",
        ),
        421 => ("this server does not serve that host", "Use the name that the server knows."),
        426 => (
            "the server wants another protocol, such as WebSocket",
            "MCP is spoken over plain HTTP requests: use the server's MCP path.",
        ),
        429 => ("the server says that there were too many requests", "Wait, and try again."),
        502 | 503 => (
            "what is in front of the server does not reach it",
            "Start the server behind the proxy, and check the address the proxy has for it.",
        ),
        500.. => ("the server failed inside", LOG),
        _ => ("the server says no without a message", LOG),
    };
    let cause = format!("{cause} (HTTP {})", answer.status);
    match answer.status {
        502..=504 | 407 | 408 => Diagnosis::unreachable(cause, fix),
        200..300 => Diagnosis::broken(cause, fix),
        _ => Diagnosis::refused(cause, fix),
    }
}

const LOG: &str = "Look at the server's log for this request.";

/// A plain request to a port for TLS, as servers put it.
fn misplaced(answer: &Answer) -> Option<Diagnosis> {
    let body = String::from_utf8_lossy(&answer.body).to_lowercase();
    let says = body.contains("plain http request was sent to https port")
        || body.contains("http request to an https server")
        || body.contains("requires tls");
    (answer.status == 400 && says).then(|| {
        Diagnosis::unreachable("the port speaks TLS, and the URL says http", "Use https://.")
    })
}

/// Without a token, or with one that is not good enough.
pub(crate) fn unauthorized(answer: &Answer) -> Diagnosis {
    match answer.has_credentials {
        true => Diagnosis::new(
            Code::Unauthorized,
            "the server refuses the token (HTTP 401)",
            "It may have expired, be for another server, or be mistyped: log in again (bowline \
             login URL), or give another one.",
        ),
        false => Diagnosis::new(
            Code::Unauthorized,
            "the server wants to know who asks (HTTP 401)",
            "Log in with `bowline login URL`, or give a token with --token.",
        ),
    }
}

fn forbidden(answer: &Answer) -> Diagnosis {
    let body = String::from_utf8_lossy(&answer.body).to_lowercase();
    let challenge = answer.header(header::WWW_AUTHENTICATE).unwrap_or_default();
    if challenge.contains("insufficient_scope") {
        return Diagnosis::new(
            Code::Unauthorized,
            "the token lacks a scope that the server wants (HTTP 403)",
            "Log in again and grant the scope that WWW-Authenticate names.",
        );
    }
    if body.contains("origin") {
        return Diagnosis::refused(
            "the server refuses the request's Origin (HTTP 403)",
            "Allow the origin in the server's settings, or do not send one.",
        );
    }
    if body.contains("host") {
        return Diagnosis::refused(
            "the server refuses the name that it was called by (HTTP 403, Host)",
            "Allow the host in the server's settings, or use the name it knows (localhost).",
        );
    }
    match answer.has_credentials {
        true => Diagnosis::new(
            Code::Unauthorized,
            "whoever the token stands for may not do this (HTTP 403)",
            "Ask for the permission, or use another account.",
        ),
        false => Diagnosis::refused(
            "the server or something in front of it forbids the request (HTTP 403)",
            "Look at who answers (a firewall, a proxy, the server) and at its log.",
        ),
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn answer(status: u16, media: &str, body: &str) -> Answer {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_str(media).unwrap());
        Answer { status, headers, body: body.into(), took: Duration::ZERO, has_credentials: false }
    }

    #[test]
    fn each_status_has_its_cause() {
        for (status, media, body, cause, code) in [
            (200, "text/html; charset=utf-8", "<!DOCTYPE html>", "a web page", Code::Broken),
            (200, "text/plain", "<html>", "a web page", Code::Broken),
            (200, "application/json", "{\"ok\":true}", "holds no message", Code::Broken),
            (302, "text/html", "", "elsewhere", Code::Refused),
            (400, "text/plain", "no", "finds the request bad", Code::Refused),
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
            (401, "text/plain", "", "who asks", Code::Unauthorized),
            (403, "text/plain", "Invalid Origin header", "Origin", Code::Refused),
            (403, "text/plain", "Host not allowed", "Host", Code::Refused),
            (403, "text/html", "<h1>403</h1>", "forbids", Code::Refused),
            (404, "text/html", "<h1>", "nothing is at this path", Code::Refused),
            (405, "text/plain", "", "POST", Code::Refused),
            (406, "text/plain", "", "event streams", Code::Refused),
            (407, "text/plain", "", "proxy", Code::Unreachable),
            (415, "text/plain", "", "application/json", Code::Refused),
            (426, "text/plain", "", "WebSocket", Code::Refused),
            (429, "text/plain", "", "too many", Code::Refused),
            (500, "text/plain", "", "failed inside", Code::Refused),
            (502, "text/html", "", "does not reach it", Code::Unreachable),
            (504, "text/html", "", "gave up", Code::Unreachable),
            (418, "text/plain", "", "says no", Code::Refused),
        ] {
            let found = diagnose(&answer(status, media, body));
            assert!(found.cause.contains(cause), "{status} {body}: {found:?}");
            assert_eq!(found.code, code, "{status} {body}");
        }
        let mut with_token = answer(401, "text/plain", "");
        with_token.has_credentials = true;
        assert!(diagnose(&with_token).cause.contains("refuses the token"));
        let mut scope = answer(403, "text/plain", "");
        let challenge = HeaderValue::from_static("Bearer error=\"insufficient_scope\"");
        scope.headers.insert(header::WWW_AUTHENTICATE, challenge);
        assert!(diagnose(&scope).cause.contains("lacks a scope"));
    }
}
