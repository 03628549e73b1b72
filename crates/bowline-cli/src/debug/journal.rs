//! What was said in a session, numbered: every message, and every line on standard error.

use std::collections::VecDeque;
use std::time::Duration;

use serde_json::Value;

use crate::text::{cut, line};

/// Entries that are kept: 10,000. Older ones are forgotten.
const MOST_ENTRIES: usize = 10_000;

/// Bytes that are kept: 64 MiB. Older entries are forgotten.
const MOST_BYTES: usize = 64 << 20;

/// Who said it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum From {
    /// This client.
    Us,
    /// The server, as a message.
    Server,
    /// The server, on standard error.
    Stderr,
}

/// Something that was said.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    /// Counted from 1.
    pub(crate) number: u64,
    /// How long after the session began.
    pub(crate) at: Duration,
    /// Who said it.
    pub(crate) from: From,
    /// To the letter.
    pub(crate) text: String,
    kind: Kind,
}

/// What kind of message it is.
#[derive(Debug, Clone, PartialEq)]
enum Kind {
    Request { id: Value, method: String, name: Option<String> },
    Notification { method: String },
    Answer { id: Value, is_error: bool, to: Option<String> },
    Other,
}

/// What was said in a session.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    entries: VecDeque<Entry>,
    last: u64,
    bytes: usize,
}

impl Journal {
    /// Writes down what was said.
    pub(crate) fn add(&mut self, at: Duration, from: From, text: &str) -> &Entry {
        let mut kind = match from {
            From::Stderr => Kind::Other,
            _ => kind_of(text),
        };
        if let Kind::Answer { id, to, .. } = &mut kind {
            *to = self.question(from, id);
        }
        self.last += 1;
        self.bytes += text.len();
        self.entries.push_back(Entry { number: self.last, at, from, text: text.to_owned(), kind });
        while self.entries.len() > MOST_ENTRIES
            || (self.bytes > MOST_BYTES && self.entries.len() > 1)
        {
            let gone = self.entries.pop_front();
            self.bytes -= gone.map_or(0, |gone| gone.text.len());
        }
        let last = self.entries.len() - 1;
        &self.entries[last]
    }

    /// The entry of a number.
    pub(crate) fn find(&self, number: u64) -> Option<&Entry> {
        let first = self.entries.front()?.number;
        self.entries.get(usize::try_from(number.checked_sub(first)?).ok()?)
    }

    /// The entries that a filter lets through, oldest first.
    pub(crate) fn filtered(&self, filter: &Filter) -> Vec<&Entry> {
        let found = self.entries.iter().rev().filter(|entry| filter.lets_through(entry));
        let mut found: Vec<&Entry> = found.take(filter.most).collect();
        found.reverse();
        found
    }

    /// The method that an answer belongs to.
    fn question(&self, answered: From, wanted: &Value) -> Option<String> {
        let asked = match answered {
            From::Us => From::Server,
            _ => From::Us,
        };
        self.entries.iter().rev().find_map(|entry| match &entry.kind {
            Kind::Request { id, method, .. } if entry.from == asked && id == wanted => {
                Some(method.clone())
            }
            _ => None,
        })
    }
}

impl Entry {
    /// The method and the parameters of a request or notification.
    pub(crate) fn question(&self) -> Option<(String, Option<Value>)> {
        let value: Value = serde_json::from_str(&self.text).ok()?;
        let method = value.get("method")?.as_str()?.to_owned();
        Some((method, value.get("params").cloned()))
    }

    /// Whether it waits for an answer.
    pub(crate) fn is_request(&self) -> bool {
        matches!(self.kind, Kind::Request { .. })
    }

    /// One line for people.
    pub(crate) fn summary(&self) -> String {
        let seconds = self.at.as_secs_f64();
        let arrow = match self.from {
            From::Us => "→",
            From::Server => "←",
            From::Stderr => "!",
        };
        let what = match &self.kind {
            Kind::Request { id, method, name } => {
                let name = name.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
                format!("{method}{name} (id {id})")
            }
            Kind::Notification { method } => method.clone(),
            Kind::Answer { id, is_error, to } => {
                let what = if *is_error { "error" } else { "result" };
                let to = to.as_ref().map(|to| format!(" of {to}")).unwrap_or_default();
                format!("{what}{to} (id {id})")
            }
            Kind::Other => {
                let said = line(&self.text);
                return format!("#{} +{seconds:.3}s {arrow} {}", self.number, cut(&said, 200));
            }
        };
        let length = self.text.len();
        format!("#{} +{seconds:.3}s {arrow} {}, {length} bytes", self.number, line(&what))
    }
}

fn kind_of(text: &str) -> Kind {
    let Ok(Value::Object(message)) = serde_json::from_str::<Value>(text) else {
        return Kind::Other;
    };
    let id = message.get("id").cloned();
    match (message.get("method").and_then(Value::as_str), id) {
        (Some(method), Some(id)) => {
            let params = message.get("params");
            let named = ["name", "uri"].iter().find_map(|it| params?.get(it)?.as_str());
            Kind::Request { id, method: method.to_owned(), name: named.map(str::to_owned) }
        }
        (Some(method), None) => Kind::Notification { method: method.to_owned() },
        (None, Some(id)) => Kind::Answer { id, is_error: message.contains_key("error"), to: None },
        (None, None) => Kind::Other,
    }
}

/// Which entries are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Filter {
    most: usize,
    from: Option<From>,
    kind: Option<&'static str>,
    texts: Vec<String>,
}

/// The words of a filter, beside numbers and texts.
pub(crate) const WORDS: [&str; 7] =
    ["sent", "received", "stderr", "requests", "notifications", "answers", "errors"];

impl Filter {
    /// Reads a filter: how many of the last, who, which kind, and texts that must be in it.
    pub(crate) fn parse(words: &[String]) -> Self {
        let mut filter = Self { most: 20, from: None, kind: None, texts: Vec::new() };
        for word in words {
            match word.as_str() {
                "sent" => filter.from = Some(From::Us),
                "received" => filter.from = Some(From::Server),
                "stderr" => filter.from = Some(From::Stderr),
                "all" => filter.most = usize::MAX,
                other => match (WORDS.iter().find(|it| **it == other), other.parse()) {
                    (Some(kind), _) => filter.kind = Some(kind),
                    (None, Ok(most)) => filter.most = most,
                    _ => filter.texts.push(other.to_owned()),
                },
            }
        }
        filter
    }

    fn lets_through(&self, entry: &Entry) -> bool {
        let is_of_kind = match self.kind {
            None => true,
            Some("requests") => matches!(entry.kind, Kind::Request { .. }),
            Some("notifications") => matches!(entry.kind, Kind::Notification { .. }),
            Some("answers") => matches!(entry.kind, Kind::Answer { .. }),
            _ => matches!(entry.kind, Kind::Answer { is_error: true, .. }),
        };
        let to = match &entry.kind {
            Kind::Answer { to: Some(to), .. } => to.as_str(),
            _ => "",
        };
        is_of_kind
            && self.from.is_none_or(|from| entry.from == from)
            && self.texts.iter().all(|text| entry.text.contains(text) || to.contains(text))
    }
}

#[cfg(test)]
#[path = "journal/tests.rs"]
mod tests;
