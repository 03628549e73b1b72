//! What must be known when a spliced server dies: what is unanswered, and how the session was
//! opened. Pure: frames in, frames out.

use std::collections::{BTreeMap, BTreeSet};

use bowline_proto::error::ErrorObject;
use bowline_proto::method::{
    Cancelled, Discover, Initialize, Initialized, Method, Notice, SetLevel, Subscribe, Unsubscribe,
};
use bowline_proto::raw::Raw;
use bowline_proto::revision::{Era, Revisions};
use bowline_proto::wire::{
    Id, Message, ParseError, Request, encode_error, encode_fault, encode_notification,
    encode_request, parse_batch,
};
use serde_json::{Value, json};

use crate::bridge::opening::Opening;

/// What is known about a session.
#[derive(Default)]
pub(in crate::bridge) struct Ledger {
    /// The frames that opened the session: `initialize` and `notifications/initialized`.
    opened: Vec<Vec<u8>>,
    /// The level of the last `logging/setLevel`.
    level: Option<Value>,
    /// The parameters of subscriptions, by URI.
    subscribed: BTreeMap<String, Value>,
    /// Requests of the client that are not answered yet.
    pending: BTreeMap<Id, String>,
    /// Questions of the server that are not answered yet.
    asked: BTreeSet<Id>,
    /// Requests of our own, whose answers the client must not see.
    ours: BTreeSet<Id>,
    /// Our own answers to the client, with their line ends.
    answers: Vec<u8>,
    /// The lists whose changes the server reports.
    lists: Vec<&'static str>,
    /// How often the server was started again.
    restarts: u64,
}

/// The most requests in one direction that are remembered. Those beyond pass, and get no answer if
/// the server dies.
const MOST_OPEN: usize = 10_000;
/// The most subscriptions that are made again.
const MOST_SUBSCRIBED: usize = 1_024;
/// The longest URI that is subscribed to again.
const LONGEST_URI: usize = 4_096;

/// The lists of a server whose changes can be reported.
const LISTS: [(&str, &str); 3] = [
    ("tools", "notifications/tools/list_changed"),
    ("prompts", "notifications/prompts/list_changed"),
    ("resources", "notifications/resources/list_changed"),
];

impl Ledger {
    /// The request that finds out whether the server is of the client's era, its id, and whether it
    /// is the client's own.
    pub(super) fn open(&mut self, opening: &Opening) -> (Vec<u8>, Id, bool) {
        if let (Some(Era::Legacy), Some(id)) = (opening.era(), opening.id()) {
            self.opened = vec![opening.frame().to_vec()];
            return (opening.frame().to_vec(), id.clone(), true);
        }
        let mut meta = opening.meta();
        if let Some(meta) = meta.as_object_mut() {
            meta.remove("progressToken");
        }
        let id = Id::from("bowline-discover");
        let probe = request(&id, Discover::NAME, &json!({ "_meta": meta }));
        self.handle_client(opening.frame());
        (probe, id, false)
    }

    /// Whether an answer shows that the server is of the client's era.
    pub(super) fn is_ours(&mut self, answer: &[u8]) -> bool {
        let Ok(Message::Response(response)) = Message::parse(answer) else { return false };
        let Ok(Ok(result)) = response.outcome.map(value) else { return false };
        if self.opened.is_empty() {
            let listed = result.get("supportedVersions").and_then(Value::as_array);
            let names: Vec<_> = listed.into_iter().flatten().filter_map(Value::as_str).collect();
            return !Revisions::known(&names).common(Revisions::MODERN).is_empty();
        }
        let changes = |name: &str| {
            result.pointer(&format!("/capabilities/{name}/listChanged")) == Some(&Value::Bool(true))
        };
        let lists = LISTS.into_iter().filter(|(name, _)| changes(name));
        self.lists = lists.map(|(_, notice)| notice).collect();
        result.get("protocolVersion").is_some()
    }

    /// A frame of the client. Returns whether it is passed on.
    pub(super) fn handle_client(&mut self, frame: &[u8]) -> bool {
        each(frame, |message| self.handle_client_message(message, frame))
    }

    fn handle_client_message(&mut self, message: Message<'_>, frame: &[u8]) -> bool {
        match message {
            Message::Request(request) => {
                self.remember(&request);
                if self.pending.len() < MOST_OPEN {
                    self.pending.insert(request.id, request.method.into_owned());
                }
            }
            Message::Notification(notification) => match &*notification.method {
                // Once: a client that repeats it must not make this grow.
                Initialized::NAME if self.opened.len() < 2 => self.opened.push(frame.to_vec()),
                // The answer to what is cancelled may never come.
                Cancelled::NAME => {
                    let params = notification.params.and_then(|it| value(it).ok());
                    let id = params.as_ref().and_then(|params| params.get("requestId"));
                    if let Some(id) = id.and_then(|id| serde_json::from_value(id.clone()).ok()) {
                        self.pending.remove::<Id>(&id);
                    }
                }
                _ => {}
            },
            // The answer to a question of a process that is gone could meet another's.
            Message::Response(response) => {
                return self.asked.remove(&response.id) || self.restarts == 0;
            }
            Message::Fault(_) => {}
        }
        true
    }

    fn remember(&mut self, request: &Request<'_>) {
        let params = || request.params.raw().and_then(|it| value(it).ok()).unwrap_or_default();
        let uri = |params: &Value| params.get("uri")?.as_str().map(str::to_owned);
        match &*request.method {
            SetLevel::NAME => self.level = Some(json!({ "level": params()["level"] })),
            Subscribe::NAME => {
                let params = params();
                let uri = uri(&params).filter(|uri| uri.len() <= LONGEST_URI);
                if let Some(uri) = uri.filter(|_| self.subscribed.len() < MOST_SUBSCRIBED) {
                    self.subscribed.insert(uri, json!({ "uri": params["uri"] }));
                }
            }
            Unsubscribe::NAME => {
                if let Some(uri) = uri(&params()) {
                    self.subscribed.remove(&uri);
                }
            }
            _ => {}
        }
    }

    /// A frame of the server. Returns whether it is passed on.
    pub(super) fn handle_server(&mut self, frame: &[u8]) -> bool {
        each(frame, |message| match message {
            Message::Response(response) => {
                self.pending.remove(&response.id);
                !self.ours.remove(&response.id)
            }
            Message::Request(request) => {
                if self.asked.len() < MOST_OPEN {
                    self.asked.insert(request.id);
                }
                true
            }
            _ => true,
        })
    }

    /// A line of the client that does not pass. Returns what the server hears instead.
    pub(in crate::bridge) fn refuse(&mut self, problem: &ParseError) -> Vec<u8> {
        let what = format!("{problem} (see --max-size of the bridge)");
        let error = ErrorObject::new(problem.code, what);
        let mut instead = Vec::new();
        match &problem.id {
            Some(id) if problem.has_method => encode_error(&mut self.answers, id, &error),
            // The server would wait for ever.
            Some(id) if self.asked.remove(id) => {
                encode_error(&mut instead, id, &error);
                instead.push(b'\n');
                return instead;
            }
            _ => encode_fault(&mut self.answers, &error),
        }
        self.answers.push(b'\n');
        instead
    }

    /// Our own answers to the client.
    pub(in crate::bridge) fn take_answers(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.answers)
    }

    /// The server has died: the answers to everything that it has not answered, and the end of what
    /// it has asked.
    pub(super) fn fail(&mut self, status: &str) -> Vec<u8> {
        let mut frames = self.take_answers();
        for (id, method) in std::mem::take(&mut self.pending) {
            let what = format!(
                "{method}: the server ended with {status} before it answered; the request may \
                 have been executed; help: the server is being started again"
            );
            encode_error(&mut frames, &id, &ErrorObject::internal(what));
            frames.push(b'\n');
        }
        for id in std::mem::take(&mut self.asked) {
            let reason = format!("the server ended with {status}");
            let params = json!({ "requestId": id, "reason": reason });
            if encode_notification(&mut frames, Cancelled::NAME, Some(&params)).is_ok() {
                frames.push(b'\n');
            }
        }
        self.ours.clear();
        frames
    }

    /// The frames that open the session again: the first one with its id, whose answer must come
    /// before the others are sent, and the others.
    pub(super) fn again(&mut self) -> (Option<(Id, Vec<u8>)>, Vec<u8>) {
        self.restarts += 1;
        let mut first = None;
        let mut frames = Vec::new();
        for frame in &self.opened {
            match Message::parse(frame) {
                Ok(Message::Request(request)) if request.method == Initialize::NAME => {
                    first = Some((request.id, frame.clone()));
                }
                _ => frames.extend_from_slice(frame),
            }
        }
        let level = self.level.iter().map(|level| (SetLevel::NAME, level));
        let subscribed = self.subscribed.values().map(|it| (Subscribe::NAME, it));
        for (place, (method, params)) in level.chain(subscribed).enumerate() {
            let id = Id::from(format!("bowline-{}-{place}", self.restarts));
            frames.extend(request(&id, method, params));
            self.ours.insert(id);
        }
        (first, frames)
    }

    /// The server has been started again: anything may have changed.
    pub(super) fn changed(&self) -> Vec<u8> {
        let mut frames = Vec::new();
        for notice in &self.lists {
            if encode_notification(&mut frames, notice, None::<&Value>).is_ok() {
                frames.push(b'\n');
            }
        }
        for uri in self.subscribed.keys() {
            let (method, params) = ("notifications/resources/updated", json!({ "uri": uri }));
            if encode_notification(&mut frames, method, Some(&params)).is_ok() {
                frames.push(b'\n');
            }
        }
        frames
    }
}

/// The most messages in a batch that are looked at.
const MOST: usize = 1000;

/// Handles every message of a frame. What is not a message passes.
fn each(frame: &[u8], mut handle: impl FnMut(Message<'_>) -> bool) -> bool {
    match Message::parse(frame) {
        Ok(message) => handle(message),
        Err(_) => {
            if frame.trim_ascii_start().first() == Some(&b'[')
                && let Ok(batch) = parse_batch(frame, MOST)
            {
                for message in batch {
                    handle(message);
                }
            }
            true
        }
    }
}

fn value(raw: Raw<'_>) -> Result<Value, serde_json::Error> {
    serde_json::from_str(raw.get())
}

/// A request with its line end.
fn request(id: &Id, method: &str, params: &Value) -> Vec<u8> {
    let mut frame = Vec::new();
    encode_request(&mut frame, id, method, Some(params)).expect("plain JSON can be written");
    frame.push(b'\n');
    frame
}
