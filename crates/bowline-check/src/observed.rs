//! What a server did while other things were checked. Everything that it sends passes here, and
//! whatever breaks a rule for all messages is written down.

use std::collections::BTreeMap;

use bowline::Revision;
use bowline::proto::wire::Message;
use http::header::CONTENT_TYPE;
use serde_json::Value;

use crate::frames::{Event, HttpReply};
use crate::reply::Received;
use crate::rules::scopes::problems_of_rejection;
use crate::text::shorten;

/// How many examples of one kind are kept.
const EXAMPLES: usize = 5;
/// How much of a body is kept.
const BODY: usize = 4 << 10;
/// How many bytes of the first line that is not a message are kept.
const STRAY: usize = 4 << 10;

/// What can be wrong with any message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Sight {
    /// Output that is not a message.
    Noise,
    NotUtf8,
    /// A message that breaks the rules of JSON-RPC for its envelope.
    Envelope,
    /// A request other than `ping`, though no capability allows any.
    Request,
    /// A result without a known `resultType`.
    ResultType,
    /// An error code that the revision forbids.
    ErrorCode,
    /// A log message that nobody asked for, or that is malformed.
    Log,
    /// A change notification outside of a subscription.
    Unsubscribed,
    /// A message in an event with another name than `message`, which clients ignore.
    EventName,
    /// A message with a media type that is neither JSON nor an event stream.
    MediaType,
    /// A session id in the response to a modern request.
    Session,
    /// A modern result without `serverInfo`.
    Anonymous,
    /// A rejection for lack of scopes that does not say so.
    Scopes,
}

/// How often something was seen, and the first few examples.
#[derive(Debug, Clone, Default)]
struct Examples {
    count: usize,
    first: Vec<String>,
}

impl Examples {
    fn add(&mut self, text: String) {
        self.count += 1;
        if self.first.len() < EXAMPLES && !self.first.contains(&text) {
            self.first.push(text);
        }
    }
}

/// The record of a revision, over all its connections.
#[derive(Debug, Clone)]
pub(crate) struct Observed {
    revision: Revision,
    sights: BTreeMap<Sight, Examples>,
    /// Rejections for lack of scopes.
    pub(crate) scope_rejections: usize,
    pub(crate) stderr_lines: usize,
    pub(crate) strays: Strays,
}

/// What came on a stream beside messages.
#[derive(Debug, Clone, Default)]
pub struct Strays {
    /// The first line or event that is not a message, and how many messages came before it.
    pub first: Option<(Vec<u8>, usize)>,
    /// How many there are.
    pub count: usize,
    /// How many lines or events are messages.
    pub messages: usize,
}

impl Strays {
    /// Takes a line or event.
    pub fn take(&mut self, line: &[u8]) {
        if Message::parse(line).is_ok() {
            self.messages += 1;
            return;
        }
        self.count += 1;
        self.first.get_or_insert_with(|| (line[..line.len().min(STRAY)].to_vec(), self.messages));
    }
}

impl Observed {
    pub(crate) fn new(revision: Revision) -> Self {
        Self {
            revision,
            sights: BTreeMap::new(),
            scope_rejections: 0,
            stderr_lines: 0,
            strays: Strays::default(),
        }
    }

    fn add(&mut self, sight: Sight, text: impl Into<String>) {
        self.sights.entry(sight).or_default().add(text.into());
    }

    /// How often something was seen, with examples; `None` if it never was.
    pub(crate) fn examples(&self, sight: Sight) -> Option<(usize, String)> {
        self.sights.get(&sight).map(|it| (it.count, it.first.join(" ; ")))
    }

    /// Adds what another connection saw.
    pub(crate) fn merge(&mut self, other: Self) {
        for (sight, Examples { count, first }) in other.sights {
            let mine = self.sights.entry(sight).or_default();
            let listed = first.len();
            first.into_iter().for_each(|text| mine.add(text));
            mine.count += count - listed;
        }
        self.scope_rejections += other.scope_rejections;
        self.stderr_lines += other.stderr_lines;
    }

    /// What a server sent in place of an answer, if that explains the lack of one.
    pub(crate) fn instead(&self) -> Option<String> {
        let (mut count, mut first) = (0, Vec::new());
        for sight in [Sight::Noise, Sight::EventName] {
            if let Some(examples) = self.sights.get(&sight) {
                count += examples.count;
                first.extend(examples.first.iter().map(String::as_str));
            }
        }
        let times = if count == 1 { "once" } else { "repeatedly" };
        let first = first.join(" ; ");
        (count > 0).then(|| format!("the server sent, {times}, what is not a message: {first}"))
    }

    /// The messages in a line of output or an event.
    pub(crate) fn event(&mut self, event: &Event) -> Vec<Value> {
        let shown = shorten(&String::from_utf8_lossy(&event.data), 200);
        // Clients that skip a byte order mark get further.
        let marked = event.data.strip_prefix(b"\xef\xbb\xbf");
        let value = serde_json::from_slice(marked.unwrap_or(&event.data));
        if !event.is_message() {
            if value.is_ok_and(|value| is_message(&value)) {
                let name = shorten(event.name.as_deref().unwrap_or_default(), 80);
                self.add(Sight::EventName, format!("{name:?} with {shown}"));
            }
            return Vec::new();
        }
        self.strays.take(&event.data);
        if marked.is_some() {
            self.add(Sight::Noise, "a byte order mark");
        }
        if std::str::from_utf8(&event.data).is_err() {
            self.add(Sight::NotUtf8, shown.as_str());
        }
        match value {
            Ok(value) => self.unpack(value, &shown),
            Err(_) => {
                self.add(Sight::Noise, shown);
                Vec::new()
            }
        }
    }

    /// The messages in an HTTP reply, to a modern request or not.
    pub(crate) fn reply(&mut self, reply: HttpReply, is_modern: bool) -> Received {
        let mut messages = Vec::new();
        if is_modern && reply.headers.contains_key("mcp-session-id") {
            self.add(Sight::Session, "mcp-session-id");
        }
        let media = reply.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let media = media.unwrap_or_default().split(';').next().unwrap_or_default().trim();
        let shown = |most| shorten(&String::from_utf8_lossy(&reply.body), most);
        if reply.is_stream() {
            for event in reply.events() {
                match serde_json::from_slice(&event.data) {
                    Ok(value) => messages.extend(self.unpack(value, "an event")),
                    Err(_) => self.add(Sight::Noise, "an event whose data is not JSON"),
                }
            }
        } else {
            match serde_json::from_slice::<Value>(&reply.body) {
                Ok(value) if is_message(&value) || value.is_array() => {
                    if media != "application/json" {
                        self.add(Sight::MediaType, format!("{media:?} for a message"));
                    }
                    messages = self.unpack(value, &shown(200));
                }
                _ => {
                    if reply.status.is_success()
                        && media == "application/json"
                        && !reply.body.is_empty()
                    {
                        self.add(Sight::Noise, shown(200));
                    }
                }
            }
        }
        let is_stream = reply.is_stream();
        let HttpReply { status, headers, mut body, left_open, first_byte } = reply;
        body.truncate(BODY);
        let status = Some(status);
        Received { status, headers, messages, body, is_stream, left_open, first_byte }
    }

    /// Looks at a response to a request with our own token.
    pub(crate) fn rejection(&mut self, received: &Received) {
        let Some(problems) = problems_of_rejection(received) else { return };
        self.scope_rejections += 1;
        if !problems.is_empty() {
            self.add(Sight::Scopes, problems.join(", "));
        }
    }

    /// Splits a batch; what is not a message is noise.
    fn unpack(&mut self, value: Value, shown: &str) -> Vec<Value> {
        let values = match value {
            Value::Array(values) if !values.is_empty() => values,
            value => vec![value],
        };
        let (messages, other): (Vec<_>, Vec<_>) = values.into_iter().partition(is_message);
        other.iter().for_each(|_| self.add(Sight::Noise, shown));
        messages.iter().for_each(|message| self.message(message));
        messages
    }

    fn message(&mut self, message: &Value) {
        let shown = shorten(&message.to_string(), 200);
        if let Some(problem) = envelope_problem(message) {
            self.add(Sight::Envelope, format!("{problem}: {shown}"));
        }
        match (message.get("method").and_then(Value::as_str), message.get("id")) {
            (Some("ping"), Some(_)) if !self.revision.is_modern() => {}
            (Some(_), Some(_)) => self.add(Sight::Request, shown),
            (Some(method), None) => self.notification(method, message, &shown),
            (None, _) => self.response(message, &shown),
        }
    }

    fn notification(&mut self, method: &str, message: &Value, shown: &str) {
        let is_modern = self.revision.is_modern();
        if method == "notifications/message" {
            let level = message.pointer("/params/level").and_then(Value::as_str);
            let is_whole = message.pointer("/params/data").is_some()
                && level.is_some_and(|level| LEVELS.contains(&level));
            // No modern request of ours asks for logs, but for one that is rejected.
            if !is_whole || is_modern {
                self.add(Sight::Log, shown);
            }
        }
        let is_change = method.ends_with("/list_changed") || method.ends_with("/updated");
        let subscription = "/params/_meta/io.modelcontextprotocol~1subscriptionId";
        if is_modern && is_change && message.pointer(subscription).is_none() {
            self.add(Sight::Unsubscribed, shown);
        }
    }

    fn response(&mut self, message: &Value, shown: &str) {
        if !self.revision.is_modern() {
            return;
        }
        if let Some(result) = message.get("result") {
            let kind = result.get("resultType").and_then(Value::as_str);
            if !matches!(kind, Some("complete" | "input_required")) {
                self.add(Sight::ResultType, shown);
            }
            if result.pointer("/_meta/io.modelcontextprotocol~1serverInfo").is_none() {
                self.add(Sight::Anonymous, shown);
            }
        }
        if let Some(code @ (-32002 | -32042 | -32099..=-32023)) =
            message.pointer("/error/code").and_then(Value::as_i64)
        {
            self.add(Sight::ErrorCode, format!("{code}: {shown}"));
        }
    }
}

/// The levels of log messages.
pub(crate) const LEVELS: [&str; 8] =
    ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

/// Whether it tries to be a message at all.
fn is_message(value: &Value) -> bool {
    let has = |name: &str| value.get(name).is_some();
    has("jsonrpc") || has("method") || (has("id") && (has("result") || has("error")))
}

pub(crate) fn envelope_problem(message: &Value) -> Option<&'static str> {
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
