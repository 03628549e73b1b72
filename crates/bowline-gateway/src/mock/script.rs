//! What a recorded server said to each request, in order.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use bowline::Revision;
use serde_json::{Value, json};

use super::attribute::Requests;
use crate::diff::key;
use crate::recording::Recording;
use crate::session_file::{LineKind, Way};

/// Everything that a recorded server said.
#[derive(Debug)]
pub(super) struct Script {
    pub(super) takes: Vec<Take>,
    /// Takes that are still to come, by what asks for them.
    queues: Mutex<BTreeMap<String, VecDeque<usize>>>,
    /// Takes that continue a question, by the state that the request repeats.
    states: HashMap<String, usize>,
    revision: Option<Revision>,
    name: String,
    pub(super) is_timed: bool,
}

/// One request, and what the server said.
#[derive(Debug)]
pub(super) struct Take {
    pub(super) request: Value,
    pub(super) parts: Vec<Part>,
    is_answered: bool,
}

/// A message of the server.
#[derive(Debug)]
pub(super) struct Part {
    /// Seconds since the request.
    pub(super) after: f64,
    pub(super) message: Value,
    pub(super) kind: PartKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PartKind {
    Notification,
    /// The client's answer is waited for.
    Question,
    Answer,
}

/// Lists: the method, its member, what entries go by, and the requests that use entries.
const LISTS: [(&str, &str, &str, &str); 4] = [
    ("tools/list", "tools", "name", "tools/call"),
    ("prompts/list", "prompts", "name", "prompts/get"),
    ("resources/list", "resources", "uri", "resources/read"),
    ("resources/templates/list", "resourceTemplates", "uriTemplate", ""),
];

impl Script {
    pub(super) fn new(recording: &Recording, is_timed: bool) -> Self {
        let takes = takes(recording);
        let mut queues: BTreeMap<String, VecDeque<usize>> = BTreeMap::new();
        let mut states = HashMap::new();
        for (number, take) in takes.iter().enumerate() {
            let is_listening = take.request["method"] == "subscriptions/listen";
            if !take.is_answered && !is_listening {
                continue;
            }
            match state(&take.request) {
                Some(state) => drop(states.insert(state.to_owned(), number)),
                None => {
                    let [exact, loose] = keys(&take.request);
                    queues.entry(exact).or_default().push_back(number);
                    queues.entry(loose).or_default().push_back(number);
                }
            }
        }
        let revision = recording.revision();
        let (queues, name) = (Mutex::new(queues), recording.opening.server());
        Self { takes, queues, states, revision, name, is_timed }
    }

    /// The revision that was spoken.
    pub(super) fn revision(&self) -> Option<Revision> {
        self.revision
    }

    /// What was said to such a request: to the retry with the same state, to an equal request, or
    /// else to one for the same thing.
    pub(super) fn take(&self, request: &Value) -> Option<&Take> {
        if let Some(number) = state(request).and_then(|state| self.states.get(state)) {
            return self.takes.get(*number);
        }
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        let number = keys(request).iter().find_map(|key| {
            let queue = queues.get_mut(key)?;
            if queue.len() > 1 { queue.pop_front() } else { queue.front().copied() }
        })?;
        self.takes.get(number)
    }

    /// The answer to a request that was not recorded.
    pub(super) fn unrecorded(&self, request: &Value) -> Value {
        let method = request["method"].as_str().unwrap_or_default();
        if let Some(result) = self.made_up(method) {
            return json!({ "jsonrpc": "2.0", "result": result });
        }
        let is_known = self.takes.iter().any(|take| take.request["method"] == method);
        let code = if is_known { -32602 } else { -32601 };
        let what = format!("the recording has no answer to {}", key(request));
        json!({ "jsonrpc": "2.0", "error": { "code": code, "message": what } })
    }

    /// The result of a request without which there is no session, and which clients need not have
    /// sent: the handshake, lists of what was used, and what has an empty result.
    fn made_up(&self, method: &str) -> Option<Value> {
        let is_modern = self.revision.is_some_and(Revision::is_modern);
        let mut result = match method {
            "initialize" if !is_modern => json!({
                "protocolVersion": self.revision.unwrap_or(Revision::LATEST_LEGACY).as_str(),
                "capabilities": self.capabilities(),
                "serverInfo": { "name": self.name, "version": "" },
            }),
            "server/discover" if is_modern => json!({
                "supportedVersions": [self.revision?.as_str()],
                "capabilities": self.capabilities(),
            }),
            "ping" | "logging/setLevel" | "resources/subscribe" | "resources/unsubscribe" => {
                json!({})
            }
            _ => {
                let (_, member, key, user) = LISTS.iter().find(|(list, ..)| *list == method)?;
                json!({ *member: self.used(key, user) })
            }
        };
        if is_modern {
            result["resultType"] = json!("complete");
            result["ttlMs"] = json!(0);
            result["cacheScope"] = json!("private");
        }
        Some(result)
    }

    /// Definitions of everything that these requests use.
    fn used(&self, key: &str, user: &str) -> Vec<Value> {
        let takes = self.takes.iter().filter(|take| take.request["method"] == user);
        let names: std::collections::BTreeSet<&str> =
            takes.filter_map(|take| take.request["params"][key].as_str()).collect();
        let define = |name: &str| match user {
            "tools/call" => json!({ "name": name, "inputSchema": { "type": "object" } }),
            _ => json!({ key: name, "name": name }),
        };
        names.into_iter().map(define).collect()
    }

    /// What the server can do, as far as it was used.
    fn capabilities(&self) -> Value {
        let mut capabilities = json!({});
        for take in &self.takes {
            let method = take.request["method"].as_str().unwrap_or_default();
            let (group, _) = method.split_once('/').unwrap_or_default();
            if matches!(group, "tools" | "prompts" | "resources" | "logging") {
                capabilities[group] = json!({});
            } else if group == "completion" {
                capabilities["completions"] = json!({});
            }
        }
        capabilities
    }
}

/// What asks for a take: all of the request, and what does not depend on the client.
fn keys(request: &Value) -> [String; 2] {
    let mut same = request.clone();
    if let Some(params) = same.get_mut("params").and_then(Value::as_object_mut) {
        params.remove("inputResponses");
        params.remove("task");
        if request["method"] == "subscriptions/listen" {
            params.clear();
        }
    }
    // Two spaces tell it from an exact key.
    [key(request), format!("  {}", key(&same))]
}

fn state(request: &Value) -> Option<&str> {
    request.pointer("/params/requestState").and_then(Value::as_str)
}

/// The requests of a recording, each with what the server said because of it.
fn takes(recording: &Recording) -> Vec<Take> {
    let (mut takes, mut requests): (Vec<Take>, _) = (Vec::new(), Requests::default());
    let mut begun = Vec::new();
    for line in recording.lines.iter().filter(|line| line.kind == LineKind::Message) {
        let Some(message) = line.message.as_ref().map(bowline::Json::to_value) else { continue };
        let exchange = line.connection.unwrap_or_default();
        let (has_method, has_id) = (message.get("method").is_some(), message.get("id").is_some());
        let (take, kind) = match (line.direction, has_method, has_id) {
            (Some(Way::Sent), true, true) => {
                requests.begin(takes.len(), exchange, &message);
                begun.push(line.at);
                takes.push(Take { request: message, parts: Vec::new(), is_answered: false });
                continue;
            }
            (Some(Way::Received), true, true) => {
                (requests.of(exchange, &message), PartKind::Question)
            }
            (Some(Way::Received), true, false) => {
                (requests.of(exchange, &message), PartKind::Notification)
            }
            (Some(Way::Received), false, true) => {
                (requests.answered(exchange, &message), PartKind::Answer)
            }
            _ => continue,
        };
        if let Some(number) = take {
            let after = (line.at - begun[number]).max(0.0);
            takes[number].is_answered |= kind == PartKind::Answer;
            takes[number].parts.push(Part { after, message, kind });
        }
    }
    takes
}
