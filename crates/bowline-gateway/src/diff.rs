//! Compares answers, and what servers offer.

mod common;

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

pub use self::common::common;
use crate::recording::{Exchange, Recording};
use crate::session_file::Way;

/// A place where two values differ.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// Where: `tools.echo.inputSchema.required[0]`.
    pub path: String,
    /// What was there; `None` if it is new.
    pub before: Option<Value>,
    /// What is there now; `None` if it is gone.
    pub after: Option<Value>,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (&self.before, &self.after) {
            (None, Some(after)) => write!(f, "+ {}: {}", self.path, short(after)),
            (Some(before), None) => write!(f, "- {}: {}", self.path, short(before)),
            (before, after) => {
                let side = |value: &Option<Value>| value.as_ref().map(short).unwrap_or_default();
                write!(f, "~ {}: {} → {}", self.path, side(before), side(after))
            }
        }
    }
}

fn short(value: &Value) -> String {
    const MOST: usize = 80;
    let text = value.to_string();
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// Where two values differ, except at paths that contain one of `ignored`.
#[must_use]
pub fn values(before: &Value, after: &Value, ignored: &[String]) -> Vec<Difference> {
    let mut found = Vec::new();
    compare("", Some(before), Some(after), &mut found);
    found.retain(|it| !ignored.iter().any(|part| it.path.contains(part.as_str())));
    found
}

fn compare(path: &str, before: Option<&Value>, after: Option<&Value>, found: &mut Vec<Difference>) {
    let below =
        |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    match (before, after) {
        (Some(Value::Object(one)), Some(Value::Object(other))) => {
            let new = other.keys().filter(|name| !one.contains_key(*name));
            for name in one.keys().chain(new) {
                compare(&below(name), one.get(name), other.get(name), found);
            }
        }
        (Some(Value::Array(one)), Some(Value::Array(other))) => {
            for at in 0..one.len().max(other.len()) {
                compare(&format!("{path}[{at}]"), one.get(at), other.get(at), found);
            }
        }
        (before, after) if before == after => {}
        (before, after) => found.push(Difference {
            path: path.to_owned(),
            before: before.cloned(),
            after: after.cloned(),
        }),
    }
}

/// The members of answers that lists are in, and what their entries go by.
const LISTS: [(&str, &str, &str); 4] = [
    ("tools/list", "tools", "name"),
    ("prompts/list", "prompts", "name"),
    ("resources/list", "resources", "uri"),
    ("resources/templates/list", "resourceTemplates", "uriTemplate"),
];

/// What a server offers: who it is, what it can do, and its lists, each entry under its name.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Surface(Map<String, Value>);

impl Surface {
    /// What a recording shows of it. Later answers replace earlier ones.
    #[must_use]
    pub fn of(recording: &Recording) -> Self {
        let mut surface = Self::default();
        for exchange in recording.exchanges().iter().filter(|it| it.way == Way::Sent) {
            if let Some((answer, _)) = &exchange.answer
                && let Some(result) = answer.get("result")
            {
                surface.add(exchange.method(), result);
            }
        }
        surface
    }

    /// Adds the result of a method, or a page of one.
    pub fn add(&mut self, method: &str, result: &Value) {
        if matches!(method, "initialize" | "server/discover") {
            for member in ["serverInfo", "capabilities", "instructions"] {
                if let Some(value) = result.get(member) {
                    self.0.insert(member.to_owned(), value.clone());
                }
            }
        }
        let Some((_, member, key)) = LISTS.iter().find(|(name, _, _)| *name == method) else {
            return;
        };
        let map = self.0.entry(*member).or_insert_with(|| json!({}));
        for entry in result.get(*member).and_then(Value::as_array).into_iter().flatten() {
            let name = entry.get(*key).and_then(Value::as_str).unwrap_or_default();
            map[name] = entry.clone();
        }
    }

    /// As a file that can be kept: a baseline.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let mut sorted = Map::new();
        let names: BTreeMap<_, _> = self.0.iter().collect();
        for (name, value) in names {
            sorted.insert(name.clone(), value.clone());
        }
        json!({ "format": 1, "surface": sorted })
    }

    /// Reads what [`to_value`](Self::to_value) wrote.
    #[must_use]
    pub fn from_value(value: &Value) -> Option<Self> {
        Some(Self(value.get("surface")?.as_object()?.clone()))
    }

    /// Where another surface differs. Only what both know is compared, so that a recording in which
    /// nobody listed prompts does not lack them.
    #[must_use]
    pub fn compare(&self, other: &Self, ignored: &[String]) -> Vec<Difference> {
        let common = |one: &Self, two: &Self| {
            let members = one.0.iter().filter(|(name, _)| two.0.contains_key(*name));
            Value::Object(members.map(|(name, value)| (name.clone(), value.clone())).collect())
        };
        values(&common(self, other), &common(other, self), ignored)
    }
}

/// A request, apart from everything that differs between two sessions.
#[must_use]
pub fn key(request: &Value) -> String {
    let method = request["method"].as_str().unwrap_or_default();
    let mut params = request.get("params").cloned().unwrap_or_default();
    if let Some(params) = params.as_object_mut() {
        params.remove("_meta");
        params.remove("requestState");
        if matches!(method, "initialize" | "server/discover") {
            params.clear();
        }
    }
    if params.as_object().is_none_or(Map::is_empty) {
        return method.to_owned();
    }
    format!("{method} {params}")
}

/// What an answer says, apart from its id.
#[must_use]
pub fn outcome(answer: &Value) -> Value {
    let mut outcome = answer.clone();
    if let Some(members) = outcome.as_object_mut() {
        members.remove("id");
        members.remove("jsonrpc");
    }
    if let Some(result) = outcome.get_mut("result").and_then(Value::as_object_mut) {
        result.remove("_meta");
        result.remove("requestState");
    }
    outcome
}

/// Where the answers to equal requests differ: the request, and the differences.
#[must_use]
pub fn behaviour(
    before: &Recording,
    after: &Recording,
    ignored: &[String],
) -> Vec<(String, Vec<Difference>)> {
    let mut others: BTreeMap<String, Vec<Exchange>> = BTreeMap::new();
    for exchange in after.exchanges().into_iter().filter(|it| it.way == Way::Sent).rev() {
        others.entry(key(&exchange.request)).or_default().push(exchange);
    }
    let mut found = Vec::new();
    for exchange in before.exchanges().iter().filter(|it| it.way == Way::Sent) {
        let key = key(&exchange.request);
        // Lists and the server's identity are part of the surface.
        let is_surface = LISTS.iter().any(|(method, _, _)| *method == exchange.method())
            || matches!(exchange.method(), "initialize" | "server/discover");
        let Some(other) = others.get_mut(&key).and_then(Vec::pop) else { continue };
        let differences = match (&exchange.answer, &other.answer) {
            _ if is_surface => Vec::new(),
            (Some((one, _)), Some((two, _))) => values(&outcome(one), &outcome(two), ignored),
            (one, two) => {
                let said = |answer: &Option<(Value, f64)>| answer.as_ref().map(|it| outcome(&it.0));
                let mut found = Vec::new();
                compare("answer", said(one).as_ref(), said(two).as_ref(), &mut found);
                found
            }
        };
        if !differences.is_empty() {
            found.push((key, differences));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_compared_by_place() {
        let one = json!({ "a": [1, 2], "b": { "c": "x" }, "gone": true, "time": 1 });
        let two = json!({ "a": [1, 3, 4], "b": { "c": "x" }, "new": null, "time": 2 });
        let found = values(&one, &two, &["time".to_owned()]);
        let found: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(found, ["~ a[1]: 2 → 3", "+ a[2]: 4", "- gone: true", "+ new: null"]);
    }

    #[test]
    fn requests_are_the_same_whoever_sends_them() {
        let one = json!({ "id": 1, "method": "tools/call", "params": { "name": "x", "_meta": { "a": 1 } } });
        let two = json!({ "id": "b", "method": "tools/call", "params": { "name": "x", "requestState": "s" } });
        assert_eq!(key(&one), key(&two));
        assert_eq!(key(&json!({ "method": "initialize", "params": { "x": 1 } })), "initialize");
    }

    #[test]
    fn surfaces_know_what_was_listed() {
        let mut one = Surface::default();
        one.add("tools/list", &json!({ "tools": [{ "name": "a" }, { "name": "b", "x": 1 }] }));
        one.add("prompts/list", &json!({ "prompts": [] }));
        let mut two = Surface::default();
        two.add("tools/list", &json!({ "tools": [{ "name": "b", "x": 2 }] }));
        two.add("tools/list", &json!({ "tools": [{ "name": "c" }] }));
        let found: Vec<String> = one.compare(&two, &[]).iter().map(ToString::to_string).collect();
        let expected =
            [r#"- tools.a: {"name":"a"}"#, "~ tools.b.x: 1 → 2", r#"+ tools.c: {"name":"c"}"#];
        assert_eq!(found, expected);
        assert_eq!(Surface::from_value(&one.to_value()), Some(one));
    }
}
