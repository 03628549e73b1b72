//! What shows only on an open connection: whether events arrive at once, whether requests from
//! foreign web pages are rejected, whether a session can be closed.

use std::time::Duration;

use bowline::proto::http::Media;
use bowline_check::frames::HttpRequest;
use http::{HeaderMap, HeaderValue, Method, header};
use serde_json::json;
use tokio::time::{Instant, timeout};

use super::conversation::{AskError, HttpTalk, frame};
use super::era::Live;
use super::report::{Report, Step, broken, unreachable};
use super::seen::{plain, seconds};

/// An event that takes longer than this after the head of its response was held back.
const LATE: Duration = Duration::from_secs(2);

pub(crate) async fn walk(report: &mut Report, talk: &HttpTalk, live: &Live, patience: Duration) {
    report.push(stream(talk, live, patience).await);
    report.push(origin(talk, live, patience).await);
    report.push(close(talk, patience).await);
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
async fn stream(talk: &HttpTalk, live: &Live, patience: Duration) -> Step {
    if talk.is_sse() {
        return Step::skipped("stream", "all messages arrived on one already");
    }
    if live.revision.is_modern() && !announces_changes(live) {
        return Step::skipped("stream", "the server announces no changes");
    }
    let began = Instant::now();
    let mut headers = HeaderMap::new();
    let opening = open(talk, live, &mut headers);
    let opened = timeout(patience.min(Duration::from_secs(10)), opening).await;
    let opened = opened.unwrap_or(Opened::Silent);
    judge(Step::ok("stream", "", began), &opened, talk.first_event, &headers)
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

async fn open(talk: &HttpTalk, live: &Live, headers: &mut HeaderMap) -> Opened {
    let began = Instant::now();
    let wanted = json!({ "notifications": {
        "toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true,
    } });
    let listen = frame(1_000_000, "subscriptions/listen", wanted, live.revision);
    let request = if live.revision.is_modern() {
        HttpRequest::post(&listen, &[])
    } else {
        HttpRequest::without_body(Method::GET, &[])
    };
    let response = match talk.http.send(&request).await {
        Ok(response) => response,
        Err(lost) => return Opened::Broken(AskError::from(lost).seen()),
    };
    let (head, mut body) = response.into_parts();
    *headers = head.headers;
    if !head.status.is_success() {
        return Opened::No(head.status.as_u16());
    }
    if Media::of(headers) != Some(Media::EventStream) {
        let media = headers.get(header::CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
        return Opened::Broken(format!("its type is {}", plain(&String::from_utf8_lossy(media))));
    }
    // The modern era begins with an acknowledgement; a legacy stream may stay silent.
    if live.revision.is_modern() && body.chunk().await.is_none() {
        return Opened::Broken("it ended before the acknowledgement".to_owned());
    }
    Opened::After(began.elapsed())
}

/// Any web page that the user visits can reach a server on this machine, unless the server rejects
/// foreign origins.
async fn origin(talk: &HttpTalk, live: &Live, patience: Duration) -> Step {
    const FOREIGN: &str = "https://foreign.example";
    if !talk.url.is_loopback() || talk.is_sse() {
        return Step::skipped("origin", "matters only for servers on this machine");
    }
    let began = Instant::now();
    let method = if live.revision.is_modern() { "server/discover" } else { "ping" };
    let frame = frame(1_000_001, method, json!({}), live.revision);
    let changes = [("origin", Some(FOREIGN))];
    let request = HttpRequest::post(&frame, &changes);
    let Ok(Ok(response)) = timeout(patience, talk.http.send(&request)).await else {
        return Step::skipped("origin", "no response");
    };
    let status = response.status();
    let seen = format!("a request from {FOREIGN}: HTTP {}", status.as_u16());
    let warning = status.is_success().then(|| {
        broken(
            "the server accepts requests from any web page, so a page in the user's browser can \
             use it",
        )
        .fix("Reject requests with an unknown Origin with 403.")
    });
    Step::ok("origin", seen, began).warn(warning)
}

async fn close(talk: &HttpTalk, patience: Duration) -> Step {
    if talk.http.session.is_none() {
        return Step::skipped("close", "there is no session");
    }
    let began = Instant::now();
    let request = HttpRequest::without_body(Method::DELETE, &[]);
    let seen = match timeout(patience, talk.http.send(&request)).await {
        Ok(Ok(response)) if response.status().is_success() => "the session is closed".to_owned(),
        Ok(Ok(response)) => {
            format!("the server keeps the session (HTTP {})", response.status().as_u16())
        }
        Ok(Err(lost)) => AskError::from(lost).seen(),
        Err(_) => "no response".to_owned(),
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
