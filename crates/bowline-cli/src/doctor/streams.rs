//! What only shows on an open connection: whether events come at once, whether foreign web pages
//! are kept out, whether a session can be ended.

use std::time::Duration;

use bowline::proto::http::{Media, write_legacy};
use http::{HeaderMap, HeaderValue, Method, header};
use serde_json::json;
use tokio::time::{Instant, timeout};

use super::ending::seconds;
use super::era::Live;
use super::http::Talk;
use super::report::{Diagnosis, Report, Step};
use super::seen::plain;
use super::wire::encode;

/// An event that takes longer than this after its answer began was held back by somebody.
const LATE: Duration = Duration::from_secs(2);

/// Walks.
pub(crate) async fn walk(report: &mut Report, talk: &Talk, live: &Live, patience: Duration) {
    stream(report, talk, live, patience).await;
    origin(report, talk, live, patience).await;
    close(report, talk, patience).await;
}

/// What became of a stream that was opened.
#[derive(Debug, PartialEq, Eq)]
enum Opened {
    /// The head, and where one is due an event, came after this long.
    After(Duration),
    /// The server has no such stream.
    No(u16),
    Silent,
    Broken(String),
}

/// The stream on which the server speaks unasked: what is in between must pass it on at once.
async fn stream(report: &mut Report, talk: &Talk, live: &Live, patience: Duration) {
    if talk.is_sse() {
        return report.push(Step::skipped("stream", "all messages came on one already"));
    }
    if live.revision.is_modern() && !tells_changes(live) {
        return report.push(Step::skipped("stream", "the server tells no changes"));
    }
    let began = Instant::now();
    let (opened, headers) = timeout(patience.min(Duration::from_secs(10)), open(talk, live))
        .await
        .unwrap_or_else(|_| (Opened::Silent, HeaderMap::new()));
    let step = Step::ok("stream", "", began);
    report.push(judge(step, &opened, talk.first_event, &headers));
}

fn judge(step: Step, opened: &Opened, first_event: Option<Duration>, headers: &HeaderMap) -> Step {
    let buffered = |what: String| {
        Diagnosis::unreachable(
            format!("events do not come at once: {what}"),
            format!(
                "Something in between{} collects answers before it passes them on: turn buffering and compression off there (nginx: proxy_buffering off, or the header X-Accel-Buffering: no).",
                who(headers)
            ),
        )
    };
    match opened {
        Opened::After(took) if *took > LATE => {
            let what = format!("the first took {}", seconds(*took));
            Step { seen: what.clone(), ..step }.warn(buffered(what))
        }
        Opened::After(_) | Opened::No(_) if first_event.is_some_and(|took| took > LATE) => {
            let took = first_event.unwrap_or_default();
            let what = format!("the first of an answer took {} after its head", seconds(took));
            Step { seen: what.clone(), ..step }.warn(buffered(what))
        }
        Opened::After(took) => Step { seen: format!("open after {}", seconds(*took)), ..step },
        Opened::No(status) => Step { seen: format!("the server has none (HTTP {status})"), ..step },
        Opened::Silent => {
            let what = "the stream does not begin".to_owned();
            Step { seen: what.clone(), ..step }.warn(buffered(what))
        }
        Opened::Broken(what) => Step { seen: what.clone(), ..step }.warn(Diagnosis::broken(
            format!("the stream of events cannot be opened: {what}"),
            "Answer with text/event-stream, or with 405 if there is no such stream.",
        )),
    }
}

/// Who is in between, as far as headers tell.
fn who(headers: &HeaderMap) -> String {
    let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    if headers.contains_key("cf-ray") {
        return " (Cloudflare)".to_owned();
    }
    let hint = text(header::VIA).or_else(|| text(header::SERVER));
    hint.map(|hint| format!(" ({})", plain(hint))).unwrap_or_default()
}

fn tells_changes(live: &Live) -> bool {
    let all = live.capabilities.as_object();
    all.is_some_and(|all| {
        all.values().any(|it| it["listChanged"] == true || it["subscribe"] == true)
    })
}

async fn open(talk: &Talk, live: &Live) -> (Opened, HeaderMap) {
    let began = Instant::now();
    let response = match live.revision.is_modern() {
        false => talk.get().await,
        true => {
            let wanted = json!({ "notifications": { "toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true } });
            let frame = encode(1_000_000, "subscriptions/listen", wanted, live.revision);
            let headers = talk.headers_for("subscriptions/listen", live.revision);
            talk.send(Method::POST, talk.address.uri.clone(), headers, frame).await
        }
    };
    let response = match response {
        Ok(response) => response,
        Err(trouble) => return (Opened::Broken(trouble.seen()), HeaderMap::new()),
    };
    let (head, mut body) = response.into_parts();
    let headers = head.headers;
    if !head.status.is_success() {
        return (Opened::No(head.status.as_u16()), headers);
    }
    if Media::of(&headers) != Some(Media::EventStream) {
        let media = headers
            .get(header::CONTENT_TYPE)
            .map(|it| String::from_utf8_lossy(it.as_bytes()).into_owned());
        return (
            Opened::Broken(format!("its type is {}", plain(&media.unwrap_or_default()))),
            headers,
        );
    }
    // The modern era begins with an acknowledgement; what the legacy era has to say may be nothing.
    if live.revision.is_modern() && body.chunk().await.is_none() {
        return (Opened::Broken("it ended before the acknowledgement".to_owned()), headers);
    }
    (Opened::After(began.elapsed()), headers)
}

/// A server on this machine can be asked by every web page that its user looks at, unless it
/// refuses foreign origins.
async fn origin(report: &mut Report, talk: &Talk, live: &Live, patience: Duration) {
    if !talk.address.is_loopback() || talk.is_sse() {
        return report.push(Step::skipped("origin", "matters for servers on this machine"));
    }
    let began = Instant::now();
    let method = if live.revision.is_modern() { "server/discover" } else { "ping" };
    let frame = encode(1_000_001, method, json!({}), live.revision);
    let mut headers = talk.headers_for(method, live.revision);
    headers.insert(header::ORIGIN, HeaderValue::from_static("https://foreign.example"));
    let sent = talk.send(Method::POST, talk.address.uri.clone(), headers, frame);
    let status = match timeout(patience, sent).await {
        Ok(Ok(response)) => response.status().as_u16(),
        _ => return report.push(Step::skipped("origin", "no answer")),
    };
    let step =
        Step::ok("origin", format!("a request from https://foreign.example: HTTP {status}"), began);
    report.push(match status {
        200..300 => step.warn(Diagnosis::broken(
            "the server takes requests from any web page, so a page in the user's browser can use it",
            "Refuse requests whose Origin is not known, with 403.",
        )),
        _ => step,
    });
}

async fn close(report: &mut Report, talk: &Talk, patience: Duration) {
    let Some(session) = &talk.session else {
        return report.push(Step::skipped("close", "there is no session"));
    };
    let began = Instant::now();
    let mut headers = talk.base_headers().clone();
    write_legacy(&mut headers, &Method::DELETE, talk.revision, Some(session));
    let sent = talk.send(Method::DELETE, talk.address.uri.clone(), headers, Vec::new());
    let seen = match timeout(patience, sent).await {
        Ok(Ok(response)) if response.status().is_success() => "the session was ended".to_owned(),
        Ok(Ok(response)) => {
            format!("the server keeps the session (HTTP {})", response.status().as_u16())
        }
        Ok(Err(trouble)) => trouble.seen(),
        Err(_) => "no answer".to_owned(),
    };
    report.push(Step::ok("close", seen, began));
}

#[cfg(test)]
mod tests {
    use super::super::report::Outcome;
    use super::*;

    #[test]
    fn streams_that_are_held_back_are_told() {
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
