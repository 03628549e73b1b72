//! What a server did while other things were checked: everything that came from it passes here,
//! and what no message should look like is written down.

use bowline::Revision;
use http::header::CONTENT_TYPE;
use serde_json::Value;

use super::evidence::shorten;
use super::group::scopes::problem_of;
use super::wire::{Frame, Heard, events};
use crate::record::Way;
use crate::session::note;

/// How many examples of one thing are kept.
const EXAMPLES: usize = 5;

/// The record of a revision, over all its connections.
#[derive(Debug, Clone, Default)]
pub(super) struct Seen {
    revision: Option<Revision>,
    /// The number of the program, where there are several.
    connection: Option<u64>,
    /// Lines on standard output that are no messages.
    pub(super) noise: Examples,
    /// Lines or bodies that are not UTF-8.
    pub(super) not_utf8: Examples,
    /// Messages that break JSON-RPC's rules for the envelope.
    pub(super) envelopes: Examples,
    /// Requests of the server's, but for `ping`: no capability was declared that allows any.
    pub(super) requests: Examples,
    /// Results without `resultType`, or with one that nobody knows.
    pub(super) result_types: Examples,
    /// Error codes that the revision forbids.
    pub(super) codes: Examples,
    /// Log messages that were not asked for, or are not well formed.
    pub(super) logs: Examples,
    /// Change notifications outside of a subscription.
    pub(super) unasked: Examples,
    /// Messages in events that have another name, which clients do not look at.
    pub(super) kinds: Examples,
    /// Media types of answers that are neither JSON nor a stream.
    pub(super) media: Examples,
    /// Session ids on answers to modern requests.
    pub(super) sessions: Examples,
    /// Results of modern requests that do not say who answers.
    pub(super) anonymous: Examples,
    /// Refusals for want of a scope that do not say so; `None` if there were no such refusals.
    pub(super) scopes: Option<Examples>,
    pub(super) stderr_lines: usize,
    /// What the last answer looked like.
    last_answer: Option<String>,
}

/// How often something was seen, and what the first ones looked like.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Examples {
    pub(super) count: usize,
    pub(super) first: Vec<String>,
}

impl Examples {
    fn add(&mut self, text: &str) {
        self.count += 1;
        if self.first.len() < EXAMPLES && !self.first.iter().any(|known| known == text) {
            self.first.push(text.to_owned());
        }
    }

    fn merge(&mut self, other: Self) {
        let Self { count, first } = other;
        let listed = first.len();
        for text in first {
            self.add(&text);
        }
        self.count += count - listed;
    }
}

impl Seen {
    pub(super) fn new(revision: Revision) -> Self {
        Self { revision: Some(revision), ..Self::default() }
    }

    /// That of a program.
    pub(super) fn on(self, connection: Option<u64>) -> Self {
        Self { connection, ..self }
    }

    /// Takes over what another connection saw.
    pub(super) fn merge(&mut self, other: Self) {
        let pairs = [
            (&mut self.noise, other.noise),
            (&mut self.not_utf8, other.not_utf8),
            (&mut self.envelopes, other.envelopes),
            (&mut self.requests, other.requests),
            (&mut self.result_types, other.result_types),
            (&mut self.codes, other.codes),
            (&mut self.logs, other.logs),
            (&mut self.unasked, other.unasked),
            (&mut self.kinds, other.kinds),
            (&mut self.media, other.media),
            (&mut self.sessions, other.sessions),
            (&mut self.anonymous, other.anonymous),
        ];
        for (mine, theirs) in pairs {
            mine.merge(theirs);
        }
        if let Some(scopes) = other.scopes {
            self.scopes.get_or_insert_default().merge(scopes);
        }
        self.stderr_lines += other.stderr_lines;
        self.last_answer = other.last_answer.or_else(|| self.last_answer.take());
    }

    /// What came from a server that gave no answer, if that explains it.
    pub(super) fn instead(&self) -> Option<String> {
        match (&self.last_answer, self.noise.count + self.kinds.count) {
            (Some(answer), _) => Some(format!("this came under another id: {answer}")),
            (None, 0) => None,
            (None, count) => {
                let first = self.noise.first.iter().chain(&self.kinds.first);
                let first = first.map(String::as_str).collect::<Vec<_>>().join(" ; ");
                let times = if count == 1 { "once" } else { "again and again" };
                Some(format!("what came, {times}, is no message: {first}"))
            }
        }
    }

    /// The messages in a frame of a stream.
    pub(super) fn frame(&mut self, (kind, bytes): &Frame) -> Vec<Value> {
        match kind.as_deref().filter(|kind| *kind != "message") {
            None => self.line(bytes),
            Some(kind) => {
                if serde_json::from_slice(bytes).is_ok_and(|value| is_message(&value)) {
                    let shown = shorten(&String::from_utf8_lossy(bytes), 200);
                    self.kinds.add(&format!("{:?} with {shown}", shorten(kind, 80)));
                }
                Vec::new()
            }
        }
    }

    /// The messages on a line of standard output, or in an event.
    fn line(&mut self, line: &[u8]) -> Vec<Value> {
        note(Way::Received, line, self.connection);
        let shown = shorten(&String::from_utf8_lossy(line), 200);
        if std::str::from_utf8(line).is_err() {
            self.not_utf8.add(&shown);
        }
        match serde_json::from_slice(line) {
            Ok(value) => self.unpack(value, &shown),
            Err(_) => {
                self.noise.add(&shown);
                Vec::new()
            }
        }
    }

    /// The messages in the body of an answer, to a modern request or not.
    pub(super) fn body(&mut self, body: &[u8], is_modern: bool, heard: &mut Heard) {
        note(Way::Received, body, None);
        let media = heard.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let media = media.unwrap_or_default().split(';').next().unwrap_or_default().trim();
        let is_success = heard.status.is_some_and(|status| status.is_success());
        if is_modern && heard.headers.contains_key("mcp-session-id") {
            self.sessions.add("mcp-session-id");
        }
        let text = String::from_utf8_lossy(body);
        match media {
            "text/event-stream" => {
                for event in events(body) {
                    match event {
                        Some(value) => heard.messages.extend(self.unpack(value, "an event")),
                        None => self.noise.add("an event whose data is not JSON"),
                    }
                }
            }
            _ => match serde_json::from_slice::<Value>(body) {
                Ok(value) if is_message(&value) || value.is_array() => {
                    if media != "application/json" {
                        self.media.add(&format!("{media:?} for a message"));
                    }
                    heard.messages.extend(self.unpack(value, &shorten(&text, 200)));
                }
                _ if body.is_empty() => {}
                _ => {
                    if is_success && media == "application/json" {
                        self.noise.add(&shorten(&text, 200));
                    }
                    heard.other = shorten(&text, 400);
                }
            },
        }
    }

    /// Looks at an answer to a request with our token, if we have one.
    pub(super) fn refusal(&mut self, heard: &Heard) {
        if let Some(refused) = problem_of(heard) {
            let problems = self.scopes.get_or_insert_default();
            if let Err(problem) = refused {
                problems.add(&problem);
            }
        }
    }

    /// Batches become their members; what is no message is noise.
    fn unpack(&mut self, value: Value, shown: &str) -> Vec<Value> {
        let values = match value {
            Value::Array(values) if !values.is_empty() => values,
            value => vec![value],
        };
        let (messages, other): (Vec<_>, Vec<_>) = values.into_iter().partition(is_message);
        for _ in other {
            self.noise.add(shown);
        }
        for message in &messages {
            self.message(message);
        }
        messages
    }

    fn message(&mut self, message: &Value) {
        let shown = shorten(&message.to_string(), 200);
        if let Some(problem) = envelope_problem(message) {
            self.envelopes.add(&format!("{problem}: {shown}"));
        }
        match (message.get("method").and_then(Value::as_str), message.get("id")) {
            (Some("ping"), Some(_)) if !self.is_modern() => {}
            (Some(_), Some(_)) => self.requests.add(&shown),
            (Some(method), None) => self.notification(method, message, &shown),
            (None, _) => self.response(message, &shown),
        }
    }

    fn notification(&mut self, method: &str, message: &Value, shown: &str) {
        let params = message.get("params");
        if method == "notifications/message" {
            let level = params.and_then(|params| params.get("level")?.as_str());
            let is_whole = params.is_some_and(|params| params.get("data").is_some());
            if !is_whole || !level.is_some_and(|level| LEVELS.contains(&level)) {
                self.logs.add(shown);
            } else if self.is_modern() {
                // No request of ours but one asks for logs, and that one is refused.
                self.logs.add(shown);
            }
        }
        let is_change = method.ends_with("/list_changed") || method.ends_with("/updated");
        let subscription = "/params/_meta/io.modelcontextprotocol~1subscriptionId";
        if self.is_modern() && is_change && message.pointer(subscription).is_none() {
            self.unasked.add(shown);
        }
    }

    fn response(&mut self, message: &Value, shown: &str) {
        self.last_answer = Some(shown.to_owned());
        if !self.is_modern() {
            return;
        }
        if let Some(result) = message.get("result") {
            let kind = result.get("resultType").and_then(Value::as_str);
            if !matches!(kind, Some("complete" | "input_required")) {
                self.result_types.add(shown);
            }
            if result.pointer("/_meta/io.modelcontextprotocol~1serverInfo").is_none() {
                self.anonymous.add(shown);
            }
        }
        let forbidden = |code: &i64| matches!(code, -32002 | -32042 | -32099..=-32023);
        if let Some(code) = message.pointer("/error/code").and_then(Value::as_i64)
            && forbidden(&code)
        {
            self.codes.add(&format!("{code}: {shown}"));
        }
    }

    fn is_modern(&self) -> bool {
        self.revision.is_some_and(Revision::is_modern)
    }
}

/// The levels of log messages.
pub(super) const LEVELS: [&str; 8] =
    ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

/// Whether it tries to be a message at all.
fn is_message(value: &Value) -> bool {
    let has = |name: &str| value.get(name).is_some();
    has("jsonrpc") || has("method") || (has("id") && (has("result") || has("error")))
}

fn envelope_problem(message: &Value) -> Option<&'static str> {
    let id = message.get("id");
    let is_id = |id: &Value| id.is_string() || id.is_i64() || id.is_u64();
    if message.get("jsonrpc") != Some(&Value::from("2.0")) {
        return Some("jsonrpc is not \"2.0\"");
    }
    if let Some(method) = message.get("method") {
        return match (method.is_string(), id) {
            (false, _) => Some("the method is not a string"),
            (true, Some(id)) if !is_id(id) => Some("the id is neither a string nor an integer"),
            _ => None,
        };
    }
    match (message.get("result"), message.get("error")) {
        (Some(_), Some(_)) => Some("both result and error"),
        (None, None) => Some("neither method nor result nor error"),
        (Some(_), None) if !id.is_some_and(is_id) => Some("a result without a usable id"),
        (Some(result), None) if !result.is_object() => Some("the result is not an object"),
        (None, Some(error)) => {
            let is_whole = error.get("code").is_some_and(|code| code.is_i64() || code.is_u64())
                && error.get("message").is_some_and(Value::is_string);
            (!is_whole).then_some("an error without an integer code and a message")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn broken_envelopes_are_named() {
        let cases = [
            (json!({"jsonrpc": "2.0", "id": 1, "result": {}}), None),
            (json!({"jsonrpc": "2.0", "error": {"code": -32700, "message": "no"}}), None),
            (json!({"jsonrpc": "2.0", "method": "x"}), None),
            (json!({"id": 1, "result": {}}), Some("jsonrpc is not \"2.0\"")),
            (json!({"jsonrpc": "2.0", "id": 1}), Some("neither method nor result nor error")),
            (json!({"jsonrpc": "2.0", "id": 1, "result": []}), Some("the result is not an object")),
            (
                json!({"jsonrpc": "2.0", "id": null, "result": {}}),
                Some("a result without a usable id"),
            ),
            (
                json!({"jsonrpc": "2.0", "id": 1, "error": {"code": "x", "message": "no"}}),
                Some("an error without an integer code and a message"),
            ),
        ];
        for (message, problem) in cases {
            assert_eq!(envelope_problem(&message), problem, "{message}");
        }
    }
}
