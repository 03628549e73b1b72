//! Streamable HTTP: origins, statuses, sessions, streams.

use bowline::Revision::{V2025_03_26, V2025_06_18};
use http::{Method, StatusCode};
use serde_json::json;

use crate::frames::message::plain_method;
use crate::frames::{HeaderChanges, HttpRequest};
use crate::probe::{NotPassed, Outcome, PASS, Probe, Received, broken, ensure, skip};
use crate::rule::{Rule, Transport, table};

const HTTP: Rule = Rule::eras("basic/transports", "basic/transports/streamable-http")
    .since(V2025_03_26)
    .on(&[Transport::Http]);

table! { |probe| HTTP;
    Must "http.origin" => origin(probe, "https://evil.example"),
        "requests from a foreign origin are rejected",
        "Reject requests whose Origin is not one of the server's own with 403: otherwise any web page can use a local server.";
    Should "http.origin-null" => origin(probe, "null"),
        "requests from the origin null are rejected",
        "Reject Origin: null too; sandboxed frames and local files send it.";
    Should "http.host" => host(probe),
        "a local server rejects foreign host names",
        "Accept only localhost, 127.0.0.1 and [::1] as Host: an attacker can point any name at this machine.";
    Should "http.content-type" => rejects(probe, &[("content-type", Some("text/plain"))], "a body of type text/plain"),
        "a body that is not declared as JSON is rejected",
        "Answer with 415: web pages can send text/plain anywhere without permission.";
    Info "http.accept" => gets(probe, &[("accept", Some("text/html"))], "Accept: text/html", &[406, 400]),
        "a client that accepts neither JSON nor event streams is told so",
        "Answer with 406 when Accept has neither application/json nor text/event-stream.";
    Must "http.notification" [.legacy()] => notification(probe),
        "a notification gets 202 and no body",
        "Answer POSTs of notifications and responses with 202 and an empty body.";
    Must "http.get" [.legacy()] => get(probe),
        "GET opens a stream or gets 405",
        "Answer GET with text/event-stream, or with 405 if there is nothing to stream.";
    Should "http.stream-ends" => stream_ends(probe),
        "the event stream of a response ends after it",
        "Close the event stream of a POST once its response is sent.";
    Must "http.bad-version" [.since(V2025_06_18).legacy().extra()] => gets(probe, BAD_VERSION, "MCP-Protocol-Version: 1999-12-31", &[400]),
        "an unknown version header is rejected with 400",
        "Answer with 400 when MCP-Protocol-Version is invalid or unsupported.";
    Must "http.session-id" [.legacy()] => session_id(probe),
        "session ids consist of visible ASCII",
        "Use only characters from 0x21 to 0x7E, and make ids hard to guess.";
    Should "http.session-missing" [.legacy()] => session_missing(probe),
        "a request without its session is rejected with 400",
        "Answer requests other than initialize without Mcp-Session-Id with 400.";
    Should "http.session-unknown" [.legacy()] => session_unknown(probe),
        "an unknown session is rejected with 404",
        "Answer with 404: it tells clients to start over, which 400 does not.";
    Must "http.session-ended" [.legacy().extra()] => session_ended(probe),
        "a session that was ended is rejected with 404",
        "Answer requests of a session after its DELETE with 404.";
    Should "http.delete" [.legacy()] => delete(probe),
        "DELETE ends the session or gets 405",
        "Answer DELETE with 200 or 204, or with 405 if clients may not end sessions.";
}

/// A plain request with other headers.
async fn ask(probe: &mut Probe, changes: HeaderChanges<'_>) -> Result<Received, NotPassed> {
    let message = probe.request(plain_method(probe.revision), json!({})).await?;
    probe.say(&message.to_string(), changes).await
}

const BAD_VERSION: HeaderChanges<'_> = &[("mcp-protocol-version", Some("1999-12-31"))];

/// Passes if such a request gets one of these statuses.
async fn gets(
    probe: &mut Probe,
    changes: HeaderChanges<'_>,
    what: &str,
    wanted: &[u16],
) -> Outcome {
    ask(probe, changes).await?.expect_status(what, wanted)
}

/// Passes if such a request gets any status from 400 to 499.
async fn rejects(probe: &mut Probe, changes: HeaderChanges<'_>, what: &str) -> Outcome {
    ask(probe, changes).await?.expect_rejection(what)
}

async fn send(probe: &mut Probe, method: Method) -> Result<Received, NotPassed> {
    let request = HttpRequest::without_body(method, &[]);
    Ok(probe.connection().await?.http_exchange(None, &request).await?)
}

async fn origin(probe: &mut Probe, origin: &str) -> Outcome {
    let received = ask(probe, &[("origin", Some(origin))]).await?;
    let what = format!("a request with Origin: {origin}");
    if !probe.settings.is_local && received.http_status().is_success() {
        // Rebinding is about servers on this machine; a public server may admit every page.
        return Ok(Some(format!("{what} is served; this is not a local server")));
    }
    received.expect_rejection(&what)?;
    if probe.revision.has_origin_status() { received.expect_status(&what, &[403]) } else { PASS }
}

/// Skips checks that matter only on this machine.
pub(super) fn needs_local(probe: &Probe) -> Result<(), NotPassed> {
    if probe.settings.is_local { Ok(()) } else { skip("the server is not on this machine") }
}

async fn host(probe: &mut Probe) -> Outcome {
    needs_local(probe)?;
    rejects(probe, &[("host", Some("evil.example"))], "a request with Host: evil.example").await
}

/// A notification that changes nothing.
pub(super) fn harmless() -> String {
    json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
        "params": {"requestId": "bowline-never-sent"}})
    .to_string()
}

async fn notification(probe: &mut Probe) -> Outcome {
    let received = probe.say(&harmless(), &[]).await?;
    received.expect_status("a notification", &[202])?;
    let is_empty = received.messages.is_empty() && received.other().is_empty();
    ensure(is_empty, || "the response to a notification has a body".to_owned())
}

async fn get(probe: &mut Probe) -> Outcome {
    let received = send(probe, Method::GET).await?;
    let media = received.headers.get("content-type").and_then(|value| value.to_str().ok());
    let media = media.unwrap_or_default();
    match received.http_status() {
        StatusCode::OK if media.starts_with("text/event-stream") => PASS,
        StatusCode::METHOD_NOT_ALLOWED => PASS,
        other => broken(format!("GET got {other} and {media:?}")),
    }
}

async fn stream_ends(probe: &mut Probe) -> Outcome {
    let received = ask(probe, &[]).await?;
    ensure(!received.left_open, || "the stream stayed open after the response".to_owned())
}

/// The session id, if the server has sessions.
pub(super) async fn session(probe: &mut Probe) -> Result<Vec<u8>, NotPassed> {
    let http = probe.connection().await?.http();
    match http.and_then(|http| http.session.as_ref()) {
        Some(session) => Ok(session.as_bytes().to_vec()),
        None => skip("the server returned no session id"),
    }
}

async fn session_id(probe: &mut Probe) -> Outcome {
    let id = session(probe).await?;
    let is_valid = !id.is_empty() && id.iter().all(u8::is_ascii_graphic);
    ensure(is_valid, || format!("the session id is {:?}", String::from_utf8_lossy(&id)))
}

async fn session_missing(probe: &mut Probe) -> Outcome {
    session(probe).await?;
    let received = ask(probe, &[("mcp-session-id", None)]).await?;
    if received.http_status().is_success() {
        return Ok(Some("requests without a session are served".to_owned()));
    }
    received.expect_status("a request without Mcp-Session-Id", &[400])
}

async fn session_unknown(probe: &mut Probe) -> Outcome {
    session(probe).await?;
    let unknown = [("mcp-session-id", Some("00000000-0000-4000-8000-000000000000"))];
    gets(probe, &unknown, "an unknown Mcp-Session-Id", &[404]).await
}

async fn session_ended(probe: &mut Probe) -> Outcome {
    session(probe).await?;
    let status = send(probe, Method::DELETE).await?.http_status();
    if !status.is_success() {
        return skip(format!("DELETE got {status}"));
    }
    let after = ask(probe, &[]).await;
    probe.drop_connection();
    after?.expect_status("a request after DELETE", &[404])
}

async fn delete(probe: &mut Probe) -> Outcome {
    session(probe).await?;
    let status = send(probe, Method::DELETE).await?.http_status();
    probe.drop_connection();
    let is_fine = status.is_success() || status == StatusCode::METHOD_NOT_ALLOWED;
    ensure(is_fine, || format!("DELETE got {status}"))
}
