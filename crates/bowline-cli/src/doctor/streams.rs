//! What shows only on an open connection: whether events arrive at once, whether requests from
//! foreign web pages are rejected, whether a session can be closed.

use std::time::Duration;

use bowline_check::frames::message::{plain_method, request};
use bowline_check::frames::{Http, HttpRequest, Lost};
use bowline_web::Url;
use http::{HeaderMap, HeaderValue, Method, header};
use serde_json::json;
use tokio::time::Instant;

use super::conversation::{AskError, Conversation};
use super::era::Live;
use super::report::{Report, Step, broken, unreachable};
use super::seen::{plain, seconds};

/// An event that takes longer than this after the head of its response was held back.
const LATE: Duration = Duration::from_secs(2);

pub(crate) async fn walk(
    report: &mut Report,
    conversation: &Conversation,
    live: &Live,
    patience: Duration,
) {
    let Some(http) = conversation.connection.http() else { return };
    report.push(stream(conversation, http, live, patience).await);
    report.push(origin(http, live, patience).await);
    report.push(close(http, patience).await);
}

/// What came of opening a stream.
#[derive(Debug, PartialEq, Eq)]
enum Opened {
    /// The head, and an event where one is due, arrived after this long.
    After(Duration),
    /// The server does not have one.
    No(u16),
    Silent,
    Broken(String),
}

/// The stream for messages that answer no request: what is in between must pass them on at once.
async fn stream(talk: &Conversation, http: &Http, live: &Live, patience: Duration) -> Step {
    if talk.is_sse() {
        return Step::skipped("stream", "all messages arrived on one already");
    }
    if live.revision.is_modern() && !announces_changes(live) {
        return Step::skipped("stream", "the server announces no changes");
    }
    let began = Instant::now();
    let opened = open(http, live, patience.min(Duration::from_secs(10))).await;
    judge(Step::ok("stream", "", began), &opened, talk.first_event, &talk.headers)
}

fn judge(step: Step, opened: &Opened, first_event: Option<Duration>, headers: &HeaderMap) -> Step {
    let late = first_event.filter(|took| *took > LATE);
    let held_back = match (opened, late) {
        (Opened::Silent, _) => "the stream does not begin".to_owned(),
        (Opened::After(took), _) if *took > LATE => format!("the first took {}", seconds(*took)),
        (Opened::After(_) | Opened::No(_), Some(took)) => {
            format!("the first of a response took {} after its head", seconds(took))
        }
        (Opened::After(took), None) => {
            return step.with_seen(format!("open after {}", seconds(*took)));
        }
        (Opened::No(status), None) => {
            return step.with_seen(format!("the server has none (HTTP {status})"));
        }
        (Opened::Broken(what), _) => {
            return step
                .with_seen(what)
                .warn(broken(format!("the event stream cannot be opened: {what}")).fix(
                    "Respond with text/event-stream, or with 405 if there is no such stream.",
                ));
        }
    };
    step.with_seen(&held_back).warn(
        unreachable(format!("events do not arrive at once: {held_back}")).fix(format!(
            "Something in between{} buffers responses: turn buffering and compression off there \
             (nginx: proxy_buffering off, or the header X-Accel-Buffering: no).",
            intermediary(headers)
        )),
    )
}

/// What is in between, as far as headers tell.
fn intermediary(headers: &HeaderMap) -> String {
    if headers.contains_key("cf-ray") {
        return " (Cloudflare)".to_owned();
    }
    let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let hint = text(header::VIA).or_else(|| text(header::SERVER));
    hint.map(|hint| format!(" ({})", plain(hint))).unwrap_or_default()
}

fn announces_changes(live: &Live) -> bool {
    let all = live.capabilities.as_object().into_iter().flat_map(|all| all.values());
    all.into_iter().any(|it| it["listChanged"] == true || it["subscribe"] == true)
}

async fn open(http: &Http, live: &Live, patience: Duration) -> Opened {
    let began = Instant::now();
    let wanted = json!({ "notifications": {
        "toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true,
    } });
    let listen = request(live.revision, &json!("doctor-1"), "subscriptions/listen", wanted);
    let listen = listen.to_string();
    let request = if live.revision.is_modern() {
        HttpRequest::post(&listen, &[])
    } else {
        HttpRequest::without_body(Method::GET, &[])
    };
    let reply = match http.exchange(&request, patience, |_| true).await {
        Ok(reply) => reply,
        Err(Lost::Silent(_)) => return Opened::Silent,
        Err(lost) => return Opened::Broken(AskError::from(lost).seen()),
    };
    if !reply.status.is_success() {
        return Opened::No(reply.status.as_u16());
    }
    if !reply.is_stream() {
        let media = reply.headers.get(header::CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
        return Opened::Broken(format!("its type is {}", plain(&String::from_utf8_lossy(media))));
    }
    // The modern era begins with an acknowledgement; a legacy stream may stay silent.
    if live.revision.is_modern() && reply.events().is_empty() {
        return Opened::Broken("it ended before the acknowledgement".to_owned());
    }
    Opened::After(began.elapsed())
}

/// Any web page that the user visits can reach a server on this machine, unless the server rejects
/// foreign origins.
async fn origin(http: &Http, live: &Live, patience: Duration) -> Step {
    const FOREIGN: &str = "https://foreign.example";
    let is_local = Url::try_from(http.url.clone()).is_ok_and(|url| url.is_loopback());
    if !is_local {
        return Step::skipped("origin", "matters only for servers on this machine");
    }
    let began = Instant::now();
    let method = plain_method(live.revision);
    let frame = request(live.revision, &json!("doctor-2"), method, json!({})).to_string();
    let changes = [("origin", Some(FOREIGN))];
    let request = HttpRequest::post(&frame, &changes);
    let Ok(reply) = http.exchange(&request, patience, |_| true).await else {
        return Step::skipped("origin", "no response");
    };
    let seen = format!("a request from {FOREIGN}: HTTP {}", reply.status.as_u16());
    let warning = reply.status.is_success().then(|| {
        broken(
            "the server accepts requests from any web page, so a page in the user's browser can \
             use it",
        )
        .fix("Reject requests with an unknown Origin with 403.")
    });
    Step::ok("origin", seen, began).warn(warning)
}

async fn close(http: &Http, patience: Duration) -> Step {
    if http.session.is_none() {
        return Step::skipped("close", "there is no session");
    }
    let began = Instant::now();
    let request = HttpRequest::without_body(Method::DELETE, &[]);
    let seen = match http.exchange(&request, patience, |_| true).await {
        Ok(reply) if reply.status.is_success() => "the session is closed".to_owned(),
        Ok(reply) => format!("the server keeps the session (HTTP {})", reply.status.as_u16()),
        Err(lost) => AskError::from(lost).seen(),
    };
    Step::ok("close", seen, began)
}

#[cfg(test)]
mod tests {
    use super::super::report::Outcome;
    use super::*;

    #[test]
    fn streams_that_are_held_back_are_reported() {
        let long = Duration::from_secs(5);
        let short = Duration::from_millis(5);
        for (opened, first_event, outcome) in [
            (Opened::After(short), None, Outcome::Ok),
            (Opened::After(short), Some(short), Outcome::Ok),
            (Opened::After(short), Some(long), Outcome::Warn),
            (Opened::After(long), None, Outcome::Warn),
            (Opened::No(405), None, Outcome::Ok),
            (Opened::No(405), Some(long), Outcome::Warn),
            (Opened::Silent, None, Outcome::Warn),
            (Opened::Broken("x".to_owned()), None, Outcome::Warn),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::SERVER, HeaderValue::from_static("nginx/1.2"));
            let step =
                judge(Step::ok("stream", "", Instant::now()), &opened, first_event, &headers);
            assert_eq!(step.outcome, outcome, "{opened:?} {first_event:?}");
            if let Some(found) = step.diagnosis.filter(|_| !matches!(opened, Opened::Broken(_))) {
                assert!(found.fix.contains("(nginx/1.2)"), "{found:?}");
            }
        }
    }
}
