//! HAR 1.2: the HTTP exchanges of a recording. A recording of stdio becomes one entry per request.

use serde_json::{Value, json};

use super::moment;
use crate::recording::Recording;
use crate::session_file::{HttpHead, Line, LineKind, Way};

/// The recording as an HTTP archive.
#[must_use]
pub fn har(recording: &Recording) -> Value {
    let is_http = recording.lines.iter().any(|line| line.kind == LineKind::Http);
    let entries = if is_http { of_http(recording) } else { of_stdio(recording) };
    json!({ "log": {
        "version": "1.2",
        "creator": { "name": "bowline", "version": env!("CARGO_PKG_VERSION") },
        "comment": recording.opening.server(),
        "entries": entries,
    } })
}

/// An exchange in the making.
struct Entry<'a> {
    at: f64,
    ended: f64,
    request: &'a HttpHead,
    response: Option<&'a HttpHead>,
    sent: Vec<String>,
    received: Vec<String>,
}

fn of_http(recording: &Recording) -> Vec<Value> {
    let mut entries: Vec<Entry<'_>> = Vec::new();
    for line in &recording.lines {
        match (&line.http, line.direction) {
            (Some(request), Some(Way::Sent)) => entries.push(Entry {
                at: line.at,
                ended: line.at,
                request,
                response: None,
                sent: Vec::new(),
                received: Vec::new(),
            }),
            (Some(response), _) => {
                let mut open = entries.iter_mut();
                if let Some(entry) = open.find(|it| it.request.exchange == response.exchange) {
                    (entry.response, entry.ended) = (Some(response), line.at);
                }
            }
            (None, Some(way)) if line.kind == LineKind::Message => {
                // Without a number, a message belongs to the latest head.
                let number = line.connection;
                let mut latest = entries.iter_mut().rev();
                let entry =
                    latest.find(|it| number.is_none_or(|it_is| it.request.exchange == it_is));
                if let Some(entry) = entry {
                    entry.ended = line.at;
                    let said = said(line);
                    if way == Way::Sent { entry.sent.push(said) } else { entry.received.push(said) }
                }
            }
            _ => {}
        }
    }
    entries.iter().map(|entry| entry.to_value(recording)).collect()
}

impl Entry<'_> {
    fn to_value(&self, recording: &Recording) -> Value {
        let status = self.response.and_then(|response| response.status).unwrap_or_default();
        let answered = self.response.map(headers).unwrap_or_default();
        written(
            recording,
            self.at,
            self.ended - self.at,
            &json!({
                "method": self.request.method,
                "url": self.request.url,
                "headers": headers(self.request),
                "body": self.sent.join("\n"),
                "status": status,
                "answered": answered,
                "answer": self.received.join("\n"),
            }),
        )
    }
}

fn of_stdio(recording: &Recording) -> Vec<Value> {
    let exchanges = recording.exchanges();
    let entries = exchanges.iter().map(|exchange| {
        let (answer, took) = match &exchange.answer {
            Some((answer, took)) => (answer.to_string(), *took),
            None => (String::new(), 0.0),
        };
        written(
            recording,
            exchange.at,
            took,
            &json!({
                "method": "POST",
                "url": format!("stdio://localhost/{}", exchange.method()),
                "headers": [],
                "body": exchange.request.to_string(),
                "status": if answer.is_empty() { 0 } else { 200 },
                "answered": [],
                "answer": answer,
            }),
        )
    });
    entries.collect()
}

/// An entry; `parts` has what differs between transports.
fn written(recording: &Recording, at: f64, took: f64, parts: &Value) -> Value {
    let started = jiff::Timestamp::from_nanosecond(moment(recording, at)).unwrap_or_default();
    let length = |member: &str| parts[member].as_str().map_or(0, str::len);
    let millis = took * 1000.0;
    json!({
        "startedDateTime": started.to_string(),
        "time": millis,
        "request": {
            "method": parts["method"],
            "url": parts["url"],
            "httpVersion": "HTTP/1.1",
            "cookies": [],
            "headers": parts["headers"],
            "queryString": [],
            "postData": { "mimeType": "application/json", "text": parts["body"] },
            "headersSize": -1,
            "bodySize": length("body"),
        },
        "response": {
            "status": parts["status"],
            "statusText": "",
            "httpVersion": "HTTP/1.1",
            "cookies": [],
            "headers": parts["answered"],
            "content": { "size": length("answer"), "mimeType": "application/json", "text": parts["answer"] },
            "redirectURL": "",
            "headersSize": -1,
            "bodySize": length("answer"),
        },
        "cache": {},
        "timings": { "send": 0, "wait": millis, "receive": 0 },
    })
}

fn headers(head: &HttpHead) -> Vec<Value> {
    let pair = |(name, value): &(String, String)| json!({ "name": name, "value": value });
    head.headers.iter().map(pair).collect()
}

fn said(line: &Line) -> String {
    let message = line.message.as_ref().map(|message| message.as_str().to_owned());
    message.or_else(|| line.text.clone()).unwrap_or_default()
}
