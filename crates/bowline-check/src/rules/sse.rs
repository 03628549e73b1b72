//! HTTP+SSE, the transport of 2024-11-05: one event stream, and an endpoint to post to.

use http::{Method, StatusCode, Uri};
use serde_json::json;

use super::http::{harmless, needs_local};
use crate::evidence::Evidence;
use crate::frames::message;
use crate::frames::{HeaderChanges, HttpRequest, HttpSse, Lost, endpoint, resolve};
use crate::probe::{NotPassed, Outcome, PASS, Probe, Received, broken, skip};
use crate::rule::{Rule, Transport, table};

const EVIL: HeaderChanges<'_> = &[("origin", Some("https://evil.example"))];

table! { |probe| Rule::group("basic/transports").legacy().on(&[Transport::Sse]);
    Must "sse.endpoint" => first_event(probe),
        "the first event names the URL on this server to post messages to",
        "Begin the stream with an event named endpoint; its data is a path, or a URL with the same scheme, host and port.";
    Should "sse.post" => accepted(probe),
        "a message gets 202",
        "Answer POSTs with 202 at once; the answer to the message goes on the stream.";
    Should "sse.unknown-session" => unknown_session(probe),
        "messages for an unknown stream are rejected",
        "Answer with 404 when no open stream belongs to the endpoint: a client would wait for ever.";
    Should "sse.origin" => both_ways(probe, "with Origin: https://evil.example", EVIL),
        "requests from a foreign origin are rejected, both ways",
        "Reject requests whose Origin is not one of the server's own with 403: otherwise any web page can use a local server.";
    Should "sse.host" => both_ways(probe, "with Host: evil.example", &[("host", Some("evil.example"))]),
        "a local server rejects foreign host names",
        "Accept only localhost, 127.0.0.1 and [::1] as Host: an attacker can point any name at this machine.";
    Should "sse.content-type" => content_type(probe),
        "a body that is not declared as JSON is rejected",
        "Answer with 415: web pages can send text/plain anywhere without permission.";
    Info "sse.successor" => successor(probe),
        "the server speaks streamable HTTP as well",
        "Serve streamable HTTP at /mcp beside it: clients are dropping HTTP+SSE.";
}

async fn first_event(probe: &mut Probe) -> Outcome {
    let http = probe.http()?.clone();
    let (first, _) = HttpSse::begin(&http, probe.settings.timeout).await?;
    let name = first.name.as_deref().unwrap_or("message");
    let data = String::from_utf8_lossy(&first.data);
    // The query may hold the key of a session.
    let data = data.split('?').next().unwrap_or_default();
    let received = vec![format!("event: {name}, data: {data}")];
    probe.evidence.push(Evidence { sent: "GET".to_owned(), received });
    endpoint(&http.url, &first).map_or_else(broken, |_| PASS)
}

/// Posts a harmless notification. What it causes comes on the stream, and is not waited for.
async fn post(probe: &mut Probe, changes: HeaderChanges<'_>) -> Result<Received, NotPassed> {
    let frame = harmless();
    let connection = probe.connection().await?;
    Ok(connection.http_exchange(None, &HttpRequest::post(&frame, changes)).await?)
}

async fn accepted(probe: &mut Probe) -> Outcome {
    post(probe, &[]).await?.expect_status("a notification", &[202])
}

async fn unknown_session(probe: &mut Probe) -> Outcome {
    let connection = probe.connection().await?;
    let Some(http) = connection.http() else { return skip("the server is a program") };
    let Some(url) = another_session(&http.url) else {
        return skip("nothing in the endpoint looks like the key of a session");
    };
    let other = http.at(url);
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string();
    let request = HttpRequest::post(&message, &[]);
    let received = connection.http_exchange(Some(&other), &request).await?;
    received.expect_rejection("a message for an unknown stream")
}

/// The endpoint with the last value of its query replaced.
fn another_session(endpoint: &Uri) -> Option<Uri> {
    let query = endpoint.query()?;
    let (before, value) = query.rsplit_once('=').filter(|(_, value)| !value.is_empty())?;
    // Of the same form: a server may parse it as a UUID before looking for it.
    let zeros: String =
        value.chars().map(|it| if it.is_ascii_alphanumeric() { '0' } else { it }).collect();
    resolve(endpoint, &format!("?{before}={zeros}"))
}

/// Rejected as a POST and as a GET.
async fn both_ways(probe: &mut Probe, what: &str, changes: HeaderChanges<'_>) -> Outcome {
    needs_local(probe)?;
    let up = post(probe, changes).await?;
    let stream = probe.http()?.clone();
    let request = HttpRequest::without_body(Method::GET, changes);
    let down = probe.connection().await?.http_exchange(Some(&stream), &request).await?;
    up.expect_rejection(&format!("a POST {what}"))?;
    down.expect_rejection(&format!("a GET {what}"))
}

async fn content_type(probe: &mut Probe) -> Outcome {
    let received = post(probe, &[("content-type", Some("text/plain"))]).await?;
    received.expect_rejection("a body of type text/plain")
}

async fn successor(probe: &mut Probe) -> Outcome {
    let http = probe.http()?.clone();
    let frame = message::initialize(&json!(1), probe.revision.as_str()).to_string();
    let mut tried: Vec<String> = Vec::new();
    for place in ["mcp", "/mcp"] {
        let url = resolve(&http.url, place).filter(|url| !tried.contains(&url.to_string()));
        let Some(url) = url else { continue };
        tried.push(url.to_string());
        let request = HttpRequest::post(&frame, &[]);
        let connection = probe.connection().await?;
        let received = match connection.http_exchange(Some(&http.at(url)), &request).await {
            Ok(received) => received,
            Err(Lost::Silent(_)) => continue,
            Err(lost) => return Err(lost.into()),
        };
        let is_there = received.responses().next().is_some()
            || received.status == Some(StatusCode::UNAUTHORIZED);
        if is_there {
            return Ok(tried.pop().map(|url| format!("at {url}")));
        }
    }
    broken(format!("nothing responds at the usual {}", tried.join(" or ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_that_never_was_looks_like_one_that_is() {
        for (endpoint, other) in [
            ("http://a/m?sessionId=0a1b-2C", Some("http://a/m?sessionId=0000-00")),
            ("http://a/m?x=1&session=abc", Some("http://a/m?x=1&session=000")),
            ("http://a/m/abc", None),
            ("http://a/m?abc", None),
        ] {
            let found = another_session(&endpoint.parse().unwrap()).map(|uri| uri.to_string());
            assert_eq!(found.as_deref(), other, "{endpoint}");
        }
    }
}
