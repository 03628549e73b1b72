//! The log of a session: every message and every line on standard error, numbered.

use std::collections::VecDeque;
use std::time::Duration;

use serde_json::Value;

use crate::session::Channel;
use crate::text::{cut, line};

/// Entries that are kept: 10,000. Older ones are dropped.
const MOST_ENTRIES: usize = 10_000;

/// Bytes that are kept: 64 MiB. Older entries are dropped.
const MOST_BYTES: usize = 64 << 20;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    /// Counted from 1.
    pub(crate) number: u64,
    /// Since the session began.
    at: Duration,
    channel: Channel,
    /// To the letter.
    pub(crate) text: String,
    pub(crate) kind: Kind,
    /// Its method; of a response, that of the request.
    pub(crate) method: String,
    pub(crate) id: Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Request,
    Notification,
    Result,
    Error,
    /// A line on standard error, or noise.
    Other,
}

/// Requests of the server whose questions have not come up yet: 64.
const MOST_UNMATCHED: usize = 64;

/// The log of a session.
#[derive(Debug, Default)]
pub(crate) struct Log {
    entries: VecDeque<Entry>,
    last: u64,
    bytes: usize,
    /// Requests of the server, method and id, until their questions come up.
    unmatched: VecDeque<(String, Value)>,
}

impl Log {
    pub(crate) fn add(&mut self, at: Duration, channel: Channel, text: &str) {
        self.last += 1;
        self.bytes += text.len();
        let mut entry = Entry::new(self.last, at, channel, text);
        if matches!(entry.kind, Kind::Result | Kind::Error) {
            entry.method = self.request_of(&entry).unwrap_or_default();
        }
        while self.entries.len() >= MOST_ENTRIES
            || (self.bytes > MOST_BYTES && !self.entries.is_empty())
        {
            let gone = self.entries.pop_front();
            self.bytes -= gone.map_or(0, |gone| gone.text.len());
        }
        if channel == Channel::Received && entry.kind == Kind::Request {
            self.unmatched.push_back((entry.method.clone(), entry.id.clone()));
            if self.unmatched.len() > MOST_UNMATCHED {
                self.unmatched.pop_front();
            }
        }
        self.entries.push_back(entry);
    }

    /// The id of the oldest request for a method whose question has not come up yet.
    pub(crate) fn identify(&mut self, method: &str) -> Option<Value> {
        let place = self.unmatched.iter().position(|(known, _)| known == method)?;
        self.unmatched.remove(place).map(|(_, id)| id)
    }

    /// Forgets questions: the connection that they came on is gone.
    pub(crate) fn forget_questions(&mut self) {
        self.unmatched.clear();
    }

    pub(crate) fn find(&self, number: u64) -> Option<&Entry> {
        let first = self.entries.front()?.number;
        self.entries.get(usize::try_from(number.checked_sub(first)?).ok()?)
    }

    /// The last entries that match all words, oldest first: a number says how many, other words
    /// say on which channel, of which kind, or what must be in it.
    pub(crate) fn filtered(&self, words: &[String]) -> Vec<&Entry> {
        let most = |word: &String| if word == "all" { Some(usize::MAX) } else { word.parse().ok() };
        let (counts, words): (Vec<&String>, Vec<_>) =
            words.iter().partition(|it| most(it).is_some());
        let most = counts.last().and_then(|word| most(word)).unwrap_or(20);
        let matches = |entry: &&Entry| words.iter().all(|word| entry.matches(word));
        let mut found: Vec<&Entry> = self.entries.iter().rev().filter(matches).take(most).collect();
        found.reverse();
        found
    }

    /// The method of the request that a response belongs to.
    fn request_of(&self, response: &Entry) -> Option<String> {
        let is_request = |entry: &&Entry| {
            entry.kind == Kind::Request
                && entry.channel != response.channel
                && entry.id == response.id
        };
        self.entries.iter().rev().find(is_request).map(|entry| entry.method.clone())
    }
}

impl Entry {
    fn new(number: u64, at: Duration, channel: Channel, text: &str) -> Self {
        let message: Value = match channel {
            Channel::Stderr => Value::Null,
            _ => serde_json::from_str(text).unwrap_or_default(),
        };
        let method = message.get("method").and_then(Value::as_str);
        let id = message.get("id");
        let kind = match (method, id) {
            (Some(_), Some(_)) => Kind::Request,
            (Some(_), None) => Kind::Notification,
            (None, Some(_)) if message.get("error").is_some() => Kind::Error,
            (None, Some(_)) => Kind::Result,
            (None, None) => Kind::Other,
        };
        let (method, id) = (method.unwrap_or_default().to_owned(), id.cloned().unwrap_or_default());
        Self { number, at, channel, text: text.to_owned(), kind, method, id }
    }

    pub(crate) fn params(&self) -> Option<Value> {
        let mut message: Value = serde_json::from_str(&self.text).ok()?;
        message.get_mut("params").map(Value::take)
    }

    fn matches(&self, word: &str) -> bool {
        match word {
            "sent" => self.channel == Channel::Sent,
            "received" => self.channel == Channel::Received,
            "stderr" => self.channel == Channel::Stderr,
            "requests" => self.kind == Kind::Request,
            "notifications" => self.kind == Kind::Notification,
            "answers" => matches!(self.kind, Kind::Result | Kind::Error),
            "errors" => self.kind == Kind::Error,
            text => self.text.contains(text) || self.method.contains(text),
        }
    }

    /// One line for people.
    pub(crate) fn summary(&self) -> String {
        let arrow = match self.channel {
            Channel::Sent => "→",
            Channel::Received => "←",
            Channel::Stderr => "!",
        };
        let (method, id, length) = (&self.method, &self.id, self.text.len());
        let of = if method.is_empty() { String::new() } else { format!(" of {method}") };
        let what = match self.kind {
            Kind::Request => {
                let params = self.params().unwrap_or_default();
                let name = ["name", "uri"].iter().find_map(|name| params.get(name)?.as_str());
                let name = name.map(|name| format!(" {name}")).unwrap_or_default();
                format!("{method}{name} (id {id})")
            }
            Kind::Notification => method.clone(),
            Kind::Result => format!("result{of} (id {id})"),
            Kind::Error => format!("error{of} (id {id})"),
            Kind::Other => String::new(),
        };
        let shown = match self.kind {
            Kind::Other => cut(&line(&self.text), 200).into_owned(),
            _ => format!("{}, {length} bytes", line(&what)),
        };
        format!("#{} +{:.3}s {arrow} {shown}", self.number, self.at.as_secs_f64())
    }
}

/// The words of a filter, beside numbers, `all` and texts.
pub(crate) const WORDS: [&str; 7] =
    ["sent", "received", "stderr", "requests", "notifications", "answers", "errors"];

#[cfg(test)]
#[path = "log/tests.rs"]
mod tests;
