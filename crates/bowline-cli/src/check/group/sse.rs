//! HTTP+SSE, the transport of 2024-11-05: one stream of events, and an endpoint to post to.

use http::{Method, StatusCode, Uri};
use serde_json::json;

use super::http::{expect, refused};
use crate::check::evidence::Evidence;
use crate::check::probe::{Outcome, PASS, Probe, Trouble, broken, skip};
use crate::check::table::Check;
use crate::check::wire::{Ask, Changes, Heard, Lost, Post, begin, endpoint, initialize};
use crate::doctor::Address;

const PAGE: &str = "basic/transports";

pub(super) const CHECKS: &[Check] = &[
    Check::must("sse.endpoint", "the first event says where on this server messages are posted to", |probe| {
        Box::pin(first_event(probe))
    })
    .legacy()
    .sse()
    .page(PAGE)
    .fix("Begin the stream with an event of the name endpoint; its data is a path, or a URL of the same scheme, host and port."),
    Check::should("sse.post", "a message is taken with 202", |probe| Box::pin(taken(probe)))
        .legacy()
        .sse()
        .page(PAGE)
        .fix("Answer POSTs with 202 at once; the answer to the message goes on the stream."),
    Check::should("sse.unknown-session", "messages for a stream that never was are refused", |probe| {
        Box::pin(unknown_session(probe))
    })
    .legacy()
    .sse()
    .page(PAGE)
    .fix("Answer with 404 when no open stream belongs to the endpoint: a client would wait for ever."),
    Check::should("sse.origin", "a page of another origin is refused, both ways", |probe| {
        Box::pin(origin(probe, "https://evil.example"))
    })
    .legacy()
    .sse()
    .page(PAGE)
    .fix("Refuse requests whose Origin is not one of the server's own with 403: any web page could use a local server otherwise."),
    Check::should("sse.host", "a local server refuses names that are not its own", |probe| {
        Box::pin(host(probe))
    })
    .legacy()
    .sse()
    .page(PAGE)
    .fix("Let only localhost, 127.0.0.1 and [::1] through as Host: a name can be made to stand for this machine."),
    Check::should("sse.content-type", "a body that does not claim to be JSON is refused", |probe| {
        Box::pin(content_type(probe))
    })
    .legacy()
    .sse()
    .page(PAGE)
    .fix("Answer with 415: pages can send text/plain anywhere without asking."),
    Check::info("sse.successor", "the server speaks streamable HTTP as well", |probe| {
        Box::pin(successor(probe))
    })
    .legacy()
    .sse()
    .page(PAGE)
    .fix("Serve streamable HTTP at /mcp beside it: clients are giving HTTP+SSE up."),
];

/// The address with the stream.
fn address(probe: &Probe) -> Result<Post, Trouble> {
    match probe.settings.door.post() {
        Some(post) => Ok(post.clone()),
        None => skip("this is no address"),
    }
}

async fn first_event(probe: &mut Probe) -> Outcome {
    let post = address(probe)?;
    let (first, _) = begin(&post, probe.settings.timeout).await.map_err(|error| error.lost)?;
    let (kind, data) = &first;
    probe.evidence.push(Evidence {
        sent: "GET".to_owned(),
        received: vec![format!(
            "event: {}, data: {}",
            kind.as_deref().unwrap_or("message"),
            String::from_utf8_lossy(data).split('?').next().unwrap_or_default()
        )],
    });
    match endpoint(&post.url, &first) {
        Ok(_) => PASS,
        Err(problem) => broken(problem),
    }
}

/// A notification that changes nothing, posted with other headers. What it causes comes on the
/// stream, and is not waited for.
async fn post(probe: &mut Probe, changes: Changes<'_>) -> Result<Heard, Trouble> {
    let message = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
        "params": {"requestId": "bowline-never-sent"}});
    let link = probe.link().await?;
    Ok(link.http(&Ask::post(&message.to_string(), changes)).await?)
}

async fn taken(probe: &mut Probe) -> Outcome {
    let heard = post(probe, &[]).await?;
    expect("a notification", &heard, &[202])
}

async fn unknown_session(probe: &mut Probe) -> Outcome {
    let link = probe.link().await?;
    let Some(mut other) = link.post().cloned() else { return skip("this is no address") };
    let Some(made_up) = another_session(&other.url) else {
        return skip("nothing in the endpoint looks like the key of a session");
    };
    other.url = made_up;
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string();
    let heard = link.http_at(&other, &Ask::post(&message, &[])).await?;
    refused("a message for a stream that never was", &heard)
}

/// The endpoint with the last value of its query replaced.
fn another_session(endpoint: &Uri) -> Option<Uri> {
    let query = endpoint.query()?;
    let (before, value) = query.rsplit_once('=').filter(|(_, value)| !value.is_empty())?;
    // Of the same form: a server may read it as a UUID before it looks for it.
    let zeros: String =
        value.chars().map(|it| if it.is_ascii_alphanumeric() { '0' } else { it }).collect();
    let here = Address::parse(&endpoint.to_string()).ok()?;
    here.at(&format!("{}?{before}={zeros}", endpoint.path()))
}

/// Refused on the way up and on the way down.
async fn both_ways(probe: &mut Probe, what: &str, changes: Changes<'_>) -> Outcome {
    let up = post(probe, changes).await?;
    let stream = address(probe)?;
    let link = probe.link().await?;
    let down = link.http_at(&stream, &Ask::verb(Method::GET, changes)).await?;
    refused(&format!("a POST {what}"), &up)?;
    refused(&format!("a GET {what}"), &down)
}

async fn origin(probe: &mut Probe, origin: &str) -> Outcome {
    if !probe.settings.is_local {
        return skip("the server is not at an address of this machine");
    }
    both_ways(probe, &format!("with Origin: {origin}"), &[("origin", Some(origin))]).await
}

async fn host(probe: &mut Probe) -> Outcome {
    if !probe.settings.is_local {
        return skip("the server is not at an address of this machine");
    }
    both_ways(probe, "with Host: evil.example", &[("host", Some("evil.example"))]).await
}

async fn content_type(probe: &mut Probe) -> Outcome {
    let heard = post(probe, &[("content-type", Some("text/plain"))]).await?;
    refused("a body of type text/plain", &heard)
}

async fn successor(probe: &mut Probe) -> Outcome {
    let post = address(probe)?;
    let Ok(here) = Address::parse(&post.url.to_string()) else {
        return skip("the address cannot be read");
    };
    let frame = initialize(&json!(1), probe.revision.as_str()).to_string();
    let mut tried: Vec<String> = Vec::new();
    for place in ["mcp", "/mcp"] {
        let Some(url) = here.resolve(place).filter(|url| !tried.contains(&url.to_string())) else {
            continue;
        };
        tried.push(url.to_string());
        let mut other = post.clone();
        other.url = url.clone();
        let heard = probe.link().await?.http_at(&other, &Ask::post(&frame, &[])).await;
        let is_there = |heard: &Heard| {
            heard.responses().next().is_some() || heard.status == Some(StatusCode::UNAUTHORIZED)
        };
        match heard {
            Ok(heard) if is_there(&heard) => return Ok(Some(format!("it does at {url}"))),
            Ok(_) | Err(Lost::Silent(_)) => {}
            Err(lost) => return Err(lost.into()),
        }
    }
    broken(format!("nothing answers at {}, where it usually is", tried.join(" or ")))
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
