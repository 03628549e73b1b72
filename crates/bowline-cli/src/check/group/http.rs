//! Streamable HTTP: who is let in, statuses, sessions, streams.

use bowline::Revision;
use http::{Method, StatusCode};
use serde_json::json;

use super::jsonrpc::plain;
use crate::check::probe::{Outcome, PASS, Probe, Trouble, broken, skip};
use crate::check::table::Check;
use crate::check::wire::{Ask, Changes, Heard, request};

const PAGES: [&str; 2] = ["basic/transports", "basic/transports/streamable-http"];
const V2025_03_26: Revision = Revision::V2025_03_26;

pub(super) const CHECKS: &[Check] = &[
    Check::must("http.origin", "a page of another origin is refused", |probe| {
        Box::pin(origin(probe, "https://evil.example"))
    })
    .since(V2025_03_26)
    .http()
    .pages(PAGES[0], PAGES[1])
    .fix("Refuse requests whose Origin is not one of the server's own with 403: any web page could use a local server otherwise."),
    Check::should("http.origin-null", "the origin null is refused", |probe| {
        Box::pin(origin(probe, "null"))
    })
    .since(V2025_03_26)
    .http()
    .pages(PAGES[0], PAGES[1])
    .fix("Refuse Origin: null too; sandboxed frames and local files send it."),
    Check::should("http.host", "a local server refuses names that are not its own", |probe| {
        Box::pin(host(probe))
    })
    .since(V2025_03_26)
    .http()
    .pages(PAGES[0], PAGES[1])
    .fix("Let only localhost, 127.0.0.1 and [::1] through as Host: a name can be made to stand for this machine."),
    Check::should("http.content-type", "a body that does not claim to be JSON is refused", |probe| {
        Box::pin(content_type(probe))
    })
    .since(V2025_03_26)
    .http()
    .pages(PAGES[0], PAGES[1])
    .fix("Answer with 415: pages can send text/plain anywhere without asking."),
    Check::info("http.accept", "a client that takes neither JSON nor streams is told so", |probe| {
        Box::pin(accept(probe))
    })
    .since(V2025_03_26)
    .http()
    .pages(PAGES[0], PAGES[1])
    .fix("Answer with 406 when Accept has neither application/json nor text/event-stream."),
    Check::must("http.notification", "a notification is taken with 202 and no body", |probe| {
        Box::pin(notification(probe))
    })
    .since(V2025_03_26)
    .legacy()
    .http()
    .page(PAGES[0])
    .fix("Answer POSTs of notifications and responses with 202 and an empty body."),
    Check::must("http.get", "GET opens a stream or is refused with 405", |probe| {
        Box::pin(get(probe))
    })
    .since(V2025_03_26)
    .legacy()
    .http()
    .page(PAGES[0])
    .fix("Answer GET with text/event-stream, or with 405 if there is nothing to stream."),
    Check::should("http.stream-ends", "the stream of an answer ends after it", |probe| {
        Box::pin(stream_ends(probe))
    })
    .since(V2025_03_26)
    .http()
    .pages(PAGES[0], PAGES[1])
    .fix("Close the event stream of a POST once its response is out."),
    Check::must("http.bad-version", "a version header that nobody knows is refused with 400", |probe| {
        Box::pin(bad_version(probe))
    })
    .since(Revision::V2025_06_18)
    .legacy()
    .http()
    .page(PAGES[0])
    .fix("Answer with 400 when MCP-Protocol-Version is invalid or unsupported."),
    Check::must("http.session-id", "session ids are of visible ASCII", |probe| {
        Box::pin(session_id(probe))
    })
    .since(V2025_03_26)
    .legacy()
    .http()
    .page(PAGES[0])
    .fix("Use only characters from 0x21 to 0x7E, and enough chance that nobody guesses."),
    Check::should("http.session-missing", "a request without its session is refused with 400", |probe| {
        Box::pin(session_missing(probe))
    })
    .since(V2025_03_26)
    .legacy()
    .http()
    .page(PAGES[0])
    .fix("Answer requests other than initialize without Mcp-Session-Id with 400."),
    Check::should("http.session-unknown", "a session that never was is refused with 404", |probe| {
        Box::pin(session_unknown(probe))
    })
    .since(V2025_03_26)
    .legacy()
    .http()
    .page(PAGES[0])
    .fix("Answer with 404: it tells clients to start anew, which 400 does not."),
    Check::must("http.session-ended", "a session that was ended is refused with 404", |probe| {
        Box::pin(session_ended(probe))
    })
    .since(V2025_03_26)
    .legacy()
    .http()
    .page(PAGES[0])
    .fix("Answer requests of a session after its DELETE with 404."),
    Check::should("http.delete", "DELETE ends the session or is refused with 405", |probe| {
        Box::pin(delete(probe))
    })
    .since(V2025_03_26)
    .legacy()
    .http()
    .page(PAGES[0])
    .fix("Answer DELETE with 200 or 204, or with 405 if clients may not end sessions."),
];

/// A plain request with other headers.
async fn ask(probe: &mut Probe, changes: Changes<'_>) -> Result<Heard, Trouble> {
    let id = probe.link().await?.next_id();
    let message = request(probe.revision, &id, plain(probe), json!({}));
    probe.say(&message.to_string(), changes).await
}

fn status(heard: &Heard) -> StatusCode {
    heard.status.unwrap_or_default()
}

/// Passes for one of these statuses.
pub(super) fn expect(what: &str, heard: &Heard, wanted: &[u16]) -> Outcome {
    let got = status(heard);
    if wanted.contains(&got.as_u16()) {
        return PASS;
    }
    let wanted: Vec<String> = wanted.iter().map(u16::to_string).collect();
    broken(format!("{what} was answered with {got}, not {}", wanted.join(" or ")))
}

/// Passes for any refusal.
pub(super) fn refused(what: &str, heard: &Heard) -> Outcome {
    match status(heard).is_client_error() {
        true => PASS,
        false => broken(format!("{what} was answered with {}", status(heard))),
    }
}

async fn origin(probe: &mut Probe, origin: &str) -> Outcome {
    let heard = ask(probe, &[("origin", Some(origin))]).await?;
    let what = format!("a request with Origin: {origin}");
    if !probe.settings.is_local && status(&heard).is_success() {
        // Rebinding is about addresses of this machine; a public server may let in every page.
        return Ok(Some(format!("{what} is served; this is not a local server")));
    }
    refused(&what, &heard)?;
    match probe.revision >= Revision::V2025_11_25 {
        true => expect(&what, &heard, &[403]),
        false => PASS,
    }
}

async fn host(probe: &mut Probe) -> Outcome {
    if !probe.settings.is_local {
        return skip("the server is not at an address of this machine");
    }
    let heard = ask(probe, &[("host", Some("evil.example"))]).await?;
    refused("a request with Host: evil.example", &heard)
}

async fn content_type(probe: &mut Probe) -> Outcome {
    let heard = ask(probe, &[("content-type", Some("text/plain"))]).await?;
    refused("a body of type text/plain", &heard)
}

async fn accept(probe: &mut Probe) -> Outcome {
    let heard = ask(probe, &[("accept", Some("text/html"))]).await?;
    expect("Accept: text/html", &heard, &[406, 400])
}

async fn notification(probe: &mut Probe) -> Outcome {
    let message = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
        "params": {"requestId": "bowline-never-sent"}});
    let heard = probe.say(&message.to_string(), &[]).await?;
    expect("a notification", &heard, &[202])?;
    match heard.messages.is_empty() && heard.other.is_empty() {
        true => PASS,
        false => broken("the answer to a notification has a body"),
    }
}

async fn get(probe: &mut Probe) -> Outcome {
    let heard = probe.link().await?.http(&Ask::verb(Method::GET, &[])).await?;
    let media = heard.headers.get("content-type").and_then(|value| value.to_str().ok());
    let is_stream = media.is_some_and(|media| media.starts_with("text/event-stream"));
    match status(&heard) {
        StatusCode::OK if is_stream => PASS,
        StatusCode::METHOD_NOT_ALLOWED => PASS,
        other => {
            broken(format!("GET was answered with {other} and {:?}", media.unwrap_or_default()))
        }
    }
}

async fn stream_ends(probe: &mut Probe) -> Outcome {
    let heard = ask(probe, &[]).await?;
    match heard.left_open {
        true => broken("the stream stayed open after the response"),
        false => PASS,
    }
}

async fn bad_version(probe: &mut Probe) -> Outcome {
    let heard = ask(probe, &[("mcp-protocol-version", Some("1999-12-31"))]).await?;
    expect("MCP-Protocol-Version: 1999-12-31", &heard, &[400])
}

/// The id of the session, if the server keeps any.
async fn session(probe: &mut Probe) -> Result<Vec<u8>, Trouble> {
    let link = probe.link().await?;
    match link.post().and_then(|post| post.session.as_ref()) {
        Some(session) => Ok(session.as_bytes().to_vec()),
        None => skip("the server gave no session id"),
    }
}

async fn session_id(probe: &mut Probe) -> Outcome {
    let id = session(probe).await?;
    match !id.is_empty() && id.iter().all(u8::is_ascii_graphic) {
        true => PASS,
        false => broken(format!("the session id is {:?}", String::from_utf8_lossy(&id))),
    }
}

async fn session_missing(probe: &mut Probe) -> Outcome {
    session(probe).await?;
    let heard = ask(probe, &[("mcp-session-id", None)]).await?;
    if status(&heard).is_success() {
        return Ok(Some("requests without a session are served".to_owned()));
    }
    expect("a request without Mcp-Session-Id", &heard, &[400])
}

async fn session_unknown(probe: &mut Probe) -> Outcome {
    session(probe).await?;
    let unknown = "00000000-0000-4000-8000-000000000000";
    let heard = ask(probe, &[("mcp-session-id", Some(unknown))]).await?;
    expect("an unknown Mcp-Session-Id", &heard, &[404])
}

async fn session_ended(probe: &mut Probe) -> Outcome {
    session(probe).await?;
    let heard = probe.link().await?.http(&Ask::verb(Method::DELETE, &[])).await?;
    if !status(&heard).is_success() {
        return skip(format!("DELETE was answered with {}", status(&heard)));
    }
    let after = ask(probe, &[]).await;
    probe.drop_link();
    expect("a request after DELETE", &after?, &[404])
}

async fn delete(probe: &mut Probe) -> Outcome {
    session(probe).await?;
    let heard = probe.link().await?.http(&Ask::verb(Method::DELETE, &[])).await?;
    probe.drop_link();
    match status(&heard) {
        StatusCode::METHOD_NOT_ALLOWED => PASS,
        other if other.is_success() => PASS,
        other => broken(format!("DELETE was answered with {other}")),
    }
}
